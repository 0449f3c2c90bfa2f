package solver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"taxon/internal/linalg/sparse"
	"taxon/mapper"
)

// noise returns a problem of dense rows whose labels are independent of them.
func noise(seed uint64, rows, cols, classes int, c float64, bias float32) *Problem {
	r := rand.New(rand.NewPCG(seed, 8))
	p := &Problem{Classes: classes}
	var index [][]uint32
	var value [][]float32
	for range rows {
		at, x := []uint32(nil), []float32(nil)
		for f := range cols {
			at, x = append(at, uint32(f)), append(x, float32(r.NormFloat64()))
		}
		index, value, p.Class = append(index, at), append(value, x), append(p.Class, int32(r.IntN(classes)))
	}
	p.Rows = mapper.NewProblem(sparse.FromRows(cols, index, value), mapper.Hinge, c, bias)
	return p
}

// TestClimb checks noise with large C and a large bias, where coordinate passes alone converge
// slowly: it must reach a gap of 1e-5 in at most thirty sweeps. No climb may lower D.
func TestClimb(t *testing.T) {
	for form := range 4 {
		for n, c := range []float64{10, 100, 1000} {
			t.Run(fmt.Sprint(form, c), func(t *testing.T) {
				p := noise(uint64(n), 60, 6, 5, c, []float32{1, 5, 0}[n])
				if form > 0 {
					p = onTree(uint64(n), p, Form(form-1), n == 1, 0.5)
				}
			solvers:
				for _, s := range p.layouts() {
					var st *State
					for sweep := range 30 {
						next, sums, err := s.Solve(context.Background(), st, Options{Gap: 1e-6, MaxEpochs: 300, Seed: uint64(sweep)})
						if err != nil {
							t.Fatal(err)
						}
						if st != nil && sums.Dual < st.Dual-1e-9*sums.Primal || sums.Dual > sums.Primal*(1+1e-12) {
							t.Errorf("sweep %d: P %.12g, D %.12g after %.12g", sweep, sums.Primal, sums.Dual, st.Dual)
						}
						if st = next; sums.Primal-sums.Dual <= 1e-5*sums.Primal {
							t.Logf("%d sweeps, %d epochs in the last", sweep+1, sums.Epochs)
							continue solvers
						}
					}
					t.Errorf("gap %g after thirty sweeps", (st.Primal-st.Dual)/st.Primal)
				}
			})
		}
	}
}
