package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/cluster/secure"
	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
)

// Member registers a store shard with the coordinator and keeps it registered. Members and Joined
// are required.
type Member struct {
	// ID is the id of the shard and Addr the address, host:port, at which others call it.
	ID, Addr string
	// Capacity is the most that the shard may hold, in bytes. Zero means unknown.
	Capacity uint64
	// Version is the shard's version of taxon.
	Version string
	// Members is the coordinator's service.
	Members taxonv1.MembersClient
	// Holding reports what the shard holds. If Holding is nil, the coordinator is told nothing
	// about it.
	Holding *Holding
	// Repairing reports whether the shard is copying values that it missed from other shards. It
	// may be nil.
	Repairing func() bool
	// Joined is called once, when the coordinator first knows the shard.
	Joined func()
	// Away gets a token whenever the shard may have missed writes: after its start, and after it
	// was unreachable, or stopped, for longer than a heartbeat. It must have a capacity of one.
	Away chan struct{}
	// Failed is called with each call that failed. It may be nil.
	Failed func(error)

	known atomic.Bool
}

// Known reports whether the coordinator has registered the shard.
func (m *Member) Known() bool { return m.known.Load() }

// callTimeout bounds a member's calls, which are answered at once.
const callTimeout = 5 * time.Second

// Run registers the shard, and then sends heartbeats until ctx ends, when it leaves. It returns an
// error if another process is the shard, or if it is denied access before it was ever registered.
// After a later denial it tries again, because certificates may be changing just then.
func (m *Member) Run(ctx context.Context) error {
	joined, missed := false, true
	seen := time.Now()
	for wait := retry.First; ; {
		missed = missed || time.Since(seen) > 2*wait+retry.First
		seen = time.Now()
		r, err := m.join(ctx)
		if err == nil {
			if missed {
				missed = false
				m.away()
			}
			wait = time.Duration(max(r.GetHeartbeatMs(), 10)) * time.Millisecond
			if !joined {
				joined = true
				m.known.Store(true)
				m.Joined()
			}
		} else if status.Code(err) == codes.AlreadyExists || secure.Denied(err) && !joined {
			return err
		} else {
			missed = true
			wait = min(2*wait, retry.Longest)
			if m.Failed != nil && ctx.Err() == nil {
				m.Failed(fmt.Errorf("join the cluster: %w", err))
			}
		}
		if retry.For(ctx, wait) != nil {
			break
		}
	}
	if !joined { // the shard that is up may be another process
		return nil
	}
	call, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	if _, err := m.Members.LeaveStore(call, &taxonv1.LeaveStoreRequest{Id: m.ID}); err != nil && m.Failed != nil {
		m.Failed(fmt.Errorf("leave the cluster: %w", err))
	}
	return nil
}

// away puts a token into Away, unless there is one.
func (m *Member) away() {
	if m.Away == nil {
		return
	}
	select {
	case m.Away <- struct{}{}:
	default:
	}
}

// join registers the shard, or sends a heartbeat.
func (m *Member) join(ctx context.Context) (*taxonv1.JoinStoreResult, error) {
	call, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	r := &taxonv1.JoinStoreRequest{Id: m.ID, Addr: m.Addr, Capacity: m.Capacity, Version: m.Version}
	if m.Holding != nil {
		m.Holding.Tell(ctx, r)
	}
	if m.Repairing != nil {
		r.Repairing = m.Repairing()
	}
	return m.Members.JoinStore(call, r)
}
