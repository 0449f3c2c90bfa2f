package coordinator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/coordinator/machine"
	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
)

// watchEvery is the least time between two messages of a Watch.
const watchEvery = 50 * time.Millisecond

// logBatch is the number of lines in one message of a Logs stream.
const logBatch = 256

// Submit implements the Jobs service.
func (s *jobService) Submit(ctx context.Context, r *taxonv1.SubmitRequest) (*taxonv1.SubmitResult, error) {
	e, err := machine.Submit{ID: r.GetJob(), Name: r.GetName(), Owner: s.caller(ctx), Spec: r.GetSpec(),
		Replicas: r.GetReplicas()}.Prepare()
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := s.verify(ctx, r.GetJob()); err != nil {
		return nil, err
	}
	avoid, confirm, err := s.reserve(ctx, r.GetJob(), nil)
	if err != nil {
		return nil, rpcError(err)
	}
	e.Avoid = avoid
	a := s.step(e)
	if a.err != nil {
		return nil, rpcError(a.err)
	}
	s.confirm(a.job, confirm)
	return &taxonv1.SubmitResult{Job: a.job, Displaced: a.displaced}, nil
}

// Status implements the Jobs service.
func (s *jobService) Status(ctx context.Context, r *taxonv1.StatusRequest) (*taxonv1.JobStatus, error) {
	if r.GetVerify() {
		if err := s.verify(ctx, r.GetJob()); err != nil {
			return nil, err
		}
	}
	return s.statusOf(r.GetJob())
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
		if st.State.Ended() {
			return nil
		}
		if err := s.await(ctx, changed); err != nil {
			return err
		}
	}
}

// Cancel implements the Jobs service. The job has ended only when its status says so, because a
// checkpoint may have to be written first.
func (s *jobService) Cancel(ctx context.Context, r *taxonv1.CancelRequest) (*taxonv1.JobStatus, error) {
	if a := s.step(machine.Cancel{Job: r.GetJob(), Discard: r.GetDiscard(), By: s.caller(ctx)}); a.err != nil {
		return nil, rpcError(a.err)
	}
	return s.statusOf(r.GetJob())
}

// await waits until some status has changed, and for at least watchEvery.
func (s *Server) await(ctx context.Context, changed <-chan struct{}) error {
	select {
	case <-changed:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ctx.Done():
		return rpcError(errClosing)
	}
	return retry.For(ctx, watchEvery)
}

// verify reads the weights of a finished job, and records if they are lost. It returns an error if
// the store is away, so that nobody can tell.
func (s *jobService) verify(ctx context.Context, job string) error {
	if s.config.Digester == nil {
		return nil
	}
	s.mu.Lock()
	there := s.machine.Exportable(job)
	s.mu.Unlock()
	if !there { // the answer says what state it is in
		return nil
	}
	_, err := s.weights(ctx, job)
	switch {
	case err == nil:
		return nil
	case s.config.Digester.Passing(err) || ctx.Err() != nil:
		return status.Errorf(codes.Unavailable, "job %s is done; whether its weights are still there can't be told: %v", job,
			err)
	}
	if a := s.step(machine.WeightsLost{Job: job, Reason: err.Error()}); a.err != nil {
		return rpcError(a.err)
	}
	return nil
}

// status returns a job's status, which is durable, and the channel that is closed when a status
// changes.
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

// ListJobs implements the Jobs service.
func (s *jobService) ListJobs(context.Context, *taxonv1.ListJobsRequest) (*taxonv1.ListJobsResult, error) {
	s.mu.Lock()
	jobs, number, broken := s.machine.Jobs(s.now()), s.written, s.broken
	s.mu.Unlock()
	if broken != nil {
		return nil, rpcError(broken)
	}
	if err := s.sync(number); err != nil {
		return nil, rpcError(err)
	}
	return &taxonv1.ListJobsResult{Jobs: jobs}, nil
}

// Describe implements the Jobs service.
func (s *jobService) Describe(_ context.Context, r *taxonv1.JobRequest) (*taxonv1.JobResult, error) {
	return s.describe(r.GetJob())
}

// describe returns a job's specification, its plan and the shards of its values, which workers and
// exports need.
func (s *Server) describe(id string) (*taxonv1.JobResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := s.machine.Describe(id)
	if err != nil {
		return nil, rpcError(err)
	}
	return out, nil
}

// Resume implements the Jobs service.
func (s *jobService) Resume(ctx context.Context, r *taxonv1.ResumeRequest) (*taxonv1.JobStatus, error) {
	if err := s.verify(ctx, r.GetJob()); err != nil {
		return nil, err
	}
	criteria := machine.StopCriteria{Gap: r.Gap, MaxSweeps: r.MaxSweeps, MaxSeconds: r.MaxSeconds}
	if a := s.step(machine.Resume{Job: r.GetJob(), Criteria: criteria, By: s.caller(ctx)}); a.err != nil {
		return nil, rpcError(a.err)
	}
	return s.statusOf(r.GetJob())
}

// Restore implements the Jobs service.
func (s *jobService) Restore(ctx context.Context, r *taxonv1.RestoreRequest) (*taxonv1.JobStatus, error) {
	e, job, err := machine.Restore{State: r.GetState(), Owner: s.caller(ctx), Shards: r.GetShards(),
		Replicas: r.GetReplicas()}.Prepare()
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := s.verify(ctx, job); err != nil {
		return nil, err
	}
	_, confirm, err := s.reserve(ctx, job, r.GetState())
	if err != nil {
		return nil, rpcError(err)
	}
	a := s.step(e)
	if a.err != nil {
		return nil, rpcError(a.err)
	}
	s.confirm(a.job, confirm)
	return s.statusOf(a.job)
}

// Logs implements the Jobs service.
func (s *jobService) Logs(r *taxonv1.LogsRequest, stream grpc.ServerStreamingServer[taxonv1.LogLines]) error {
	ctx := stream.Context()
	after := r.GetAfter()
	for {
		st, changed, err := s.status(r.GetJob(), ^uint32(0)) // first: lines that come after it raise changed
		if err != nil {
			return err
		}
		for {
			lines, err := s.logLines(r.GetJob(), after)
			if err != nil {
				return rpcError(err)
			}
			if len(lines) == 0 {
				break
			}
			if err := stream.Send(&taxonv1.LogLines{Lines: lines}); err != nil {
				return err
			}
			after = lines[len(lines)-1].Number
		}
		if !r.GetFollow() || st.State.Ended() {
			return nil
		}
		if err := s.await(ctx, changed); err != nil {
			return err
		}
	}
}

// logLines returns the next lines of a job's log.
func (s *Server) logLines(job string, after uint64) ([]*taxonv1.LogLine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Log(job, after, logBatch)
}

// statusOf returns a job's status with the whole trace.
func (s *Server) statusOf(job string) (*taxonv1.JobStatus, error) {
	st, _, err := s.status(job, 0)
	return st, err
}

// errClosing is returned by calls to a server that is shutting down.
var errClosing = errors.New("the coordinator is closing")

// rpcError gives an error its gRPC code.
func rpcError(err error) error {
	code := codes.Unavailable
	switch {
	case errors.Is(err, machine.ErrUnknownWorker), errors.Is(err, machine.ErrUnknownJob),
		errors.Is(err, machine.ErrUnknownMember):
		code = codes.NotFound
	case errors.Is(err, machine.ErrJobExists), errors.Is(err, machine.ErrDiscarded),
		errors.Is(err, machine.ErrDuplicateShard), errors.Is(err, machine.ErrNoRoom):
		code = codes.AlreadyExists
	case errors.Is(err, machine.ErrTooManyJobs), errors.Is(err, machine.ErrTooLarge),
		errors.Is(err, machine.ErrTooManyWorkers):
		code = codes.ResourceExhausted
	case errors.Is(err, machine.ErrBadMember):
		code = codes.InvalidArgument
	case errors.Is(err, machine.ErrNotResumable), errors.Is(err, machine.ErrStopCriteria),
		errors.Is(err, machine.ErrNoShards), errors.Is(err, machine.ErrFewShards), errors.Is(err, machine.ErrShardInUse):
		code = codes.FailedPrecondition
	}
	return status.Error(code, err.Error())
}

// maxAvoided is the largest number of ids that are skipped for one job.
const maxAvoided = 10000

// reserve asks the checkpointer whether it can save a job under the id that was asked for or, if
// none was, under the next free one. avoid lists the ids that could not be used. The caller calls
// confirm once the job is accepted.
func (s *Server) reserve(ctx context.Context, id string,
	state []byte) (avoid []string, confirm func() error, err error) {
	c, ok := s.config.Checkpointer.(Reserver)
	if !ok {
		return nil, nil, nil
	}
	if id != "" {
		s.mu.Lock()
		known := s.machine.Known(id)
		s.mu.Unlock()
		if known && state == nil {
			return nil, nil, nil
		}
		confirm, err = c.Reserve(ctx, id, state)
		return nil, confirm, noRoom(err)
	}
	for len(avoid) < maxAvoided {
		s.mu.Lock()
		next := s.machine.FreeID(avoid)
		s.mu.Unlock()
		if confirm, err = c.Reserve(ctx, next, nil); err == nil {
			return avoid, confirm, nil
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		avoid = append(avoid, next)
	}
	return nil, nil, noRoom(err)
}

// noRoom wraps an error of a reservation in machine.ErrNoRoom. It returns nil for nil.
func noRoom(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", machine.ErrNoRoom, err)
	}
	return err
}

// confirm confirms a reservation, if there is one.
func (s *Server) confirm(job string, confirm func() error) {
	if confirm == nil {
		return
	}
	if err := confirm(); err != nil {
		s.warn(fmt.Errorf("job %s: its checkpoints: %w", job, err))
	}
}
