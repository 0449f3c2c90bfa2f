package generate

import "math/bits"

// mix is a hash of words with good bits everywhere (SplitMix64's finisher between them).
func mix(words ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range words {
		h ^= w
		h += 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// below maps 64 random bits evenly to 0..n-1.
func below(random uint64, n int) int {
	hi, _ := bits.Mul64(random, uint64(n))
	return int(hi)
}

// unit maps random bits to [0,1).
func unit(random uint64) float64 { return float64(random>>11) * 0x1p-53 }

// shuffle is a seeded permutation of 0..n-1 that needs no memory: four rounds of a
// Feistel network over the next even power of two, walked until it lands below n.
type shuffle struct {
	n    int
	half uint
	seed uint64
}

func newShuffle(n int, seed uint64) shuffle {
	return shuffle{n: n, half: uint(bits.Len(uint(max(n-1, 1)))+1) / 2, seed: seed}
}

func (s shuffle) at(i int) int {
	mask := uint64(1)<<s.half - 1
	for x := uint64(i); ; {
		l, r := x>>s.half, x&mask
		for round := range uint64(4) {
			l, r = r, l^mix(s.seed, round, r)&mask
		}
		if x = l<<s.half | r; x < uint64(s.n) {
			return int(x)
		}
	}
}

// lengths are the quantiles 0, 1/32 .. 1 of a log-normal distribution with sigma 0.6,
// cut at both ends, of mean 1 if interpolated: a table, as exp has other last bits on
// other CPUs.
var lengths = [...]float64{0.147, 0.27, 0.329, 0.375, 0.414, 0.451, 0.485, 0.518, 0.551, 0.584, 0.616, 0.649, 0.682, 0.716, 0.752, 0.788, 0.826,
	0.866, 0.908, 0.952, 1.0, 1.052, 1.108, 1.169, 1.238, 1.316, 1.407, 1.514, 1.647, 1.822, 2.074, 2.526, 4.645}

// length draws the number of nonzeros of a document, about mean on average.
func length(random uint64, mean float64) int {
	i := below(random, len(lengths)-1)
	f := unit(mix(random))
	l := lengths[i] + float64(f*(lengths[i+1]-lengths[i]))
	return max(1, int(float64(l*mean)+0.5))
}
