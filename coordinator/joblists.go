package coordinator

import (
	"context"
	"fmt"

	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/pause"
)

// logBatch is the number of lines in one message of a Logs stream.
const logBatch = 256

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

// describe is what workers and exports need of a job.
func (s *Server) describe(id string) (*taxonv1.JobResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.machine.find(id)
	if j == nil {
		return nil, rpcError(fmt.Errorf("job %s: %w", id, ErrUnknownJob))
	}
	out := &taxonv1.JobResult{Spec: j.spec, Plan: j.message()}
	var err error
	out.Shards, out.Replicas, err = s.machine.JobShards(id)
	return out, err
}

// Resume implements the Jobs service.
func (s *jobService) Resume(_ context.Context, r *taxonv1.ResumeRequest) (*taxonv1.JobStatus, error) {
	if a := s.step(Reopen{Job: r.GetJob(), Caps: StopCriteria{Gap: r.Gap, MaxSweeps: r.MaxSweeps, MaxSeconds: r.MaxSeconds}}); a.err != nil {
		return nil, rpcError(a.err)
	}
	st, _, err := s.status(r.GetJob(), 0)
	return st, err
}

// Restore implements the Jobs service.
func (s *jobService) Restore(ctx context.Context, r *taxonv1.RestoreRequest) (*taxonv1.JobStatus, error) {
	j, err := reviveJob(r.GetState())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	_, settle, err := s.claim(ctx, j.ID, r.GetState())
	if err != nil {
		return nil, rpcError(err)
	}
	a := s.step(Restore{State: r.GetState(), Shards: r.GetShards(), Replicas: r.GetReplicas(), revived: j})
	if a.err != nil {
		return nil, rpcError(a.err)
	}
	s.settled(a.job, settle)
	st, _, err := s.status(a.job, 0)
	return st, err
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
		if !r.GetFollow() || hasEnded(st.State) {
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

func (s *Server) logLines(job string, after uint64) ([]*taxonv1.LogLine, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Log(job, after, logBatch)
}
