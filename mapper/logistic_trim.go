package mapper

import "math"

// Trimming: what a block keeps of v, and what its weights have, are the entries that matter.
// P is within 1/2 ||e||^2 + 1/2 e'He of where it was when e is left out of a solved v, and
// the certificate is priced at what is left (decision 11). Parents get all of v: what is
// left out of many terminals under one parent would add up there.

// trimBins is the number of classes by size that entries are counted in: eight an octave.
const (
	trimBins  = 0x7f800000 >> trimShift // of finite numbers
	trimShift = 20
)

// trimming counts the squares of a lane's entries by size.
type trimming struct{ sum [trimBins][Lanes]float64 }

// trim sets e.cut: a lane's entries below it cost trim, half the sum of their squares, or
// less; trim < 0: that share of half of all squares. 0: nothing is left out.
func (e *logit) trim(trim float64) {
	e.cut = [Lanes]float32{}
	if trim == 0 {
		return
	}
	if e.trimming == nil {
		e.trimming = &trimming{}
	}
	bins := &e.trimming.sum
	clear(bins[:])
	var budget [Lanes]float64
	for f := range e.v {
		for l, x := range &e.v[f] {
			q := float64(float64(x) * float64(x))
			bins[min(math.Float32bits(x)&^(1<<31)>>trimShift, trimBins-1)][l] += q
			budget[l] += q
		}
	}
	for l := range budget {
		budget[l] = max(2*trim, -trim*budget[l])
		left := 0.0
		for k := range bins {
			if left += bins[k][l]; left > budget[l] {
				break
			}
			e.cut[l] = math.Float32frombits(uint32(k+1) << trimShift)
		}
	}
}

// kept is v at a line of the tile without what is trimmed.
func (e *logit) kept(f int) [Lanes]float32 {
	v := e.v[f]
	for l, x := range v {
		if x < e.cut[l] && -x < e.cut[l] {
			v[l] = 0
		}
	}
	return v
}

// Threshold is the size below which the squares of vector v, at the listed features, add up
// to 2 trim or less; trim < 0: to that share of all squares.
func Threshold(v []float64, features []uint32, trim float64) float64 {
	if trim == 0 {
		return 0
	}
	var sum [trimBins]float64
	all := 0.0
	for _, f := range features {
		q := float64(v[f] * v[f])
		sum[trimBin(v[f])] += q
		all += q
	}
	budget, left := max(2*trim, -trim*all), 0.0
	for k := range sum {
		if left += sum[k]; left > budget {
			return float64(math.Float32frombits(uint32(k) << trimShift))
		}
	}
	return math.MaxFloat64
}

// trimBin is the class of an entry, by its size rounded towards zero.
func trimBin(x float64) int {
	f := float32(math.Abs(x))
	if float64(f) > math.Abs(x) {
		f = math.Nextafter32(f, 0)
	}
	return int(min(math.Float32bits(f)>>trimShift, trimBins-1))
}
