package worker

import (
	"context"
	"fmt"

	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Weights reads what the EMIT step of a finished job wrote and yields every node's
// overrides in node order (the bias is column d). st is the job's final status. Memory
// is that of the sparse weights, once: StreamWeights is for large ones.
func Weights(ctx context.Context, src Store, tree *taxonomy.Tree, plan *taxonv1.Plan, st *taxonv1.JobStatus,
	yield func(node int, columns []uint32, values []float32) error) error {
	w := &weightReader{ctx: ctx, src: src, tree: tree, plan: plan, status: st}
	if err := w.readTerminals(); err != nil {
		return err
	}
	if err := w.readInternals(); err != nil {
		return err
	}
	for n, o := range w.nodes {
		if err := yield(n, o.columns, o.values); err != nil {
			return err
		}
	}
	return nil
}

type weightReader struct {
	ctx    context.Context
	src    Store
	tree   *taxonomy.Tree
	plan   *taxonv1.Plan
	status *taxonv1.JobStatus
	nodes  []nodeWeights
}

type nodeWeights struct {
	columns []uint32
	values  []float32
}

// readBatch bounds the values read in one call.
const readBatch = 64

// key names the "weights" value of a task of the final step.
func (w *weightReader) key(t int) (store.Key, error) {
	if t >= len(w.status.GetFinalAttempts()) {
		return store.Key{}, fmt.Errorf("job %s has no weights of task %d: it has not ended", w.status.GetJob(), t)
	}
	return store.Key{Job: w.status.GetJob(), Step: w.status.GetFinalStep(), Task: uint32(t), Attempt: w.status.GetFinalAttempts()[t], Name: "weights"}, nil
}

// read yields the "weights" values of tasks first..last-1 of the final step.
func (w *weightReader) read(first, last int, yield func(i int, data []byte) error) error {
	for lo := first; lo < last; lo += readBatch {
		var keys []store.Key
		for t := lo; t < min(lo+readBatch, last); t++ {
			key, err := w.key(t)
			if err != nil {
				return err
			}
			keys = append(keys, key)
		}
		values, err := store.Need(w.ctx, w.src, keys)
		if err != nil {
			return err
		}
		for i, v := range values {
			if err := yield(lo+i-first, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// The final step's tasks: one a block, then one a feature range.
func (w *weightReader) readTerminals() error {
	w.nodes = make([]nodeWeights, w.tree.Len())
	begin := w.plan.GetBlockBegin()
	ranges := w.plan.GetRangeBegin()
	return w.read(0, len(begin)-1, func(b int, data []byte) error {
		lanes := w.plan.BlockTerminals[begin[b]:begin[b+1]]
		os, err := decodeOverrides(data, len(lanes), ranges[len(ranges)-1])
		if err != nil {
			return err
		}
		for l, n := range lanes {
			w.nodes[n] = nodeWeights{os[l].Feature, os[l].Value}
		}
		return nil
	})
}

func (w *weightReader) readInternals() error {
	internals := w.tree.Internals()
	if len(internals) == 0 {
		return nil
	}
	blocks, ranges := len(w.plan.GetBlockBegin())-1, w.plan.GetRangeBegin()
	return w.read(blocks, blocks+len(ranges)-1, func(r int, data []byte) error {
		v, err := decodeVectors(data, len(internals), ranges[r], ranges[r+1])
		if err != nil {
			return err
		}
		for i, n := range internals {
			o := &w.nodes[n]
			o.columns = append(o.columns, v.Feature[v.Begin[i]:v.Begin[i+1]]...)
			o.values = append(o.values, v.Value[v.Begin[i]:v.Begin[i+1]]...)
		}
		return nil
	})
}
