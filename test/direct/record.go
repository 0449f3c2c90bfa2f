package direct

import (
	"cmp"
	"context"
	"slices"
	"sync"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker"
)

// Task is a task that a worker has run, with its reported figures.
type Task struct {
	Lease *taxonv1.Lease
	Sums  *taxonv1.Sums
}

// Recorder forwards tasks to an executor and records those that succeed.
type Recorder struct {
	worker.Executor
	mu    sync.Mutex
	tasks []Task
	job   *taxonv1.JobResult
}

// Wrap is a value for engine.Config.
func (r *Recorder) Wrap(x worker.Executor) worker.Executor {
	r.Executor = x
	return r
}

// Run implements worker.Executor.
func (r *Recorder) Run(ctx context.Context, job *taxonv1.JobResult,
	l *taxonv1.Lease) (*taxonv1.Sums, worker.Stats, error) {
	sums, stats, err := r.Executor.Run(ctx, job, l)
	if err == nil {
		r.mu.Lock()
		r.tasks, r.job = append(r.tasks, Task{l, sums}), job
		r.mu.Unlock()
	}
	return sums, stats, err
}

// Job returns the recorded job's specification and plan.
func (r *Recorder) Job() *taxonv1.JobResult { return r.job }

// Steps returns the recorded tasks step by step, in task order. For a task that ran twice it
// returns the last attempt, which is the committed one unless workers were lost.
func (r *Recorder) Steps() [][]Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	tasks := slices.Clone(r.tasks)
	slices.SortStableFunc(tasks, func(a, b Task) int {
		return cmp.Or(cmp.Compare(a.Lease.Step, b.Lease.Step), cmp.Compare(a.Lease.Task, b.Lease.Task),
			cmp.Compare(b.Lease.Attempt, a.Lease.Attempt))
	})
	tasks = slices.CompactFunc(tasks, func(a, b Task) bool {
		return a.Lease.Step == b.Lease.Step &&
			a.Lease.Task == b.Lease.Task
	})
	var steps [][]Task
	for i, t := range tasks {
		if i == 0 || t.Lease.Step != tasks[i-1].Lease.Step {
			steps = append(steps, nil)
		}
		steps[len(steps)-1] = append(steps[len(steps)-1], t)
	}
	return steps
}
