package mapper

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/linalg/sparse"
)

// TestKernelsSolveAlike: whole solves, warm starts and pricing passes among them, give
// equal bits in everything that they return, whichever kernel runs them.
func TestKernelsSolveAlike(t *testing.T) {
	kernels := Kernels()
	if len(kernels) < 2 {
		t.Skip("this CPU has one kernel")
	}
	rapid.Check(t, func(t *rapid.T) {
		sh := shape{
			rows:  rapid.IntRange(1, 120).Draw(t, "rows"),
			cols:  rapid.IntRange(2, 40).Draw(t, "cols"),
			lanes: rapid.IntRange(1, Lanes).Draw(t, "lanes"),
			whole: rapid.Bool().Draw(t, "whole"),
			dense: rapid.Bool().Draw(t, "dense"),
		}
		p := generate(rapid.Uint64().Draw(t, "seed"), sh)
		s := NewProblem(p.x, Loss(rapid.IntRange(0, 1).Draw(t, "loss")),
			rapid.SampledFrom([]float64{0.01, 0.3, 1, 100}).Draw(t, "C"),
			rapid.SampledFrom([]float32{0, 0.5, 1}).Draw(t, "bias"))
		s.PositiveWeight = rapid.SampledFrom([]float64{0, 1, 7.5}).Draw(t, "weight")
		precise := rapid.Bool().Draw(t, "precise")
		want := solveWith(t, s, goKernel, p.block, precise)
		for _, k := range kernels {
			if got := solveWith(t, s, k, p.block, precise); !reflect.DeepEqual(got, want) {
				t.Fatalf("%v gives %+v, Go %+v", k, got, want)
			}
		}
	})
}

// solveWith is four solves in a row by one kernel, as text: it tells NaN and -0 alike and apart.
func solveWith(t *rapid.T, s *Problem, k Kernel, b *Block, precise bool) (out []string) {
	s.Kernel = k
	solver := s.NewSolver()
	var warm *State
	for n, o := range []Options{
		{Epochs: 2, Price: true, Band: 0.02},
		{Epochs: 3, MaxEpochs: 20, InnerGap: 1e-3},
		{Epochs: 5, Price: true, Band: 0.2},
		{Epochs: 1, Price: true, Band: 1e300},
	} {
		o.Seed, o.Precise = uint64(n), precise
		r, err := solver.Solve(context.Background(), b, warm, o)
		if err != nil {
			t.Fatal(err)
		}
		warm = &r.State
		out = append(out, fmt.Sprintf("%x %x %v", r.Sums, r.State.Dual, r.State), fmt.Sprintf("%x", r.Contributions))
	}
	return append(out, fmt.Sprintf("%x", solver.Weights(b, warm)))
}

// TestParseKernel: the fastest by default, each by its name, and what there is if none fits.
func TestParseKernel(t *testing.T) {
	all := Kernels()
	if k, err := ParseKernel(""); err != nil || k.String() != all[0].String() {
		t.Errorf("the default is %v (%v), the fastest %v", k, err, all[0])
	}
	for _, want := range all {
		if k, err := ParseKernel(want.String()); err != nil || k.String() != want.String() {
			t.Errorf("%v: %v, %v", want, k, err)
		}
	}
	if all[len(all)-1].String() != "go" {
		t.Errorf("the last kernel is %v", all[len(all)-1])
	}
	if _, err := ParseKernel("sse9"); err == nil || !strings.Contains(err.Error(), `"sse9"`) ||
		!strings.Contains(err.Error(), `"go"])`) {
		t.Errorf("an unknown one: %v", err)
	}
}

// TestCheckColumns: an index beyond the tile never reaches a kernel that would not look.
func TestCheckColumns(t *testing.T) {
	x := sparse.FromRows(4, [][]uint32{{0, 3}, {1, 4}}, [][]float32{{1, 1}, {1, 1}})
	if err := NewProblem(x, Hinge, 1, 1).Check(); err == nil || !strings.Contains(err.Error(), "instance 2 ") {
		t.Errorf("column 5 of 4: %v", err)
	}
	x.Cols = 5
	if err := NewProblem(x, Hinge, 1, 1).Check(); err != nil {
		t.Error(err)
	}
}
