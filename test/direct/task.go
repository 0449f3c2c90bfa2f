package direct

import (
	"context"
	"fmt"

	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
)

// bench is the memory that one goroutine works with.
type bench struct {
	*Replay
	scratch *mapper.Scratch
	walk    reducer.Walk
	mean    [mapper.Lanes][]float32
	reducer reducer.Scratch
}

func (r *Replay) newBench() *bench {
	return &bench{Replay: r, scratch: r.solver.NewScratch()}
}

// run does one task and compares its sums with the recorded ones.
func (b *bench) run(ctx context.Context, t Task) (m made, err error) {
	var got *taxonv1.Sums
	l := t.Lease
	switch l.GetKind() {
	case taxonv1.TaskKind_TASK_KIND_MAP:
		m.solved, got, err = b.solve(ctx, l)
	case taxonv1.TaskKind_TASK_KIND_REDUCE:
		m.vectors, got, err = b.reduce(l.GetReduce())
	case taxonv1.TaskKind_TASK_KIND_EMIT_MAP:
		m.weights, err = b.emit(l.GetMap())
		got = &taxonv1.Sums{}
	case taxonv1.TaskKind_TASK_KIND_EMIT_REDUCE:
		r := l.GetReduce()
		m.vectors, _, err = b.reduce(&taxonv1.ReduceTask{Range: r.Range, Rule: "emit", X: r.X, XPrev: r.XPrev, Beta: r.Beta})
		got = &taxonv1.Sums{}
	}
	if err == nil && got.String() != t.Sums.String() {
		err = fmt.Errorf("sums %v, recorded %v", got, t.Sums)
	}
	if err != nil {
		err = fmt.Errorf("step %d task %d: %w", l.GetStep(), l.GetTask(), err)
	}
	return m, err
}

func (b *bench) solve(ctx context.Context, l *taxonv1.Lease) (solved, *taxonv1.Sums, error) {
	m := l.GetMap()
	block, parents, err := b.block(m)
	if err != nil {
		return solved{}, nil, err
	}
	r, err := b.solver.SolveBlock(ctx, b.scratch, block, b.blocks[m.GetBlock()].state, mapper.Options{
		Epochs: int(m.GetEpochs()), MaxEpochs: int(m.GetMaxEpochs()), InnerGap: m.GetInnerGap(), InnerShare: m.GetInnerShare(),
		Price: m.GetPrice(), Band: m.GetBand(), Precise: m.GetPrecise(), Seed: m.GetSeed(),
		Stiffness: true,
	})
	if err != nil {
		return solved{}, nil, err
	}
	out := solved{at: place(l), state: &r.State}
	for _, c := range r.Contributions {
		if !m.GetPrice() { // as it travels through the store
			for i, v := range c.Sum {
				c.Sum[i] = float64(float32(v))
			}
		}
		out.in = append(out.in, reducer.Contribution{Parent: parents[c.Slot], Feature: c.Feature, Sum: c.Sum, Stiff: c.Stiff})
	}
	return out, &taxonv1.Sums{
		Primal: r.Sums.Primal, Dual: r.Sums.Dual, InnerGap: r.Sums.InnerGap,
		Support: uint64(r.Sums.Support), Working: uint64(r.Sums.Working), Visits: uint64(r.Sums.Visits),
	}, nil
}

func (b *bench) emit(m *taxonv1.MapTask) ([]mapper.Override, error) {
	block, _, err := b.block(m)
	if err != nil {
		return nil, err
	}
	st := b.blocks[m.GetBlock()].state
	if st == nil {
		st = &mapper.State{}
	}
	return b.solver.Weights(b.scratch, block, st), nil
}

// block lays out the lanes, slots in order of their first lane.
func (b *bench) block(m *taxonv1.MapTask) (*mapper.Block, []int32, error) {
	if at := m.GetDual().Place(); at != b.blocks[m.GetBlock()].at {
		return nil, nil, fmt.Errorf("block %d was solved by %+v, not %+v", m.GetBlock(), b.blocks[m.GetBlock()].at, at)
	}
	x, err := b.internals(m.GetX())
	if err != nil {
		return nil, nil, err
	}
	prev := x
	if m.GetBeta() != 0 {
		if prev, err = b.internals(m.GetXPrev()); err != nil {
			return nil, nil, err
		}
	}
	b.walk.Reset(x, prev, float32(m.GetBeta()), uint32(b.features))
	out, slotOf := &mapper.Block{}, map[int32]int{-1: -1}
	var parents []int32
	for _, n := range b.terminals(m.GetBlock()) {
		p := b.parent(n)
		if _, ok := slotOf[p]; !ok {
			slotOf[p] = len(parents)
			out.Mean = append(out.Mean, b.meanOf(len(parents), p))
			parents = append(parents, p)
		}
		out.Slot = append(out.Slot, slotOf[p])
		out.Positive = append(out.Positive, b.positives(n))
	}
	return out, parents, nil
}

func (b *bench) meanOf(slot int, p int32) []float32 {
	if b.mean[slot] == nil {
		b.mean[slot] = make([]float32, b.set.Matrix.Cols+1) // the bias's place is there without a bias, too
	}
	b.walk.Move(b.forest, p)
	b.walk.CopyTo(b.mean[slot])
	return b.mean[slot]
}

func (b *bench) positives(n uint32) []uint32 {
	l := b.tree.Label[n]
	if l < 0 {
		return nil
	}
	return b.set.PosRows[b.set.PosBegin[l]:b.set.PosBegin[l+1]]
}

func (b *bench) reduce(r *taxonv1.ReduceTask) (*reducer.Vectors, *taxonv1.Sums, error) {
	rule, err := reducer.ParseRule(r.GetRule())
	if err != nil {
		return nil, nil, err
	}
	t := reducer.Task{
		Forest: b.forest, Lo: b.plan.RangeBegin[r.GetRange()], Hi: b.plan.RangeBegin[r.GetRange()+1], Rule: rule,
		Set: int32(r.GetSet()), Damping: r.GetDamping(), Certify: r.GetCertify(), Beta: float32(r.GetBeta()),
		Degrees: b.solver.Loss != mapper.Hinge,
	}
	in, err := b.contributions(r.GetV(), t.Lo, t.Hi)
	if err != nil {
		return nil, nil, err
	}
	x, err := b.vectors(r.GetX())
	if err != nil {
		return nil, nil, err
	}
	prev := x
	if t.Beta != 0 || rule == reducer.Jacobi {
		if prev, err = b.vectors(r.GetXPrev()); err != nil {
			return nil, nil, err
		}
	}
	next, sums := b.reducer.Run(t, in, x[0], prev[0])
	return next, &taxonv1.Sums{
		Primal: sums.Primal, Dual: sums.Dual, Restart: sums.Restart, Moved: sums.Moved, Visits: uint64(sums.Entries),
	}, nil
}
