package plan

import (
	"testing"

	"taxon/coordinator/method"
)

// TestTimeUpBetweenSteps checks how a job continues when its time is up, depending on the current
// step: known results are not recomputed, nothing is solved any more, and the current sweep is the
// last.
func TestTimeUpBetweenSteps(t *testing.T) {
	for _, test := range []struct {
		name        string
		stage       stage
		price       bool
		cuts, leave bool
		then        stage
	}{
		{"solve", stageSolve, false, false, true, stagePrice},
		{"priced solve", stageSolve, true, true, false, stageReduce},
		{"reduce", stageReduce, false, false, true, stagePrice},
		{"priced reduce", stageReduce, true, false, false, stageEmit},
		{"guard", stageSafeguard, true, false, true, stageEmit},
		{"price", stagePrice, true, false, false, stageCertify},
		{"certify", stageCertify, true, false, false, stageEmit},
		{"emit", stageEmit, true, false, false, stageEnd},
	} {
		o := testDriver(nil)
		o.openSweep(21)
		o.Stage, o.Price, o.Beta = test.stage, test.price, 0.5
		if o.cuts() != test.cuts || o.leaves() != test.leave {
			t.Errorf("%s: tasks that wait are cut %v, left out %v", test.name, o.cuts(), o.leaves())
		}
		o.TimeUp(true)
		out := commitOK(t, o, figures{Primal: 3, Dual: 1})
		if o.Stage != test.then || o.Sweep != 21 || test.stage == stageReduce && takesX(out) ||
			test.stage == stageSafeguard && takesX(out) || o.Beta != 0.5 {
			t.Errorf("%s: goes on with stage %d of sweep %d, momentum %g, new internals %v", test.name, o.Stage, o.Sweep, o.Beta,
				takesX(out))
		}
		for o.Stage < stageEmit {
			if s, _ := o.Next(); s.Tasks[0].Op == OpMap && mapOf(t, o).Epochs > 0 {
				t.Fatalf("%s: solves again: %+v", test.name, s)
			}
			commitOK(t, o, figures{Primal: 3, Dual: 1})
		}
		if test.then != stageEnd && o.StoppedBy != method.StoppedByMaxTime {
			t.Errorf("%s: stopped by %q", test.name, o.StoppedBy)
		}
		if o.Sweep != 21 {
			t.Errorf("%s: sweep %d was begun", test.name, o.Sweep)
		}
	}
}

// TestTimeUpBeforeAStep checks that a job that begins or resumes after its time is up runs a full
// pass.
func TestTimeUpBeforeAStep(t *testing.T) {
	o := testDriver(nil)
	o.TimeUp(true)
	o.Next()
	if s := mapOf(t, o); o.Stage != stagePrice || s.Epochs != 0 || !s.Price {
		t.Errorf("stage %d: %+v", o.Stage, s)
	}
	if o.openSweep(7); o.Stage != stagePrice || !o.Price {
		t.Errorf("a sweep opens with stage %d", o.Stage)
	}
}
