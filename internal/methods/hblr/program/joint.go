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

// whole reads a value of the list Whole, which must have the given number of entries.
func (k *task) whole(ctx context.Context, family string, numbers int) ([]float64, error) {
	places := k.All(family, 0)
	if len(places) != 1 || places[0].Step == 0 {
		return nil, program.Deterministic(fmt.Errorf("%s of item %d: %s is not named", k.Op, k.Item, family))
	}
	return k.read(ctx, places[0], family, numbers)
}

// offsets returns z and Soften by row, and the vector by which all leaves move.
func (k *task) offsets(ctx context.Context) (z, soft, shift []float64, err error) {
	n := k.job.rows.X.Rows
	v, err := k.whole(ctx, params.Offset, 2*n+k.job.columns)
	if err != nil {
		return nil, nil, nil, err
	}
	return v[:n], v[n : 2*n], v[2*n:], nil
}

// tight returns the rows' offsets at the stored leaves.
func (k *task) tight(ctx context.Context) ([]float64, error) {
	if k.job.bounded {
		return k.offset(ctx, []float64{1})
	}
	z, _, _, err := k.offsets(ctx)
	return z, err
}

// joint runs OpLeaves for a soft-max by partial MAP: a step of Newton's method over all leaves.
func (k *task) joint(ctx context.Context, b *solver.Block, before []float64, p *params.Joint) (method.Sums, error) {
	j := k.job
	lanes := len(b.Positive)
	var z, soft, shift, c, v []float64
	var err error
	if p.NeedsOffset() {
		if z, soft, shift, err = k.offsets(ctx); err != nil {
			return nil, err
		}
		if p.Plain {
			soft = slices.Repeat([]float64{1}, len(z))
		}
	}
	if p.Mode == params.JointTurn {
		n := j.rows.X.Rows
		both, err := k.whole(ctx, params.Couple, n+j.columns)
		if err != nil {
			return nil, err
		}
		c, v = both[:n], both[n:]
	}
	var state []float64
	var system *solver.Joint
	writes := p.Mode == params.JointNewton || p.Mode == params.JointTurn
	if p.Mode != params.JointStart {
		size := j.rows.JointSize(lanes)
		if state, err = k.own(ctx, params.JointState, 0, size,
			func() []float64 { return make([]float64, size) }); err != nil {
			return nil, err
		}
		if writes {
			state = slices.Clone(state) // the store owns the slice that was read
		}
		system = j.rows.NewJoint(state, lanes)
	}
	b.Offset = z
	w := before
	var message *solver.Message
	k.Compute(func() {
		s := j.free.Get().(*solver.Scratch)
		defer j.free.Put(s)
		s.Open(j.rows, b)
		switch p.Mode {
		case params.JointStart:
			message = s.JointStart(j.rows, w)
		case params.JointNewton:
			w = slices.Clone(before)
			s.JointMove(w, system.Step, p.Length, shift)
			message = s.JointNewton(j.rows, w, system, soft)
		case params.JointTurn:
			message = s.JointTurn(j.rows, system, p.Alpha, p.Beta, c, v)
		case params.JointSearch:
			message = s.JointSearch(j.rows, w, system, p.Length, p.Slope)
		}
	})
	values := []store.Value{k.value(params.Share, slices.Concat(message.Rows, message.Own, message.Columns))}
	if p.Mode == params.JointNewton {
		values = append(values, k.value(params.Leaf, w))
	}
	if writes {
		values = append(values, k.value(params.JointState, state))
	}
	sums := make(method.Sums, params.Figures)
	sums[params.SumObjective], sums[params.SumChange] = message.Objective, message.Error
	sums[params.SumGamma], sums[params.SumDelta], sums[params.SumSlope] = message.Gamma, message.Delta, message.Slope
	return sums, k.Put(ctx, values, nil)
}

// exchange runs OpPartition for a soft-max by partial MAP.
func (k *task) exchange(ctx context.Context, mode params.JointMode) (method.Sums, error) {
	j := k.job
	n := j.rows.X.Rows
	sums := make(method.Sums, params.Figures)
	if mode == params.JointNewton || mode == params.JointTurn {
		shares, columns, err := k.shares(ctx, n)
		if err != nil {
			return nil, err
		}
		var c, v []float64
		var off float64
		k.Compute(func() { c, v, off = j.rows.Couple(shares, columns) })
		sums[params.SumDelta] = -off
		return sums, k.Put(ctx, []store.Value{k.value(params.Couple, append(c, v...))}, nil)
	}
	shares, drift, err := k.shares(ctx, 2*n)
	if err != nil {
		return nil, err
	}
	z, soft, move := make([]float64, n), make([]float64, n), make([]float64, j.columns)
	k.Compute(func() {
		own, logs := make([]float64, n), make([][]float64, len(shares))
		for b, v := range shares {
			logs[b] = v[:n]
			for i, x := range v[n:] {
				own[i] += x
			}
		}
		solver.LogSums(logs, z)
		for i := range z {
			soft[i] = solver.Soften(z[i], own[i])
		}
		if mode == params.JointStart {
			move = j.rows.Follow(z, drift)
		}
		for i, x := range z {
			sums[params.SumObjective] += float64(j.rows.WeightOf(i) * x)
		}
	})
	return sums, k.Put(ctx, []store.Value{k.value(params.Offset, slices.Concat(z, soft, move))}, nil)
}
