package coordinator

import (
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
)

// Where a job goes when its time is up, by the step under way: what is known is not
// computed again, nothing is solved any more, and the sweep under way is the last.
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
		{"guard", stageGuard, true, false, true, stageEmit},
		{"price", stagePrice, true, false, false, stageCertify},
		{"certify", stageCertify, true, false, false, stageEmit},
		{"emit", stageEmit, true, false, false, stageEnd},
	} {
		o := testOuter(nil)
		o.openSweep(21)
		o.Stage, o.Price, o.Beta = test.stage, test.price, 0.5
		if o.cuts() != test.cuts || o.leaves() != test.leave {
			t.Errorf("%s: tasks that wait are cut %v, left out %v", test.name, o.cuts(), o.leaves())
		}
		o.Force, o.Short = true, true
		out := commitOK(t, o, Sums{Primal: 3, Dual: 1})
		if o.Stage != test.then || o.Sweep != 21 || out.Take || o.Beta != 0.5 {
			t.Errorf("%s: goes on with stage %d of sweep %d, momentum %g, new internals %v", test.name, o.Stage, o.Sweep, o.Beta, out.Take)
		}
		for o.Stage < stageEmit {
			if s := o.step(); s.Map == taxonv1.TaskKind_TASK_KIND_MAP && s.Epochs > 0 {
				t.Fatalf("%s: solves again: %+v", test.name, s)
			}
			commitOK(t, o, Sums{Primal: 3, Dual: 1})
		}
		if test.then != stageEnd && o.StoppedBy != stoppedByTime {
			t.Errorf("%s: stopped by %q", test.name, o.StoppedBy)
		}
		if o.Sweep != 21 {
			t.Errorf("%s: sweep %d was begun", test.name, o.Sweep)
		}
	}
}

// A job that begins again, from a checkpoint or its beginning, behind its time prices.
func TestTimeUpBeforeAStep(t *testing.T) {
	o := testOuter(nil)
	o.Short, o.Force = true, true
	o.shorten()
	if s := o.step(); o.Stage != stagePrice || s.Epochs != 0 || !s.Price {
		t.Errorf("stage %d: %+v", o.Stage, s)
	}
	if o.openSweep(7); o.Stage != stagePrice || !o.Price {
		t.Errorf("a sweep opens with stage %d", o.Stage)
	}
}

// A task that only priced is made again as such.
func TestTimeUpIsRemade(t *testing.T) {
	j, err := newJob("j", mustPrepare(t))
	if err != nil {
		t.Fatal(err)
	}
	j.StepNo = 1
	s := newStep(j, func(string) bool { return true }, 1)
	if len(s.tasks) < 2 || s.maps == 0 {
		t.Fatalf("%d tasks", len(s.tasks))
	}
	attempts := make([]uint32, len(s.tasks))
	for n := range s.tasks {
		attempts[n], s.tasks[n].attempt = 1, 1
	}
	s.tasks[1].cut = true
	before := sources{j.Dual, j.X, j.XPrev}
	j.takeValues(s, outcome{}) // for nothing is kept of a step that nobody refers to
	for b := range j.Dual {
		j.Dual[b] = taxonv1.Place{Step: 1, Task: uint32(b), Attempt: 1}
	}
	j.keepPast(s, before, attempts)
	again := j.past(1).bringBack()
	for n := range s.maps {
		was, now := s.lease(j, n).GetMap(), again.lease(j, n).GetMap()
		if was.GetEpochs() != now.GetEpochs() || was.GetMaxEpochs() != now.GetMaxEpochs() || (now.GetEpochs() == 0) != (n == 1) {
			t.Errorf("task %d: %d to %d epochs, first %d to %d", n, now.GetEpochs(), now.GetMaxEpochs(), was.GetEpochs(), was.GetMaxEpochs())
		}
	}
}

func mustPrepare(t *testing.T) *prepared {
	t.Helper()
	p, err := prepare(wordnetLike(200, 50))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
