package program

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"taxon/coordinator/method"
	params "taxon/internal/methods/mlr/plan"
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

// readBatch bounds the number of values read in one call. Together they take up to half a gigabyte.
const readBatch = 256

// item checks that the task's item is among the `items` of a list, and decodes its parameters.
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

// score runs OpScore.
func (k *task) score(ctx context.Context) (method.Sums, error) {
	j := k.job
	if err := k.item(params.Rows, len(j.shards)-1, &struct{}{}); err != nil {
		return nil, err
	}
	places := k.All(params.Trial, 0)
	if len(places) != j.ranges {
		return nil, program.Deterministic(fmt.Errorf("score of row shard %d: %d values of the trial point are named, the "+
			"plan has %d feature ranges", k.Item, len(places), j.ranges))
	}
	parts := make([][]float64, 0, j.ranges)
	for batch := range slices.Chunk(places, readBatch) {
		read, err := k.vectors(ctx, params.Trial, batch, len(parts))
		if err != nil {
			return nil, err
		}
		parts = append(parts, read...)
	}
	width, classes := uint32(j.width), j.problem.classes
	column := func(f uint32) []float64 {
		return parts[f/width][int(f%width)*classes:][:classes]
	}
	var g *gradient
	var err error
	k.Compute(func() { g, err = j.problem.score(ctx, j.shards[k.Item], j.shards[k.Item+1], column) })
	if err != nil {
		return nil, err
	}
	values := make([]store.Value, j.ranges)
	at := 0
	for r := range values {
		_, hi := j.bounds(r)
		end := at
		for end < len(g.columns) && int(g.columns[end]) < hi {
			end++
		}
		values[r] = store.Value{Key: k.Key(params.V + "/" + strconv.Itoa(r)), Data: encodePart(g.columns[at:end],
			g.sums[at*classes:end*classes])}
		at = end
	}
	if err := k.Put(ctx, values, nil); err != nil {
		return nil, err
	}
	sums := make(method.Sums, params.Figures)
	sums[params.SumLoss], sums[params.SumVisits] = g.loss, float64(2*g.visits)
	return sums, nil
}

// gather runs OpGather.
func (k *task) gather(ctx context.Context) (method.Sums, error) {
	j := k.job
	var p params.Gather
	if err := k.item(params.Ranges, j.ranges, &p); err != nil {
		return nil, err
	}
	w, err := k.vectors(ctx, params.Trial, []taxonv1.Place{k.Own(params.Trial, 0)}, k.Item)
	if err != nil {
		return nil, err
	}
	g := slices.Clone(w[0])
	if err := k.subtractParts(ctx, g); err != nil {
		return nil, err
	}
	past, err := k.history(ctx, p.Past)
	if err != nil {
		return nil, err
	}
	lo, hi := j.bounds(k.Item)
	var out gathered
	k.Compute(func() { out = gather(w[0], g, past, j.metric()[lo:hi], j.problem.classes) })
	values := []store.Value{{Key: k.Key(params.W), Data: codec.Vector(w[0])}, {Key: k.Key(params.G),
		Data: codec.Vector(g)}}
	if err := k.Put(ctx, values, nil); err != nil {
		return nil, err
	}
	sums := make(method.Sums, params.Figures-5*(params.Memory+1), params.Figures)
	sums[params.SumNorm], sums[params.SumGradient] = out.norm, out.gradient
	return out.AppendTo(sums), nil
}

// move runs OpMove.
func (k *task) move(ctx context.Context) (method.Sums, error) {
	j := k.job
	var p params.Move
	if err := k.item(params.Ranges, j.ranges, &p); err != nil {
		return nil, err
	}
	if n := len(p.U); n == 0 || n > params.Memory+1 || len(p.S) != n {
		return nil, program.Deterministic(fmt.Errorf("move of feature range %d: a direction of %d and %d vectors", k.Item, n,
			len(p.S)))
	}
	h, err := k.history(ctx, len(p.U))
	if err != nil {
		return nil, err
	}
	lo, hi := j.bounds(k.Item)
	sums := make(method.Sums, params.Figures)
	var trial []float64
	k.Compute(func() { trial, sums[params.SumNorm] = move(&p, h, j.metric()[lo:hi], j.problem.classes) })
	return sums, k.Put(ctx, []store.Value{{Key: k.Key(params.Trial), Data: codec.Vector(trial)}}, nil)
}

// emit runs OpEmit.
func (k *task) emit(ctx context.Context) (method.Sums, error) {
	j := k.job
	if err := k.item(params.Ranges, j.ranges, &struct{}{}); err != nil {
		return nil, err
	}
	w, err := k.vectors(ctx, params.W, []taxonv1.Place{k.Own(params.W, 0)}, k.Item)
	if err != nil {
		return nil, err
	}
	lo, _ := j.bounds(k.Item)
	nodes := make([]program.NodeWeights, len(j.nodes))
	values, count := slices.Clone(w[0]), len(j.nodes)
	for c, n := range j.nodes {
		nodes[c].Node = n
		for at := c; at < len(values); at += count {
			above := 0.0
			if c > 0 && j.problem.parent != nil {
				// on a tree, the sums along the path where they differ from the parent's
				above = values[at-c+int(j.problem.parent[c])]
				values[at] += above
			}
			if x := float32(values[at]); x != float32(above) {
				nodes[c].Columns = append(nodes[c].Columns, uint32(lo+at/count))
				nodes[c].Values = append(nodes[c].Values, x)
			}
		}
	}
	return make(method.Sums, params.Figures), k.PutWeights(ctx, nodes)
}

// history reads the last n points and gradients of the range.
func (k *task) history(ctx context.Context, n int) (*history, error) {
	h := &history{}
	for back := range n {
		for _, family := range []string{params.W, params.G} {
			v, err := k.vectors(ctx, family, []taxonv1.Place{k.Own(family, uint32(back))}, k.Item)
			if err != nil {
				return nil, err
			}
			if family == params.W {
				h.w = append(h.w, v[0])
			} else {
				h.g = append(h.g, v[0])
			}
		}
	}
	return h, nil
}

// vectors reads values of a family of ranges, beginning at task first. A value that no task has
// written is zero.
func (k *task) vectors(ctx context.Context, family string, places []taxonv1.Place, first int) ([][]float64, error) {
	var keys []store.Key
	for _, p := range places {
		if p.Step != 0 {
			keys = append(keys, k.KeyAt(p, family))
		}
	}
	values, err := k.Get(ctx, keys)
	if err != nil {
		return nil, err
	}
	out := make([][]float64, len(places))
	for i, p := range places {
		lo, hi := k.job.bounds(first + i)
		if p.Step == 0 {
			out[i] = make([]float64, (hi-lo)*k.job.problem.classes)
			continue
		}
		if out[i], err = codec.ReadVector(values[0], (hi-lo)*k.job.problem.classes); err != nil {
			return nil, program.Deterministic(fmt.Errorf("%s of range %d: %w", family, first+i, err))
		}
		values = values[1:]
	}
	return out, nil
}

// subtractParts subtracts the shards' contributions to the range from g, in shard order.
func (k *task) subtractParts(ctx context.Context, g []float64) error {
	places := k.All(params.V, 0)
	if len(places) != len(k.job.shards)-1 {
		return program.Deterministic(fmt.Errorf("gather of feature range %d: contributions of %d row shards are "+
			"named, the plan has %d", k.Item, len(places), len(k.job.shards)-1))
	}
	lo, hi := k.job.bounds(k.Item)
	name := params.V + "/" + strconv.Itoa(k.Item)
	// one at a time, because all together would take the memory of many vectors
	for _, p := range places {
		values, err := k.Get(ctx, []store.Key{k.KeyAt(p, name)})
		if err != nil {
			return err
		}
		columns, sums, err := decodePart(values[0], k.job.problem.classes, lo, hi)
		if err != nil {
			return program.Deterministic(err)
		}
		classes := k.job.problem.classes
		for i, f := range columns {
			axpy(g[(int(f)-lo)*classes:][:classes], -1, sums[i*classes:])
		}
	}
	return nil
}
