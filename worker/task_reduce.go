package worker

import (
	"context"
	"fmt"
	"slices"

	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
	"taxon/store"
)

// contributionBatch bounds how many blocks' values are read in one call.
const contributionBatch = 256

// reduce runs a REDUCE task: it moves the internals over one feature range.
func (k *task) reduce(ctx context.Context, s *scratch) (*taxonv1.Sums, error) {
	r := k.lease.GetReduce()
	t, err := k.reducerTask(r)
	if err != nil {
		return nil, err
	}
	if t.Rule, err = reducer.ParseRule(r.GetRule()); err != nil {
		return nil, Deterministic(err)
	}
	in, err := k.contributions(ctx, r, t)
	if err != nil {
		return nil, err
	}
	x, prev, err := k.rangeVectors(ctx, r, t, t.Beta != 0 || t.Rule == reducer.Jacobi)
	if err != nil {
		return nil, err
	}
	var next *reducer.Vectors
	var sums reducer.Sums
	k.compute(func() { next, sums = s.reduce.Run(t, in, x, prev) })
	if t.Rule != reducer.None {
		values := make([]store.Value, len(k.job.groups))
		for g, nodes := range k.job.groups {
			values[g] = store.Value{Key: k.key(rangeName("x", g)), Data: encodeVectors(next, nodes, t.Lo)}
		}
		var keep func()
		if k.job.oneGroup() && !k.job.smooth() && !k.job.once {
			keep = func() { k.job.recent.keep(values[0].Key, next) }
		}
		if err := k.put(ctx, values, keep); err != nil {
			return nil, err
		}
	}
	return &taxonv1.Sums{
		Primal: sums.Primal, Dual: sums.Dual, Restart: sums.Restart, Moved: sums.Moved, Visits: uint64(sums.Entries),
	}, nil
}

// emitRange writes the final vectors y of all internals over one range.
func (k *task) emitRange(ctx context.Context, s *scratch) error {
	r := k.lease.GetReduce()
	t, err := k.reducerTask(r)
	if err != nil {
		return err
	}
	t.Rule = reducer.Emit
	x, prev, err := k.rangeVectors(ctx, r, t, t.Beta != 0)
	if err != nil {
		return err
	}
	y, _ := s.reduce.Run(t, nil, x, prev)
	all := make([]int32, len(k.job.forest.Parent))
	for p := range all {
		all[p] = int32(p)
	}
	return k.put(ctx, []store.Value{{Key: k.key("weights"), Data: encodeVectors(y, all, t.Lo)}}, nil)
}

func (k *task) reducerTask(r *taxonv1.ReduceTask) (reducer.Task, error) {
	ranges := k.job.ranges()
	if int(r.GetRange())+1 >= len(ranges) {
		return reducer.Task{}, Deterministic(fmt.Errorf("feature range %d: the plan has %d", r.GetRange(), len(ranges)-1))
	}
	return reducer.Task{
		Forest: k.job.forest, Lo: ranges[r.GetRange()], Hi: ranges[r.GetRange()+1],
		Set: int32(r.GetSet()), Damping: r.GetDamping(), Certify: r.GetCertify(), Beta: float32(r.GetBeta()),
		Degrees: k.job.solver.Loss != mapper.Hinge, Smooth: k.job.smooth(),
		Whole: k.job.graph != nil && k.job.graph.whole,
	}, nil
}

// contributions reads the blocks' parts of the range, in block order.
func (k *task) contributions(ctx context.Context, r *taxonv1.ReduceTask, t reducer.Task) (in []reducer.Contribution, err error) {
	places := r.GetV().Expand()
	parts := make([][]reducer.Contribution, len(places))
	var missing []int // blocks that this worker has not solved last itself
	for b, p := range places {
		if p.Step == 0 { // the block has not been solved: v = 0
			continue
		}
		if kept, ok := k.job.blocks.get(uint32(b), p); ok {
			parts[b] = kept.parts[r.GetRange()]
			continue
		}
		missing = append(missing, b)
	}
	name := rangeName("v", int(r.GetRange()))
	for batch := range slices.Chunk(missing, contributionBatch) {
		keys := make([]store.Key, len(batch))
		for i, b := range batch {
			keys[i] = k.keyAt(places[b], name)
		}
		values, err := k.get(ctx, keys)
		if err != nil {
			return nil, err
		}
		for i, b := range batch {
			if parts[b], err = decodeContributions(nil, values[i], t.Lo, t.Hi, k.job.senders()); err != nil {
				return nil, Deterministic(err)
			}
		}
	}
	return slices.Concat(parts...), nil
}

// rangeVectors reads the current and, if asked for, the previous vectors of the range.
func (k *task) rangeVectors(ctx context.Context, r *taxonv1.ReduceTask, t reducer.Task, both bool) (x, prev *reducer.Vectors, err error) {
	if x, err = k.rangeVector(ctx, r.GetX(), t); err != nil || !both {
		return x, x, err
	}
	prev, err = k.rangeVector(ctx, r.GetXPrev(), t)
	return x, prev, err
}

// rangeVector joins the groups' lists of one range; a node that several groups hold
// (an ancestor of all) is taken from the first.
func (k *task) rangeVector(ctx context.Context, refs *taxonv1.Refs, t reducer.Task) (*reducer.Vectors, error) {
	nodes := len(k.job.forest.Parent)
	places := refs.Expand()
	if len(places) == 0 || places[0].Step == 0 {
		return reducer.Zero(nodes), nil
	}
	keys := make([]store.Key, len(k.job.groups))
	for g := range keys {
		keys[g] = k.keyAt(places[0], rangeName("x", g))
	}
	if part, ok := k.job.recent.get(keys[0]).(*vectorPart); ok && k.job.oneGroup() {
		return part, nil
	}
	values, err := k.get(ctx, keys)
	if err != nil {
		return nil, err
	}
	parts := make([]*vectorPart, len(values))
	for g, v := range values {
		if parts[g], err = decodeVectors(v, len(k.job.groups[g]), t.Lo, t.Hi); err != nil {
			return nil, Deterministic(err)
		}
	}
	return joinGroups(nodes, k.job.groups, parts), nil
}

func joinGroups(nodes int, groups [][]int32, parts []*vectorPart) *reducer.Vectors {
	if len(parts) == 1 && len(groups[0]) == nodes {
		return parts[0]
	}
	type span struct{ group, at int }
	where := make([]span, nodes)
	for p := range where {
		where[p].group = -1
	}
	total := int64(0)
	for g, list := range groups {
		for i, p := range list {
			if where[p].group < 0 {
				where[p] = span{g, i}
				total += parts[g].Begin[i+1] - parts[g].Begin[i]
			}
		}
	}
	v := &reducer.Vectors{Begin: make([]int64, nodes+1), Feature: make([]uint32, 0, total), Value: make([]float32, 0, total)}
	for p, w := range where {
		if w.group >= 0 {
			part := parts[w.group]
			lo, hi := part.Begin[w.at], part.Begin[w.at+1]
			v.Feature = append(v.Feature, part.Feature[lo:hi]...)
			v.Value = append(v.Value, part.Value[lo:hi]...)
		}
		v.Begin[p+1] = int64(len(v.Feature))
	}
	return v
}
