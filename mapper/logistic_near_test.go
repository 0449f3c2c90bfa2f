package mapper

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"taxon/internal/linalg/sparse"
)

// rareProblem has many rows, few of them positive in any lane.
func rareProblem(seed uint64, bias float32) (*Problem, *Block) {
	r := rand.New(rand.NewPCG(seed, 8))
	const rows, cols = 2000, 120
	var index [][]uint32
	var value [][]float32
	for range rows {
		var idx []uint32
		var val []float32
		for f := range uint32(cols) {
			if r.IntN(20) == 0 {
				idx, val = append(idx, f), append(val, float32(r.Float64()))
			}
		}
		index, value = append(index, idx), append(value, val)
	}
	lanes := 1 + int(seed*5%16)
	b := &Block{Slot: make([]int, lanes), Positive: make([][]uint32, lanes)}
	for l := range b.Slot {
		b.Slot[l] = -1
		first := uint32(r.IntN(rows - 1))
		b.Positive[l], b.Weight = []uint32{first, first + 1}, append(b.Weight, 4)
	}
	return NewProblem(sparse.FromRows(cols, index, value), Logistic, 1, bias), b
}

// TestStartBias: with all other weights zero, the bias that a fresh block begins at is the best one.
func TestStartBias(t *testing.T) {
	for seed := range uint64(8) {
		for _, bias := range []float32{0.5, 1, 10} {
			s, b := rareProblem(seed, bias)
			e := newLogisticSolver(s)
			e.open(b)
			e.resume(nil)
			for l := range b.Slot {
				w := make([]float64, s.X.Cols+1)
				w[s.X.Cols] = float64(e.v[s.X.Cols][l])
				if _, g := primalOf(s, b, l, w); !(w[s.X.Cols] < 0) || math.Abs(g[s.X.Cols]) > 1e-4*(1+math.Abs(w[s.X.Cols])) {
					t.Errorf("seed %d, bias %g, lane %d: slope %g at %g", seed, bias, l, g[s.X.Cols], w[s.X.Cols])
				}
			}
			e.close()
		}
	}
}

// TestNearProblem: what solves a near problem has a gradient as small as asked for in the function that
// nearRows is about, worked out from its definition, without numbering features anew; all kernels
// give the same bits. Without a bias the far rows only pull.
func TestNearProblem(t *testing.T) {
	for seed := range uint64(12) { // the fourth of four without a bias
		var first [][Lanes]float32
		for _, kernel := range Kernels() {
			s, b := rareProblem(seed, float32(1-seed%4/3))
			s.Kernel = kernel
			e := newLogisticSolver(s)
			e.open(b)
			e.resume(nil)
			e.running = e.lanes
			e.fillSmooth()
			if s.Bias == 0 { // else all rows are in doubt
				for f := range e.w {
					for l := range b.Slot {
						e.w[f][l] -= 12
					}
				}
			}
			var sums Sums
			e.scoreAll(s.X, e.w, e.scores, &sums)
			e.loss = e.weigh(e.all(), nil)
			e.addAll(s.X, e.g, e.coef, &sums)
			small := e.gradients(Options{InnerGap: 1e-2}, 0)
			if !e.near.solve(e, small, &sums) {
				t.Fatalf("seed %d: all rows are near", seed)
			}
			if first == nil {
				first = slices.Clone(e.d)
				for l := range b.Slot {
					checkNear(t, e, l)
				}
			} else if !slices.Equal(first, e.d) {
				t.Fatalf("seed %d: kernel %v gives other bits", seed, kernel)
			}
			e.close()
		}
	}
}

func checkNear(t *testing.T, e *logisticSolver, l int) {
	t.Helper()
	last := len(e.w) - 1
	product := func(i int, w [][Lanes]float32) float64 {
		idx, val := e.p.X.Row(i)
		z := float64(e.p.Bias) * float64(w[last][l])
		for j, f := range idx {
			z += float64(val[j]) * float64(w[f][l])
		}
		return z
	}
	add := func(to []float64, i int, x float64) {
		idx, val := e.p.X.Row(i)
		to[last] += x * float64(e.p.Bias)
		for j, f := range idx {
			to[f] += x * float64(val[j])
		}
	}
	u, left, all := make([]float64, last+1), make([]float64, last+1), 0.0
	for f := range left {
		left[f] = -float64(e.v[f][l]) - float64(e.d[f][l])
	}
	far := 0
	for i := range e.p.X.Rows {
		if _, near := slices.BinarySearch(e.near.rows.number, uint32(i)); near {
			y, c := -1.0, e.c
			if e.sign[i]>>l&1 != 0 {
				y, c = 1, e.cPos[l]
			}
			add(left, i, y*c/(1+math.Exp(y*(product(i, e.w)+product(i, e.d)))))
			continue
		}
		far++
		a := -float64(e.coef[i][l])
		if a < 0 || e.curve[i][l] > float32(nearShare*e.c) {
			t.Fatalf("row %d is far, with dual %g and curvature %g", i, a, e.curve[i][l])
		}
		all += a
		add(u, i, a)
	}
	if far < e.p.X.Rows/2 {
		t.Fatalf("%d rows are far", far)
	}
	sigma := 0.0
	if e.p.Bias > 0 {
		for f := range u {
			sigma += u[f] * float64(e.d[f][l]) / all
		}
	}
	rest := 0.0
	for f := range left {
		x := left[f] - u[f]*(1+sigma)
		rest += x * x
	}
	if !(rest/2 <= 1.1e-2) {
		t.Errorf("lane %d: a gap of %g is left", l, rest/2)
	}
}
