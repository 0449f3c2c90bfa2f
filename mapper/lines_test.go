package mapper

import (
	"context"
	"math"
	"reflect"
	"testing"

	"taxon/internal/linalg/sparse"
)

// widened is a problem whose columns lie far apart among others, where the parents are not zero.
func widened(p *problem, apart int) *problem {
	q := *p
	q.cols = p.cols * apart
	q.index = make([][]uint32, len(p.index))
	for i, idx := range p.index {
		for _, f := range idx {
			q.index[i] = append(q.index[i], f*uint32(apart)+f%5)
		}
	}
	q.x = sparse.FromRows(q.cols, q.index, q.value)
	block := *p.block
	block.Mean = make([][]float32, len(p.block.Mean))
	for slot, y := range p.block.Mean {
		wide := make([]float32, q.cols+1)
		for f := range wide {
			wide[f] = y[f%(p.cols+1)]
		}
		wide[q.cols] = y[p.cols]
		block.Mean[slot] = wide
	}
	q.block = &block
	return &q
}

// linesOf are the lines of a solver.
func linesOf(s Solver) *lines {
	if h, ok := s.(*hingeSolver); ok {
		return &h.lines
	}
	return &s.(*squaredSolver).lines
}

// sameBits compares results to the last bit: values that are equal may differ in the sign of zero.
func sameBits(a, b *Result) bool {
	for slot := range a.Contributions {
		for i, x := range a.Contributions[slot].Sum {
			if i >= len(b.Contributions[slot].Sum) || math.Float64bits(x) != math.Float64bits(b.Contributions[slot].Sum[i]) {
				return false
			}
		}
	}
	return reflect.DeepEqual(a, b)
}

// TestLines: a solver whose tiles have lines for the features needed gives the same bits as one that
// has a line for every feature. One solver serves blocks of different sizes in turn, some with lines
// for all features, so that what one leaves behind would show in the next.
func TestLines(t *testing.T) {
	stages := []Options{
		{Epochs: 3, MaxEpochs: 9, InnerGap: 1e-3, Curvature: true},
		{Epochs: 2, Price: true, Band: 0.1, Curvature: true},
		{Epochs: 3, MaxEpochs: 30, InnerGap: 1e-6},
		{Epochs: 3, MaxEpochs: 30, InnerGap: 1e-9, Precise: true, Curvature: true},
		{Epochs: 3, Price: true, Precise: true, Band: 0.1},
		{Price: true},
	}
	for _, kernel := range Kernels() {
		for n, set := range settings {
			p := generate(uint64(n), shape{rows: 120, cols: 23, lanes: 1 + n%Lanes, whole: n%4 == 3})
			for _, row := range p.value {
				for j, x := range row {
					if n%2 == 0 { // curvatures are told of such values only
						row[j] = max(x, -x)
					}
				}
			}
			p = widened(p, 11)
			set.weigh(p.block)
			problem := set.solver(p.x)
			problem.Kernel = kernel
			all := func() Solver {
				s := problem.NewSolver()
				linesOf(s).whole = true
				return s
			}
			few, emit := problem.NewSolver(), problem.NewSolver()
			sub := *p.block // fewer lanes, and other rows
			sub.Slot, sub.Positive = sub.Slot[:(len(sub.Slot)+1)/2], sub.Positive[:(len(sub.Slot)+1)/2]
			var state [2]*State
			for step, o := range stages {
				for at, b := range []*Block{p.block, &sub} {
					o.Seed = uint64(step)
					want, err := all().Solve(context.Background(), b, state[at], o)
					if err != nil {
						t.Fatal(err)
					}
					linesOf(few).whole = (at+step)%3 == 2
					got, err := few.Solve(context.Background(), b, state[at], o)
					if err != nil {
						t.Fatal(err)
					}
					if l := linesOf(few); l.whole != (l.n > 25) {
						t.Fatalf("%v, step %d: %d lines", set, step, l.n)
					}
					if !sameBits(got, want) {
						t.Fatalf("kernel %v, %v, step %d, block %d: other results", kernel, set, step, at)
					}
					if state[at] = &want.State; !reflect.DeepEqual(emit.Weights(b, state[at]), all().Weights(b, state[at])) {
						t.Fatalf("kernel %v, %v, step %d, block %d: other weights", kernel, set, step, at)
					}
				}
			}
		}
	}
}
