package coordinator

import (
	"context"
	"errors"
	"time"

	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/pause"
)

// watchEvery is the least time between two messages of a Watch.
const watchEvery = 50 * time.Millisecond

// Submit implements the Jobs service.
func (s *jobService) Submit(ctx context.Context, r *taxonv1.SubmitRequest) (*taxonv1.SubmitResult, error) {
	p, err := prepare(r.GetSpec())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	avoid, settle, err := s.claim(ctx, r.GetJob(), nil)
	if err != nil {
		return nil, rpcError(err)
	}
	a := s.step(Submit{ID: r.GetJob(), Name: r.GetName(), Spec: r.GetSpec(), Replicas: r.GetReplicas(), Avoid: avoid, prepared: p})
	if a.err != nil {
		return nil, rpcError(a.err)
	}
	s.settled(a.job, settle)
	return &taxonv1.SubmitResult{Job: a.job}, nil
}

// Status implements the Jobs service.
func (s *jobService) Status(_ context.Context, r *taxonv1.StatusRequest) (*taxonv1.JobStatus, error) {
	st, _, err := s.status(r.GetJob(), 0)
	return st, err
}

// Watch implements the Jobs service.
func (s *jobService) Watch(r *taxonv1.StatusRequest, stream grpc.ServerStreamingServer[taxonv1.JobStatus]) error {
	ctx := stream.Context()
	after := uint32(0)
	for {
		st, changed, err := s.status(r.GetJob(), after)
		if err != nil {
			return err
		}
		if err := stream.Send(st); err != nil {
			return err
		}
		if n := len(st.Trace); n > 0 {
			after = st.Trace[n-1].Sweep
		}
		if hasEnded(st.State) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ctx.Done():
			return rpcError(errClosing)
		}
		if err := pause.For(ctx, watchEvery); err != nil {
			return err
		}
	}
}

func hasEnded(state taxonv1.JobState) bool {
	return state == taxonv1.JobState_JOB_STATE_DONE || state == taxonv1.JobState_JOB_STATE_FAILED ||
		state == taxonv1.JobState_JOB_STATE_CANCELLED
}

// Cancel implements the Jobs service. The job has ended only when its status says so: a
// checkpoint may have to be written first.
func (s *jobService) Cancel(_ context.Context, r *taxonv1.CancelRequest) (*taxonv1.JobStatus, error) {
	if a := s.step(Cancel{Job: r.GetJob(), Discard: r.GetDiscard()}); a.err != nil {
		return nil, rpcError(a.err)
	}
	st, _, err := s.status(r.GetJob(), 0)
	return st, err
}

// status reads a job's status, durable, and the channel that closes when one changes.
func (s *Server) status(job string, after uint32) (*taxonv1.JobStatus, <-chan struct{}, error) {
	s.mu.Lock()
	st, err := s.machine.Status(job, s.now(), after)
	changed, number, broken := s.changed, s.written, s.broken
	s.mu.Unlock()
	if err == nil {
		err = broken
	}
	if err == nil {
		err = s.sync(number)
	}
	if err != nil {
		return nil, nil, rpcError(err)
	}
	return st, changed, nil
}

var errClosing = errors.New("the coordinator is closing")

// rpcError gives an error its gRPC code.
func rpcError(err error) error {
	code := codes.Unavailable
	switch {
	case errors.Is(err, ErrUnknownWorker), errors.Is(err, ErrUnknownJob), errors.Is(err, ErrUnknownMember):
		code = codes.NotFound
	case errors.Is(err, ErrJobExists), errors.Is(err, ErrDiscarded), errors.Is(err, ErrTwin), errors.Is(err, ErrNoRoom):
		code = codes.AlreadyExists
	case errors.Is(err, ErrTooManyJobs), errors.Is(err, ErrTooLarge), errors.Is(err, ErrTooManyWorkers):
		code = codes.ResourceExhausted
	case errors.Is(err, ErrBadMember):
		code = codes.InvalidArgument
	case errors.Is(err, ErrNotResumable), errors.Is(err, ErrCaps), errors.Is(err, ErrNoShards), errors.Is(err, ErrFewShards), errors.Is(err, ErrKeepShard):
		code = codes.FailedPrecondition
	}
	return status.Error(code, err.Error())
}
