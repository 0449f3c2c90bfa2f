package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker/program"
)

// heldLease is a task that runs, or that waits for its turn in a batch. stop ends its context.
type heldLease struct {
	id     *taxonv1.LeaseId
	worker string
	ctx    context.Context
	stop   context.CancelCauseFunc
}

// batch is a set of tasks that were leased together. When they have run, their output may still be
// in the outbox, and their reports are still to be sent.
type batch struct {
	// worker is the registration that the leases were given to.
	worker string
	// ctx ends with the last of the leases.
	ctx    context.Context
	stop   context.CancelCauseFunc
	leases []*taxonv1.Lease
	held   []*heldLease
	// reports are the reports of the tasks. The report of a lost lease is nil.
	reports []*taxonv1.ReportRequest
	box     *outbox
}

// work runs the tasks of a batch, one after the other. The caller delivers the batch.
func (a *Agent) work(b *batch) {
	for i, h := range b.held {
		run := h.ctx
		if len(b.held) > 1 || a.Overlap {
			run = withOutbox(run, b.box)
		}
		b.reports[i] = a.run(run, h, b.leases[i])
	}
}

// deliver writes the output of a batch, reports it and releases it. It returns the tasks that the
// answer brings, or nil.
func (s *slot) deliver(b *batch) *batch {
	defer s.release(b)
	if err := b.box.flush(); err != nil {
		for _, r := range b.reports {
			if r != nil && r.Error == "" {
				s.noteFailure(b.ctx, r, err)
			}
		}
	}
	return s.report(b)
}

// run runs a task and returns its report, or nil if its lease was lost.
func (a *Agent) run(ctx context.Context, h *heldLease, l *taxonv1.Lease) *taxonv1.ReportRequest {
	report := &taxonv1.ReportRequest{Lease: h.id}
	err := ctx.Err()
	if err == nil {
		var job *taxonv1.JobResult
		if job, err = a.job(ctx, l.Job); err == nil {
			var stats Stats
			report.Sums, stats, err = a.Executor.Run(ctx, job, l)
			report.CpuSeconds, report.BytesRead, report.BytesWritten = stats.CPUSeconds, stats.BytesRead, stats.BytesWritten
		}
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), errLost) {
			return nil
		}
		a.noteFailure(ctx, report, err)
	}
	return report
}

// noteFailure writes into a report that its attempt failed, or that the worker returns it.
func (a *Agent) noteFailure(ctx context.Context, r *taxonv1.ReportRequest, err error) {
	r.Returned = errors.Is(context.Cause(ctx), errLeaving)
	r.Error, r.Deterministic = err.Error(), program.IsDeterministic(err)
	r.Unfit = program.IsUnfit(err)
	r.Lost, r.Unavailable = lost(err), store.IsTransient(err)
	a.tell(ctx, fmt.Errorf("job %s, step %d, task %d: %w", r.Lease.Job, r.Lease.Step, r.Lease.Task, err))
}

// report sends the reports of a batch. It repeats until the coordinator answers, all leases are
// lost, or shutdownGrace is over. It returns the tasks that the answer brings, or nil.
func (s *slot) report(b *batch) *batch {
	wait := firstWait
	last, end := extendContext(s.ctx, shutdownGrace)
	defer end()
	for {
		r := together(b.held, b.reports)
		if r == nil {
			return nil
		}
		r.Most = s.Batch
		r.Next, r.Ahead = s.wants()
		call, done := context.WithTimeout(last, callTimeout)
		answer, err := s.Tasks.Report(call, r)
		done()
		if err == nil && answer.GetLease() == nil {
			return nil
		}
		if err == nil {
			return s.hold(s.tasks, b.worker, answer.GetLease(), answer.GetMore())
		}
		code := status.Code(err)
		if code == codes.NotFound || errors.Is(context.Cause(b.ctx), errLost) {
			s.forgetIfUnknown(&identity{worker: b.worker}, err)
			return nil
		}
		if code == codes.Canceled && last.Err() == nil { // this process has closed the connection
			return nil
		}
		s.tell(last, fmt.Errorf("report: %w", err))
		if retry.For(last, wait) != nil {
			return nil
		}
		wait = min(2*wait, maxWait)
	}
}

// together joins the reports of the leases that are not lost into one message. It returns nil if
// all are lost.
func together(held []*heldLease, reports []*taxonv1.ReportRequest) (first *taxonv1.ReportRequest) {
	for i, r := range reports {
		switch {
		case r == nil || errors.Is(context.Cause(held[i].ctx), errLost):
		case first == nil:
			first, r.Worker, r.More = r, held[i].worker, nil
		default:
			first.More = append(first.More, r)
		}
	}
	return first
}

// hold makes a batch of leases and has the renewer keep them alive. The batch is stopped when all
// its leases are lost.
func (a *Agent) hold(tasks context.Context, worker string, first *taxonv1.Lease, more []*taxonv1.Lease) *batch {
	b := &batch{worker: worker, leases: append([]*taxonv1.Lease{first}, more...)}
	b.ctx, b.stop = context.WithCancelCause(tasks)
	b.box = &outbox{batch: b.ctx}
	b.held = make([]*heldLease, len(b.leases))
	b.reports = make([]*taxonv1.ReportRequest, len(b.leases))
	var lost atomic.Int32
	for i, l := range b.leases {
		id := &taxonv1.LeaseId{Job: l.Job, Step: l.Step, Task: l.Task, Attempt: l.Attempt, Epoch: l.Epoch}
		ctx, cancel := context.WithCancelCause(b.ctx)
		b.held[i] = &heldLease{id: id, worker: worker, ctx: ctx, stop: func(cause error) {
			if ctx.Err() == nil && lost.Add(1) == int32(len(b.held)) {
				b.stop(cause)
			}
			cancel(cause)
		}}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range b.held {
		a.held[h.id.Epoch] = h
	}
	return b
}

// release stops renewing the leases of a batch.
func (a *Agent) release(b *batch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range b.held {
		delete(a.held, h.id.Epoch)
		h.stop(nil)
	}
	b.stop(nil)
}

// slot leases and runs one batch of tasks after the other. With Overlap it works on a batch while
// the previous one is delivered, that is, written and reported. It delivers one batch at a time, so
// it holds at most two: one being delivered, and one that it works on or has leased in advance.
type slot struct {
	*Agent
	// ctx ends when the worker is to leave.
	ctx context.Context
	// leasing ends when nothing more is to be leased.
	leasing context.Context
	// tasks ends when tasks are to be returned.
	tasks context.Context
	// busy says that there is work while a batch is delivered.
	busy atomic.Bool
}

// run works until leasing ends. It leaves no goroutine behind.
func (s *slot) run() {
	var deliveries sync.WaitGroup
	defer deliveries.Wait()
	var next *batch
	// receives what the present delivery brings, if there is one
	var ahead chan *batch
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
		delivered := make(chan *batch, 1)
		deliveries.Go(func() { delivered <- s.deliver(done) })
		ahead = delivered
	}
}

// lease waits for tasks. It returns nil when leasing has ended.
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
		if retry.For(ctx, wait) != nil {
			return nil
		}
		wait = min(2*wait, maxWait)
	}
	return nil
}

// wants says what to ask for with a report: whether more tasks, and whether they are for later
// only. A slot blocked in lease asks for no tasks, because it would not receive them.
func (s *slot) wants() (next, ahead bool) {
	return s.leasing.Err() == nil && (!s.Overlap || s.busy.Load()), s.Overlap
}

// outboxBytes is how many bytes an outbox holds before it writes.
const outboxBytes = 8 << 20

// outbox collects what the tasks of a batch write, to put it into the store in one call. After a
// failure, no task of the batch can be reported as done.
type outbox struct {
	// batch is the context of the batch. Writes use it instead of a task's own, because a lost
	// lease must not fail the writes of the others.
	batch  context.Context
	store  Store
	values []store.Value
	bytes  int
	// written are called once the values are in the store.
	written []func()
	err     error
}

// outboxKey is the key of an outbox in a context.
type outboxKey struct{}

// withOutbox returns a context in which tasks write to an outbox.
func withOutbox(ctx context.Context, o *outbox) context.Context {
	return context.WithValue(ctx, outboxKey{}, o)
}

// write puts values into the store, or into the outbox of the context, and calls written when they
// are in the store. written may be nil.
func write(ctx context.Context, s Store, values []store.Value, written func()) error {
	o, ok := ctx.Value(outboxKey{}).(*outbox)
	if !ok {
		o = &outbox{batch: ctx}
	}
	bytes := 0
	for _, v := range values {
		bytes += len(v.Data)
	}
	if o.bytes+bytes > outboxBytes { // so that the store's limits are a task's, not a batch's
		_ = o.flush() // its error is that of the next flush, too
	}
	o.store = s // the tasks of a batch are one job's
	o.values, o.bytes = append(o.values, values...), o.bytes+bytes
	if written != nil {
		o.written = append(o.written, written)
	}
	if !ok || o.bytes > outboxBytes {
		return o.flush()
	}
	return o.err
}

// flush puts what is collected into the store.
func (o *outbox) flush() error {
	if len(o.values) > 0 && o.err == nil {
		o.err = o.store.Put(o.batch, o.values)
	}
	if o.err == nil {
		for _, f := range o.written {
			f()
		}
	}
	o.values, o.written, o.bytes = nil, nil, 0
	return o.err
}
