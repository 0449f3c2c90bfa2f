package worker

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"

	"taxon/internal/jobspec"
	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
	"taxon/store"
)

// solve runs a MAP task: it reads the block's state and its parents' vectors, solves
// the sixteen subproblems and writes the new state and the contributions.
func (k *task) solve(ctx context.Context, s *scratch) (*taxonv1.Sums, error) {
	m := k.lease.GetMap()
	b, parents, err := k.block(ctx, s, m)
	if err != nil {
		return nil, err
	}
	warm, err := k.state(ctx, m)
	if err != nil {
		return nil, err
	}
	var r *mapper.Result
	k.compute(func() {
		r, err = k.job.solverOf(m.GetBlock()).SolveBlock(ctx, s.tile, b, warm, mapper.Options{
			Epochs: int(m.GetEpochs()), MaxEpochs: int(m.GetMaxEpochs()), InnerGap: k.job.innerGap(m), InnerShare: m.GetInnerShare(),
			Price: m.GetPrice(), Band: m.GetBand(), Precise: m.GetPrecise(), Seed: m.GetSeed(),
			Stiffness: k.job.options.GetStiffness() != "full",
		})
	})
	if err != nil {
		return nil, err
	}
	if k.job.graph != nil {
		if m.GetPrice() {
			k.scale(&r.Sums, s, b, r.Contributions, k.job.pull(m.GetBlock()))
		}
		if k.job.graph.whole {
			r.Contributions = wholeVectors(r.Contributions, b, k.job.features)
		}
	}
	values := []store.Value{{Key: k.key("dual"), Data: k.job.encodeState(&r.State)}}
	var parts [][]reducer.Contribution
	exact := m.GetPrice() && !k.job.smooth()
	if len(k.job.forest.Parent) > 0 {
		sent, to := k.job.withGradients(r, parents)
		ranges := k.job.ranges()
		parts = cutContributions(sent, to, ranges)
		for i, data := range encodeParts(parts, ranges, exact) {
			values = append(values, store.Value{Key: k.key(rangeName("v", i)), Data: data})
		}
	}
	var keep func()
	if !k.job.smooth() && !k.job.once { // dense states and vectors would fill the memory twice
		if !exact {
			asWritten(parts)
		}
		keep = func() { k.job.blocks.keep(m.GetBlock(), solvedBlock{k.place(), &r.State, parts}) }
	}
	if err := k.put(ctx, values, keep); err != nil {
		return nil, err
	}
	return &taxonv1.Sums{
		Primal: r.Sums.Primal, Dual: r.Sums.Dual, InnerGap: r.Sums.InnerGap,
		Support: uint64(r.Sums.Support), Working: uint64(r.Sums.Working), Visits: uint64(r.Sums.Visits),
	}, nil
}

// asWritten rounds the sums as encoding does.
func asWritten(parts [][]reducer.Contribution) {
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
	m := k.lease.GetMap()
	b, _, err := k.block(ctx, s, m)
	if err != nil {
		return err
	}
	st, err := k.state(ctx, m)
	if err != nil {
		return err
	}
	if st == nil {
		st = &mapper.State{}
	}
	weights := k.job.solverOf(m.GetBlock()).Weights(s.tile, b, st)
	if k.job.graph != nil {
		weights = wholeWeights(weights, b, k.job.features)
	}
	data := encodeOverrides(weights)
	return k.put(ctx, []store.Value{{Key: k.key("weights"), Data: data}}, nil)
}

// block lays out the lanes of the task's block. parents maps its slots to internals;
// the mean vectors lie in s.
func (k *task) block(ctx context.Context, s *scratch, m *taxonv1.MapTask) (b *mapper.Block, parents []int32, err error) {
	j := k.job
	if int(m.GetBlock()) >= len(j.groupOf) {
		return nil, nil, Deterministic(fmt.Errorf("block %d: the plan has %d", m.GetBlock(), len(j.groupOf)))
	}
	x, prev, err := k.internals(ctx, j.groupOf[m.GetBlock()], m)
	if err != nil {
		return nil, nil, err
	}
	s.walk.Reset(x, prev, float32(m.GetBeta()), j.features)
	s.edges = s.edges[:0]
	b = &mapper.Block{}
	slotOf := map[int32]int{-1: -1}
	for _, n := range j.terminals(m.GetBlock()) {
		p := j.parent(n)
		slot, ok := slotOf[p]
		if !ok {
			slot = len(parents)
			slotOf[p] = slot
			parents = append(parents, p)
			mean := k.mean
			if j.graph != nil {
				mean = k.fanMean
			}
			b.Mean = append(b.Mean, mean(s, slot, p))
		}
		b.Slot = append(b.Slot, slot)
		b.Positive = append(b.Positive, j.positives(n))
		b.Weight = append(b.Weight, jobspec.PositiveWeight(j.options, len(j.positives(n)), j.set.Matrix.Rows))
	}
	return b, parents, nil
}

// mean is the dense y of internal node p, one longer than the data has columns.
func (k *task) mean(s *scratch, slot int, p int32) []float32 {
	if s.mean[slot] == nil {
		s.mean[slot] = make([]float32, k.job.set.Matrix.Cols+1)
	}
	s.walk.Move(k.job.forest, p)
	s.walk.CopyTo(s.mean[slot])
	return s.mean[slot]
}

// state reads the block's last duals and working set; nil: none yet.
func (k *task) state(ctx context.Context, m *taxonv1.MapTask) (*mapper.State, error) {
	p := m.GetDual().Place()
	if p.Step == 0 {
		return nil, nil
	}
	if b, ok := k.job.blocks.get(m.GetBlock(), p); ok {
		return b.state, nil
	}
	v, err := k.get(ctx, []store.Key{k.keyAt(p, "dual")})
	if err != nil {
		return nil, err
	}
	st, err := k.job.decodeState(v[0], len(k.job.terminals(m.GetBlock())))
	return st, Deterministic(err)
}

// internals reads the group's current and previous vectors.
func (k *task) internals(ctx context.Context, group int, m *taxonv1.MapTask) (x, prev *reducer.Internals, err error) {
	if x, err = k.vectors(ctx, group, m.GetX()); err != nil {
		return nil, nil, err
	}
	if m.GetBeta() == 0 { // y = x: the previous ones do not enter
		return x, x, nil
	}
	prev, err = k.vectors(ctx, group, m.GetXPrev())
	return x, prev, err
}

// vectors reads the internals of a group as the ranges' tasks at refs wrote them.
func (k *task) vectors(ctx context.Context, group int, refs *taxonv1.Refs) (*reducer.Internals, error) {
	key := vectorsKey(group, refs)
	return k.job.vectors.get(ctx, key, func() (*reducer.Internals, error) {
		nodes := k.job.groups[group]
		parts := make([]*vectorPart, 0, len(k.job.ranges())-1)
		var keys []store.Key
		for _, p := range refs.Expand() {
			if p.Step == 0 {
				parts = append(parts, &vectorPart{Begin: make([]int64, len(nodes)+1)})
				continue
			}
			key := k.keyAt(p, rangeName("x", group))
			if part, ok := k.job.recent.get(key).(*vectorPart); ok {
				parts = append(parts, part)
				continue
			}
			keys = append(keys, key)
			parts = append(parts, nil)
		}
		values, err := k.get(ctx, keys)
		if err != nil {
			return nil, err
		}
		for r, part := range parts {
			if part != nil {
				continue
			}
			lo, hi := k.job.ranges()[r], k.job.ranges()[r+1]
			if parts[r], err = decodeVectors(values[0], len(nodes), lo, hi); err != nil {
				return nil, Deterministic(err)
			}
			values = values[1:]
		}
		return &reducer.Internals{Nodes: nodes, Parts: parts}, nil
	})
}

// vectorsKey names a group's vectors by what they were read from.
func vectorsKey(group int, refs *taxonv1.Refs) string {
	b := binary.AppendUvarint(nil, uint64(group))
	for _, list := range [][]uint32{refs.GetCount(), refs.GetStep(), refs.GetTask(), refs.GetAttempt()} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, x := range list {
			b = binary.AppendUvarint(b, uint64(x))
		}
	}
	return string(b)
}

func rangeName(kind string, i int) string { return kind + "/" + strconv.Itoa(i) }
