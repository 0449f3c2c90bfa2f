package machine

import (
	"taxon/coordinator/method/methodtest"

	"errors"
	"testing"
)

// A restored job needs the shards that hold its values, and no living job in its place.
func TestRestore(t *testing.T) {
	m := New(Limits{})
	refusal := func(e Event) error {
		for _, a := range m.Step(m.now+1, e) {
			if r, ok := a.(Refused); ok {
				return r.Err
			}
		}
		return nil
	}
	for _, id := range []string{"a", "b"} {
		m.Step(0, JoinShard{ID: id, Addr: id + ":1"})
	}
	if err := refusal(Submit{ID: "j", Spec: methodtest.WordNetLike(20, 5)}); err != nil {
		t.Fatal(err)
	}
	state := m.find("j").encode()
	if s, err := ReadState(state); err != nil || s.Job != "j" || s.Spec.GetData().GetFeatures() == 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	if _, err := ReadState([]byte("{")); err == nil {
		t.Error("half a state was read")
	}
	if err := refusal(Restore{State: state, Shards: []string{"a"}}); !errors.Is(err, ErrNotResumable) {
		t.Errorf("over a job that runs: %v", err)
	}
	before := m.find("j").StepNo
	if err := refusal(Cancel{Job: "j"}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		shards   []string
		replicas uint32
		want     error
	}{
		{nil, 1, ErrNoShards},
		{[]string{"a", "c"}, 1, ErrNoShards},
		{[]string{"a", "a"}, 1, ErrBadMember},
		{[]string{"a"}, 2, ErrFewShards},
	} {
		if err := refusal(Restore{State: state, Shards: test.shards, Replicas: test.replicas}); !errors.Is(err, test.want) {
			t.Errorf("over %v: %v, want %v", test.shards, err, test.want)
		}
	}
	if err := refusal(Restore{State: state, Shards: []string{"b"}, Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	j := m.find("j")
	if j.Rollbacks != 1 || j.StepNo <= before || len(j.Shards) != 1 || j.Shards[0] != "b" || !j.running() {
		t.Errorf("restored: %+v", j.jobState)
	}
	again := New(Limits{}) // from its snapshot, as after a restart
	if err := again.LoadSnapshot(m.Snapshot()); err != nil || again.find("j").StepNo != j.StepNo {
		t.Errorf("after a restart: %v", err)
	}
}

// A job belongs to whom the coordinator heard submit it, over restarts. A restored state can't
// claim another owner, and who restores somebody's failed job does not come to own it.
func TestOwner(t *testing.T) {
	m := New(Limits{})
	spec := methodtest.WordNetLike(20, 5)
	m.Step(0, JoinShard{ID: "a", Addr: "a:1"})
	m.Step(1, Submit{ID: "j", Owner: "ada", Spec: spec})
	state := m.find("j").encode()
	m.Step(2, Cancel{Job: "j"})
	m.Step(3, Restore{State: state, Owner: "eve", Shards: []string{"a"}, Replicas: 1})
	other := New(Limits{})
	other.Step(0, JoinShard{ID: "a", Addr: "a:1"})
	other.Step(1, Restore{State: state, Owner: "eve", Shards: []string{"a"}, Replicas: 1})
	again := New(Limits{})
	if err := again.LoadSnapshot(m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in   *Machine
		want string
	}{{m, "ada"}, {again, "ada"}, {other, "eve"}} {
		st, err := c.in.Status("j", 4, 0)
		if err != nil || st.GetOwner() != c.want || c.in.Jobs(4)[0].GetOwner() != c.want {
			t.Errorf("owner %q (%v), want %q", st.GetOwner(), err, c.want)
		}
	}
}
