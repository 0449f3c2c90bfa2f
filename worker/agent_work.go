package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// heldLease is a task under way, or one of its batch that waits for its turn. stop ends
// its context.
type heldLease struct {
	id     *taxonv1.LeaseId
	worker string
	ctx    context.Context
	stop   context.CancelCauseFunc
}

// work runs the tasks of a batch, one after the other, and reports them. The answer may
// bring the slot's next ones.
func (a *Agent) work(ctx, leasing, tasks context.Context, as *assignment) *assignment {
	batch, stop := context.WithCancelCause(tasks)
	defer stop(nil)
	held := a.hold(batch, stop, as)
	defer a.release(held)
	box := &outbox{batch: batch}
	reports := make([]*taxonv1.ReportRequest, len(held))
	for i, h := range held {
		run := h.ctx
		if len(held) > 1 {
			run = withOutbox(run, box)
		}
		reports[i] = a.run(run, h, as.leases[i])
	}
	if err := box.flush(); err != nil {
		for i, h := range held {
			if r := reports[i]; r != nil && r.Error == "" {
				a.noteFailure(h.ctx, r, err)
			}
		}
	}
	return a.report(ctx, leasing, batch, held, reports)
}

// run runs a task. nil: there is nothing to report, its lease was lost.
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

// noteFailure makes a report one of an attempt that failed, or that is given back.
func (a *Agent) noteFailure(ctx context.Context, r *taxonv1.ReportRequest, err error) {
	r.Returned = errors.Is(context.Cause(ctx), errLeaving)
	r.Error, r.Deterministic = err.Error(), IsDeterministic(err)
	r.Unfit = IsUnfit(err)
	r.Lost, r.Unavailable = lost(err), errors.Is(err, store.ErrUnavailable)
	a.tell(ctx, fmt.Errorf("job %s, step %d, task %d: %w", r.Lease.Job, r.Lease.Step, r.Lease.Task, err))
}

// report delivers the reports of a batch, again and again until the coordinator answers,
// all leases are lost, or the farewell is over.
func (a *Agent) report(ctx, leasing, batch context.Context, held []*heldLease, reports []*taxonv1.ReportRequest) *assignment {
	wait := firstWait
	last, end := outlive(ctx, farewell)
	defer end()
	for {
		r := together(held, reports)
		if r == nil {
			return nil
		}
		r.Next, r.Most = leasing.Err() == nil, a.Batch
		call, done := context.WithTimeout(last, callTimeout)
		answer, err := a.Tasks.Report(call, r)
		done()
		if err == nil {
			return assigned(r.Worker, answer.GetLease(), answer.GetMore())
		}
		code := status.Code(err)
		if code == codes.NotFound || errors.Is(context.Cause(batch), errLost) {
			a.forgetIfUnknown(&identity{worker: r.Worker}, err)
			return nil
		}
		if code == codes.Canceled && last.Err() == nil { // this process has closed the connection
			return nil
		}
		a.tell(last, fmt.Errorf("report: %w", err))
		if pause(last, wait) != nil {
			return nil
		}
		wait = min(2*wait, maxWait)
	}
}

// together joins the reports of the leases that are not lost; nil: all are.
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

// hold notes what the renewer keeps alive. The batch is stopped when all its leases are lost.
func (a *Agent) hold(batch context.Context, stop context.CancelCauseFunc, as *assignment) []*heldLease {
	held := make([]*heldLease, len(as.leases))
	var lost atomic.Int32
	for i, l := range as.leases {
		id := &taxonv1.LeaseId{Job: l.Job, Step: l.Step, Task: l.Task, Attempt: l.Attempt, Epoch: l.Epoch}
		ctx, cancel := context.WithCancelCause(batch)
		held[i] = &heldLease{id: id, worker: as.worker, ctx: ctx, stop: func(cause error) {
			if ctx.Err() == nil && lost.Add(1) == int32(len(held)) {
				stop(cause)
			}
			cancel(cause)
		}}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range held {
		a.held[h.id.Epoch] = h
	}
	return held
}

// release ends the holding.
func (a *Agent) release(held []*heldLease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, h := range held {
		delete(a.held, h.id.Epoch)
		h.stop(nil)
	}
}
