package mapper

import (
	"context"
	"fmt"
	"math"
	"testing"
)

// solved is a block after one Solve.
func solved(t *testing.T, p *problem, set setting, o Options) (*Problem, *Result) {
	t.Helper()
	s := set.solver(p.x)
	set.weigh(p.block)
	r, err := s.NewSolver().Solve(context.Background(), p.block, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

// near tells equality relative to the size of the terms.
func near(a, b, scale, tol float64) bool { return math.Abs(a-b) <= tol*max(scale, 1e-300) }

// TestPriceSums against dense float64 sums, at every stage of a solve: the float32 pass
// that sorts out rows must never lose one.
func TestPriceSums(t *testing.T) {
	for n, set := range settings {
		for _, epochs := range []int{0, 1, 7} {
			for _, whole := range []bool{false, true} {
				lanes := 1 + (n*5+epochs)%16
				t.Run(fmt.Sprintf("%v epochs %d whole %v", set, epochs, whole), func(t *testing.T) {
					p := generate(uint64(n), shape{rows: 90, cols: 17, lanes: lanes, whole: whole})
					s, r := solved(t, p, set, Options{Epochs: epochs, Price: true, Band: 0.1, Seed: 5})
					checkPrice(t, p, s, r)
				})
			}
		}
	}
}

func checkPrice(t *testing.T, p *problem, s *Problem, r *Result) {
	t.Helper()
	var want figures
	for l := range p.block.Slot {
		f := p.figures(s, l, duals(&r.State, len(p.index), l))
		want.primal += f.primal
		want.dual += f.dual
		want.gap += f.gap
		if f.primal < f.subdual-1e-12*f.primal {
			t.Errorf("lane %d: the subproblem's primal %g is below its dual %g", l, f.primal, f.subdual)
		}
	}
	got := r.Sums
	if !near(got.Primal, want.primal, want.primal, 1e-12) {
		t.Errorf("primal %.17g, want %.17g", got.Primal, want.primal)
	}
	if !near(got.Dual, want.dual, want.primal, 1e-12) {
		t.Errorf("dual %.17g, want %.17g", got.Dual, want.dual)
	}
	if !near(got.InnerGap, want.gap, want.primal, 1e-12) {
		t.Errorf("inner gap %.17g, want %.17g", got.InnerGap, want.gap)
	}
	if got.InnerGap < -1e-15*want.primal {
		t.Errorf("inner gap %g", got.InnerGap)
	}
}

// TestPriceNearMargin puts negative rows a few roundings of float32 around the margin,
// with terms a thousand times as great that cancel: each must be counted exactly.
func TestPriceNearMargin(t *testing.T) {
	const rows, cols = 400, 8
	p := generate(1, shape{rows: rows, cols: cols, lanes: 2})
	y := []float32{1000, -1000.5, 1, 0, 0, 0, 0, 0, 0}
	for i := range p.index {
		big := float32(1) + float32(i)/7
		less := float32(float64(big) * 1000 / 1000.5) // the two products all but cancel
		rest := float64(big)*1000 - float64(less)*1000.5
		p.index[i], p.value[i] = []uint32{0, 1, 2}, []float32{big, less, float32(-1 - rest + float64(i-rows/2)*1e-7)}
	}
	p.x = fromRows(p)
	p.block = &Block{Mean: [][]float32{y}, Slot: []int{0, 0}, Positive: [][]uint32{nil, {3}}}
	s, r := solved(t, p, setting{Hinge, 1, 0, 0, 0}, Options{Price: true})
	checkPrice(t, p, s, r)
	wrong := 0 // rows that float32 puts on the wrong side
	for i := range p.index {
		s32, s64 := float32(0), 0.0
		for j, f := range p.index[i] {
			s32 += float32(p.value[i][j] * y[f])
			s64 += float64(p.value[i][j]) * float64(y[f])
		}
		if (-s32 > 1) != (-s64 > 1) {
			wrong++
		}
	}
	if wrong < 20 {
		t.Errorf("float32 misjudges only %d rows: the test sees too little", wrong)
	}
}

// TestPriceCountsNaN: weights that overflow must not pass for rows without a loss.
func TestPriceCountsNaN(t *testing.T) {
	p := generate(1, shape{rows: 2, cols: 3, lanes: 1})
	p.index = [][]uint32{{0, 1}, {0, 1}}
	p.value = [][]float32{{1e19, 1e19}, {1e19, 1e19}}
	p.x = fromRows(p)
	p.block = &Block{Mean: [][]float32{{1e25, -1e25, 0, 0}}, Slot: []int{0}, Positive: [][]uint32{nil}}
	_, r := solved(t, p, setting{Hinge, 1, 0, 0, 0}, Options{Price: true})
	if r.Sums.Primal < 2-1e-9 { // w.x = 0 in truth: loss 1 each
		t.Errorf("primal %g, want 2", r.Sums.Primal)
	}
}

// TestWorkingSet: positives, rows with a dual and rows within the band are in it; rows
// clearly beyond are not, or a sweep would visit everything.
func TestWorkingSet(t *testing.T) {
	const band = 0.25
	beyond := 0
	for n, set := range settings {
		p := generate(uint64(40+n), shape{rows: 120, cols: 15, lanes: 16})
		_, r := solved(t, p, set, Options{Epochs: 6, Price: true, Band: band})
		for l := range p.block.Slot {
			a := duals(&r.State, len(p.index), l)
			in := make([]bool, len(a))
			for k, i := range r.State.Rows {
				in[i] = r.State.Work[k]>>l&1 != 0
			}
			w32, _ := p.weights(l, set.bias, a)
			w := make([]float64, len(w32))
			for f := range w {
				w[f] = float64(w32[f])
			}
			for i, y := range p.signs(l) {
				x := p.dense(i, set.bias)
				z := y * dot(w, x)
				must := y > 0 || a[i] != 0 || z <= 1+band-1e-4*(1+math.Abs(z))
				may := must || z <= 1+band+1e-4*(1+math.Abs(z))
				if dot(x, x) == 0 {
					must, may = false, false
				}
				if must && !in[i] || in[i] && !may {
					t.Errorf("%v lane %d row %d (y %g, a %g, z %g): in the working set: %v", set, l, i, y, a[i], z, in[i])
				}
				if !may {
					beyond++
				}
			}
		}
	}
	if beyond < 500 {
		t.Errorf("only %d rows lie beyond the band: the test sees too little", beyond)
	}
}

// TestGapCloses: warm-started solves with pricing bring every subproblem's gap to what
// float32 weights can honour, and no dual ever leaves its box.
func TestGapCloses(t *testing.T) {
	for n, set := range settings {
		if set.c >= 30 {
			continue // hundreds of epochs
		}
		t.Run(set.String(), func(t *testing.T) {
			p := generate(uint64(60+n), shape{rows: 60, cols: 12, lanes: 16})
			s := set.solver(p.x)
			set.weigh(p.block)
			solver := s.NewSolver()
			var st *State
			for k := range 60 {
				r, err := solver.Solve(context.Background(), p.block, st,
					Options{Epochs: 40, MaxEpochs: 40, Price: true, Band: 0.3, Seed: uint64(k)})
				if err != nil {
					t.Fatal(err)
				}
				st = &r.State
				for l := range p.block.Slot {
					signs := p.signs(l)
					for i, a := range duals(st, len(p.index), l) {
						if c := set.rowC(i, signs[i] > 0, l); a < 0 || set.loss == Hinge && a > c {
							t.Fatalf("dual %v outside [0, %v]", a, c)
						}
					}
				}
				if r.Sums.InnerGap < -1e-15*r.Sums.Primal {
					t.Fatalf("gap %g", r.Sums.InnerGap)
				}
				if r.Sums.InnerGap < 2e-6*r.Sums.Primal {
					return
				}
				if k == 59 {
					t.Errorf("gap %g of %g after %d solves", r.Sums.InnerGap, r.Sums.Primal, k+1)
				}
			}
		})
	}
}
