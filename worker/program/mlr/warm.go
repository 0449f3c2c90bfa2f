package mlr

import (
	"context"

	params "taxon/coordinator/method/mlr"
	"taxon/store"
	"taxon/worker/codec"
	"taxon/worker/program"
)

// WarmStart makes the first trial point of given weights, one value a range. Memory: all weights
// in float64.
func (j *job) WarmStart(ctx context.Context, from program.InitialWeights) (values []store.Value, families []string, err error) {
	parts := make([][]float64, j.ranges)
	for r := range parts {
		lo, hi := j.bounds(r)
		parts[r] = make([]float64, (hi-lo)*j.problem.classes)
	}
	for class, n := range j.nodes {
		columns, weights := from(int(n))
		for i, f := range columns {
			parts[int(f)/j.width][int(f)%j.width*j.problem.classes+class] = float64(weights[i])
		}
	}
	first := len(j.shards) - 1 // tasks of the ranges come behind those of the shards
	for r, part := range parts {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		key := store.Key{Job: j.id, Step: program.SeedStep, Task: uint32(first + r), Attempt: 1, Name: params.Trial}
		values = append(values, store.Value{Key: key, Data: codec.Vector(part)})
	}
	return values, []string{params.Trial}, nil
}
