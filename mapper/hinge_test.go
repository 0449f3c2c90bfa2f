package mapper

import (
	"testing"

	"taxon/internal/linalg/sparse"
)

// At C = 100 a margin that rounding leaves 1e-8 short costs 1e-5 of a small P: the
// rounding of a precise pricing must clear it, and Weights must give the same weights.
func TestRoundingClearsTheCorner(t *testing.T) {
	worst := 0.0
	for i := range 50 {
		x := []float32{0.99839586 - float32(i)*0.0131, 0.0566198 + float32(i)*0.0079}
		s := NewProblem(sparse.FromRows(2, [][]uint32{{0, 1}}, [][]float32{x}), Hinge, 100, 1)
		b := &Block{Slot: []int{-1}, Positive: [][]uint32{{0}}}
		r, err := s.NewSolver().Solve(t.Context(), b, nil, Options{Epochs: 20, Price: true, Precise: true})
		if err != nil {
			t.Fatal(err)
		}
		worst = max(worst, (r.Sums.Primal-r.Sums.Dual)/r.Sums.Primal)
		w := s.NewSolver().Weights(b, &r.State)[0]
		p := 0.0
		z := 0.0
		for k, f := range w.Feature {
			p += float64(w.Value[k]) * float64(w.Value[k]) / 2
			v := float64(1) // the bias feature
			if f < 2 {
				v = float64(x[f])
			}
			z += float64(w.Value[k]) * v
		}
		if p += 100 * Hinge.Value(z); p-r.Sums.Primal > 1e-12*p || r.Sums.Primal-p > 1e-12*p {
			t.Errorf("row %v: P of the weights is %.15g, priced as %.15g", x, p, r.Sums.Primal)
		}
	}
	if worst > 2e-6 {
		t.Errorf("relative gap %g left by rounding", worst)
	}
}
