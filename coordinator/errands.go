package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	taxonv1 "taxon/proto/taxon/v1"
)

// errand is an action that the store or the checkpointer carries out, in the machine's
// order, after the records before it are durable.
type errand struct {
	action Action
	after  uint64 // journal record
}

// errands is an unbounded queue: it grows by two entries a step, and steps stop when the
// store does.
type errands struct {
	mu     sync.Mutex
	list   []errand
	ready  chan struct{} // holds a token when list may have entries
	closed bool
}

func (q *errands) init() { q.ready = make(chan struct{}, 1) }

func (q *errands) add(e errand) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.list = append(q.list, e)
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *errands) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// take returns all waiting errands.
func (q *errands) take() []errand {
	q.mu.Lock()
	defer q.mu.Unlock()
	list := q.list
	q.list = nil
	return list
}

// runErrands carries errands out until the server closes.
func (s *Server) runErrands() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.errands.ready:
		}
		for _, e := range s.errands.take() {
			if s.sync(e.after) != nil || s.ctx.Err() != nil {
				return
			}
			s.run(e.action)
		}
	}
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
		if pause(s.ctx, wait) != nil {
			return
		}
		wait = min(2*wait, 5*time.Second)
	}
}

// pause waits for a time, or for the context's end, which is its error.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
