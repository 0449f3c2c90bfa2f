package program

import (
	"context"
	"fmt"
	"slices"

	"taxon/coordinator/method"
	params "taxon/internal/methods/hblr/plan"
	"taxon/internal/methods/hblr/solver"
	"taxon/store"
	"taxon/worker/program"
)

// fitTolerance is the relative tolerance of the logistic regressions from which priors are derived.
const fitTolerance = 1e-9

// fit runs OpFit. It solves each leaf as blr with C = 1 does, and computes the rate of its
// precision's prior, b = [I^-1]_ii with I = sum_x p (1-p) x x' ([TKDD] 3.4).
func (k *task) fit(ctx context.Context) (method.Sums, error) {
	j := k.job
	if err := k.item(params.Blocks, len(j.slots), &struct{}{}); err != nil {
		return nil, err
	}
	slots, nodes := j.slots[k.Item], j.plan.Block(k.Item)
	b := &solver.Block{Above: make([][]float64, len(nodes))}
	for _, n := range nodes {
		b.Positive, b.Precision = append(b.Positive, j.positive[n]), append(b.Precision, solver.Unit)
	}
	rate, sums, err := make([]float64, len(nodes)), make([]float64, len(slots)*j.columns), error(nil)
	k.Compute(func() {
		s := j.free.Get()
		defer j.free.Put(s)
		scratch, ok := s.(*solver.Scratch)
		if !ok {
			scratch = new(solver.Scratch)
		}
		scratch.Open(j.rows, b)
		if _, err = scratch.Solve(ctx, j.rows, startLeaves(b, j.columns), fitTolerance); err != nil {
			return
		}
		for l, n := range nodes {
			scale, ok := scratch.Scales(j.rows, l, j.settings.Inverse == params.Full)
			if !ok {
				err = program.Deterministic(errNoInverse)
				return
			}
			rate[l] = j.forAll(scale)
			if slot := slices.Index(slots, j.above(n)); slot >= 0 {
				for f, x := range scale {
					sums[slot*j.columns+f] += x
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	values := []store.Value{k.value(params.Rate, rate)}
	if j.m2() {
		values = k.cut(params.Rate, [][]float64{sums})
	}
	return make(method.Sums, params.Figures), k.Put(ctx, values, nil)
}

// prior returns the prior of the precisions. In variant M2 each feature range has a prior of its
// own, which is fitted to its columns.
func (k *task) prior(ctx context.Context) (solver.Prior, error) {
	j := k.job
	switch {
	case !j.plan.Fitted:
		return j.prior, nil
	case j.m2() && k.List == params.Ranges:
		lo, hi := j.bounds(k.Item)
		rows := make([]float64, len(j.tree.Nodes)*(hi-lo))
		if err := k.addUp(ctx, params.Rate, [][]float64{rows}); err != nil {
			return j.prior, err
		}
		return j.tree.Fitted(j.prior, nil, rows), nil
	case j.m2() || k.List != params.Whole:
		return j.prior, nil
	}
	rate := make([]float64, len(j.tree.Parent))
	places := k.All(params.Rate, 0)
	if len(places) != len(j.slots) {
		return j.prior, program.Deterministic(fmt.Errorf("%s: rates of %d blocks are named, the plan has %d", k.Op,
			len(places), len(j.slots)))
	}
	for b, at := range places {
		nodes := j.plan.Block(b)
		v, err := k.read(ctx, at, params.Rate, len(nodes))
		if err != nil {
			return j.prior, err
		}
		for l, n := range nodes {
			rate[n] = v[l]
		}
	}
	return j.tree.Fitted(j.prior, rate, nil), nil
}
