package coordinator

import (
	"context"
	"time"

	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// leaseWait is how long a Lease call waits at most, whatever its deadline.
	leaseWait = 20 * time.Second
	// leaseMargin is what a Lease call leaves of its deadline for the answer's way.
	leaseMargin = 50 * time.Millisecond
	// drainPause keeps a worker that does not heed its dismissal from asking all the time.
	drainPause = 200 * time.Millisecond
)

// Register implements the Tasks service.
func (s *taskService) Register(_ context.Context, r *taxonv1.RegisterRequest) (*taxonv1.RegisterResult, error) {
	a := s.step(Register{Name: r.GetName(), Slots: r.GetSlots(), Memory: r.GetMemoryBytes(), Previous: r.GetPrevious()})
	if a.err != nil {
		return nil, rpcError(a.err)
	}
	out := &taxonv1.RegisterResult{Worker: a.worker, LeaseMs: uint32(s.machine.limits.Lease / millisecond)}
	out.Shards, out.ShardsVersion = s.Shards()
	return out, nil
}

// Leave implements the Tasks service.
func (s *taskService) Leave(_ context.Context, r *taxonv1.LeaveRequest) (*taxonv1.LeaveResult, error) {
	if a := s.step(Leave{Worker: r.GetWorker()}); a.err != nil {
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
	for {
		s.mu.Lock()
		wake := s.wake // before the question: what comes up after it is not missed
		s.mu.Unlock()
		a := s.step(Ask{Worker: r.GetWorker()})
		if a.err != nil {
			return nil, rpcError(a.err)
		}
		if a.lease != nil && ctx.Err() != nil {
			s.giveBack(r.GetWorker(), a.lease) // nobody hears the answer
		} else if a.lease != nil {
			return &taxonv1.LeaseResult{Lease: a.lease}, nil
		}
		if a.dismissed {
			if err := pause(ctx, min(max(wait, 0), drainPause)); err != nil {
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

// giveBack returns a lease that did not reach its worker.
func (s *taskService) giveBack(worker string, l *taxonv1.Lease) {
	s.step(Report{Worker: worker, Returned: true, Lease: &taxonv1.LeaseId{
		Job: l.Job, Step: l.Step, Task: l.Task, Attempt: l.Attempt, Epoch: l.Epoch,
	}})
}

// Renew implements the Tasks service.
func (s *taskService) Renew(_ context.Context, r *taxonv1.RenewRequest) (*taxonv1.RenewResult, error) {
	a := s.step(Renew{Worker: r.GetWorker(), Leases: r.GetLeases()})
	if a.err != nil {
		return nil, rpcError(a.err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &taxonv1.RenewResult{Lost: a.lost, ShardsVersion: s.machine.shardsVersion}, nil
}

// Report implements the Tasks service.
func (s *taskService) Report(_ context.Context, r *taxonv1.ReportRequest) (*taxonv1.ReportResult, error) {
	if r.GetLease() == nil {
		return nil, status.Error(codes.InvalidArgument, "a report must name its lease")
	}
	sums := r.GetSums()
	a := s.step(Report{
		Worker: r.GetWorker(), Lease: r.GetLease(), Error: r.GetError(), Deterministic: r.GetDeterministic(),
		Returned: r.GetReturned(), CPUSeconds: r.GetCpuSeconds(), Next: r.GetNext(),
		Read: r.GetBytesRead(), Written: r.GetBytesWritten(), Lost: lostPlaces(r.GetLost()), Unavailable: r.GetUnavailable(),
		Sums: Sums{
			Primal: sums.GetPrimal(), Dual: sums.GetDual(), InnerGap: sums.GetInnerGap(), Restart: sums.GetRestart(),
			Moved: sums.GetMoved(), Support: sums.GetSupport(), Working: sums.GetWorking(), Visits: sums.GetVisits(),
		},
	})
	if a.err != nil {
		return nil, rpcError(a.err)
	}
	return &taxonv1.ReportResult{Accepted: a.accepted, Lease: a.lease}, nil
}

// lostPlaces reads the places of lost values, as many as count.
func lostPlaces(refs []*taxonv1.Ref) []taxonv1.Place {
	var out []taxonv1.Place
	for _, r := range refs[:min(len(refs), maxLost)] {
		out = append(out, r.Place())
	}
	return out
}
