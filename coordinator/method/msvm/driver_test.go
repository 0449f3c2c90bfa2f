package msvm

import (
	"math"
	"reflect"
	"testing"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

func driverOf(t *testing.T, o *taxonv1.Options, s method.State) *driver {
	t.Helper()
	d, err := Method{}.Driver(&taxonv1.JobSpec{Options: o}, nil, s)
	if err != nil {
		t.Fatal(err)
	}
	return d.(*driver)
}

// commit ends the step under way; a sweep's P is 10 and its D below by a share.
func commit(t *testing.T, d *driver, share float64) method.Outcome {
	t.Helper()
	out, err := d.Commit([]method.Sums{{SumPrimal: 10, SumDual: 10 * (1 - share), SumVisits: 0}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSteps: sweeps, evaluations where they are asked for, and the weights; a driver from a
// checkpoint goes on alike.
func TestSteps(t *testing.T) {
	o := &taxonv1.Options{Gap: 0.01, EvalEvery: 2}
	d := driverOf(t, o, nil)
	s, ok := d.Next()
	if !ok || s.Emit || len(s.Tasks) != 1 || s.Tasks[0].Count != 1 || s.Tasks[0].Op != OpSolve || s.Tasks[0].Reads[0].Value != Dual || d.Progress().Certificate != nil {
		t.Fatalf("%+v, %+v", s, d.Progress())
	}
	if out := commit(t, d, 0.2); !out.SweepDone || !out.Certified || d.Sweep != 2 {
		t.Errorf("%+v", out)
	}
	if out := commit(t, d, 0.1); out.SweepDone {
		t.Errorf("the second sweep is over before its weights are shown: %+v", out)
	}
	d = driverOf(t, o, d.State())
	if s, _ := d.Next(); !s.Show || s.Emit {
		t.Errorf("%+v", s)
	}
	if out := commit(t, d, 0); !out.SweepDone || d.Sweep != 3 {
		t.Errorf("%+v", out)
	}
	commit(t, d, 0.01)
	if p := d.Progress(); p.StoppedBy != "gap" || p.Certificate.Gap > 0.01 || p.Sweep != 3 {
		t.Errorf("%+v", p)
	}
	again := driverOf(t, o, d.State())
	if !reflect.DeepEqual(again, d) {
		t.Errorf("from a checkpoint: %+v, want %+v", again, d)
	}
	if s, _ := again.Next(); !s.Emit {
		t.Errorf("%+v", s)
	}
	commit(t, again, 0)
	if s, ok := again.Next(); ok {
		t.Errorf("behind the end: %+v", s)
	}
}

// TestStops: by a cap, and where neither figure moves.
func TestStops(t *testing.T) {
	d := driverOf(t, &taxonv1.Options{Gap: 0.01, MaxSweeps: 2}, nil)
	commit(t, d, 0.2)
	commit(t, d, 0.1)
	if d.StoppedBy != "max_sweeps" {
		t.Errorf("stopped by %q", d.StoppedBy)
	}
	d = driverOf(t, &taxonv1.Options{Gap: 0.01, MaxSweeps: 3}, d.State())
	if d.Resume(false); d.StoppedBy != "" || d.Sweep != 3 || d.Stage != stageSolve {
		t.Errorf("with another cap: %+v", d.state)
	}
	d = driverOf(t, &taxonv1.Options{Gap: 0.01}, nil)
	for range 1 + restSweeps {
		commit(t, d, 0.1)
	}
	if d.StoppedBy != "stationary" {
		t.Errorf("%+v", d.state)
	}
	d = driverOf(t, &taxonv1.Options{Gap: 0.01}, nil)
	if _, err := d.Commit([]method.Sums{{SumPrimal: math.Inf(1), SumDual: 0}}); err == nil {
		t.Error("an infinite objective passes")
	}
}

// TestTimeUp: the first sweep is made short, a later one that nobody has is left out.
func TestTimeUp(t *testing.T) {
	o := &taxonv1.Options{Gap: 0.01}
	d := driverOf(t, o, nil)
	if late := d.TimeUp(true); late != method.LateShort {
		t.Errorf("the first sweep: %v", late)
	}
	commit(t, d, 0.2)
	if d.StoppedBy != "max_time" || d.Sweep != 1 || d.Stage != stageEmit || d.TimeUp(true) != method.LateRun {
		t.Errorf("%+v", d.state)
	}
	d = driverOf(t, o, nil)
	commit(t, d, 0.2)
	if late := d.TimeUp(true); late != method.LateLeave {
		t.Errorf("the second sweep: %v", late)
	}
	left := driverOf(t, o, d.State())
	if _, err := left.Commit([]method.Sums{nil}); err != nil {
		t.Fatal(err)
	}
	d.Next()
	for _, d := range []*driver{d, left} {
		if d.StoppedBy != "max_time" || d.Sweep != 1 || d.Stage != stageEmit || d.Last.Gap != 0.2 && d.Last.Gap < 0.19 {
			t.Errorf("%+v", d.state)
		}
	}
}
