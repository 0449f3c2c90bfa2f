package hblr

import (
	"math"
	"testing"
)

// TestSettle: down a chain with thousands of features a few calls go where the paper's step goes in many
// thousands, and stay there. Leaves have a gamma of 12.
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
