package mapper

import (
	"context"
	"fmt"
	"testing"
)

// TestNewton: on few columns and many rows a squared hinge ends far below what the same
// number of epochs reaches, at the optimum that many epochs of descent approach, with equal
// bits from all kernels.
func TestNewton(t *testing.T) {
	ctx := context.Background()
	for seed, c := range []float64{0.01, 1, 100} {
		p := generate(uint64(seed), shape{rows: newtonRows + 300, cols: 30, lanes: 9, whole: seed == 1})
		s := NewProblem(p.x, SquaredHinge, c, 1)
		s.PositiveWeight = 3
		if seed == 1 {
			s.Weight = setting{loss: SquaredHinge, spread: 1}.solver(p.x).Weight
		}
		newton := Options{Epochs: 2, MaxEpochs: newtonAfter, Price: true}
		if !s.fewColumns() {
			t.Fatal("descent alone")
		}
		long, err := s.NewSolver().Solve(ctx, p.block, nil, Options{Epochs: 300, Precise: true, Price: true})
		if err != nil {
			t.Fatal(err)
		}
		var first string
		for _, k := range Kernels() {
			s.Kernel = k
			r, err := s.NewSolver().Solve(ctx, p.block, nil, newton)
			if err != nil {
				t.Fatal(err)
			}
			if gap := r.Sums.InnerGap / r.Sums.Primal; !(gap < 1e-9) {
				t.Errorf("C %g, %v: gap %g after %d steps", c, k, gap, r.Sums.Epochs)
			}
			text := fmt.Sprintf("%x %x", r.Sums, r.State.Dual)
			if first == "" {
				first = text
			}
			if text != first {
				t.Errorf("C %g: %v differs from %v", c, k, Kernels()[0])
			}
			if low := long.Sums.Primal - long.Sums.InnerGap; r.Sums.Primal > long.Sums.Primal*(1+1e-6) ||
				r.Sums.Primal < low*(1-1e-6) {
				t.Errorf("C %g, %v: P is %g, by descent between %g and %g", c, k, r.Sums.Primal, low, long.Sums.Primal)
			}
			again, err := s.NewSolver().Solve(ctx, p.block, &r.State, newton)
			if err != nil {
				t.Fatal(err)
			}
			if again.Sums.Primal > r.Sums.Primal*(1+1e-4) || again.Sums.Epochs > r.Sums.Epochs {
				t.Errorf("C %g: a warm start ends at %g after %d steps, not %g after %d", c, again.Sums.Primal, again.Sums.Epochs,
					r.Sums.Primal, r.Sums.Epochs)
			}
		}
	}
}

// TestNewtonCancelled: the steps end with the caller's patience.
func TestNewtonCancelled(t *testing.T) {
	p := generate(1, shape{rows: newtonRows, cols: 10, lanes: 2})
	s := NewProblem(p.x, SquaredHinge, 1, 1)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := s.NewSolver().Solve(ctx, p.block, nil, Options{Epochs: 2, MaxEpochs: newtonAfter}); err == nil {
		t.Error("a cancelled solve went on")
	}
}
