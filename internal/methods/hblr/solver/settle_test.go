package solver

import (
	"math"
	"testing"
)

// TestSettle checks that, down a chain with thousands of features, a few calls reach the point that
// the paper's step reaches in many thousands, and stay there. Leaves have a gamma of 12.
func TestSettle(t *testing.T) {
	const d, gamma = 3000, 12.0
	tree := NewTree([]int32{-1, 0, 1, 2, 3, 3, 1}, []bool{false, false, false, false, true, true, true})
	prior := tree.NewPrior([]float64{0, 0, 0, 0, 5, 6, 30}, 100)
	for _, v := range []Variant{M1, M3} {
		below := func(a Alpha) Below {
			b := Below{make([]float64, len(a)), []float64{0, 3, 1, 0.5, 90, 80, 20}}
			for n, leaf := range tree.Leaf {
				if leaf {
					b.Variance[n] = (d - gamma) / a[tree.owner(v, int32(n))]
				}
			}
			return b
		}
		start := make(Alpha, len(tree.Parent))
		for n := range start {
			if tree.Owns(v, int32(n)) {
				start[n] = prior.Start(int32(n), 2)
			}
		}
		want := start
		for range 40 * d {
			want = tree.Update(GammaEM, v, want, prior, below(want), d, 2)
		}
		got := start
		for range 16 {
			got = tree.Settle(v, got, prior, below(got), d, 2)
		}
		for n := range want {
			if !(math.Abs(got[n]-want[n]) <= 1e-4*want[n]) {
				t.Errorf("variant %d, node %d: settled at %g, the paper's step at %g from %g", v, n, got[n], want[n], start[n])
			}
		}
	}
}

// TestPace checks that a precision that moves far by small, steady steps arrives within a few dozen
// rounds, where the steps themselves take some 900, and that one whose steps overshoot three times
// as far converges.
func TestPace(t *testing.T) {
	rounds := func(from, to float64, step func(x float64) float64) (n int) {
		x, pace, before := from, 1.0, 0.0
		for ; math.Abs(x-to) > 1e-6 && n < 10000; n++ {
			f, move := step(x), 0.0
			pace, move = Pace(pace, f, before)
			x, before = x+move, f
		}
		return n
	}
	plateau := func(x float64) float64 { return -0.02 * math.Tanh(x) } // -0.02 from 9 down to 1
	if n := rounds(9, 0, plateau); n > 120 {
		t.Errorf("%d rounds across a plateau", n)
	}
	if n := rounds(1, 0, func(x float64) float64 { return -4 * x }); n > 100 {
		t.Errorf("%d rounds where steps overshoot", n)
	}
}

// TestSecant checks that a precision whose steps overshoot four times as far, and would diverge,
// arrives after a few moves, and that one with a long way is not accelerated too much.
func TestSecant(t *testing.T) {
	x, slope, before, move := 3.0, -1.0, 0.0, 0.0
	for range 12 {
		f := -4 * math.Tanh(x)
		slope, move = Secant(slope, f, before, move)
		x, before = x+move, f
	}
	if math.Abs(x) > 1e-6 {
		t.Errorf("%g after twelve moves", x)
	}
	if slope, move := Secant(-1, 0.9, 1, 1); slope != -1 || move != 0.9 {
		t.Errorf("slope %g, move %g", slope, move)
	}
}
