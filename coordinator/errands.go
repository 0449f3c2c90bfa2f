package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	taxonv1 "taxon/proto/taxon/v1"

	"taxon/internal/pause"
)

// errand is an action that the store or the checkpointer carries out, in the machine's
// order, after the records before it are durable.
type errand struct {
	action Action
	after  uint64 // journal record
}

// errands holds a queue for each job that has any, carried out by a goroutine of its own
// while it lasts: a shard that is away holds up the jobs on it, not the others. A queue
// grows by two entries a step, and its job's steps stop when the store does.
type errands struct {
	mu     sync.Mutex
	queues map[string][]errand // by job; an entry, empty or not: its goroutine runs
	closed bool
	joined sync.WaitGroup
}

// add queues an errand of a job; run is called for each, in order.
func (q *errands) add(job string, e errand, run func(errand) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if q.queues == nil {
		q.queues = map[string][]errand{}
	}
	list, running := q.queues[job]
	q.queues[job] = append(list, e)
	if !running {
		q.joined.Go(func() { q.work(job, run) })
	}
}

// close takes no more errands and waits for those that are being carried out.
func (q *errands) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.joined.Wait()
}

// work carries a job's errands out until none is left or run returns false.
func (q *errands) work(job string, run func(errand) bool) {
	for {
		q.mu.Lock()
		list := q.queues[job]
		if len(list) == 0 || q.closed {
			delete(q.queues, job)
			q.mu.Unlock()
			return
		}
		q.queues[job] = nil
		q.mu.Unlock()
		for _, e := range list {
			if !run(e) {
				return
			}
		}
	}
}

// carry carries out an errand once the records before it are durable; false: the server
// closes, or its journal is broken.
func (s *Server) carry(e errand) bool {
	if s.sync(e.after) != nil || s.ctx.Err() != nil {
		return false
	}
	s.run(e.action)
	return true
}

// jobOf is the job that an action is about.
func jobOf(a Action) string {
	switch a := a.(type) {
	case CommitStep:
		return a.Job
	case DropSteps:
		return a.Job
	case SaveJob:
		return a.Job
	case LoadJob:
		return a.Job
	case ShowWeights:
		return a.Job
	}
	return ""
}

// run carries out one errand. The store's are retried until they succeed: they only free
// space, so a store that is away holds up nothing.
func (s *Server) run(a Action) {
	switch a := a.(type) {
	case CommitStep:
		s.insist(fmt.Sprintf("job %s: commit of step %d", a.Job, a.Step), func(ctx context.Context) error {
			return s.config.Store.Commit(ctx, a.Job, a.Step, a.Attempts)
		})
	case DropSteps:
		s.insist(fmt.Sprintf("job %s: drop of old steps", a.Job), func(ctx context.Context) error {
			return s.config.Store.Drop(ctx, a.Job, a.Keep, a.Before)
		})
	case SaveJob:
		done := Saved{Job: a.Job, Final: a.Final}
		if s.config.Checkpointer == nil { // a journal of a server that had one
			s.step(done)
			return
		}
		if err := s.config.Checkpointer.Checkpoint(s.ctx, a.Job, a.Sweep, a.State, a.Keep); err != nil {
			done.Err = err.Error()
		}
		s.step(done)
	case LoadJob:
		done := Loaded{Job: a.Job}
		if r, ok := s.config.Checkpointer.(Restorer); ok {
			var err error
			if done.State, err = r.RestoreCheckpoint(s.ctx, a.Job); err != nil {
				done.Err = err.Error()
			}
		}
		if s.ctx.Err() == nil { // else the next server asks again
			s.step(done)
		}
	case ShowWeights:
		done := Shown{Job: a.Job}
		if s.config.Show != nil { // nil: a journal of a server that had one
			if err := s.config.Show(s.ctx, &taxonv1.JobStatus{Job: a.Job, Sweep: a.Sweep, FinalStep: a.Step, FinalAttempts: a.Attempts}); err != nil {
				done.Err = err.Error()
			}
		}
		s.step(done)
	}
}

// insist repeats a call to the store until it succeeds or the server closes.
func (s *Server) insist(what string, call func(context.Context) error) {
	wait := 50 * time.Millisecond
	for {
		err := call(s.ctx)
		if err == nil || s.ctx.Err() != nil {
			return
		}
		s.tell(fmt.Errorf("%s: %w", what, err))
		if pause.For(s.ctx, wait) != nil {
			return
		}
		wait = min(2*wait, 5*time.Second)
	}
}
