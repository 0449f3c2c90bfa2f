package machine

import (
	"errors"
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
)

// A worker whose process is started again need not be waited for; one of another name
// is let be.
func TestRegisterAgain(t *testing.T) {
	m := New(Limits{})
	m.Step(1, Register{Name: "a", Slots: 1})
	m.Step(2, Register{Name: "b", Slots: 1, Previous: "w1"}) // w1 is not b's
	m.Step(3, Register{Name: "a", Slots: 1, Previous: "w1"})
	m.Step(4, Register{Name: "c", Slots: 1, Previous: "w99"})
	states := map[string]taxonv1.MemberState{}
	for _, w := range m.Workers() {
		states[w.Worker] = w.State
	}
	up := taxonv1.MemberState_MEMBER_STATE_UP
	if len(states) != 4 || states["w1"] != taxonv1.MemberState_MEMBER_STATE_LOST || states["w2"] != up ||
		states["w3"] != up || states["w4"] != up {
		t.Errorf("workers %v", states)
	}
}

// A worker is taken out by the name that it was given, also where the name is another's id.
func TestDrainByName(t *testing.T) {
	m := New(Limits{})
	for n, name := range []string{"w0", "w1", "w2", "twin", "twin"} {
		m.Step(Tick(n), Register{Name: name, Slots: 1}) // w1, w2, w3, w4, w5
	}
	for _, test := range []struct{ ask, want string }{{"w1", "w2"}, {"w0", "w1"}, {"w4", "w4"}} {
		m.Step(10, Drain{Worker: test.ask})
		if w := m.worker(test.want); !w.draining {
			t.Errorf("drain %s did not take out %s (named %s)", test.ask, w.id, w.name)
		}
	}
	if m.worker("w3").draining {
		t.Error("w3 was taken out")
	}
	for _, a := range m.Step(11, Drain{Worker: "twin"}) {
		if r, ok := a.(Refused); !ok || !errors.Is(r.Err, ErrBadMember) {
			t.Errorf("drain of one of two: %+v", a)
		}
	}
}
