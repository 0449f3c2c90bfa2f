package machine

import (
	"strings"
	"testing"

	"taxon/coordinator/method/methodtest"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"
)

// blockedJobs is a machine with a job on shard a, one on b, and shard a down.
func blockedJobs(t *testing.T) (m *Machine, at func(Tick), do func(Event) (leases []*taxonv1.Lease)) {
	m = New(Limits{Lease: 10 * second, MaxOutage: 60 * second, NeedShards: true})
	now := Tick(0)
	do = func(e Event) (leases []*taxonv1.Lease) {
		for _, a := range m.Step(now, e) {
			switch a := a.(type) {
			case Grant:
				leases = append(leases, a.Lease)
			case Refused:
				t.Fatalf("%T: %v", e, a.Err)
			}
		}
		return leases
	}
	// at goes on to a time, second by second, while worker w1 and shard b are heard.
	at = func(then Tick) {
		for now < then {
			now += second
			do(JoinShard{ID: "b", Addr: "host:2"})
			do(Renew{Worker: "w1"})
			do(Time{})
		}
	}
	do(JoinShard{ID: "a", Addr: "host:1"})
	do(Register{Name: "w", Slots: 1})
	do(Submit{ID: "on a", Spec: methodtest.WordNetLike(200, 50)})
	do(LeaveShard{ID: "a"})
	do(JoinShard{ID: "b", Addr: "host:2"})
	do(Submit{ID: "on b", Spec: methodtest.WordNetLike(200, 50)})
	return m, at, do
}

// A job whose shard is away gets no slot, as its tasks would only wait there: others have
// them all. It says what it waits for, and goes on when the shard is back.
func TestBlockedJobHoldsNoSlot(t *testing.T) {
	m, at, do := blockedJobs(t)
	for n := range 10 {
		l := do(RequestTask{Worker: "w1"})
		if len(l) != 1 || l[0].Job != "on b" {
			t.Fatalf("the slot's task %d: %v", n, l)
		}
		do(Report{Worker: "w1", Lease: machinetest.LeaseID(l[0]), Sums: machinetest.Figures{Primal: 2, Dual: 1}.Sums()})
	}
	if st, err := m.Status("on a", m.now, 0); err != nil || !strings.Contains(st.GetWaitsFor(), "a") {
		t.Errorf("it waits for %q (%v)", st.GetWaitsFor(), err)
	}
	at(50 * second)
	do(JoinShard{ID: "a", Addr: "host:1"})
	if l := do(RequestTask{Worker: "w1"}); len(l) != 1 || l[0].Job != "on a" { // it has had no slot yet
		t.Errorf("with the shard back: %v", l)
	}
}

// It fails after MaxOutage, resumable, though none of its tasks has told of the outage.
func TestBlockedJobFailsInTheEnd(t *testing.T) {
	m, at, _ := blockedJobs(t)
	at(59 * second)
	if j := m.find("on a"); j.State != taxonv1.JobState_JOB_STATE_RUNNING {
		t.Fatalf("before its time: %v, %s", j.State, j.Error)
	}
	at(65 * second)
	if j := m.find("on a"); j.State != taxonv1.JobState_JOB_STATE_FAILED || !strings.Contains(j.Error, "[a]") ||
		!j.resumable() {
		t.Errorf("%v, %s", j.State, j.Error)
	}
	if j := m.find("on b"); j.State != taxonv1.JobState_JOB_STATE_RUNNING {
		t.Errorf("the other one: %v, %s", j.State, j.Error)
	}
}

// A job does not wait for a shard that was forgotten.
func TestForgottenShardFailsItsJobs(t *testing.T) {
	m, at, do := blockedJobs(t)
	do(ForgetShard{ID: "a", Force: true})
	at(2 * second)
	if j := m.find("on a"); j.State != taxonv1.JobState_JOB_STATE_FAILED || !strings.Contains(j.Error, "was forgotten") {
		t.Errorf("%v, %s", j.State, j.Error)
	}
}
