package direct

import (
	"context"
	"fmt"
	"slices"

	"taxon/coordinator/method"
	"taxon/internal/linalg/contribution"
	rr "taxon/internal/methods/rr/plan"
	"taxon/mapper"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/reducer"
)

// bench is the scratch memory of one goroutine.
type bench struct {
	*Replay
	solver  mapper.Solver
	walk    reducer.Walk
	mean    [mapper.Lanes][]float32
	reducer reducer.Scratch
}

func (r *Replay) newBench() *bench {
	return &bench{Replay: r, solver: r.problem.NewSolver()}
}

// run executes one task and compares its figures with the recorded ones.
func (b *bench) run(ctx context.Context, t Task) (m made, err error) {
	got := make(method.Sums, len(t.Sums.GetValues()))
	l := t.Lease
	var solve rr.Map
	var move rr.Reduce
	var emit rr.Emit
	switch l.GetOp() {
	case rr.OpMap:
		if err = method.Decode(l.GetParams(), &solve); err == nil {
			m.solved, err = b.solve(ctx, l, &solve, got)
		}
	case rr.OpReduce:
		if err = method.Decode(l.GetParams(), &move); err == nil {
			m.vectors, err = b.reduce(l, &move, got)
		}
	case rr.OpEmitMap:
		if err = method.Decode(l.GetParams(), &emit); err == nil {
			m.weights, err = b.emit(l, emit.Beta)
		}
	case rr.OpEmitReduce:
		if err = method.Decode(l.GetParams(), &emit); err == nil {
			m.vectors, err = b.reduce(l, &rr.Reduce{Rule: "emit", Beta: emit.Beta}, make(method.Sums, len(got)))
		}
	default:
		err = fmt.Errorf("operation %q has no direct twin", l.GetOp())
	}
	if err == nil && !slices.Equal(got, t.Sums.GetValues()) {
		err = fmt.Errorf("sums %v, recorded %v", got, t.Sums)
	}
	if err != nil {
		err = fmt.Errorf("step %d task %d: %w", l.GetStep(), l.GetTask(), err)
	}
	return m, err
}

func (b *bench) solve(ctx context.Context, l *taxonv1.Lease, m *rr.Map, sums method.Sums) (solved, error) {
	block, parents, err := b.block(l, m.Beta)
	if err != nil {
		return solved{}, err
	}
	r, err := b.solver.Solve(ctx, block, b.blocks[l.GetItem()].state, mapper.Options{
		Epochs: int(m.Epochs), MaxEpochs: int(m.MaxEpochs), InnerGap: m.InnerGap, InnerShare: m.InnerShare,
		Price: m.Price, Band: m.Band, Precise: m.Precise, Seed: l.GetSeed(),
		Curvature: true,
	})
	if err != nil {
		return solved{}, err
	}
	out := solved{at: place(l), state: &r.State}
	for _, c := range r.Contributions {
		if !m.Price { // rounded as in the store
			for i, v := range c.Sum {
				c.Sum[i] = float64(float32(v))
			}
		}
		out.in = append(out.in, contribution.Contribution{Parent: parents[c.Parent], Feature: c.Feature, Sum: c.Sum,
			Curvature: c.Curvature})
	}
	copy(sums, method.Sums{
		rr.SumPrimal: r.Sums.Primal, rr.SumDual: r.Sums.Dual, rr.SumInnerGap: r.Sums.InnerGap,
		rr.SumSupport: float64(r.Sums.Support), rr.SumWorking: float64(r.Sums.Working), rr.SumVisits: float64(r.Sums.Visits),
	})
	return out, nil
}

func (b *bench) emit(l *taxonv1.Lease, beta float64) ([]mapper.Override, error) {
	block, _, err := b.block(l, beta)
	if err != nil {
		return nil, err
	}
	st := b.blocks[l.GetItem()].state
	if st == nil {
		st = &mapper.State{}
	}
	return b.solver.Weights(block, st), nil
}

// block assigns the lanes. Slots are in the order of their first lane.
func (b *bench) block(l *taxonv1.Lease, beta float64) (*mapper.Block, []int32, error) {
	if at := reads(l, rr.Dual, 0); len(at) != 1 || at[0] != b.blocks[l.GetItem()].at {
		return nil, nil, fmt.Errorf("block %d was solved by %+v, not %+v", l.GetItem(), b.blocks[l.GetItem()].at, at)
	}
	x, err := b.internals(l, 0)
	if err != nil {
		return nil, nil, err
	}
	prev := x
	if beta != 0 {
		if prev, err = b.internals(l, 1); err != nil {
			return nil, nil, err
		}
	}
	b.walk.Reset(x, prev, float32(beta), uint32(b.features))
	out, slotOf := &mapper.Block{}, map[int32]int{-1: -1}
	var parents []int32
	for _, n := range b.plan.Block(int(l.GetItem())) {
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
		b.mean[slot] = make([]float32, b.set.Matrix.Cols+1) // there is room for a bias even without one
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

func (b *bench) reduce(l *taxonv1.Lease, r *rr.Reduce, sums method.Sums) (*reducer.Vectors, error) {
	rule, err := reducer.ParseRule(r.Rule)
	if err != nil {
		return nil, err
	}
	t := reducer.Task{
		Forest: b.forest, Lo: b.plan.RangeBegin[l.GetItem()], Hi: b.plan.RangeBegin[l.GetItem()+1], Rule: rule,
		Set: int32(r.Set), Damping: r.Damping, Follower: r.Follower, Certify: r.Certify, Beta: float32(r.Beta),
		Degrees: b.problem.Loss != mapper.Hinge,
	}
	in, err := b.contributions(l, t.Lo, t.Hi)
	if err != nil {
		return nil, err
	}
	x, err := b.vectors(l, 0)
	if err != nil {
		return nil, err
	}
	prev := x
	if t.Beta != 0 || rule == reducer.Jacobi {
		if prev, err = b.vectors(l, 1); err != nil {
			return nil, err
		}
	}
	next, s := b.reducer.Run(t, in, x[0], prev[0])
	copy(sums, method.Sums{
		rr.SumPrimal: s.Primal, rr.SumDual: s.Dual, rr.SumRestart: s.Restart,
		rr.SumMoved: s.Moved, rr.SumVisits: float64(s.Entries),
	})
	return next, nil
}
