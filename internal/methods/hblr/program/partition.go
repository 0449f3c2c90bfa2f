package program

import (
	"context"
	"fmt"
	"math"
	"slices"

	"taxon/coordinator/method"
	params "taxon/internal/methods/hblr/plan"
	"taxon/internal/methods/hblr/solver"
	"taxon/store"
	"taxon/worker/program"
)

// offset computes the offsets sum_j mix[j] Offset_j from the stored ones. Without a mix they are 0.
func (k *task) offset(ctx context.Context, mix []float64) ([]float64, error) {
	out := make([]float64, k.job.rows.X.Rows)
	for back, c := range mix {
		at := k.All(params.Offset, uint32(back))
		if len(at) != 1 || at[0].Step == 0 {
			return nil, program.Deterministic(fmt.Errorf("%s of item %d: the offset of %d solves before is not named", k.Op,
				k.Item, back))
		}
		v, err := k.read(ctx, at[0], params.Offset, len(out))
		if err != nil {
			return nil, err
		}
		for i, x := range v {
			out[i] += float64(c * x)
		}
	}
	return out, nil
}

// softmaxLeaves runs OpLeaves of the variational soft-max.
func (k *task) softmaxLeaves(ctx context.Context, b *solver.Block, before []float64,
	p *params.Leaves) (method.Sums, error) {
	j := k.job
	offset, err := k.offset(ctx, p.Mix)
	if err != nil {
		return nil, err
	}
	b.Offset = offset
	w, sums := slices.Clone(before), make(method.Sums, params.Figures)
	sigma, err := k.sigma(ctx, b)
	if err != nil {
		return nil, err
	}
	sigma.v = slices.Clone(sigma.v) // the store owns the slice that was read
	shares := make([]float64, 2*len(offset))
	both := &share{shares[:len(offset)], shares[len(offset):]}
	k.Compute(func() {
		s := j.free.Get().(*solver.Full)
		defer j.free.Put(s)
		if p.SharesOnly {
			s.Open(j.rows, b)
			s.Locate(j.rows, w, sigma.v)
			s.Share(both.tau, both.pull)
			return
		}
		err = j.solveBounded(ctx, s, b, w, sigma.v, make([]float64, len(w)), p.Tolerance, sums, both)
	})
	if err != nil {
		return nil, err
	}
	return sums, k.Put(ctx, []store.Value{
		k.value(params.Leaf, w), k.value(params.Share, append(shares, b.Drift(w)...)), k.value(params.Sigma, sigma.v),
	}, nil)
}

// partition runs OpPartition.
func (k *task) partition(ctx context.Context) (method.Sums, error) {
	j := k.job
	var p params.Partition
	if err := k.item(params.Whole, 1, &p); err != nil {
		return nil, err
	}
	if p.Joint != "" {
		return k.exchange(ctx, p.Joint)
	}
	from, err := k.offset(ctx, p.Mix)
	if err != nil {
		return nil, err
	}
	rows := len(from)
	shares, drift, err := k.shares(ctx, 2*rows)
	if err != nil {
		return nil, err
	}
	sums, to := make(method.Sums, params.Figures), make([]float64, rows)
	k.Compute(func() {
		total := make([]float64, 2*rows)
		for _, share := range shares {
			for i, x := range share {
				total[i] += x
			}
		}
		for i := range to {
			to[i] = solver.Beta(from[i], total[i], total[rows+i], j.leaves())
		}
		j.rows.Follow(to, drift)
	})
	f := subtract(to, from)
	for i, x := range f {
		sums[params.SumChange] = max(sums[params.SumChange], math.Abs(x)/max(1, math.Abs(to[i])))
	}
	sums[params.Product(0)] = squared(f)
	for back := range min(p.Past, params.OffsetMemory) {
		past, err := k.own(ctx, params.OffsetF, back, rows, func() []float64 { return make([]float64, rows) })
		if err != nil {
			return nil, err
		}
		sums[params.Product(back+1)] = dot(f, past)
	}
	return sums, k.Put(ctx, []store.Value{k.value(params.Offset, to), k.value(params.OffsetF, f)}, nil)
}

// shares returns the messages of all blocks, first by row and then by column.
func (k *task) shares(ctx context.Context, rows int) (shares, drift [][]float64, err error) {
	j, places := k.job, k.All(params.Share, 0)
	if len(places) != len(j.slots) {
		return nil, nil, program.Deterministic(fmt.Errorf("%s: shares of %d blocks are named, the plan has %d", k.Op,
			len(places), len(j.slots)))
	}
	for _, at := range places {
		v, err := k.read(ctx, at, params.Share, rows+2*j.columns)
		if err != nil {
			return nil, nil, err
		}
		shares, drift = append(shares, v[:rows]), append(drift, v[rows:])
	}
	return shares, drift, nil
}

// leaves returns the number of leaves of the tree.
func (j *job) leaves() (n int) {
	for _, leaf := range j.tree.Leaf {
		if leaf {
			n++
		}
	}
	return n
}

// contribute runs OpContribute.
func (k *task) contribute(ctx context.Context) (method.Sums, error) {
	j := k.job
	if err := k.item(params.Blocks, len(j.slots), &struct{}{}); err != nil {
		return nil, err
	}
	b, err := k.block(ctx)
	if err != nil {
		return nil, err
	}
	if b.Offset, err = k.tight(ctx); err != nil {
		return nil, err
	}
	size := j.columns * len(b.Positive)
	start := func() []float64 { return startLeaves(b, j.columns) }
	w, err := k.own(ctx, params.Leaf, 0, size, start)
	if err != nil {
		return nil, err
	}
	before, err := k.own(ctx, params.PreviousMeans, 0, size, start)
	if err != nil {
		return nil, err
	}
	var sigma sigmas
	if j.bounded {
		if sigma, err = k.sigma(ctx, b); err != nil {
			return nil, err
		}
	}
	var contribution *solver.Contribution
	var trace []float64
	k.Compute(func() {
		bound := make([]float64, size)
		if j.bounded {
			s := j.free.Get().(*solver.Full)
			defer j.free.Put(s)
			s.Open(j.rows, b)
			s.Locate(j.rows, w, sigma.v)
			s.Curvature(j.rows, bound)
			contribution, trace = j.contribute(sigma, b, k.Item, w, before, bound)
			return
		}
		s := j.free.Get().(*solver.Scratch)
		defer j.free.Put(s)
		s.Open(j.rows, b)
		s.Evaluate(j.rows, w)
		s.Curvature(j.rows, bound)
		contribution, trace = j.contribute(s, b, k.Item, w, before, bound)
	})
	values := append(k.contributions(contribution), k.value(params.Trace, trace), k.value(params.PreviousMeans, w))
	return make(method.Sums, params.Figures), k.Put(ctx, values, nil)
}
