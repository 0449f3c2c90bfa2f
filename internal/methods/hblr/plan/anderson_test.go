package plan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMix checks that extrapolation finds the fixed point of a linear iteration in a few rounds
// more than the number of its directions; the plain iteration would take hundreds. Once only the
// slowest direction is left, the estimate of 1 - rate is its value.
func TestMix(t *testing.T) {
	const n = 6
	rates := []float64{0.99, 0.9, 0.5, 0.3, -0.2, 0.1}
	r := rand.New(rand.NewPCG(1, 7))
	var fixed, x [n]float64
	for i := range n {
		fixed[i] = r.NormFloat64()
	}
	dot := func(a, b [n]float64) (sum float64) {
		for i, v := range a {
			sum += v * b[i]
		}
		return sum
	}
	var h history
	var gs, fs [][n]float64
	points, last := 1, x
	for round := 1; round <= 12; round++ {
		var g, f, s [n]float64
		for i, rate := range rates {
			g[i] = fixed[i] + rate*(x[i]-fixed[i])
			f[i], s[i] = g[i]-x[i], x[i]-last[i]
		}
		gs, fs = slices.Insert(gs, 0, g), slices.Insert(fs, 0, f)
		var products [Memory + 1]float64
		for j := range points {
			products[j] = dot(f, fs[j])
		}
		h.accept(products, points-1, dot(s, s))
		c := h.mix(runaway)
		last, x = x, [n]float64{}
		sum := 0.0
		for j, w := range c {
			sum += w
			for i := range n {
				x[i] += w * gs[j][i]
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("round %d: weights add up to %g", round, sum)
		}
		points = min(len(c), Memory) + 1
	}
	for i := range n {
		if math.Abs(x[i]-fixed[i]) > 1e-7 {
			t.Errorf("direction %d: %g, the fixed point is %g", i, x[i], fixed[i])
		}
	}
}

// TestContraction checks that there is no estimate before three moves, and that it is then the
// least relative change of the residual by a move, at most 1.
func TestContraction(t *testing.T) {
	var h history
	f := 1.0
	for k := range 4 {
		if got := h.contraction(); k < 4 && (got != 0) != (k > 3) {
			t.Errorf("after %d points %g", k, got)
		}
		step := f * f // a plain move of x by F = f with rate 0.9
		next := 0.9 * f
		h.accept([Memory + 1]float64{next * next, next * f}, min(k, 1), step)
		f = next
	}
	if got := h.contraction(); math.Abs(got-0.1) > 1e-9 {
		t.Errorf("1 - rate is 0.1, the estimate %g", got)
	}
}

// TestForgets checks that a plain step follows after the residual has doubled.
func TestForgets(t *testing.T) {
	h := history{Older: 2}
	h.FF[0][0], h.FF[1][1] = 5, 1
	if c := h.mix(runaway); len(c) != 1 || c[0] != 1 || h.Older != 0 {
		t.Errorf("%v, %d past rounds", c, h.Older)
	}
}
