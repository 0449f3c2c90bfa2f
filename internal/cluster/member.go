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

// Member registers a store shard with the coordinator and keeps it registered.
type Member struct {
	ID, Addr string
	Capacity uint64 // bytes; 0: unknown
	Version  string // of this taxon
	Members  taxonv1.MembersClient
	Holding  *Holding // what it holds; nil: not reported
	// Repairing says whether it copies from others what it missed; nil: it does not.
	Repairing func() bool
	Joined    func() // called once, when the coordinator first knows the shard
	// Away gets a token whenever the shard may have missed writes: after its start, and after it
	// was unreachable, or stopped, for longer than a heartbeat. Its capacity is one.
	Away   chan struct{}
	Failed func(error) // called for calls that failed; nil: not called

	known atomic.Bool
}

// Known says whether the coordinator has heard of the shard.
func (m *Member) Known() bool { return m.known.Load() }

// callTimeout bounds a member's calls, which are answered at once.
const callTimeout = 5 * time.Second

// Run registers, and reports again and again that the shard lives, until ctx ends; then it signs
// off. It ends with an error if another process is the shard, or if it is denied access before it
// was ever registered. Later a denial may be due to certificates that are being changed.
func (m *Member) Run(ctx context.Context) error {
	joined, missed := false, true
	valueChecker := time.Now()
	for wait := retry.First; ; {
		missed = missed || time.Since(valueChecker) > 2*wait+retry.First
		valueChecker = time.Now()
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

// away leaves a token unless there is one.
func (m *Member) away() {
	if m.Away == nil {
		return
	}
	select {
	case m.Away <- struct{}{}:
	default:
	}
}

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
