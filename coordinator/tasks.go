package coordinator

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/coordinator/machine"
	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
)

const (
	// leaseWait is how long a Lease call waits at most, whatever its deadline.
	leaseWait = 20 * time.Second
	// leaseMargin is how long before its deadline a Lease call answers.
	leaseMargin = 50 * time.Millisecond
	// maxBatch is the largest number of tasks that a slot is given together.
	maxBatch = 64
	// drainPause delays the answer to a drained worker that still asks for tasks.
	drainPause = 200 * time.Millisecond
)

// Register implements the Tasks service.
func (s *taskService) Register(ctx context.Context, r *taxonv1.RegisterRequest) (*taxonv1.RegisterResult, error) {
	a := s.step(machine.Register{Name: r.GetName(), Slots: r.GetSlots(), Memory: r.GetMemoryBytes(), Cores: r.GetCores(),
		Previous: r.GetPrevious(),
		Version:  r.GetVersion(), By: s.caller(ctx)})
	if a.err != nil {
		return nil, rpcError(a.err)
	}
	if ctx.Err() != nil { // nobody waits for the answer
		s.stepNow(machine.Leave{Worker: a.worker})
	}
	out := &taxonv1.RegisterResult{Worker: a.worker, LeaseMs: uint32(s.config.Limits.Lease.Milliseconds())}
	out.Shards, out.ShardsVersion = s.Shards()
	return out, nil
}

// Leave implements the Tasks service.
func (s *taskService) Leave(_ context.Context, r *taxonv1.LeaveRequest) (*taxonv1.LeaveResult, error) {
	if a := s.step(machine.Leave{Worker: r.GetWorker()}); a.err != nil {
		return nil, rpcError(a.err)
	}
	return &taxonv1.LeaveResult{}, nil
}

// Job implements the Tasks service.
func (s *taskService) Job(_ context.Context, r *taxonv1.JobRequest) (*taxonv1.JobResult, error) {
	return s.describe(r.GetJob())
}

// Lease implements the Tasks service.
func (s *taskService) Lease(ctx context.Context, r *taxonv1.LeaseRequest) (*taxonv1.LeaseResult, error) {
	wait := leaseWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)-leaseMargin)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for e := (machine.RequestTask{Worker: r.GetWorker(), Most: min(r.GetMost(), maxBatch)}); ; e.Waits = true {
		s.mu.Lock()
		wake := s.wake // before the question: what comes up after it is not missed
		s.mu.Unlock()
		a := s.step(e)
		if a.err != nil {
			return nil, rpcError(a.err)
		}
		if first, more := a.granted(); first != nil {
			if ctx.Err() == nil {
				return &taxonv1.LeaseResult{Lease: first, More: more}, nil
			}
			s.returnLeases(r.GetWorker(), a.leases) // nobody waits for the answer
		}
		if a.dismissed {
			if err := retry.For(ctx, min(max(wait, 0), drainPause)); err != nil {
				return nil, status.FromContextError(err).Err()
			}
			return &taxonv1.LeaseResult{Drain: true}, nil
		}
		select {
		case <-wake:
		case <-timer.C:
			return &taxonv1.LeaseResult{}, nil
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		case <-s.ctx.Done():
			return nil, rpcError(errClosing)
		}
	}
}

// returnLeases returns leases that did not reach their worker.
func (s *taskService) returnLeases(worker string, leases []*taxonv1.Lease) {
	var events []machine.Event
	for _, l := range leases {
		events = append(events, machine.Report{Worker: worker, Returned: true, Lease: &taxonv1.LeaseId{
			Job: l.Job, Step: l.Step, Task: l.Task, Attempt: l.Attempt, Epoch: l.Epoch,
		}})
	}
	s.stepNow(events...)
}

// Renew implements the Tasks service.
func (s *taskService) Renew(_ context.Context, r *taxonv1.RenewRequest) (*taxonv1.RenewResult, error) {
	a := s.heartbeat(machine.Renew{Worker: r.GetWorker(), Leases: r.GetLeases()})
	if a.err != nil {
		return nil, rpcError(a.err)
	}
	return &taxonv1.RenewResult{Lost: a.lost.Leases, ShardsVersion: a.lost.ShardsVersion}, nil
}

// Report implements the Tasks service.
func (s *taskService) Report(ctx context.Context, r *taxonv1.ReportRequest) (*taxonv1.ReportResult, error) {
	var room [1]machine.Event
	events := room[:0]
	for _, t := range append([]*taxonv1.ReportRequest{r}, r.GetMore()...) {
		if t.GetLease() == nil {
			return nil, status.Error(codes.InvalidArgument, "a report must name its lease")
		}
		events = append(events, reportOf(r.GetWorker(), t))
	}
	last := events[len(events)-1].(machine.Report) // the next tasks are handed out after all are noted
	last.Next, last.Ahead, last.Most = r.GetNext(), r.GetAhead(), min(r.GetMost(), maxBatch)
	events[len(events)-1] = last
	a := s.step(events...)
	if a.err != nil {
		return nil, rpcError(a.err)
	}
	if ctx.Err() != nil { // nobody waits for the answer
		s.returnLeases(r.GetWorker(), a.leases)
	}
	first, more := a.granted()
	return &taxonv1.ReportResult{Accepted: a.accepted == len(events), Lease: first, More: more}, nil
}

// reportOf returns the event of one task's report.
func reportOf(worker string, r *taxonv1.ReportRequest) machine.Report {
	return machine.Report{
		Worker: worker, Lease: r.GetLease(), Error: r.GetError(), Deterministic: r.GetDeterministic(),
		Returned: r.GetReturned(), CPUSeconds: r.GetCpuSeconds(), Sums: r.GetSums().GetValues(),
		Read: r.GetBytesRead(), Written: r.GetBytesWritten(), Lost: lostPlaces(r.GetLost()), Unavailable: r.GetUnavailable(),
		Unfit: r.GetUnfit(),
	}
}

// lostPlaces returns where the lost values were.
func lostPlaces(refs []*taxonv1.Ref) []taxonv1.Place {
	var out []taxonv1.Place
	for _, r := range refs {
		out = append(out, r.Place())
	}
	return out
}
