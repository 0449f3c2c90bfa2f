package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/pause"
	"taxon/internal/secure"
	taxonv1 "taxon/proto/taxon/v1"
)

// Member keeps a store shard known to the coordinator.
type Member struct {
	ID, Addr string
	Capacity uint64 // bytes; 0: not told
	Version  string // of this taxon
	Members  taxonv1.MembersClient
	Holding  *Holding // what it holds; nil: not told
	Joined   func()   // called once, when the coordinator first knows the shard
	// Away gets a token whenever the shard may have missed writes: when it has started,
	// and when it was out of reach, or stopped, for longer than a heartbeat. It holds one.
	Away   chan struct{}
	Failed func(error) // told of calls that failed; nil: not told

	known atomic.Bool
}

// Known says whether the coordinator has heard of the shard.
func (m *Member) Known() bool { return m.known.Load() }

// callTimeout bounds the calls that a member makes: they answer at once.
const callTimeout = 5 * time.Second

// Run joins, and says again and again that the shard lives, until ctx ends; then it
// leaves. It ends with an error where another process is the shard, and where it is denied
// access before it has joined; later its files, or the coordinator's, may be being changed.
func (m *Member) Run(ctx context.Context) error {
	joined, missed := false, true
	valueChecker := time.Now()
	for wait := pause.First; ; {
		missed = missed || time.Since(valueChecker) > 2*wait+pause.First
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
			wait = min(2*wait, pause.Longest)
			if m.Failed != nil && ctx.Err() == nil {
				m.Failed(fmt.Errorf("join the cluster: %w", err))
			}
		}
		if pause.For(ctx, wait) != nil {
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

// away leaves a token, unless one lies there.
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
	return m.Members.JoinStore(call, r)
}
