package coordinator

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
)

// JoinStore implements the Members service.
func (s *memberService) JoinStore(ctx context.Context, r *taxonv1.JoinStoreRequest) (*taxonv1.JoinStoreResult, error) {
	a := s.heartbeat(machine.JoinShard{ID: r.GetId(), Addr: r.GetAddr(), Bytes: r.GetBytes(), Capacity: r.GetCapacity(),
		Empty:  r.GetEmpty(),
		Values: r.GetValues(), Free: r.GetFree(), Reserve: r.GetReserve(), Version: r.GetVersion(),
		Repairing: r.GetRepairing(), By: s.caller(ctx)})
	if a.err != nil {
		return nil, rpcError(a.err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &taxonv1.JoinStoreResult{HeartbeatMs: uint32(s.config.Limits.Lease.Milliseconds() / 3)}
	out.Shards, out.Version = s.machine.Shards()
	return out, nil
}

// LeaveStore implements the Members service.
func (s *memberService) LeaveStore(_ context.Context, r *taxonv1.LeaveStoreRequest) (*taxonv1.LeaveStoreResult, error) {
	if a := s.step(machine.LeaveShard{ID: r.GetId()}); a.err != nil {
		return nil, rpcError(a.err)
	}
	return &taxonv1.LeaveStoreResult{}, nil
}

// Stores implements the Jobs service.
func (s *jobService) Stores(context.Context, *taxonv1.StoresRequest) (*taxonv1.StoresResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shards, version := s.machine.Stores()
	return &taxonv1.StoresResult{Shards: shards, Version: version}, nil
}

// ForgetStore implements the Jobs service.
func (s *jobService) ForgetStore(ctx context.Context, r *taxonv1.ForgetStoreRequest) (*taxonv1.Shard, error) {
	s.mu.Lock()
	shards, _ := s.machine.Stores()
	s.mu.Unlock()
	was := &taxonv1.Shard{Id: r.GetId()}
	if at := slices.IndexFunc(shards, func(h *taxonv1.Shard) bool { return h.Id == r.GetId() }); at >= 0 {
		was = shards[at]
	}
	if a := s.step(machine.ForgetShard{ID: r.GetId(), Force: r.GetForce(), By: s.caller(ctx)}); a.err != nil {
		return nil, rpcError(a.err)
	}
	return was, nil
}

// Workers implements the Jobs service.
func (s *jobService) Workers(context.Context, *taxonv1.WorkersRequest) (*taxonv1.WorkersResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &taxonv1.WorkersResult{Workers: s.machine.Workers()}, nil
}

// Timeline implements the Jobs service.
func (s *jobService) Timeline(_ context.Context, r *taxonv1.TimelineRequest) (*taxonv1.TimelineResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Timeline(s.now(), int(r.GetMost())), nil
}

// Drain implements the Jobs service.
func (s *jobService) Drain(ctx context.Context, r *taxonv1.DrainRequest) (*taxonv1.WorkerInfo, error) {
	a := s.step(machine.Drain{Worker: r.GetWorker(), By: s.caller(ctx)})
	if a.err != nil {
		return nil, rpcError(a.err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.machine.Workers() {
		if w.Worker == a.worker {
			return w, nil
		}
	}
	return nil, status.Error(codes.NotFound, fmt.Sprintf("worker %s has left", r.GetWorker()))
}

// Shards describes the known store shards. The version changes with the description.
func (s *Server) Shards() ([]*taxonv1.Shard, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Shards()
}

// Healthy returns nil if the server works. Otherwise it returns the reason: its journal failed, or
// the server was closed.
func (s *Server) Healthy() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == nil && s.ctx.Err() != nil {
		return errClosing
	}
	return s.broken
}

// JobShards describes the shards that a job's values lie on, and returns the number of copies of
// each value. A Store that serves several jobs needs it.
func (s *Server) JobShards(job string) (shards []*taxonv1.Shard, replicas uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.JobShards(job)
}
