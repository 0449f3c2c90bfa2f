package program

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"

	"taxon/coordinator/method"
	"taxon/internal/jobspec"
	"taxon/internal/linalg/contribution"
	params "taxon/internal/methods/rr/plan"
	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
	"taxon/store"
	"taxon/worker/program"
)

// solve runs a MAP task. It reads the block's state and its parents' vectors, solves the sixteen
// subproblems and writes the new state and the contributions.
func (k *task) solve(ctx context.Context, s *scratch) (method.Sums, error) {
	var m params.Map
	number, err := k.item(params.Blocks, len(k.job.groupOf), &m)
	if err != nil {
		return nil, err
	}
	b, parents, err := k.block(ctx, s, number, m.Beta)
	if err != nil {
		return nil, err
	}
	warm, err := k.state(ctx, number)
	if err != nil {
		return nil, err
	}
	var r *mapper.Result
	k.Compute(func() {
		r, err = s.solver.Solve(ctx, b, warm, mapper.Options{
			Epochs: int(m.Epochs), MaxEpochs: int(m.MaxEpochs), InnerGap: k.job.innerGap(number, &m), InnerShare: m.InnerShare,
			Price: m.Price, Band: m.Band, Precise: m.Precise, Seed: k.Seed,
			Curvature: k.job.options.Stiffness != "full", Share: m.Share, Dense: k.job.dense(),
		})
	})
	if err != nil {
		return nil, err
	}
	if k.job.graph != nil {
		if m.Price {
			k.scale(&r.Sums, s, b, r.Contributions, k.job.pull(number))
		}
		if k.job.graph.whole {
			r.Contributions = wholeVectors(r.Contributions, b, k.job.features)
		}
	}
	values := []store.Value{{Key: k.Key(params.Dual), Data: k.job.form.encode(&r.State)}}
	var parts [][]contribution.Contribution
	exact := m.Price && k.job.form.exact
	if len(k.job.forest.Parent) > 0 {
		var data [][]byte
		if r.Dense != nil {
			k.job.address(r.Dense, len(b.Mean), parents)
			data = encodeDense(r.Dense, k.job.ranges())
		} else {
			flags := k.job.partFlags
			if exact {
				flags |= partExact
			}
			parts = cutContributions(k.job.sent(r, parents), k.job.ranges())
			data = encodeParts(parts, k.job.ranges(), flags)
		}
		for i, data := range data {
			values = append(values, store.Value{Key: k.Key(rangeName(params.V, i)), Data: data})
		}
	}
	var keep func()
	if !k.job.noCache {
		if !exact {
			asWritten(parts)
		}
		state := &r.State
		if r.Dense != nil {
			// decoded in place: a store in this process keeps the same memory
			if state, err = k.job.form.decode(k.job, values[0].Data, len(b.Slot)); err != nil {
				return nil, program.Deterministic(err)
			}
		}
		keep = func() { k.job.blocks.retain(number, solvedBlock{k.Place(), state, parts}) }
	}
	if err := k.Put(ctx, values, keep); err != nil {
		return nil, err
	}
	return method.Sums{
		params.SumPrimal: r.Sums.Primal, params.SumDual: r.Sums.Dual, params.SumInnerGap: r.Sums.InnerGap,
		params.SumSupport: float64(r.Sums.Support), params.SumWorking: float64(r.Sums.Working),
		params.SumVisits: float64(r.Sums.Visits),
	}, nil
}

// asWritten rounds the sums as encoding does.
func asWritten(parts [][]contribution.Contribution) {
	for _, part := range parts {
		for _, c := range part {
			for i, v := range c.Sum {
				c.Sum[i] = float64(float32(v))
			}
		}
	}
}

// emitBlock writes the block's final weights.
func (k *task) emitBlock(ctx context.Context, s *scratch) error {
	var m params.Emit
	number, err := k.item(params.Blocks, len(k.job.groupOf), &m)
	if err != nil {
		return err
	}
	b, _, err := k.block(ctx, s, number, m.Beta)
	if err != nil {
		return err
	}
	st, err := k.state(ctx, number)
	if err != nil {
		return err
	}
	if st == nil {
		st = &mapper.State{}
	}
	weights := s.solver.Weights(b, st)
	if k.job.graph != nil {
		weights = wholeWeights(weights, b, k.job.features)
	}
	nodes := make([]program.NodeWeights, len(weights))
	for l, n := range k.job.terminals(number) {
		nodes[l] = program.NodeWeights{Node: n, Columns: weights[l].Feature, Values: weights[l].Value}
	}
	return k.PutWeights(ctx, nodes)
}

// block assigns the lanes of a block. parents maps its slots to internals. The mean vectors lie in
// s.
func (k *task) block(ctx context.Context, s *scratch, number uint32,
	beta float64) (b *mapper.Block, parents []int32, err error) {
	j := k.job
	x, prev, err := k.internals(ctx, j.groupOf[number], beta)
	if err != nil {
		return nil, nil, err
	}
	if !j.dense() {
		s.walk.Reset(x, prev, float32(beta), j.features)
		defer s.walk.Release()
	}
	s.edges = s.edges[:0]
	b = &mapper.Block{C: jobspec.TerminalCost(j.options.CostBy, j.options.C, j.pull(number))}
	slotOf := map[int32]int{-1: -1}
	for _, n := range j.terminals(number) {
		p := j.parent(n)
		slot, ok := slotOf[p]
		if !ok {
			slot = len(parents)
			slotOf[p] = slot
			parents = append(parents, p)
			mean := k.mean
			switch {
			case j.graph != nil:
				mean = k.leafGroupMean
			case j.dense():
				mean = func(s *scratch, slot int, p int32) []float32 {
					y := k.meanOf(s, slot)
					at, _ := x.Place(p)
					x.Dense(prev, at, float32(beta), y)
					return y
				}
			}
			b.Mean = append(b.Mean, mean(s, slot, p))
		}
		b.Slot = append(b.Slot, slot)
		b.Positive = append(b.Positive, j.positives(n))
		b.Weight = append(b.Weight, j.positiveWeight(n))
	}
	return b, parents, nil
}

// mean returns the dense y of internal node p, which has one entry more than the data has columns.
func (k *task) mean(s *scratch, slot int, p int32) []float32 {
	y := k.meanOf(s, slot)
	s.walk.Move(k.job.forest, p)
	s.walk.CopyTo(y)
	return y
}

// meanOf returns the memory of a slot's mean.
func (k *task) meanOf(s *scratch, slot int) []float32 {
	if s.mean[slot] == nil {
		s.mean[slot] = make([]float32, k.job.set.Matrix.Cols+1)
	}
	return s.mean[slot]
}

// state reads the block's last duals and working set. It returns nil before the first solve.
func (k *task) state(ctx context.Context, number uint32) (*mapper.State, error) {
	p := k.Own(params.Dual, 0)
	if p.Step == 0 {
		return nil, nil
	}
	if b, ok := k.job.blocks.get(number, p); ok {
		return b.state, nil
	}
	v, err := k.Get(ctx, []store.Key{k.KeyAt(p, params.Dual)})
	if err != nil {
		return nil, err
	}
	st, err := k.job.form.decode(k.job, v[0], len(k.job.terminals(number)))
	return st, program.Deterministic(err)
}

// internals reads the current and, if beta is not 0, the previous vectors of a group.
func (k *task) internals(ctx context.Context, group int, beta float64) (x, prev *reducer.Internals, err error) {
	if x, err = k.vectors(ctx, group, 0); err != nil {
		return nil, nil, err
	}
	if beta == 0 { // y = x does not depend on the previous vectors
		k.job.vectors.drop(group)
		return x, x, nil
	}
	prev, err = k.vectors(ctx, group, 1)
	return x, prev, err
}

// vectors reads the internals of a group as the tasks of the ranges wrote them.
func (k *task) vectors(ctx context.Context, group int, back uint32) (*reducer.Internals, error) {
	places, ranges := k.All(params.X, back), len(k.job.ranges())-1
	if len(k.job.forest.Parent) == 0 {
		places = make([]taxonv1.Place, ranges) // no task has written them
	}
	if len(places) != ranges {
		return nil, program.Deterministic(fmt.Errorf("%s of block %d: %d values of the internals are named, the plan "+
			"has %d feature ranges", k.Op, k.Item, len(places), ranges))
	}
	return k.job.vectors.get(ctx, group, back, vectorsKey(taxonv1.NewRefs(places)), func() (*reducer.Internals, error) {
		nodes := k.job.groups[group]
		if k.job.dense() {
			grids, err := k.grids(ctx, group, places)
			return &reducer.Internals{Nodes: nodes, Grids: grids}, err
		}
		parts := make([]*reducer.Vectors, 0, len(k.job.ranges())-1)
		var keys []store.Key
		for _, p := range places {
			if p.Step == 0 {
				parts = append(parts, &reducer.Vectors{Begin: make([]int64, len(nodes)+1)})
				continue
			}
			key := k.KeyAt(p, rangeName(params.X, group))
			if part, ok := k.job.recent.get(key).(*reducer.Vectors); ok {
				parts = append(parts, part)
				continue
			}
			keys = append(keys, key)
			parts = append(parts, nil)
		}
		values, err := k.Get(ctx, keys)
		if err != nil {
			return nil, err
		}
		for r, part := range parts {
			if part != nil {
				continue
			}
			lo, hi := k.job.ranges()[r], k.job.ranges()[r+1]
			if parts[r], err = decodeVectors(values[0], len(nodes), lo, hi); err != nil {
				return nil, program.Deterministic(err)
			}
			values = values[1:]
		}
		return &reducer.Internals{Nodes: nodes, Parts: parts, Number: k.job.numbers.Add(1)}, nil
	})
}

// grids reads a group's dense vectors, range by range.
func (k *task) grids(ctx context.Context, group int, places []taxonv1.Place) ([]*reducer.Grid, error) {
	var keys []store.Key
	for _, p := range places {
		if p.Step > 0 {
			keys = append(keys, k.KeyAt(p, rangeName(params.X, group)))
		}
	}
	values, err := k.Get(ctx, keys)
	if err != nil {
		return nil, err
	}
	parent, ranges := k.job.parentsWithin(group), k.job.ranges()
	out := make([]*reducer.Grid, len(places))
	for r, p := range places {
		lo, hi := ranges[r], ranges[r+1]
		if p.Step == 0 {
			out[r] = reducer.NewGrid(len(parent), int(hi-lo))
			continue
		}
		if out[r], err = decodeGrid(values[0], parent, lo, hi); err != nil {
			return nil, program.Deterministic(err)
		}
		values = values[1:]
	}
	return out, nil
}

// vectorsKey identifies vectors by the values from which they were read.
func vectorsKey(refs *taxonv1.Refs) string {
	var b []byte
	for _, list := range [][]uint32{refs.GetCount(), refs.GetStep(), refs.GetTask(), refs.GetAttempt()} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, x := range list {
			b = binary.AppendUvarint(b, uint64(x))
		}
	}
	return string(b)
}

func rangeName(kind string, i int) string { return kind + "/" + strconv.Itoa(i) }
