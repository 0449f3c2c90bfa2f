package machine

import (
	"testing"

	"taxon/coordinator/method/methodtest"
	taxonv1 "taxon/proto/taxon/v1"
)

// hall is a machine with a shard, a worker and its lease, and a clock that strikes every eighth of one.
type hall struct {
	*testing.T
	m   *Machine
	now Tick
}

func newHall(t *testing.T) *hall {
	h := &hall{t, New(Limits{NeedShards: true, MaxSilenceStep: second, Lease: 8 * second}), 1000 * second}
	h.strike(0, 0)
	h.do(JoinShard{ID: "a", Addr: "h:1"})
	h.do(Submit{ID: "j", Spec: methodtest.WordNetLike(1600, 100)})
	h.do(Register{Name: "one", Slots: 1})
	h.do(RequestTask{Worker: "w1"})
	return h
}

func (h *hall) do(e Event) { h.m.Step(h.now, e) }

// strike has the clock strike after a time, while so many records are not durable.
func (h *hall) strike(after Tick, pending uint64) {
	h.now += after
	h.do(Time{Pending: pending})
}

// live wants so many shards, workers and leases to live.
func (h *hall) live(shards, workers, leases int) {
	h.Helper()
	up := 0
	list, _ := h.m.Shards()
	for _, s := range list {
		if s.State == taxonv1.MemberState_MEMBER_STATE_UP {
			up++
		}
	}
	if up != shards || len(h.m.workers) != workers || len(h.m.leases) != leases {
		h.Errorf("%d shards, %d workers, %d leases live, want %d, %d, %d", up, len(h.m.workers), len(h.m.leases), shards,
			workers, leases)
	}
}

// A coordinator that stood still does not take those for dead whom it could not hear. Who
// stays silent is missed all the same, also when the coordinator is stopped again and again.
func TestStoodStill(t *testing.T) {
	h := newHall(t)
	h.strike(100*h.m.limits.Lease, 0)
	h.live(1, 1, 1)
	for range 6 {
		h.strike(second, 0)
	}
	h.live(1, 1, 1)
	h.do(JoinShard{ID: "a", Addr: "h:1"})
	h.strike(second, 0)
	h.live(1, 0, 0)
	for range 7 {
		h.strike(100*h.m.limits.Lease, 0)
	}
	h.live(0, 0, 0)
}

// A worker that waits for the journal, to learn its id or its task, is not silent; once it
// could know, it has a lease's time.
func TestUntold(t *testing.T) {
	h := newHall(t)
	h.do(Renew{Worker: "w1"})
	for range 9 { // the worker lives, and has not heard of its lease
		h.do(JoinShard{ID: "a", Addr: "h:1"})
		h.do(Renew{Worker: "w1"})
		h.strike(second, 1)
	}
	h.live(1, 1, 1)
	for range 7 {
		h.do(JoinShard{ID: "a", Addr: "h:1"})
		h.do(Renew{Worker: "w1"})
		h.strike(second, 0)
	}
	h.live(1, 1, 1)
	h.do(Renew{Worker: "w1"})
	h.strike(second, 0)
	h.live(1, 1, 0)
	for range 8 { // that it is still silent is no news of the journal's
		h.strike(second, 1)
	}
	h.live(0, 0, 0)
	h.do(Register{Name: "two", Slots: 1})
	for range 9 {
		h.strike(second, 1)
	}
	h.live(0, 1, 0)
	for range 8 {
		h.strike(second, 0)
	}
	h.live(0, 0, 0)
}

// A call that waits for a task tells once that its worker lives.
func TestWaitingIsNoSign(t *testing.T) {
	h := newHall(t)
	for range 8 {
		h.do(JoinShard{ID: "a", Addr: "h:1"})
		h.do(RequestTask{Worker: "w1", Waits: true})
		h.strike(second, 0)
	}
	h.live(1, 0, 0)
}

// A shard that moves is let in when its old process could have been heard and was not.
func TestRivalAfterStandingStill(t *testing.T) {
	h := newHall(t)
	h.now += 100 * h.m.limits.Lease
	h.do(JoinShard{ID: "a", Addr: "h:2"})
	if s := h.m.shard("a"); s.addr != "h:1" {
		t.Errorf("it is at %s", s.addr)
	}
	for range 4 {
		h.strike(second, 0)
	}
	h.do(JoinShard{ID: "a", Addr: "h:2"})
	if s := h.m.shard("a"); s.addr != "h:2" {
		t.Errorf("it is at %s", s.addr)
	}
}

// The store was not away for the time that the coordinator stood still.
func TestOutageAndStandingStill(t *testing.T) {
	h := newHall(t)
	away := func() {
		for _, e := range h.m.epochs() {
			l := h.m.leases[e]
			h.do(Report{Worker: l.worker, Lease: &taxonv1.LeaseId{Job: "j", Step: l.step, Task: l.task, Attempt: l.attempt,
				Epoch: e}, Error: "away", Unavailable: true})
		}
	}
	away()
	h.strike(2*h.m.limits.MaxOutage, 0)
	h.do(RequestTask{Worker: "w1"})
	h.live(1, 1, 1)
	away()
	if j := h.m.find("j"); !j.running() {
		t.Fatalf("the job has failed: %s", j.Error)
	}
	for range h.m.limits.MaxOutage / second {
		h.do(Renew{Worker: "w1"})
		h.strike(second, 0)
	}
	h.do(RequestTask{Worker: "w1"})
	away()
	if h.m.find("j").running() {
		t.Error("the store is away for too long, and the job goes on")
	}
}
