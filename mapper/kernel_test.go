package mapper

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"taxon/internal/linalg/sparse"
)

// randomTile is random interleaved weights with zeros among them and wide magnitudes.
func randomTile[T real](r *rand.Rand, d int) [][Lanes]T {
	w := make([][Lanes]T, d+1)
	for f := range w {
		for l := range w[f] {
			w[f][l] = T(r.NormFloat64() * math.Pow(10, float64(r.IntN(9)-4)))
			if r.IntN(8) == 0 {
				w[f][l] = 0
			}
		}
	}
	return w
}

// bitsOf tells zeros of the two signs apart.
func bitsOf[T real](x T) uint64 { return math.Float64bits(float64(x)) }

func kernelRow(r *rand.Rand, d int) (idx []uint32, val []float32) {
	for f := range uint32(d) {
		if r.IntN(3) == 0 {
			idx, val = append(idx, f), append(val, float32(r.NormFloat64()))
		}
	}
	return idx, val
}

// spreadBias is a bias as kernels want it.
func spreadBias[T real](bias T) (v [Lanes]T) {
	for l := range v {
		v[l] = bias
	}
	return v
}

// scoreArgsOf is the argument that scores all rows of a matrix of one shard.
func scoreArgsOf(x *sparse.Matrix, w [][Lanes]float32, bias float32, out [][Lanes]float32, low []uint16) *scoreArgs {
	shard := &x.Shards[0]
	return &scoreArgs{
		begin: &shard.Begin[0], n: x.Rows, idx: unsafe.SliceData(shard.Index), val: unsafe.SliceData(shard.Value),
		w: &w[0], last: &w[len(w)-1], out: &out[0], low: &low[0], entries: uint64(len(shard.Index)), features: len(w),
		bias: spreadBias(bias),
	}
}

// wantScore is the definition: entry j to partial sum j mod 4.
func wantScore[T real](w [][Lanes]T, idx []uint32, val []float32, bias T, l int) T {
	s := [parts]T{bias * w[len(w)-1][l]}
	for j, f := range idx {
		s[j%parts] += T(T(val[j]) * w[f][l])
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// TestScoreConformance holds every scoring kernel to the definition, in bits.
func TestScoreConformance(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	const d = 60
	for n := range 40 {
		var index [][]uint32
		var value [][]float32
		for range 50 {
			idx, val := kernelRow(r, r.IntN(d))
			index, value = append(index, idx), append(value, val)
		}
		x := sparse.FromRows(d, index, value)
		w := randomTile[float32](r, d)
		bias := [...]float32{0, 1, 0.3}[n%3]
		for _, k := range Kernels() {
			out, low := make([][Lanes]float32, x.Rows), make([]uint16, x.Rows)
			e := scoreArgsOf(x, w, bias, out, low)
			for l := range e.floor {
				e.floor[l] = float32(r.NormFloat64())
			}
			k.score(e)
			for i := range out {
				for l, got := range &out[i] {
					if want := wantScore(w, index[i], value[i], bias, l); bitsOf(got) != bitsOf(want) {
						t.Fatalf("%v, row %d of %d entries, lane %d: %g, want %g", k, i, len(index[i]), l, got, want)
					}
					if low[i]>>l&1 == 1 != !(got < e.floor[l]) {
						t.Fatalf("%v, row %d, lane %d: %g against floor %g: %04x", k, i, l, got, e.floor[l], low[i])
					}
				}
			}
		}
	}
}

// TestAddConformance: w moves by the definition's bits.
func TestAddConformance(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	const d = 60
	for n := range 40 {
		var index [][]uint32
		var value [][]float32
		for range 30 {
			idx, val := kernelRow(r, r.IntN(d))
			index, value = append(index, idx), append(value, val)
		}
		x := sparse.FromRows(d, index, value)
		start := randomTile[float32](r, d)
		coef := randomTile[float32](r, x.Rows-1)
		bias := [...]float32{0, 1, 0.3}[n%3]
		want := slices.Clone(start)
		for i := range coef {
			for l, c := range &coef[i] {
				want[d][l] += float32(bias * c)
				for j, f := range index[i] {
					want[f][l] += float32(value[i][j] * c)
				}
			}
		}
		for _, k := range Kernels() {
			w, shard := slices.Clone(start), &x.Shards[0]
			k.add(&addArgs{begin: &shard.Begin[0], n: x.Rows, idx: unsafe.SliceData(shard.Index),
				val: unsafe.SliceData(shard.Value),
				w:   &w[0], last: &w[d], coef: &coef[0], entries: uint64(len(shard.Index)), features: len(w), bias: spreadBias(bias)})
			for f := range w {
				for l := range w[f] {
					if bitsOf(w[f][l]) != bitsOf(want[f][l]) {
						t.Fatalf("%v, feature %d, lane %d: %g, want %g", k, f, l, w[f][l], want[f][l])
					}
				}
			}
		}
	}
}

// TestExactConformance against a loop that converts first.
func TestExactConformance(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	w := randomTile[float32](r, 60)
	for range 50 {
		idx, val := kernelRow(r, 60)
		for _, k := range Kernels() {
			e := &exactArgs{idx: unsafe.SliceData(idx), val: unsafe.SliceData(val), n: len(idx), w: &w[0], last: &w[60],
				features: 61, bias: 0.5}
			k.exact(e)
			for l := range Lanes {
				want := 0.5 * float64(w[60][l])
				for j, f := range idx {
					want += float64(float64(val[j]) * float64(w[f][l]))
				}
				if got := score64(w, idx, val, 0.5, l); got != want || e.out[l] != want {
					t.Fatalf("%v, lane %d: %g and %g, want %g", k, l, got, e.out[l], want)
				}
			}
		}
	}
}

// TestLayout holds the arguments of the kernels to the offsets of internal/tools/kernelgen.
func TestLayout(t *testing.T) {
	var r rowRef
	var s visitArgs[float32]
	var d visitArgs[float64]
	var c scoreArgs
	var a addArgs
	var e exactArgs
	for name, pair := range map[string][2]uintptr{
		"rowRef":               {unsafe.Sizeof(r), 32},
		"rowRef.n":             {unsafe.Offsetof(r.n), 16},
		"rowRef.room":          {unsafe.Offsetof(r.room), 20},
		"rowRef.moved":         {unsafe.Offsetof(r.moved), 22},
		"spreadArgs.mask":      {unsafe.Offsetof(spreadArgs{}.mask), 24},
		"rowRef.scale":         {unsafe.Offsetof(r.scale), 24},
		"rowRef.active":        {unsafe.Offsetof(r.active), 28},
		"rowRef.pos":           {unsafe.Offsetof(r.pos), 30},
		"visitArgs.visits":     {unsafe.Offsetof(s.visits), 56},
		"visitArgs.bias":       {unsafe.Offsetof(s.bias), 128},
		"visitArgs.bias 64":    {unsafe.Offsetof(d.bias), 128},
		"visitArgs.cPos":       {unsafe.Offsetof(s.cPos), 128 + 5*64},
		"visitArgs.softNeg 64": {unsafe.Offsetof(d.softNeg), 128 + 8*128},
		"visitArgs.estimate":   {unsafe.Offsetof(s.estimate), 128 + 9*64},
		"scoreArgs.entries":    {unsafe.Offsetof(c.entries), 64},
		"scoreArgs.bias":       {unsafe.Offsetof(c.bias), 128},
		"scoreArgs.floor":      {unsafe.Offsetof(c.floor), 192},
		"addArgs.coef":         {unsafe.Offsetof(a.coef), 48},
		"addArgs.bias":         {unsafe.Offsetof(a.bias), 128},
		"gatherArgs.v":         {unsafe.Offsetof(gatherArgs{}.v), 32},
		"gatherArgs.bias":      {unsafe.Offsetof(gatherArgs{}.bias), 56},
		"startArgs.last":       {unsafe.Offsetof(startArgs{}.last), 40},
		"startArgs.bias":       {unsafe.Offsetof(startArgs{}.bias), 48},
		"exactArgs.last":       {unsafe.Offsetof(e.last), 32},
		"exactArgs.bias":       {unsafe.Offsetof(e.bias), 48},
		"exactArgs.out":        {unsafe.Offsetof(e.out), 64},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %d, the generator has %d", name, pair[0], pair[1])
		}
	}
}

// TestWeightHasNoNegativeZero: a tile that held -0 would differ in bits from one that was
// updated by +0.
func TestWeightHasNoNegativeZero(t *testing.T) {
	minus := float32(math.Copysign(0, -1))
	for _, c := range []struct {
		y float32
		v float64
	}{{minus, 0}, {minus, math.Copysign(0, -1)}, {0, math.Copysign(0, -1)}, {0, -1e-300}, {1, -1}} {
		if w := weight(c.y, c.v, 0); math.Float32bits(w) != 0 {
			t.Errorf("weight(%g, %g) has bits %x", c.y, c.v, math.Float32bits(w))
		}
	}
}

// TestShuffle: a permutation, the same for the same seed and epoch, another for others.
func TestShuffle(t *testing.T) {
	make100 := func(seed, epoch uint64) []uint32 {
		order := make([]uint32, 100)
		for i := range order {
			order[i] = uint32(i)
		}
		Shuffle(order, seed, epoch)
		return order
	}
	a := make100(1, 2)
	if !slices.Equal(a, make100(1, 2)) {
		t.Error("the same seed and epoch give two orders")
	}
	if slices.Equal(a, make100(1, 3)) || slices.Equal(a, make100(2, 2)) {
		t.Error("another seed or epoch gives the same order")
	}
	slices.Sort(a)
	for i, x := range a {
		if x != uint32(i) {
			t.Fatalf("not a permutation: %d at %d", x, i)
		}
	}
	first := make([]int, 100) // where 0 goes, over many seeds: every place its share
	for seed := range uint64(20_000) {
		first[slices.Index(make100(seed, 0), 0)]++
	}
	for at, n := range first {
		if n < 120 || n > 290 { // 200 +- 14: six sigma
			t.Errorf("place %d is drawn %d times of 20000", at, n)
		}
	}
}
