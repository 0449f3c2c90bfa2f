package mapper

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"taxon/internal/linalg/contribution"
	"taxon/internal/linalg/sparse"
)

// One test for each claim of the papers that the solver rests on.

// converged solves a block until its gap is what float32 weights can honour.
func converged(t *testing.T, p *problem, set setting) (*Problem, *State) {
	t.Helper()
	s := set.solver(p.x)
	set.weigh(p.block)
	solver := s.NewSolver()
	var st *State
	for k := range 40 {
		r, err := solver.Solve(context.Background(), p.block, st, Options{Epochs: 60, Price: true, Band: 0.5,
			Seed: uint64(k)})
		if err != nil {
			t.Fatal(err)
		}
		st = &r.State
	}
	return s, st
}

var paperSettings = []setting{
	{Hinge, 1, 1, 0, 0}, {Hinge, 0.1, 0, 0, 0}, {SquaredHinge, 1, 1, 0, 0}, {SquaredHinge, 0.2, 0, 0, 0},
	{Hinge, 0.2, 1, -8, 0}, {SquaredHinge, 0.2, 1, 3, 0},
}

// [TKDD] eq. 12: the dual's optimum equals the primal's (strong duality), and within the
// box no single dual can be moved to raise it.
func TestPaperEq12(t *testing.T) {
	for n, set := range paperSettings {
		p := generate(uint64(300+n), shape{rows: 50, cols: 11, lanes: 6})
		s, st := converged(t, p, set)
		for l := range p.block.Slot {
			a := duals(st, len(p.index), l)
			signs := p.signs(l)
			best := p.figures(s, l, a)
			if gap := best.primal - best.subdual; gap < -1e-12*best.primal || gap > 1e-5*best.primal {
				t.Errorf("%v lane %d: primal %g, dual %g", set, l, best.primal, best.subdual)
			}
			for i := range a {
				for _, by := range []float64{0.01, -0.01} {
					old := a[i]
					a[i] = min(max(old+by, 0), float64(set.loss.Bound(set.rowC(i, signs[i] > 0, l))))
					if d := p.figures(s, l, a).subdual; a[i] != old && d > best.subdual+1e-5*best.primal {
						t.Errorf("%v lane %d: dual %d from %g to %g lifts D from %g to %g", set, l, i, old, a[i], best.subdual, d)
					}
					a[i] = old
				}
			}
		}
	}
}

// [TKDD] eq. 13: w_n = m_n + sum_i a_i y_in x_i, in what Weights returns, and in the sums
// that the parents get.
func TestPaperEq13(t *testing.T) {
	for n, set := range append(settings, settings...) {
		sh := shape{rows: 60, cols: 11, lanes: 16}
		if n >= len(settings) { // stored zeros, and features that only some lanes hold
			sh = shape{rows: 8, cols: 40, lanes: 9, whole: true}
		}
		p := generate(uint64(320+n), sh)
		s, r := solved(t, p, set, Options{Epochs: 5})
		os := s.NewSolver().Weights(p.block, &r.State)
		sum := make([][]float64, len(p.block.Mean))
		counts := make([][]int, len(p.block.Mean))
		for k := range sum {
			sum[k], counts[k] = make([]float64, p.cols+1), make([]int, p.cols+1)
		}
		for l, slot := range p.block.Slot {
			a := duals(&r.State, len(p.index), l)
			w, v := p.weights(l, set.bias, a)
			got := append([]float32(nil), p.mean(l)...)
			for e, f := range os[l].Feature {
				if e > 0 && f <= os[l].Feature[e-1] {
					t.Fatalf("lane %d: features do not ascend", l)
				}
				if os[l].Value[e] == got[f] {
					t.Errorf("lane %d: the override of feature %d says what the parent says", l, f)
				}
				got[f] = os[l].Value[e]
			}
			support := p.support(a, set.bias)
			for f := range w {
				if math.Abs(float64(got[f]-w[f])) > 1e-6*(1+math.Abs(float64(w[f]))) {
					t.Errorf("%v lane %d feature %d: weight %g, want %g", set, l, f, got[f], w[f])
				}
				if slot >= 0 {
					sum[slot][f] += v[f]
					counts[slot][f] += support[f]
				}
			}
		}
		compareContributions(t, r.Contributions, sum, counts, set.loss == SquaredHinge)
	}
}

// support is 1 on the features of rows with a dual.
func (p *problem) support(a []float64, bias float32) []int {
	s := make([]int, p.cols+1)
	for i := range a {
		for f, x := range p.dense(i, bias) {
			if a[i] != 0 && x != 0 {
				s[f] = 1
			}
		}
	}
	return s
}

func compareContributions(t *testing.T, cs []contribution.Contribution, sum [][]float64, counts [][]int, degrees bool) {
	t.Helper()
	if len(cs) != len(sum) {
		t.Fatalf("%d contributions for %d slots", len(cs), len(sum))
	}
	for k, c := range cs {
		got, soft := make([]float64, len(sum[k])), make([]int, len(sum[k]))
		for e, f := range c.Feature {
			if e > 0 && f <= c.Feature[e-1] {
				t.Fatal("features do not ascend")
			}
			got[f], soft[f] = c.Sum[e], int(c.Curvature[e])
			if degrees { // wholly where they aren't asked for
				soft[f] = int(contribution.Degree(c.Curvature[e]))
			}
			if c.Curvature[e] == 0 {
				t.Errorf("slot %d feature %d is listed for nothing", k, f)
			}
		}
		if int(c.Parent) != k {
			t.Errorf("slot %d at place %d", int(c.Parent), k)
		}
		for f := range got {
			if math.Abs(got[f]-sum[k][f]) > 1e-12*(1+math.Abs(sum[k][f])) || soft[f] != counts[k][f] {
				t.Errorf("slot %d feature %d: sum %g of %d counts, want %g of %d", k, f, got[f], soft[f], sum[k][f], counts[k][f])
			}
		}
	}
}

// [TKDD] eq. 15: w_n minimises 1/2 ||w - m_n||^2 + C sum loss: no step away from it lowers
// that by more than the gap.
func TestPaperEq15(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for n, set := range paperSettings {
		p := generate(uint64(340+n), shape{rows: 50, cols: 11, lanes: 6})
		s, st := converged(t, p, set)
		for l := range p.block.Slot {
			w32, _ := p.weights(l, set.bias, duals(st, len(p.index), l))
			w := make([]float64, len(w32))
			for f := range w {
				w[f] = float64(w32[f])
			}
			best := p.primal(s, set, l, w)
			for k := range 60 {
				moved := append([]float64(nil), w...)
				for f := range moved {
					moved[f] += r.NormFloat64() * math.Pow(10, -float64(k%6))
				}
				if v := p.primal(s, set, l, moved); v < best-1e-5*best {
					t.Errorf("%v lane %d: the objective is %g at w and %g beside it", set, l, best, v)
				}
			}
		}
	}
}

// primal is eq. 15's objective at any w.
func (p *problem) primal(s *Problem, set setting, l int, w []float64) float64 {
	v := 0.0
	for f, y := range p.mean(l) {
		e := w[f] - float64(y)
		v += e * e / 2
	}
	for i, y := range p.signs(l) {
		v += set.rowC(i, y > 0, l) * s.Loss.Value(y*dot(w, p.dense(i, s.Bias)))
	}
	return v
}

// Hsieh et al. 2008, Algorithm 1 (the step that Algorithm 3 shrinks around): a coordinate
// goes straight to its optimum in the box; with one instance that is the solution. The squared
// hinge goes beyond it by relaxation, and comes back.
func TestPaperHsiehStep(t *testing.T) {
	x := []float32{1, 2}
	for _, c := range []struct {
		loss  Loss
		c     float64
		mean  []float32 // y.x decides where the optimum lies
		wantA float64
	}{
		{Hinge, 1, []float32{0, 0, 0}, 1.0 / 5},   // interior: (1 - 0) / ||x||^2
		{Hinge, 0.1, []float32{0, 0, 0}, 0.1},     // at C
		{Hinge, 1, []float32{1, 1, 0}, 0},         // y.x = 3: outside the margin
		{Hinge, 1, []float32{-1, -1, 0}, 4.0 / 5}, // y.x = -3
		{SquaredHinge, 1, []float32{0, 0, 0}, 1 / 5.5},
		{SquaredHinge, 0.1, []float32{-1, -1, 0}, 4.0 / 10},
	} {
		m := sparse.FromRows(2, [][]uint32{{0, 1}}, [][]float32{x})
		s := NewProblem(m, c.loss, c.c, 0)
		b := &Block{Mean: [][]float32{c.mean}, Slot: []int{0}, Positive: [][]uint32{{0}}}
		for _, epochs := range []int{1, 15} {
			r, err := s.NewSolver().Solve(context.Background(), b, nil, Options{Epochs: epochs})
			if err != nil {
				t.Fatal(err)
			}
			want := c.wantA
			if c.loss == SquaredHinge && epochs == 1 {
				want *= (5 + 1/(2*c.c)) / (5/relaxation + 1/(2*c.c))
			}
			if a := duals(&r.State, 1, 0)[0]; math.Abs(a-want) > 1e-6 {
				t.Errorf("loss %d C %g mean %v, %d epochs: dual %g, want %g", c.loss, c.c, c.mean, epochs, a, want)
			}
		}
	}
}

// Hsieh et al. 2008, section 3 (Theorem 1's ground): no epoch lowers the dual.
func TestPaperHsiehMonotone(t *testing.T) {
	for n, set := range settings {
		p := generate(uint64(360+n), shape{rows: 60, cols: 11, lanes: 8})
		last := math.Inf(-1)
		for epochs := range 12 {
			s, r := solved(t, p, set, Options{Epochs: epochs})
			d, scale := 0.0, 0.0
			for l := range p.block.Slot {
				f := p.figures(s, l, duals(&r.State, len(p.index), l))
				d += f.subdual
				scale += f.primal
			}
			if d < last-1e-6*scale {
				t.Errorf("%v: D fell from %g to %g in epoch %d", set, last, d, epochs)
			}
			last = d
		}
	}
}

// Hsieh et al. 2008, Algorithm 3: shrinking makes later epochs cheaper than the first and
// does not change where they lead.
func TestPaperHsiehShrinking(t *testing.T) {
	x, class := textLike(600, 900, 20)
	s := NewProblem(x, Hinge, 1, 1)
	b := textBlock(x, class)
	solve := func(epochs int) Sums {
		r, err := s.NewSolver().Solve(context.Background(), b, nil, Options{Epochs: epochs})
		if err != nil {
			t.Fatal(err)
		}
		after, err := s.NewSolver().Solve(context.Background(), b, &r.State, Options{Price: true})
		if err != nil {
			t.Fatal(err)
		}
		after.Sums.Visits = r.Sums.Visits
		return after.Sums
	}
	one, many := solve(1), solve(60)
	if many.Visits > 30*one.Visits {
		t.Errorf("60 epochs visit %d, one visits %d: hardly anything was shrunk", many.Visits, one.Visits)
	}
	if many.InnerGap > 1e-3*many.Primal {
		t.Errorf("gap %g of %g", many.InnerGap, many.Primal)
	}
}
