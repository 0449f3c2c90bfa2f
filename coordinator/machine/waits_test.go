package machine

import (
	"taxon/coordinator/method/methodtest"
	"taxon/test/machinetest"

	"strings"
	"testing"
)

// A job says what keeps it from going on: its shards, or that nobody can work for it.
func TestWaitsFor(t *testing.T) {
	m := New(Limits{NeedShards: true})
	lease := m.limits.Lease
	waits := func(want string) {
		t.Helper()
		st, err := m.Status("j", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := st.GetWaitsFor(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("waits for %q, want %q", got, want)
		}
	}
	m.Step(1, JoinShard{ID: "a", Addr: "h:1"})
	m.Step(1, JoinShard{ID: "b", Addr: "h:2"})
	m.Step(1, Submit{ID: "j", Spec: methodtest.WordNetLike(1600, 100)})
	waits("none is up")
	m.Step(1, Register{Name: "one", Slots: 1})
	waits("")
	m.find("j").unfit = map[string]bool{"w1": true}
	waits("taxon logs")
	m.find("j").unfit = nil
	m.Step(lease, JoinShard{ID: "a", Addr: "h:1"})
	m.Step(lease, Renew{Worker: "w1"})
	m.Step(lease+1, Time{})
	waits("away: b")
	m.Step(lease+1, JoinShard{ID: "b", Addr: "h:2"})
	waits("")
	m.find("j").Replicas = 2
	m.Step(lease+1, LeaveShard{ID: "a"})
	waits("") // the other copy will do
	m.Step(lease+1, LeaveShard{ID: "b"})
	waits("away: a, b")
	m.Step(lease+1, JoinShard{ID: "a", Addr: "h:1"})
	m.Step(lease+1, JoinShard{ID: "b", Addr: "h:2"})
	waits("")
	work := func(text string) {
		for _, a := range m.Step(m.now+5*second, RequestTask{Worker: "w1"}) {
			if g, ok := a.(Grant); ok {
				m.Step(m.now, Report{Worker: "w1", Lease: machinetest.LeaseID(g.Lease), Error: text, Unavailable: text != ""})
			}
		}
		m.Step(m.now, JoinShard{ID: "a", Addr: "h:1"})
		m.Step(m.now, JoinShard{ID: "b", Addr: "h:2"})
	}
	for range 20 { // more often than a task may fail
		work("store is full: 10 MiB are free")
		waits("store is full: 10 MiB are free")
	}
	work("") // there is room again
	waits("")
}
