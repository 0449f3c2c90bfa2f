package coordinator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"taxon/coordinator/machine"
	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
)

// effect is an action for the store or the checkpointer. Effects are executed in the machine's
// order, after the records before them are durable.
type effect struct {
	action machine.Effect
	// after is the number of the last record before the action.
	after uint64
}

// effects holds a queue for each job that has effects. A goroutine per queue executes it, so that a
// shard that is away delays only the jobs on it. A queue grows by two entries a step, and the steps
// of its job stop when the store does.
type effects struct {
	mu sync.Mutex
	// queues are the queues by job. An entry, empty or not, means that its goroutine runs.
	queues map[string][]effect
	closed bool
	joined sync.WaitGroup
}

// add queues an effect of a job. run is called for each, in order.
func (q *effects) add(job string, e effect, run func(effect) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if q.queues == nil {
		q.queues = map[string][]effect{}
	}
	list, running := q.queues[job]
	q.queues[job] = append(list, e)
	if !running {
		q.joined.Go(func() { q.work(job, run) })
	}
}

// close refuses further effects and waits for those that are being executed.
func (q *effects) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.joined.Wait()
}

// work executes a job's effects until none is left or run returns false.
func (q *effects) work(job string, run func(effect) bool) {
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

// execute runs an effect once the records before it are durable. It returns false if the server is
// closing or its journal has failed.
func (s *Server) execute(e effect) bool {
	if s.sync(e.after) != nil || s.ctx.Err() != nil {
		return false
	}
	s.run(e.action)
	return true
}

// run executes one action. Calls of the store are retried until they succeed; they only free space,
// so a store that is away delays nothing else.
func (s *Server) run(a machine.Effect) {
	switch a := a.(type) {
	case machine.CommitStep:
		s.retryStore(fmt.Sprintf("job %s: commit of step %d", a.Job, a.Step), func(ctx context.Context) error {
			return s.config.Store.Commit(ctx, a.Job, a.Step, a.Attempts)
		})
	case machine.DropSteps:
		s.retryStore(fmt.Sprintf("job %s: drop of old steps", a.Job), func(ctx context.Context) error {
			return s.config.Store.Drop(ctx, a.Job, a.Keep, a.Before)
		})
	case machine.SaveJob:
		done := machine.Saved{Job: a.Job, Final: a.Final}
		if s.config.Checkpointer == nil { // a journal of a server that had one
			s.step(done)
			return
		}
		if err := s.config.Checkpointer.Checkpoint(s.ctx, a.Job, a.Sweep, a.State, a.Keep); err != nil {
			if done.Err, done.OlderKept = err.Error(), errors.Is(err, ErrOlderKept); done.OlderKept && !a.Final {
				s.warn(fmt.Errorf("%w, and the training goes on", err))
			}
		}
		s.step(done)
	case machine.LoadJob:
		done := machine.Loaded{Job: a.Job}
		if r, ok := s.config.Checkpointer.(Restorer); ok {
			var err error
			if done.State, err = r.RestoreCheckpoint(s.ctx, a.Job); err != nil {
				done.Err = err.Error()
			}
		}
		if s.ctx.Err() == nil { // else the next server asks again
			s.step(done)
		}
	case machine.EvaluateWeights:
		done := machine.Evaluated{Job: a.Job}
		if s.config.Evaluate != nil { // nil: a journal of a server that had one
			if err := s.config.Evaluate(s.ctx, &taxonv1.JobStatus{Job: a.Job, Sweep: a.Sweep, FinalStep: a.Step,
				FinalAttempts: a.Attempts}); err != nil {
				if done.Stop = errors.Is(err, ErrEarlyStop); !done.Stop {
					done.Err = err.Error()
				}
			}
		}
		s.step(done)
	case machine.DigestWeights:
		s.digest(a.Job)
	}
}

// digest computes the digest of a job's weights. It retries while the store is away or the disk is
// full.
func (s *Server) digest(job string) {
	d := s.config.Digester
	if d == nil { // a journal of a server that had one
		s.step(machine.Digested{Job: job})
		return
	}
	done := machine.Digested{Job: job}
	wanted := func(err error) bool { // not if it was cancelled, say
		return d.Passing(err) && s.step(machine.Digested{Job: job, Err: err.Error(), Later: true}).err == nil
	}
	err := retry.Retry(s.ctx, 0, func() (err error) {
		if done.Digest, err = s.weights(s.ctx, job); err != nil {
			s.warn(fmt.Errorf("job %s: digest of its weights: %w", job, err))
		}
		return err
	}, wanted)
	if err != nil {
		done.Err = err.Error()
	}
	if s.ctx.Err() == nil { // else the next server asks again
		s.step(done)
	}
}

// weights reads the weights of a job whose steps are all done, and returns their digest.
func (s *Server) weights(ctx context.Context, job string) (machine.Digest, error) {
	s.mu.Lock()
	r, err := s.machine.Describe(job)
	st, _ := s.machine.Status(job, s.now(), ^uint32(0)) // there is one if Describe knows the job
	s.mu.Unlock()
	if err != nil {
		return machine.Digest{}, err
	}
	return s.config.Digester.Digest(ctx, r, st)
}

// retryStore repeats a call to the store until it succeeds or the server closes.
func (s *Server) retryStore(what string, call func(context.Context) error) {
	_ = retry.RetryEvery(s.ctx, 0, 5*time.Second, func() error { return call(s.ctx) }, func(err error) bool {
		if s.ctx.Err() != nil {
			return false
		}
		s.warn(fmt.Errorf("%s: %w", what, err))
		return true
	})
}
