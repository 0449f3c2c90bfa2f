package mapper

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// tile is random interleaved weights with zeros among them and wide magnitudes.
func tile[T real](r *rand.Rand, d int) [][Lanes]T {
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

// TestScoreConformance holds every scoring kernel to the reference loop of its comment, in
// bits: whichever kernel runs, and whoever shares the row, a lane's score is the same.
func TestScoreConformance(t *testing.T) {
	t.Run("float32", scoreConformance[float32])
	t.Run("float64", scoreConformance[float64])
}

func scoreConformance[T real](t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	const d = 60
	w := tile[T](r, d)
	masks := []uint16{0, 1, 0x8000, 0x8001, 0x1248, 0xff, 0xff00, 0x7fff, 0xffff}
	for range 300 {
		a, b := uint16(r.Uint32()), uint16(r.Uint32())
		masks = append(masks, a&b, a|b) // few lanes, many lanes
	}
	for n, mask := range masks {
		idx, val := kernelRow(r, d)
		bias := [...]T{0, 1, 0.3}[n%3]
		var want, got, half [Lanes]T
		for l := range want {
			if bias != 0 {
				want[l] = bias * w[d][l]
			}
			for j, f := range idx {
				want[l] += T(T(val[j]) * w[f][l])
			}
		}
		score(w, idx, val, bias, mask, &got)
		scoreHalf(w, idx, val, bias, 0, &half)
		scoreHalf(w, idx, val, bias, 8, &half)
		for l := range want {
			if mask>>l&1 != 0 && bitsOf(got[l]) != bitsOf(want[l]) {
				t.Fatalf("score, mask %04x, lane %d: %g, want %g", mask, l, got[l], want[l])
			}
			if bitsOf(half[l]) != bitsOf(want[l]) {
				t.Fatalf("scoreHalf, lane %d: %g, want %g", l, half[l], want[l])
			}
		}
		rest := mask
		var four [Lanes]T
		for rest != 0 {
			before := rest
			scoreFour(w, idx, val, bias, &rest, &four)
			if rest&^before != 0 || rest == before {
				t.Fatalf("scoreFour turned mask %04x into %04x", before, rest)
			}
			for l := range want {
				if (before&^rest)>>l&1 != 0 && bitsOf(four[l]) != bitsOf(want[l]) {
					t.Fatalf("scoreFour, mask %04x, lane %d: %g, want %g", before, l, four[l], want[l])
				}
			}
		}
	}
}

// TestUpdateConformance: the lanes of the mask move by the reference loop's bits, the
// others not at all.
func TestUpdateConformance(t *testing.T) {
	t.Run("float32", updateConformance[float32])
	t.Run("float64", updateConformance[float64])
}

func updateConformance[T real](t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	const d = 60
	for n := range 300 {
		w := tile[T](r, d)
		idx, val := kernelRow(r, d)
		bias := [...]T{0, 1, 0.3}[n%3]
		mask := uint16(r.Uint32())
		if n%4 == 0 {
			mask = 0xffff
		}
		var delta [Lanes]T
		for l := range delta {
			delta[l] = T(r.NormFloat64())
		}
		want := slices.Clone(w)
		for l := range delta {
			if mask>>l&1 == 0 {
				continue
			}
			if bias != 0 {
				want[d][l] += T(bias * delta[l])
			}
			for j, f := range idx {
				want[f][l] += T(T(val[j]) * delta[l])
			}
		}
		update(w, idx, val, bias, mask, &delta)
		for f := range w {
			for l := range w[f] {
				if bitsOf(w[f][l]) != bitsOf(want[f][l]) {
					t.Fatalf("mask %04x, feature %d, lane %d: %g, want %g", mask, f, l, w[f][l], want[f][l])
				}
			}
		}
	}
}

// TestScore64 against a loop that converts first.
func TestScore64(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	w := tile[float32](r, 60)
	for range 50 {
		idx, val := kernelRow(r, 60)
		for l := range Lanes {
			want := 0.5 * float64(w[60][l])
			for j, f := range idx {
				want += float64(float64(val[j]) * float64(w[f][l]))
			}
			if got := score64(w, idx, val, 0.5, l); got != want {
				t.Fatalf("lane %d: %g, want %g", l, got, want)
			}
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
		shuffle(order, seed, epoch)
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
