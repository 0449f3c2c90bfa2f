package program

import (
	"context"
	"slices"

	params "taxon/internal/methods/hblr/plan"
	"taxon/store"
	"taxon/worker/program"
)

// WarmStart returns the initial point with the given means. The precisions begin at their priors.
// It holds all means in float64 twice.
func (j *job) WarmStart(ctx context.Context, from program.InitialWeights) (values []store.Value, families []string,
	err error) {
	mean := make([][]float64, len(j.tree.Parent))
	for n, p := range j.tree.Parent {
		mean[n] = make([]float64, j.columns)
		if p >= 0 {
			copy(mean[n], mean[p])
		}
		columns, weights := from(n)
		for i, f := range columns {
			if j.scale[f] > 0 { // all means of a feature that does not occur are 0
				mean[n][f] = float64(weights[i])
			}
		}
	}
	put := func(task int, name string, v []float64) {
		key := store.Key{Job: j.id, Step: program.SeedStep, Task: uint32(task), Attempt: 1, Name: name}
		values = append(values, store.Value{Key: key, Data: j.encode(name, v)})
	}
	for b := range j.slots {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		nodes := j.plan.Block(b)
		w := make([]float64, j.columns*len(nodes))
		for l, n := range nodes {
			for f, x := range mean[n] {
				w[f*len(nodes)+l] = x
			}
		}
		put(b, params.Leaf, w)
	}
	for r := range j.ranges {
		lo, hi := j.bounds(r)
		x := slices.Clone(j.start(r))
		for i, n := range j.tree.Nodes {
			copy(x[i*(hi-lo):][:hi-lo], mean[n][lo:hi])
		}
		put(len(j.slots)+r, params.X, x)
		for b := range j.slots {
			put(len(j.slots)+r, part(params.Above, b), j.aboveOf(x, r, b))
		}
	}
	return values, []string{params.Leaf, params.X, params.Above}, nil
}
