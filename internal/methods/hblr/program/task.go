package program

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"taxon/coordinator/method"
	params "taxon/internal/methods/hblr/plan"
	"taxon/internal/methods/hblr/solver"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker/codec"
	"taxon/worker/program"
)

// task is a running task of the job.
type task struct {
	*program.Task
	job *job
}

// item checks that the task's item is among the first `items` of a list, and decodes its
// parameters.
func (k *task) item(list, items int, into any) error {
	if k.List != list || k.Item >= items {
		return program.Deterministic(fmt.Errorf("%s of item %d of list %d: the plan has %d in list %d", k.Op, k.Item, k.List,
			items, list))
	}
	if err := method.Decode(k.Params, into); err != nil {
		return program.Deterministic(fmt.Errorf("parameters of %s: %w", k.Op, err))
	}
	return nil
}

// read reads a value, which must have n numbers.
func (k *task) read(ctx context.Context, at taxonv1.Place, name string, n int) ([]float64, error) {
	b, err := k.Get(ctx, []store.Key{k.KeyAt(at, name)})
	if err != nil {
		return nil, err
	}
	v, err := codec.ReadVector(b[0], n)
	if err != nil {
		return nil, program.Deterministic(fmt.Errorf("%s for %s of item %d: %w", name, k.Op, k.Item, err))
	}
	return v, nil
}

// part returns the name of the value for item i that belongs to a family.
func part(family string, i int) string { return family + "/" + strconv.Itoa(i) }

// own reads the item's own value of a family, as it was `back` versions ago. If no task has written
// it yet, start provides it.
func (k *task) own(ctx context.Context, family string, back, n int, start func() []float64) ([]float64, error) {
	at := k.Own(family, uint32(back))
	if at.Step == 0 {
		return start(), nil
	}
	return k.read(ctx, at, family, n)
}

// point reads this range's point of a family. If no task has written it yet, it is the initial
// point of the job.
func (k *task) point(ctx context.Context, family string, back int) ([]float64, error) {
	return k.own(ctx, family, back, k.job.size(k.Item), func() []float64 { return k.job.start(k.Item) })
}

// alpha reads the precisions of M1 and M3.
func (k *task) alpha(ctx context.Context) (solver.Alpha, error) {
	j := k.job
	if j.m2() {
		return nil, nil
	}
	places := k.All(params.XAlpha, 0)
	if len(places) != 1 {
		return nil, program.Deterministic(fmt.Errorf("%s of item %d: the precisions are not named", k.Op, k.Item))
	}
	logs := j.startAlpha()
	if places[0].Step != 0 {
		var err error
		if logs, err = k.read(ctx, places[0], params.XAlpha, len(logs)); err != nil {
			return nil, err
		}
	}
	return exp(logs), nil
}

// value returns a value for this task to write.
func (k *task) value(name string, v []float64) store.Value {
	return store.Value{Key: k.Key(name), Data: k.job.encode(name, v)}
}

// exact lists the values that stay float64 in a narrow job, because they are small.
var exact = map[string]bool{params.Trace: true, params.Part: true, params.XAlpha: true, params.GAlpha: true,
	params.FAlpha: true, params.Slope: true}

// encode encodes a value, in float32 for a narrow job.
func (j *job) encode(name string, v []float64) []byte {
	if j.plan.Narrow && !exact[name] {
		return codec.Narrow(v)
	}
	return codec.Vector(v)
}

// above returns, for each block, the part of this range's point that its leaves need.
func (k *task) above(x []float64) (values []store.Value) {
	for b := range k.job.slots {
		values = append(values, k.value(part(params.Above, b), k.job.aboveOf(x, k.Item, b)))
	}
	return values
}

// aboveOf returns the part for one block: the mean of each of its leaves' parents and, for M2, the
// precisions.
func (j *job) aboveOf(x []float64, r, block int) (out []float64) {
	lo, hi := j.bounds(r)
	columns, logs := hi-lo, x[len(x)/2:]
	for _, p := range j.slots[block] {
		at := int(p) * columns
		out = append(out, x[at:at+columns]...)
		if j.m2() {
			out = append(out, exp(logs[at:at+columns])...)
		}
	}
	return out
}

// startAbove returns the same part of the initial point.
func (j *job) startAbove(r, block int) (out []float64) {
	lo, hi := j.bounds(r)
	for _, p := range j.slots[block] {
		out = append(out, make([]float64, hi-lo)...)
		if j.m2() {
			logs := make([]float64, hi-lo)
			j.startLogs(logs, j.tree.Nodes[p], lo)
			out = append(out, exp(logs)...)
		}
	}
	return out
}

// move runs OpMove.
func (k *task) move(ctx context.Context) (method.Sums, error) {
	j := k.job
	var p params.Move
	family, to, items := params.G, params.X, j.ranges
	if k.List == params.Whole {
		family, to, items = params.GAlpha, params.XAlpha, 1
	}
	if err := k.item(k.List, items, &p); err != nil {
		return nil, err
	}
	size, start := len(j.tree.Parent), j.startAlpha
	if to == params.X {
		size, start = j.size(k.Item), func() []float64 { return j.start(k.Item) }
	}
	if p.Apart && k.List == params.Whole {
		return k.secants(ctx)
	}
	x, err := make([]float64, size), error(nil)
	for back, c := range p.Mix {
		g, err := k.own(ctx, family, back, size, func() []float64 { return make([]float64, size) })
		if err != nil {
			return nil, err
		}
		for i, v := range g {
			x[i] += float64(c * v)
		}
	}
	if p.Back > 0 {
		if x, err = k.back(ctx, p.Back, to, family, size); err != nil {
			return nil, err
		}
	}
	last, err := k.own(ctx, to, 0, size, start)
	if err != nil {
		return nil, err
	}
	sums := make(method.Sums, params.Figures)
	var values []store.Value
	if p.Paced && to == params.X {
		pace, err := k.pace(ctx, x, last)
		if err != nil {
			return nil, err
		}
		values = append(values, k.value(params.Pace, pace))
	}
	sums[params.SumStep] = squared(subtract(x, last))
	values = append(values, k.value(to, x))
	if to == params.X {
		values = append(values, k.above(x)...)
	}
	return sums, k.Put(ctx, values, nil)
}

// pace sets the logarithms of M2's precisions in x. Each is its value at the last point plus a
// step, which is multiplied by a factor of the precision's own. pace returns the factors.
func (k *task) pace(ctx context.Context, x, last []float64) ([]float64, error) {
	half := len(x) / 2
	before, err := k.own(ctx, params.Pace, 0, half, func() []float64 { return slices.Repeat([]float64{1}, half) })
	if err != nil {
		return nil, err
	}
	steps := make([][]float64, 2) // F of this round and of the previous one
	for back := range steps {
		if steps[back], err = k.own(ctx, params.F, back, len(x),
			func() []float64 { return make([]float64, len(x)) }); err != nil {
			return nil, err
		}
		steps[back] = steps[back][half:]
	}
	out := make([]float64, half)
	for i, pace := range before {
		var step float64
		out[i], step = solver.Pace(pace, steps[0][i], steps[1][i])
		x[half+i] = last[half+i] + step
	}
	return out, nil
}

// secants moves each precision of M1 and M3 by its own secant.
func (k *task) secants(ctx context.Context) (method.Sums, error) {
	n := len(k.job.tree.Parent)
	zeros := func() []float64 { return make([]float64, n) }
	var f [2][]float64 // F of this round and of the previous one
	x, err := k.own(ctx, params.XAlpha, 0, n, k.job.startAlpha)
	for back := range f {
		if err == nil {
			f[back], err = k.own(ctx, params.FAlpha, back, n, zeros)
		}
	}
	if err != nil {
		return nil, err
	}
	last, err := k.own(ctx, params.Slope, 0, 2*n, func() []float64 {
		return append(slices.Repeat([]float64{-1}, n),
			zeros()...)
	})
	if err != nil {
		return nil, err
	}
	next, to := make([]float64, 2*n), make([]float64, n)
	for i := range x {
		next[i], next[n+i] = solver.Secant(last[i], f[0][i], f[1][i], last[n+i])
		to[i] = x[i] + next[n+i]
	}
	sums := make(method.Sums, params.Figures)
	sums[params.SumStep] = squared(next[n:])
	return sums, k.Put(ctx, []store.Value{k.value(params.XAlpha, to), k.value(params.Slope, next)}, nil)
}

// back returns the previous point with one part of it updated.
func (k *task) back(ctx context.Context, part params.Back, from, family string, size int) ([]float64, error) {
	j := k.job
	em, means, start := params.EMAlpha, 0, j.startAlpha
	if from == params.X {
		em, start = params.EM, func() []float64 { return j.start(k.Item) }
		if means = size; j.m2() {
			means /= 2
		}
	}
	x, err := k.own(ctx, from, 1, size, start)
	if err != nil {
		return nil, err
	}
	if part == params.BackMeans {
		g, err := k.own(ctx, family, 1, size, start)
		if err != nil {
			return nil, err
		}
		return slices.Concat(g[:means], x[means:]), nil
	}
	if means < size {
		moved, err := k.own(ctx, em, 1, size-means, func() []float64 { return start()[means:] })
		if err != nil {
			return nil, err
		}
		return slices.Concat(x[:means], moved), nil
	}
	return x, nil
}
