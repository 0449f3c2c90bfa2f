package program

import (
	"context"
	"fmt"
	"slices"

	"taxon/coordinator/method"
	"taxon/internal/linalg/contribution"
	params "taxon/internal/methods/rr/plan"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
	"taxon/store"
	"taxon/worker/program"
)

// contributionBatch bounds the number of blocks whose values are read in one call.
const contributionBatch = 256

// reduce runs a REDUCE task, which updates the internals over one feature range.
func (k *task) reduce(ctx context.Context, s *scratch) (method.Sums, error) {
	var r params.Reduce
	number, err := k.item(params.Ranges, len(k.job.ranges())-1, &r)
	if err != nil {
		return nil, err
	}
	t := k.reducerTask(number, r)
	if t.Rule, err = reducer.ParseRule(r.Rule); err != nil {
		return nil, program.Deterministic(err)
	}
	if k.job.dense() {
		return k.reduceDense(ctx, s, t)
	}
	in, err := k.contributions(ctx, t)
	if err != nil {
		return nil, err
	}
	x, prev, err := k.rangeVectors(ctx, s, t, t.Beta != 0 || t.Rule == reducer.Jacobi)
	if err != nil {
		return nil, err
	}
	var next *reducer.Vectors
	var sums reducer.Sums
	t.Unwanted = func() bool { return ctx.Err() != nil }
	k.Compute(func() { next, sums = s.reduce.Run(t, in, x, prev) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if t.Rule != reducer.None {
		values := make([]store.Value, len(k.job.groups))
		for g, nodes := range k.job.groups {
			values[g] = store.Value{Key: k.Key(rangeName(params.X, g)), Data: encodeVectors(next, nodes, t.Lo)}
		}
		var keep func()
		if k.job.oneGroup() && !k.job.noCache {
			keep = func() { k.job.recent.retain(values[0].Key, next) }
		}
		if keep == nil {
			s.reduce.Recycle(next)
		}
		if err := k.Put(ctx, values, keep); err != nil {
			return nil, err
		}
	}
	return figuresOf(sums), nil
}

func figuresOf(sums reducer.Sums) method.Sums {
	return method.Sums{
		params.SumPrimal: sums.Primal, params.SumDual: sums.Dual, params.SumRestart: sums.Restart,
		params.SumMoved: sums.Moved, params.SumVisits: float64(sums.Entries),
	}
}

// reduceDense does what reduce does, for dense vectors.
func (k *task) reduceDense(ctx context.Context, s *scratch, t reducer.Task) (method.Sums, error) {
	in, err := k.denseContributions(ctx, t)
	if err != nil {
		return nil, err
	}
	x, err := k.rangeGrid(ctx, 0, t)
	if err != nil {
		return nil, err
	}
	prev := x
	if t.Beta != 0 || t.Rule == reducer.Jacobi {
		if prev, err = k.rangeGrid(ctx, 1, t); err != nil {
			return nil, err
		}
	}
	var next *reducer.Grid
	var sums reducer.Sums
	k.Compute(func() { next, sums = s.reduce.RunDense(t, in, x, prev) })
	if t.Rule == reducer.None {
		return figuresOf(sums), nil
	}
	values := make([]store.Value, len(k.job.groups))
	for g, nodes := range k.job.groups {
		values[g] = store.Value{Key: k.Key(rangeName(params.X, g)), Data: encodeGrid(next, nodes)}
	}
	return figuresOf(sums), k.Put(ctx, values, nil)
}

// rangeGrid does what rangeVector does, for dense vectors.
func (k *task) rangeGrid(ctx context.Context, back uint32, t reducer.Task) (*reducer.Grid, error) {
	nodes, width := len(k.job.forest.Parent), int(t.Hi-t.Lo)
	at := k.Own(params.X, back)
	if at.Step == 0 {
		return reducer.NewGrid(nodes, width), nil
	}
	keys := make([]store.Key, len(k.job.groups))
	for g := range keys {
		keys[g] = k.KeyAt(at, rangeName(params.X, g))
	}
	values, err := k.Get(ctx, keys)
	if err != nil {
		return nil, err
	}
	var all *reducer.Grid
	for g, v := range values {
		part, err := decodeGrid(v, k.job.parentsWithin(g), t.Lo, t.Hi)
		if err != nil {
			return nil, program.Deterministic(err)
		}
		if k.job.oneGroup() {
			return part, nil
		}
		if all == nil {
			all = reducer.NewGrid(nodes, width)
		}
		for i, p := range k.job.groups[g] { // groups that share a node have the same values for it
			copy(all.Row(int(p)), part.Row(i))
		}
	}
	return all, nil
}

// emitRange writes the final vectors y of all internals over one range.
func (k *task) emitRange(ctx context.Context, s *scratch) error {
	var r params.Emit
	number, err := k.item(params.Ranges, len(k.job.ranges())-1, &r)
	if err != nil {
		return err
	}
	t := k.reducerTask(number, params.Reduce{Beta: r.Beta})
	t.Rule = reducer.Emit
	x, prev, err := k.rangeVectors(ctx, s, t, t.Beta != 0)
	if err != nil {
		return err
	}
	y, _ := s.reduce.Run(t, nil, x, prev)
	nodes := make([]program.NodeWeights, 0, len(k.job.forest.Parent))
	for n, p := range k.job.internal {
		if p >= 0 {
			a, b := y.Begin[p], y.Begin[p+1]
			nodes = append(nodes, program.NodeWeights{Node: uint32(n), Columns: y.Feature[a:b], Values: y.Value[a:b]})
		}
	}
	return k.PutWeights(ctx, nodes)
}

func (k *task) reducerTask(number uint32, r params.Reduce) reducer.Task {
	ranges := k.job.ranges()
	return reducer.Task{
		Forest: k.job.forest, Lo: ranges[number], Hi: ranges[number+1],
		Set: int32(r.Set), Damping: r.Damping, Follower: r.Follower, Certify: r.Certify, Beta: float32(r.Beta),
		Degrees: k.job.partFlags&partDegrees != 0, Smooth: k.job.form.gradients,
		Whole: k.job.graph != nil && k.job.graph.whole,
	}
}

// contributions reads the blocks' contributions to the range, in block order.
func (k *task) contributions(ctx context.Context, t reducer.Task) (in []contribution.Contribution, err error) {
	places, err := k.senders()
	if err != nil {
		return nil, err
	}
	parts := make([][]contribution.Contribution, len(places))
	var missing []int // blocks whose last output this worker does not have
	for b, p := range places {
		if p.Step == 0 { // the block has not been solved: v = 0
			continue
		}
		if kept, ok := k.job.blocks.get(uint32(b), p); ok {
			parts[b] = kept.parts[k.Item]
			continue
		}
		missing = append(missing, b)
	}
	name := rangeName(params.V, k.Item)
	for batch := range slices.Chunk(missing, contributionBatch) {
		keys := make([]store.Key, len(batch))
		for i, b := range batch {
			keys[i] = k.KeyAt(places[b], name)
		}
		values, err := k.Get(ctx, keys)
		if err != nil {
			return nil, err
		}
		for i, b := range batch {
			if parts[b], err = decodeContributions(nil, values[i], t.Lo, t.Hi, k.job.senders(), k.job.partFlags); err != nil {
				return nil, program.Deterministic(err)
			}
		}
	}
	return slices.Concat(parts...), nil
}

// senders returns the places of the blocks' contributions.
func (k *task) senders() ([]taxonv1.Place, error) {
	places := k.All(params.V, 0)
	if len(places) != len(k.job.groupOf) {
		return nil, program.Deterministic(fmt.Errorf("reduce of feature range %d: contributions of %d blocks are "+
			"named, the plan has %d", k.Item, len(places), len(k.job.groupOf)))
	}
	return places, nil
}

// denseContributions does what contributions does, for dense contributions.
func (k *task) denseContributions(ctx context.Context, t reducer.Task) (in []contribution.Dense, err error) {
	places, err := k.senders()
	if err != nil {
		return nil, err
	}
	var keys []store.Key
	for _, p := range places {
		if p.Step > 0 {
			keys = append(keys, k.KeyAt(p, rangeName(params.V, k.Item)))
		}
	}
	for batch := range slices.Chunk(keys, contributionBatch) {
		values, err := k.Get(ctx, batch)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if in, err = decodeDense(in, v, int(t.Hi-t.Lo), k.job.senders()); err != nil {
				return nil, program.Deterministic(err)
			}
		}
	}
	return in, nil
}

// rangeVectors reads the current and, if needed, the previous vectors of the range.
func (k *task) rangeVectors(ctx context.Context, s *scratch, t reducer.Task,
	both bool) (x, prev *reducer.Vectors, err error) {
	if x, err = k.rangeVector(ctx, &s.vectors[0], 0, t); err != nil || !both {
		return x, x, err
	}
	prev, err = k.rangeVector(ctx, &s.vectors[1], 1, t)
	return x, prev, err
}

// rangeMemory is the memory into which a range's vectors are read. The next range reuses it.
type rangeMemory struct {
	parts []*reducer.Vectors // vectors of each group
	all   reducer.Vectors
}

// rangeVector joins the groups' lists of one range. A node that several groups have (a common
// ancestor) is taken from the first of them.
func (k *task) rangeVector(ctx context.Context, m *rangeMemory, back uint32, t reducer.Task) (*reducer.Vectors, error) {
	nodes := len(k.job.forest.Parent)
	if k.job.dense() {
		g, err := k.rangeGrid(ctx, back, t)
		if err != nil {
			return nil, err
		}
		return g.Vectors(k.job.forest.Parent, t.Lo), nil
	}
	at := k.Own(params.X, back)
	if at.Step == 0 {
		return reducer.Zero(nodes), nil
	}
	keys := make([]store.Key, len(k.job.groups))
	for g := range keys {
		keys[g] = k.KeyAt(at, rangeName(params.X, g))
	}
	if part, ok := k.job.recent.get(keys[0]).(*reducer.Vectors); ok && k.job.oneGroup() {
		return part, nil
	}
	values, err := k.Get(ctx, keys)
	if err != nil {
		return nil, err
	}
	for len(m.parts) < len(values) {
		m.parts = append(m.parts, new(reducer.Vectors))
	}
	for g, v := range values {
		if err := decodeVectorsInto(m.parts[g], v, len(k.job.groups[g]), t.Lo, t.Hi); err != nil {
			return nil, program.Deterministic(err)
		}
	}
	return joinGroups(&m.all, nodes, k.job.groups, m.parts), nil
}

// joinGroups joins the groups' lists in the memory of v.
func joinGroups(v *reducer.Vectors, nodes int, groups [][]int32, parts []*reducer.Vectors) *reducer.Vectors {
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
	v.Resize(nodes, int(total))
	v.Feature, v.Value = v.Feature[:0], v.Value[:0]
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
