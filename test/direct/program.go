package direct

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"taxon/internal/data/dataset"
	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/test/jobs"
	"taxon/worker/program"
)

// values holds a job's values in memory.
type values struct {
	mu sync.Mutex
	of map[store.Key][]byte

	was map[store.Key][]byte // an independent copy, which no task can change
}

// Get implements program.Values.
func (v *values) Get(_ context.Context, keys []store.Key) ([][]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([][]byte, len(keys))
	for i, k := range keys {
		out[i] = v.of[k]
	}
	return out, nil
}

// Put implements program.Values.
func (v *values) Put(_ context.Context, all []store.Value, written func()) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, x := range all {
		if !program.Declared(x.Data) {
			return fmt.Errorf("%v begins with no byte that a method has declared (program.Declare)", x.Key)
		}
		v.of[x.Key], v.was[x.Key] = slices.Clone(x.Data), slices.Clone(x.Data)
	}
	if written != nil {
		written()
	}
	return nil
}

// Programs runs the recorded tasks of a job of any method again, distributed to several programs of
// the job as if each belonged to another worker, without coordinator, store and messages. It checks
// the figures of every task and returns the final weights.
func Programs(ctx context.Context, job *taxonv1.JobResult, set *dataset.Set, steps [][]Task,
	workers int) (*jobs.Nodes, error) {
	m, err := program.Lookup(job.GetSpec().GetOptions().GetMethod())
	if err != nil {
		return nil, err
	}
	tree, _, err := jobspec.Tree(job.GetSpec(), job.GetPlan().GetRooted())
	if err != nil {
		return nil, err
	}
	programs := make([]program.Program, workers)
	for w := range programs {
		if programs[w], err = m.Open(&program.Job{ID: "direct", Spec: job.GetSpec(), Plan: job.GetPlan(), Tree: tree,
			Set: set}); err != nil {
			return nil, err
		}
	}
	v := &values{of: map[store.Key][]byte{}, was: map[store.Key][]byte{}}
	nodes := &jobs.Nodes{Columns: make([][]uint32, tree.Len()), Values: make([][]float32, tree.Len())}
	turn := 0
	for _, tasks := range steps {
		for _, r := range slices.Backward(tasks) {
			turn++
			t := program.NewTask(r.Lease, v)
			sums, err := programs[turn%workers].Run(ctx, t)
			if err != nil {
				return nil, err
			}
			if !slices.Equal(sums, r.Sums.GetValues()) {
				return nil, fmt.Errorf("%s of item %d: sums %v, the machine's are %v", t.Op, t.Item, sums, r.Sums.GetValues())
			}
			if !t.Emit {
				continue
			}
			words, err := program.DecodeWeights(v.of[t.Key(program.WeightsName)])
			if err != nil {
				return nil, err
			}
			for len(words) > 0 {
				n, k := words[0], words[1]
				var values []float32
				for _, bits := range words[2+k : 2+2*k] {
					values = append(values, math.Float32frombits(bits))
				}
				// tasks run from the last to the first, and columns ascend from task to task
				nodes.Columns[n] = append(slices.Clone(words[2:2+k]), nodes.Columns[n]...)
				nodes.Values[n] = append(values, nodes.Values[n]...)
				words = words[2+2*k:]
			}
		}
	}
	for k, b := range v.of {
		if !bytes.Equal(b, v.was[k]) {
			return nil, fmt.Errorf("%v: a task has changed what it read, which is the store's", k)
		}
	}
	return nodes, nil
}
