package mapreduce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"taxon/coordinator/machine"
	"taxon/internal/fs"
	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker"
	"taxon/worker/program"
)

const (
	// quiet is how long an incomplete batch waits for further tasks, because repeated tasks arrive
	// late.
	quiet = 500 * time.Millisecond
	// pollEvery is the interval at which a batch is checked for completeness.
	pollEvery = 5 * time.Millisecond
	// maxFailures is the number of consecutive failures of a job, with all its attempts, after
	// which the training fails. maxOutages is that number if a service that was available does not
	// answer, or refuses: a name node that restarts looks like a mistake in its address.
	maxFailures = 3
	maxOutages  = 12
	// defaultPause is the pause before a job is run again.
	defaultPause = 10 * time.Second
)

// executor collects the tasks that the coordinator leases until it has all of a step, and runs them
// as one job.
type executor struct {
	backend *Backend
	ahead   func(job string) (machine.Lookahead, error)
	// running is the collecting goroutine, while tasks wait.
	running sync.WaitGroup

	mu      sync.Mutex
	waiting []*waiter
	// arrived is the time of the last one.
	arrived time.Time
	// busy reports that the collecting goroutine runs.
	busy      bool
	predicted map[taskID]*predicted
	refused   error
	// worked reports that a job has succeeded.
	worked bool
}

// taskID names a task of a job.
type taskID struct{ step, task uint32 }

// waiter is a leased task that waits for its answer, which is valid when done is closed.
type waiter struct {
	ctx    context.Context
	job    *taxonv1.JobResult
	lease  *taxonv1.Lease
	done   chan struct{}
	result *taxonv1.ReportRequest
	err    error
}

// predicted is a task that ran before the coordinator asked for it.
type predicted struct {
	lease  *taxonv1.Lease
	result *taxonv1.ReportRequest
}

func newExecutor(b *Backend, ahead func(job string) (machine.Lookahead, error)) *executor {
	return &executor{backend: b, ahead: ahead, predicted: map[taskID]*predicted{}}
}

// Run implements worker.Executor.
func (e *executor) Run(ctx context.Context, job *taxonv1.JobResult,
	lease *taxonv1.Lease) (*taxonv1.Sums, worker.Stats, error) {
	w := &waiter{ctx: ctx, job: job, lease: lease, done: make(chan struct{})}
	if r := e.takePredicted(lease); r != nil {
		return answer(r)
	}
	e.mu.Lock()
	e.waiting = append(e.waiting, w)
	e.arrived = time.Now()
	if !e.busy {
		e.busy = true
		e.running.Go(e.work)
	}
	e.mu.Unlock()
	select {
	case <-w.done:
	case <-ctx.Done():
		return nil, worker.Stats{}, ctx.Err()
	}
	if w.err != nil {
		return nil, worker.Stats{}, w.err
	}
	return answer(w.result)
}

// answer returns a task's result in the agent's form.
func answer(r *taxonv1.ReportRequest) (*taxonv1.Sums, worker.Stats, error) {
	stats := worker.Stats{CPUSeconds: r.GetCpuSeconds(), BytesRead: r.GetBytesRead(), BytesWritten: r.GetBytesWritten()}
	return r.GetSums(), stats, resultError(r)
}

// takePredicted returns the result of a predicted task, if the lease is the predicted one.
func (e *executor) takePredicted(l *taxonv1.Lease) *taxonv1.ReportRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := taskID{l.GetStep(), l.GetTask()}
	f := e.predicted[id]
	if f == nil || f.lease.GetJob() != l.GetJob() {
		return nil
	}
	delete(e.predicted, id)
	same := proto.Clone(l).(*taxonv1.Lease)
	same.Epoch = f.lease.GetEpoch()
	if !proto.Equal(same, f.lease) {
		return nil
	}
	return f.result
}

// work runs batches while tasks wait.
func (e *executor) work() {
	for {
		batch := e.collect()
		if len(batch) == 0 {
			return
		}
		e.run(batch)
	}
}

// collect waits until all tasks that can be leased have arrived.
func (e *executor) collect() []*waiter {
	for {
		e.mu.Lock()
		// Nobody waits for these any more.
		e.waiting = slices.DeleteFunc(e.waiting, func(w *waiter) bool { return w.ctx.Err() != nil })
		if len(e.waiting) == 0 {
			e.busy = false
			e.mu.Unlock()
			return nil
		}
		first, since := e.waiting[0], time.Since(e.arrived)
		e.mu.Unlock()
		a, err := e.ahead(first.lease.GetJob())
		if since > quiet || err == nil && a.Waiting == 0 && e.allHere(a) {
			return e.takeBatch(first.lease)
		}
		retry.For(first.ctx, pollEvery) // when it ends, the first one is dropped
	}
}

// allHere reports whether all tasks of the current step wait here, so that none is still to arrive.
func (e *executor) allHere(a machine.Lookahead) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, w := range e.waiting {
		if w.lease.GetStep() == a.Step {
			n++
		}
	}
	return n == a.Running
}

// takeBatch removes and returns the waiting tasks of one step.
func (e *executor) takeBatch(first *taxonv1.Lease) (batch []*waiter) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var rest []*waiter
	for _, w := range e.waiting {
		if w.lease.GetJob() == first.GetJob() && w.lease.GetStep() == first.GetStep() {
			batch = append(batch, w)
		} else {
			rest = append(rest, w)
		}
	}
	e.waiting = rest
	return batch
}

// run runs a batch as one job and passes on the answers. It kills the job early if nobody waits for
// it any more.
func (e *executor) run(batch []*waiter) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var left sync.Mutex
	n := len(batch)
	for _, w := range batch {
		stop := context.AfterFunc(w.ctx, func() {
			left.Lock()
			defer left.Unlock()
			if n--; n == 0 {
				cancel()
			}
		})
		defer stop()
	}
	results, err := e.insist(ctx, batch)
	for _, w := range batch {
		if err != nil {
			w.err = program.Deterministic(&reportedError{err})
		} else if w.result = results[taskID{w.lease.GetStep(), w.lease.GetTask()}]; w.result == nil {
			w.err = fmt.Errorf("the job ended without a result of task %d", w.lease.GetTask())
		}
		close(w.done)
	}
}

// insist runs a batch's job until it succeeds, a bounded number of times. It reports each failure
// once, and not once per task.
func (e *executor) insist(ctx context.Context, batch []*waiter) (map[taskID]*taxonv1.ReportRequest, error) {
	for failures := 1; ; failures++ {
		results, err := e.runJob(ctx, batch)
		e.mu.Lock()
		first := !e.worked
		if err == nil {
			e.worked = true
		}
		most := maxFailures
		if fs.IsInput(err) {
			if most = maxOutages; first {
				most, e.refused = 1, err
			}
		}
		e.mu.Unlock()
		if err == nil || ctx.Err() != nil || failures >= most {
			return results, err
		}
		e.backend.config.Note("%v: tried again", err)
		if !first {
			retry.For(ctx, e.backend.config.Pause)
		}
	}
}

// reportedError is an error that was passed to Config.Note, or that ends the training.
type reportedError struct{ error }

func (e *reportedError) Unwrap() error { return e.error }

// WasReported reports whether a task's error concerns its whole job and was already shown.
func WasReported(err error) bool {
	var t *reportedError
	return errors.As(err, &t)
}

func (e *executor) refusal() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refused
}

// close waits for running jobs. All contexts must have ended.
func (e *executor) close() { e.running.Wait() }
