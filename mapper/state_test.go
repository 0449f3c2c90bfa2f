package mapper

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"taxon/internal/linalg/sparse"
)

func fromRows(p *problem) *sparse.Matrix { return sparse.FromRows(p.cols, p.index, p.value) }

// checkState holds a state to the promises of its comment.
func checkState(t *testing.T, st *State, lanes int) {
	t.Helper()
	n := 0
	for k, i := range st.Rows {
		if k > 0 && i <= st.Rows[k-1] {
			t.Fatalf("rows %d, %d do not ascend", st.Rows[k-1], i)
		}
		if st.Work[k]|st.Live[k] == 0 {
			t.Fatalf("row %d is listed for nothing", i)
		}
		if (uint32(st.Work[k])|uint32(st.Live[k]))>>lanes != 0 {
			t.Fatalf("row %d: lanes %04x %04x of %d", i, st.Work[k], st.Live[k], lanes)
		}
		for l := range lanes {
			if st.Live[k]>>l&1 != 0 {
				if st.Dual[n] == 0 {
					t.Fatalf("row %d lane %d is live with dual 0", i, l)
				}
				n++
			}
		}
	}
	if n != len(st.Dual) {
		t.Fatalf("%d duals for %d live lanes", len(st.Dual), n)
	}
}

// TestStateKept: a pass that solves and prices nothing gives back the duals it was given,
// and a second pricing draws the same working set.
func TestStateKept(t *testing.T) {
	for n, set := range settings {
		p := generate(uint64(n), shape{rows: 80, cols: 13, lanes: 11})
		s, r := solved(t, p, set, Options{Epochs: 4, Price: true, Band: 0.1})
		checkState(t, &r.State, 11)
		solver := s.NewSolver()
		for _, price := range []bool{false, true} {
			again, err := solver.Solve(context.Background(), p.block, &r.State, Options{Price: price, Band: 0.1})
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(again.State, r.State) {
				t.Errorf("%v price %v: the state changed", set, price)
			}
			if !reflect.DeepEqual(again.Contributions, r.Contributions) {
				t.Errorf("%v price %v: the contributions changed", set, price)
			}
		}
		if r.Sums.Support != len(r.State.Dual) {
			t.Errorf("support %d, %d duals", r.Sums.Support, len(r.State.Dual))
		}
	}
}

// permuted is the block with lane perm[l] of p at l.
func permuted(p *problem, perm []int) *problem {
	q := *p
	q.block = &Block{Mean: p.block.Mean}
	for _, l := range perm {
		q.block.Slot = append(q.block.Slot, p.block.Slot[l])
		q.block.Positive = append(q.block.Positive, p.block.Positive[l])
		if p.block.Weight != nil {
			q.block.Weight = append(q.block.Weight, p.block.Weight[l])
		}
	}
	return &q
}

// TestLanePosition: a class's bits do not depend on the lane it stands in.
func TestLanePosition(t *testing.T) {
	perm := []int{5, 3, 9, 0, 10, 1, 8, 2, 7, 4, 6}
	for n, set := range settings {
		p := generate(uint64(80+n), shape{rows: 70, cols: 13, lanes: len(perm)})
		o := Options{Epochs: 9, Price: true, Band: 0.1, Seed: 3}
		_, a := solved(t, p, set, o)
		_, b := solved(t, permuted(p, perm), set, o)
		for l, from := range perm {
			if !slices.Equal(duals(&b.State, 70, l), duals(&a.State, 70, from)) {
				t.Errorf("%v: lane %d moved to %d has other duals", set, from, l)
			}
			if !slices.Equal(visited(&b.State, 70, l), visited(&a.State, 70, from)) {
				t.Errorf("%v: lane %d moved to %d has another working set", set, from, l)
			}
		}
	}
}

// TestLanesAlone: a class gets the same bits alone as in company, as long as the order is
// the same: until shrinking has dropped rows that nobody in the block looks at any more.
func TestLanesAlone(t *testing.T) {
	for n, set := range settings {
		p := generate(uint64(90+n), shape{rows: 70, cols: 13, lanes: 16})
		o := Options{Epochs: 2, Price: true, Band: 0.1, Seed: 3}
		_, all := solved(t, p, set, o)
		for l := range p.block.Slot {
			_, one := solved(t, permuted(p, []int{l}), set, o)
			if !slices.Equal(duals(&one.State, 70, 0), duals(&all.State, 70, l)) {
				t.Errorf("%v: lane %d has other duals alone", set, l)
			}
			if !slices.Equal(visited(&one.State, 70, 0), visited(&all.State, 70, l)) {
				t.Errorf("%v: lane %d has another working set alone", set, l)
			}
		}
	}
}

// TestSolverKeepsNoTrace: one solver for many blocks and a fresh one for each agree.
func TestSolverKeepsNoTrace(t *testing.T) {
	set := setting{Hinge, 1, 1, 0, 0}
	base := generate(1, shape{rows: 70, cols: 13, lanes: 16})
	s := set.solver(base.x)
	shared := s.NewSolver()
	var states [4]*State
	for round := range 3 {
		for n := range states {
			b := generate(uint64(200+n), shape{rows: 70, cols: 13, lanes: 16 - 4*n}).block
			o := Options{Epochs: 3, Price: round != 1, Band: 0.1, Seed: uint64(n)}
			want, err := s.NewSolver().Solve(context.Background(), b, states[n], o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := shared.Solve(context.Background(), b, states[n], o)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("round %d block %d: a used solver gives another result", round, n)
			}
			if !reflect.DeepEqual(shared.Weights(b, &got.State), s.NewSolver().Weights(b, &want.State)) {
				t.Fatalf("round %d block %d: a used solver gives other weights", round, n)
			}
			states[n] = &got.State
		}
	}
}

// TestResultOwnsItsMemory: solving on does not change what was returned before.
func TestResultOwnsItsMemory(t *testing.T) {
	set := setting{Hinge, 1, 1, 0, 0}
	p := generate(3, shape{rows: 70, cols: 13, lanes: 16})
	s := set.solver(p.x)
	solver := s.NewSolver()
	o := Options{Epochs: 3, Price: true, Band: 0.1}
	first, err := solver.Solve(context.Background(), p.block, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	_, kept := solved(t, p, set, o)
	if _, err := solver.Solve(context.Background(), p.block, &first.State, o); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first, kept) {
		t.Error("a later solve changed the result of an earlier one")
	}
}

// TestCancel: cancellation is an error, in descent and in pricing, and leaves the solver
// as clean as success does.
func TestCancel(t *testing.T) {
	set := setting{Hinge, 1, 1, 0, 0}
	p := generate(5, shape{rows: 70, cols: 13, lanes: 16})
	s := set.solver(p.x)
	solver := s.NewSolver()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, o := range []Options{{Epochs: 2}, {Price: true}} {
		if r, err := solver.Solve(ctx, p.block, nil, o); !errors.Is(err, context.Canceled) || r != nil {
			t.Errorf("%+v: %v, %v", o, r, err)
		}
	}
	o := Options{Epochs: 2, Price: true}
	_, want := solved(t, p, set, o)
	got, err := solver.Solve(context.Background(), p.block, nil, o)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("after a cancelled solve: another result, %v", err)
	}
}

// TestEpochBounds: not before Epochs, not after MaxEpochs, no later than the aim is met.
func TestEpochBounds(t *testing.T) {
	p := generate(6, shape{rows: 70, cols: 13, lanes: 16})
	for _, c := range []struct {
		o    Options
		want int
	}{
		{Options{Epochs: 3}, 3},
		{Options{Epochs: 3, MaxEpochs: 5}, 5},
		{Options{Epochs: 3, MaxEpochs: 50, InnerGap: 1e9}, 3},
		{Options{Epochs: 3, MaxEpochs: 2}, 3},
		{Options{MaxEpochs: 5}, 0},
	} {
		_, r := solved(t, p, setting{Hinge, 1, 1, 0, 0}, c.o)
		if r.Sums.Epochs != c.want {
			t.Errorf("%+v: %d epochs, want %d", c.o, r.Sums.Epochs, c.want)
		}
	}
	_, r := solved(t, p, setting{Hinge, 1, 1, 0, 0}, Options{Epochs: 2, MaxEpochs: 500, InnerGap: 1})
	if r.Sums.Epochs <= 2 || r.Sums.Epochs >= 500 || r.Sums.Estimate > 16 {
		t.Errorf("%d epochs to an estimate of %g", r.Sums.Epochs, r.Sums.Estimate)
	}
}

// TestEmptyData: no rows, or only zero rows, is a problem like any other.
func TestEmptyData(t *testing.T) {
	for _, rows := range []int{0, 3} {
		p := &problem{index: make([][]uint32, rows), value: make([][]float32, rows), cols: 4,
			block: &Block{Slot: []int{-1, -1}, Positive: [][]uint32{nil, nil}}}
		p.x = fromRows(p)
		_, r := solved(t, p, setting{Hinge, 2, 0, 0, 0}, Options{Epochs: 3, Price: true})
		if want := float64(2 * 2 * rows); r.Sums.Primal != want || r.Sums.Dual != want || len(r.State.Rows) != 0 {
			t.Errorf("%d zero rows: %+v", rows, r.Sums)
		}
	}
}

// TestManyRows: a fresh block of many rows starts on a sample of them and its positives;
// unpriced solves continue from one another, and pricing finds what the sample missed.
func TestManyRows(t *testing.T) {
	x, class := textLike(17_000, 200, 20)
	p := &problem{x: x, cols: x.Cols, block: textBlock(x, class)}
	for i := range x.Rows {
		idx, val := x.Row(i)
		p.index, p.value = append(p.index, idx), append(p.value, val)
	}
	p = permuted(p, []int{3, 11})
	s := NewProblem(x, Hinge, 1, 1)
	solver := s.NewSolver()
	var st *State
	for _, o := range []Options{{Epochs: 1, Seed: 1}, {Epochs: 1, Seed: 2}, {Epochs: 2, Price: true, Band: 0.1, Seed: 3},
		{Epochs: 2, Seed: 4}} {
		before := st
		r, err := solver.Solve(context.Background(), p.block, st, o)
		if err != nil {
			t.Fatal(err)
		}
		st = &r.State
		checkState(t, st, 2)
		if o.Price {
			checkPrice(t, p, s, r)
		}
		if priced := o.Price || before != nil && before.Priced; st.Priced != priced {
			t.Errorf("after %+v: priced %v", o, st.Priced)
		}
	}
	for l, rows := range p.block.Positive {
		in := visited(st, x.Rows, l)
		for _, i := range rows {
			if !in[i] {
				t.Fatalf("lane %d does not look at its positive row %d", l, i)
			}
		}
	}
}
