package program

import (
	"context"
	"fmt"
	"slices"

	"taxon/coordinator/method"
	params "taxon/internal/methods/hblr/plan"
	"taxon/internal/methods/hblr/solver"
	"taxon/worker/program"
)

// The value Trace holds these sums over the features that occur, for each leaf:
const (
	traceVariance = iota // sum_i Psi_i
	traceDistance        // ||mu - mu_parent||^2
	traceNorm            // ||mu||^2
	traceMoved           // ||mu - previous mu||^2
	traceLength
)

// block reads the inputs of a block's solve.
func (k *task) block(ctx context.Context) (*solver.Block, error) {
	j := k.job
	alpha, err := k.alpha(ctx)
	if err != nil {
		return nil, err
	}
	slots, fields := j.slots[k.Item], 1
	if j.m2() {
		fields = 2
	}
	rows := make([][]float64, fields*len(slots)) // slot by slot: means, then precisions
	for i := range rows {
		rows[i] = make([]float64, j.columns)
	}
	places := k.All(params.Above, 0)
	if len(places) != j.ranges {
		return nil, program.Deterministic(fmt.Errorf("%s of block %d: values of %d feature ranges are named, the plan has %d",
			k.Op, k.Item, len(places), j.ranges))
	}
	for r, at := range places {
		lo, hi := j.bounds(r)
		var v []float64
		if at.Step == 0 {
			v = j.startAbove(r, k.Item)
		} else if v, err = k.read(ctx, at, part(params.Above, k.Item), len(rows)*(hi-lo)); err != nil {
			return nil, err
		}
		for i := range rows {
			copy(rows[i][lo:hi], v[i*(hi-lo):])
		}
	}
	b := &solver.Block{}
	for _, n := range j.plan.Block(k.Item) {
		b.Positive = append(b.Positive, j.positive[n])
		var above []float64
		precision := j.precision(n, alpha)
		if slot := slices.Index(slots, j.above(n)); slot >= 0 {
			above = rows[fields*slot]
			if j.m2() {
				precision = solver.Precision{Value: rows[fields*slot+1], Step: 1}
			}
		}
		b.Above, b.Precision = append(b.Above, above), append(b.Precision, precision)
	}
	return b, nil
}

// precision returns the precision of a leaf whose parent has the same precision for all features.
func (j *job) precision(n uint32, alpha solver.Alpha) solver.Precision {
	if j.m2() {
		return solver.Unit
	}
	return j.tree.Precision(j.variant, alpha, int32(n), j.columns)
}

// startLeaves returns the means at which a block's first solve begins, which are the means of the
// parents.
func startLeaves(b *solver.Block, columns int) []float64 {
	lanes := len(b.Positive)
	w := make([]float64, columns*lanes)
	for l, m := range b.Above {
		for f, x := range m {
			w[f*lanes+l] = x
		}
	}
	return w
}

// leaves runs OpLeaves.
func (k *task) leaves(ctx context.Context) (method.Sums, error) {
	j := k.job
	var p params.Leaves
	if err := k.item(params.Blocks, len(j.slots), &p); err != nil {
		return nil, err
	}
	b, err := k.block(ctx)
	if err != nil {
		return nil, err
	}
	before, err := k.own(ctx, params.Leaf, 0, j.columns*len(b.Positive),
		func() []float64 { return startLeaves(b, j.columns) })
	if err != nil {
		return nil, err
	}
	if p.Joint != nil {
		return k.joint(ctx, b, before, p.Joint)
	}
	if j.softmax {
		return k.softmaxLeaves(ctx, b, before, &p)
	}
	if j.bounded {
		return k.boundedLeaves(ctx, b, before, p.Tolerance)
	}
	w := slices.Clone(before)
	var out solver.Solved
	var contribution *solver.Contribution
	var trace []float64
	k.Compute(func() {
		s := j.free.Get().(*solver.Scratch)
		defer j.free.Put(s)
		s.Open(j.rows, b)
		if out, err = s.Solve(ctx, j.rows, w, p.Tolerance); err == nil {
			bound := make([]float64, len(w))
			s.Curvature(j.rows, bound)
			contribution, trace = j.contribute(s, b, k.Item, w, before, bound)
		}
	})
	if err != nil {
		return nil, err
	}
	values := append(k.contributions(contribution), k.value(params.Leaf, w), k.value(params.Trace, trace))
	sums := make(method.Sums, params.Figures)
	sums[params.SumObjective], sums[params.SumPasses] = out.Objective, float64(out.Passes)
	return sums, k.Put(ctx, values, nil)
}

// varianceSource returns the variance of lane l at column f.
type varianceSource interface{ Variance(f, l int) float64 }

// contribute returns the contributions of a block's solved leaves to their parents, by slot, and
// the leaves' traces. bound bounds the curvature of the leaves' losses.
func (j *job) contribute(s varianceSource, b *solver.Block, block int, w, before,
	bound []float64) (*solver.Contribution, []float64) {
	lanes, slots := len(b.Positive), j.slots[block]
	contribution := solver.NewContribution(j.variant, len(slots)*j.columns)
	trace := make([]float64, lanes*traceLength)
	slot := make([]int, lanes)
	for l, n := range j.plan.Block(block) {
		slot[l] = slices.Index(slots, j.above(n))
	}
	for f, scale := range j.scale {
		if scale == 0 {
			continue
		}
		for l, to := range slot {
			at := f*lanes + l
			x, a, spread := w[at], b.Precision[l].At(f), s.Variance(f, l)
			distance, moved := x, x-before[at]
			if to >= 0 {
				distance -= b.Above[l][f]
				contribution.Add(to*j.columns+f, a, distance, bound[at], spread)
			}
			sums := trace[l*traceLength:][:traceLength]
			sums[traceVariance] += spread
			sums[traceDistance] += float64(distance * distance)
			sums[traceNorm] += float64(x * x)
			sums[traceMoved] += float64(moved * moved)
		}
	}
	return contribution, trace
}
