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
	state, _ := m.find("j").encode()
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
	state, _ := m.find("j").encode()
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

// A list of jobs says how many copies of their values there are: a shard that is away, or has not
// yet copied what it missed, holds none that count.
func TestCopiesThere(t *testing.T) {
	m := New(Limits{})
	join := func(id string, repairing bool) {
		m.Step(m.now+1, JoinShard{ID: id, Addr: id + ":1", Repairing: repairing})
	}
	join("a", false)
	join("b", false)
	m.Step(m.now+1, Submit{ID: "one", Replicas: 1, Spec: methodtest.WordNetLike(20, 5)})
	m.Step(m.now+1, Submit{ID: "two", Replicas: 2, Spec: methodtest.WordNetLike(20, 5)})
	want := func(what string, one, two uint32) {
		t.Helper()
		list := m.Jobs(m.now)
		if list[0].CopiesThere != one || list[1].CopiesThere != two || list[0].Copies != 1 || list[1].Copies != 2 {
			t.Errorf("%s: %d of %d, %d of %d", what, list[0].CopiesThere, list[0].Copies, list[1].CopiesThere, list[1].Copies)
		}
	}
	want("all there", 1, 2)
	m.Step(m.now+1, LeaveShard{ID: "b"})
	want("one away", 0, 1)
	join("b", true)
	want("it repairs", 1, 1)
	join("b", false)
	want("repaired", 1, 2)
}
