package worker

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	taxonv1 "taxon/proto/taxon/v1"

	"taxon/internal/pause"
)

// slot leases and runs one batch of tasks after the other. With Overlap a batch is
// delivered (written and reported) while the next one is worked on, one at a time, so at
// most two are held: one to be delivered, and one that is worked on or came ahead of need.
type slot struct {
	*Agent
	ctx     context.Context // ends when the worker is to leave
	leasing context.Context // ends when nothing more is to be leased
	tasks   context.Context // ends when tasks are to be given back
	busy    atomic.Bool     // there is work while a batch is delivered
}

// run works until leasing ends. No goroutine of it is left behind.
func (s *slot) run() {
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	var next *batch
	var ahead chan *batch // gets what the delivery under way brings; nil: there is none
	for {
		if next == nil {
			next = s.lease()
		}
		if next == nil && ahead != nil { // leasing is over, but for what was asked for before
			next, ahead = <-ahead, nil
		}
		if next == nil {
			return
		}
		if !s.Overlap {
			s.work(next)
			next = s.deliver(next)
			continue
		}
		s.busy.Store(true)
		s.work(next)
		done := next
		if next = nil; ahead != nil {
			next = <-ahead
		}
		s.busy.Store(next != nil)
		brought := make(chan *batch, 1)
		deliveries.Go(func() { brought <- s.deliver(done) })
		ahead = brought
	}
}

// lease waits for tasks; nil: leasing ended.
func (s *slot) lease() *batch {
	ctx, wait := s.leasing, firstWait
	for ctx.Err() == nil {
		me, err := s.register(ctx)
		if err == nil {
			var r *taxonv1.LeaseResult
			call, done := context.WithTimeout(ctx, leaseTimeout)
			r, err = s.Tasks.Lease(call, &taxonv1.LeaseRequest{Worker: me.worker, Most: s.Batch})
			done()
			if err == nil && r.GetDrain() {
				s.end(ErrDrained)
				return nil
			}
			if err == nil && r.GetLease() != nil {
				return s.hold(s.tasks, me.worker, r.GetLease(), r.GetMore())
			}
			s.forgetIfUnknown(me, err)
		}
		if err == nil {
			wait = firstWait
			continue
		}
		if me == nil && denied(err) && !s.wasKnown() {
			s.end(err)
			return nil
		}
		s.tell(ctx, fmt.Errorf("lease: %w", err))
		if pause.For(ctx, wait) != nil {
			return nil
		}
		wait = min(2*wait, maxWait)
	}
	return nil
}

// wants says what to ask for with a report: more tasks, and whether for later only. A slot
// that waits in lease meanwhile wants none: it would not see them.
func (s *slot) wants() (next, ahead bool) {
	return s.leasing.Err() == nil && (!s.Overlap || s.busy.Load()), s.Overlap
}
