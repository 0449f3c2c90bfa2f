package coordinator

import (
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
)

// A worker whose process is started again need not be waited for; one of another name
// is let be.
func TestRegisterAgain(t *testing.T) {
	m := NewMachine(Limits{})
	m.Step(1, Register{Name: "a", Slots: 1})
	m.Step(2, Register{Name: "b", Slots: 1, Previous: "w1"}) // w1 is not b's
	m.Step(3, Register{Name: "a", Slots: 1, Previous: "w1"})
	m.Step(4, Register{Name: "c", Slots: 1, Previous: "w99"})
	states := map[string]taxonv1.MemberState{}
	for _, w := range m.Workers() {
		states[w.Worker] = w.State
	}
	up := taxonv1.MemberState_MEMBER_STATE_UP
	if len(states) != 4 || states["w1"] != taxonv1.MemberState_MEMBER_STATE_LOST || states["w2"] != up || states["w3"] != up || states["w4"] != up {
		t.Errorf("workers %v", states)
	}
}
