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

// The value Part of a range holds these sums over its features for each internal:
const (
	partDistance = iota // ||mu - mu_parent||^2 of G
	partNorm            // ||mu||^2
	partMoved           // ||G - x||^2
	partLength
)

// internals runs OpInternals.
func (k *task) internals(ctx context.Context) (method.Sums, error) {
	j := k.job
	var p params.Internals
	if err := k.item(params.Ranges, j.ranges, &p); err != nil {
		return nil, err
	}
	x, err := k.point(ctx, params.X, 0)
	if err != nil {
		return nil, err
	}
	from := x
	if p.Half {
		if from, err = k.point(ctx, params.Half, 0); err != nil {
			return nil, err
		}
	}
	alpha, err := k.alpha(ctx)
	if err != nil {
		return nil, err
	}
	contribution, err := k.contribution(ctx)
	if err != nil {
		return nil, err
	}
	lo, hi := j.bounds(k.Item)
	columns := hi - lo
	mean, byFeature := j.split(from)
	if j.m2() {
		alpha = byFeature
	}
	var g []float64
	k.Compute(func() {
		if p.Set < 0 {
			if g = j.tree.Solve(j.variant, alpha, mean, contribution, j.plan.Share(), columns); j.softmax {
				solver.Center(g, columns)
			}
		} else {
			g = slices.Clone(mean)
			j.tree.Average(j.variant, alpha, g, contribution, columns, func(n int32) bool { return int(j.depth[n]%2) == p.Set })
		}
	})
	sums := make(method.Sums, params.Figures)
	if !p.End {
		half := append(g, from[len(g):]...)
		return sums, k.Put(ctx, append(k.above(half), k.value(params.Half, half)), nil)
	}
	prior, err := k.prior(ctx)
	if err != nil {
		return nil, err
	}
	var part, em []float64
	k.Compute(func() {
		sums[params.SumObjective] = j.tree.Penalty(j.variant, alpha, x[:len(g)], columns)
		at, scale := g, j.scale[lo:hi]
		if j.bounded {
			// the precisions are updated at the means of x, because they may be the only part that
			// is updated
			at = x[:len(g)]
			if j.m2() {
				sums[params.SumObjective] += j.tree.Negative(j.variant, alpha, prior, scale, 1)
				em = logs(j.tree.UpdateByFeature(solver.GammaEM, alpha, prior, at, contribution, scale))
			}
		}
		part = j.shape(at, g, x, columns)
		if j.m2() {
			next := j.tree.UpdateByFeature(solver.Gamma, alpha, prior, at, contribution, scale)
			for i, a := range next {
				sums[params.SumChange] = max(sums[params.SumChange], math.Abs(a/alpha[i]-1))
				g = append(g, solver.Log(a))
			}
		}
	})
	values, err := k.residual(ctx, sums, x, g, params.G, params.F, p.Past)
	if err != nil {
		return nil, err
	}
	if em != nil {
		values = append(values, k.value(params.EM, em))
	}
	return sums, k.Put(ctx, append(values, k.value(params.Part, part)), nil)
}

// shape computes the value Part of a range from the means, and from a point x and the result g of
// its update.
func (j *job) shape(mean, g, x []float64, columns int) []float64 {
	distance, norm := j.tree.Squares(mean, columns)
	out := make([]float64, partLength*len(norm))
	for i := range norm {
		out[i*partLength+partDistance], out[i*partLength+partNorm] = distance[i], norm[i]
		out[i*partLength+partMoved] = squared(subtract(g[i*columns:][:columns], x[i*columns:][:columns]))
	}
	return out
}

// residual returns the values G and F = G - x at a point x. It adds the inner products F_0.F_j with
// past rounds to the sums.
func (k *task) residual(ctx context.Context, sums method.Sums, x, g []float64, gName, fName string,
	past int) ([]store.Value, error) {
	f := subtract(g, x)
	if past > params.Memory {
		return nil, program.Deterministic(fmt.Errorf("%s of item %d: %d past rounds", k.Op, k.Item, past))
	}
	sums[params.Product(0)] = squared(f)
	for back := range past {
		past, err := k.own(ctx, fName, back, len(f), func() []float64 { return make([]float64, len(f)) })
		if err != nil {
			return nil, err
		}
		sums[params.Product(back+1)] = dot(f, past)
	}
	return []store.Value{k.value(gName, g), k.value(fName, f)}, nil
}

// contributions divides a block's contribution by ranges.
func (k *task) contributions(contribution *solver.Contribution) []store.Value {
	return k.cut(params.Contribution, contribution.Fields())
}

// cut returns a value for each range from fields that have a row for each slot. A value holds slot
// after slot, and within a slot field after field.
func (k *task) cut(family string, fields [][]float64) (values []store.Value) {
	j := k.job
	for r := range j.ranges {
		lo, hi := j.bounds(r)
		var v []float64
		for i := range j.slots[k.Item] {
			for _, field := range fields {
				v = append(v, field[i*j.columns+lo:i*j.columns+hi]...)
			}
		}
		values = append(values, k.value(part(family, r), v))
	}
	return values
}

// contribution returns the sum of the contributions of all blocks at this range's columns.
func (k *task) contribution(ctx context.Context) (*solver.Contribution, error) {
	lo, hi := k.job.bounds(k.Item)
	sum := solver.NewContribution(k.job.variant, len(k.job.tree.Nodes)*(hi-lo))
	return sum, k.addUp(ctx, params.Contribution, sum.Fields())
}

// addUp adds the values that all blocks have written for this range to fields, which have a row for
// each internal.
func (k *task) addUp(ctx context.Context, family string, fields [][]float64) error {
	j := k.job
	places := k.All(family, 0)
	if len(places) != len(j.slots) {
		return program.Deterministic(fmt.Errorf("%s of feature range %d: %s of %d blocks are named, the plan has %d", k.Op,
			k.Item, family, len(places), len(j.slots)))
	}
	lo, hi := j.bounds(k.Item)
	columns := hi - lo
	for b, at := range places {
		// with schedule parity: these leaves have not been solved yet
		if at.Step == 0 {
			continue
		}
		slots := j.slots[b]
		v, err := k.read(ctx, at, part(family, k.Item), len(slots)*len(fields)*columns)
		if err != nil {
			return err
		}
		for _, p := range slots {
			for _, field := range fields {
				for c, x := range v[:columns] {
					field[int(p)*columns+c] += x
				}
				v = v[columns:]
			}
		}
	}
	return nil
}

// gamma runs OpGamma.
func (k *task) gamma(ctx context.Context) (method.Sums, error) {
	j := k.job
	var p params.Gamma
	if err := k.item(params.Whole, 1, &p); err != nil {
		return nil, err
	}
	below, change, err := k.traces(ctx)
	if err != nil {
		return nil, err
	}
	sums := make(method.Sums, params.Figures)
	sums[params.SumChange], sums[params.SumMeans] = change, change
	n := len(j.tree.Parent)
	x, err := k.own(ctx, params.XAlpha, 0, n, j.startAlpha)
	if err != nil {
		return nil, err
	}
	prior, err := k.prior(ctx)
	if err != nil {
		return nil, err
	}
	mean := j.mean
	if j.plan.Fitted {
		mean = 1
	}
	g, em := make([]float64, n), make([]float64, n)
	if !j.m2() {
		alpha := exp(x)
		if j.bounded {
			sums[params.SumObjective] = j.tree.Negative(j.variant, alpha, prior, []float64{mean}, j.occur)
			for i, a := range j.tree.Update(solver.GammaEM, j.variant, alpha, prior, below, j.occur, mean) {
				if j.tree.Owns(j.variant, int32(i)) {
					em[i] = math.Log(a)
				}
			}
		}
		var next solver.Alpha
		if j.bounded {
			next = j.tree.Update(solver.Gamma, j.variant, alpha, prior, below, j.occur, mean)
		} else {
			next = j.tree.Settle(j.variant, alpha, prior, below, j.occur, mean)
		}
		for i, a := range next {
			if j.tree.Owns(j.variant, int32(i)) {
				g[i] = solver.Log(a)
				sums[params.SumChange] = max(sums[params.SumChange], math.Abs(a/alpha[i]-1))
			}
		}
	}
	values, err := k.residual(ctx, sums, x, g, params.GAlpha, params.FAlpha, p.Past)
	if err != nil {
		return nil, err
	}
	if j.bounded {
		values = append(values, k.value(params.EMAlpha, em))
	}
	return sums, k.Put(ctx, values, nil)
}

// traces sums the values Trace and Part for each node. It also returns the largest change of a mean,
// relative to the largest mean.
func (k *task) traces(ctx context.Context) (below solver.Below, change float64, err error) {
	j := k.job
	n := len(j.tree.Parent)
	below = solver.Below{Variance: make([]float64, n), Distance: make([]float64, n)}
	norm, moved := make([]float64, n), make([]float64, n)
	for b, at := range k.All(params.Trace, 0) {
		nodes := j.plan.Block(b)
		trace, err := k.read(ctx, at, params.Trace, traceLength*len(nodes))
		if err != nil {
			return below, 0, err
		}
		for l, leaf := range nodes {
			sums := trace[l*traceLength:]
			below.Variance[leaf], below.Distance[leaf] = sums[traceVariance], sums[traceDistance]
			norm[leaf], moved[leaf] = sums[traceNorm], sums[traceMoved]
		}
	}
	for _, at := range k.All(params.Part, 0) {
		v, err := k.read(ctx, at, params.Part, partLength*len(j.tree.Nodes))
		if err != nil {
			return below, 0, err
		}
		for i, node := range j.tree.Nodes {
			sums := v[i*partLength:]
			below.Distance[node] += sums[partDistance]
			norm[node] += sums[partNorm]
			moved[node] += sums[partMoved]
		}
	}
	if largest := slices.Max(norm); largest > 0 {
		change = math.Sqrt(slices.Max(moved) / largest)
	}
	return below, change, nil
}

// summary runs OpSummary.
func (k *task) summary(ctx context.Context) (method.Sums, error) {
	j := k.job
	if err := k.item(params.Whole, 1, &struct{}{}); err != nil {
		return nil, err
	}
	alpha, err := k.alpha(ctx)
	if err != nil {
		return nil, err
	}
	var all []float64
	for n, a := range alpha {
		if j.tree.Owns(j.variant, int32(n)) {
			all = append(all, a)
		}
	}
	for r, at := range k.All(params.X, 0) {
		x := j.start(r)
		if at.Step != 0 {
			if x, err = k.read(ctx, at, params.X, j.size(r)); err != nil {
				return nil, err
			}
		}
		_, alpha := j.split(x)
		lo, hi := j.bounds(r)
		for i, a := range alpha {
			if j.scale[lo+i%(hi-lo)] > 0 {
				all = append(all, a)
			}
		}
	}
	sums := make(method.Sums, params.Figures)
	if n := len(all); n > 0 {
		slices.Sort(all)
		sums[params.SumLow], sums[params.SumMedian], sums[params.SumHigh] = all[0], (all[(n-1)/2]+all[n/2])/2, all[n-1]
	}
	return sums, nil
}

func logs(a []float64) []float64 {
	out := make([]float64, len(a))
	for i, x := range a {
		out[i] = math.Log(x)
	}
	return out
}

func subtract(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i, x := range a {
		out[i] = x - b[i]
	}
	return out
}

func squared(a []float64) float64 { return dot(a, a) }

func dot(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += float64(x * b[i])
	}
	return sum
}
