package worker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/pause"
)

// register returns the agent's registration, making one if there is none.
func (a *Agent) register(ctx context.Context) (*identity, error) {
	a.mu.Lock()
	me := a.identity
	a.mu.Unlock()
	if me != nil {
		return me, nil
	}
	a.registering.Lock()
	defer a.registering.Unlock()
	a.mu.Lock()
	me = a.identity
	a.mu.Unlock()
	if me != nil { // another slot was faster
		return me, nil
	}
	call, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	r, err := a.Tasks.Register(call, &taxonv1.RegisterRequest{Name: a.Name, Slots: uint32(a.Slots), MemoryBytes: a.Memory, Previous: a.Previous})
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	if a.Shards != nil {
		a.Shards(r.GetShards())
	}
	if a.Registered != nil {
		a.Registered(r.GetWorker())
	}
	me = &identity{worker: r.Worker, lease: time.Duration(max(r.LeaseMs, 1)) * time.Millisecond}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.identity, a.known = me, true
	a.registered.signal()
	return me, nil
}

// wasKnown says whether the agent has been registered once.
func (a *Agent) wasKnown() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known
}

// forgetIfUnknown drops a registration that the coordinator no longer knows, and all
// work that was leased under it.
func (a *Agent) forgetIfUnknown(me *identity, err error) {
	if status.Code(err) != codes.NotFound {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.identity != nil && a.identity.worker == me.worker {
		a.identity = nil
	}
	for _, h := range a.held {
		if h.worker == me.worker {
			h.stop(errLost)
		}
	}
}

// renew keeps the registration and the held leases alive until ctx ends: three times in
// a lease's life, so that two lost messages do no harm. A call that failed is made again
// soon: a coordinator that is back has the rest of a lease to hear its workers.
func (a *Agent) renew(ctx context.Context) {
	for share := time.Duration(3); ; {
		a.mu.Lock()
		me := a.identity
		a.mu.Unlock()
		if me == nil {
			if a.registered.wait(ctx) != nil {
				return
			}
			continue
		}
		if pause.For(ctx, me.lease/share) != nil {
			return
		}
		if share = 3; !a.renewOnce(ctx, me) {
			share = 12
		}
	}
}

// renewOnce renews what is held under a registration and stops what was lost. It returns
// whether the coordinator has answered.
func (a *Agent) renewOnce(ctx context.Context, me *identity) bool {
	r := &taxonv1.RenewRequest{Worker: me.worker}
	a.mu.Lock()
	for _, h := range a.held {
		if h.worker == me.worker {
			r.Leases = append(r.Leases, h.id)
		}
	}
	a.mu.Unlock()
	slices.SortFunc(r.Leases, func(x, y *taxonv1.LeaseId) int { return cmp.Compare(x.Epoch, y.Epoch) })
	call, done := context.WithTimeout(ctx, callTimeout)
	answer, err := a.Tasks.Renew(call, r)
	done()
	if err != nil {
		a.tell(ctx, fmt.Errorf("renew: %w", err))
		a.forgetIfUnknown(me, err)
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range answer.GetLost() {
		if h := a.held[id.GetEpoch()]; h != nil {
			h.stop(errLost)
		}
	}
	return true
}

// leave says farewell to the coordinator, which takes back at once what is still held.
func (a *Agent) leave(ctx context.Context) {
	a.mu.Lock()
	me := a.identity
	a.mu.Unlock()
	if me == nil {
		return
	}
	call, done := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer done()
	if _, err := a.Tasks.Leave(call, &taxonv1.LeaveRequest{Worker: me.worker}); err != nil {
		a.tell(call, fmt.Errorf("leave: %w", err))
	}
}
