package blockwise

import (
	"math"
	"reflect"
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	taxonv1 "taxon/proto/taxon/v1"
)

func driverOf(t *testing.T, o *taxonv1.Options, s method.State) *driver {
	t.Helper()
	d, err := New(o, Setup{Value: "dual"}, s)
	if err != nil {
		t.Fatal(err)
	}
	return d.(*driver)
}

// commit commits the current step with P = 10 and D below it by a share.
func commit(t *testing.T, d *driver, share float64) method.Outcome {
	t.Helper()
	out, err := d.Commit([]method.Sums{{SumPrimal: 10, SumDual: 10 * (1 - share)}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSteps checks the order of sweeps, requested evaluations and the final weights. A driver
// restored from a checkpoint must behave alike.
func TestSteps(t *testing.T) {
	o := methodtest.Options("msvm", "gap", 0.01, "eval_every", 2)
	d := driverOf(t, o, nil)
	s, ok := d.Next()
	if !ok || s.Emit || len(s.Tasks) != 1 || s.Tasks[0].Count != 1 || s.Tasks[0].Op != OpSolve ||
		s.Tasks[0].Reads[0].Value != "dual" || d.Progress().Certificate != nil {
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

// TestStops checks that a cap ends a job, and that a job ends if neither P nor D moves.
func TestStops(t *testing.T) {
	d := driverOf(t, methodtest.Options("msvm", "gap", 0.01, "max_sweeps", 2), nil)
	commit(t, d, 0.2)
	commit(t, d, 0.1)
	if d.StoppedBy != "max_sweeps" {
		t.Errorf("stopped by %q", d.StoppedBy)
	}
	d = driverOf(t, methodtest.Options("msvm", "gap", 0.01, "max_sweeps", 3), d.State())
	if d.Resume(false); d.StoppedBy != "" || d.Sweep != 3 || d.Stage != stageSolve {
		t.Errorf("with another cap: %+v", d.state)
	}
	d = driverOf(t, methodtest.Options("msvm", "gap", 0.01), nil)
	for range 1 + stationarySweeps {
		commit(t, d, 0.1)
	}
	if d.StoppedBy != "stationary" {
		t.Errorf("%+v", d.state)
	}
	d = driverOf(t, methodtest.Options("msvm", "gap", 0.01), nil)
	if _, err := d.Commit([]method.Sums{{SumPrimal: math.Inf(1), SumDual: 0}}); err == nil {
		t.Error("an infinite objective passes")
	}
}

// TestTimeUp checks that the first sweep is shortened, and that a later sweep that no worker has
// begun is left out.
func TestTimeUp(t *testing.T) {
	o := methodtest.Options("msvm", "gap", 0.01)
	d := driverOf(t, o, nil)
	if late := d.TimeUp(true); late != method.RunReduced {
		t.Errorf("the first sweep: %v", late)
	}
	commit(t, d, 0.2)
	if d.StoppedBy != "max_time" || d.Sweep != 1 || d.Stage != stageEmit || d.TimeUp(true) != method.RunFull {
		t.Errorf("%+v", d.state)
	}
	d = driverOf(t, o, nil)
	commit(t, d, 0.2)
	if late := d.TimeUp(true); late != method.Skip {
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

// TestSeveralProblems checks that solved problems are left alone, that the certificate has the sums
// over all problems, and that the report lists each problem. A driver restored from a checkpoint
// must behave alike.
func TestSeveralProblems(t *testing.T) {
	o := methodtest.Options("msvm", "gap", 0.01)
	setup := Setup{Value: "dual", Nodes: []string{"a", "b", "c", "d"}, Report: map[string]any{"x": 1}}
	of := func(s method.State) *driver {
		d, err := New(o, setup, s)
		if err != nil {
			t.Fatal(err)
		}
		return d.(*driver)
	}
	runs := func(d *driver) (out [][2]uint32) {
		s, _ := d.Next()
		for _, tasks := range s.Tasks {
			out = append(out, [2]uint32{tasks.First, tasks.Count})
		}
		return out
	}
	d := of(nil)
	if got := runs(d); !reflect.DeepEqual(got, [][2]uint32{{0, 4}}) {
		t.Fatal(got)
	}
	if _, err := d.Commit([]method.Sums{{10, 9}, {20, 20}, {30, 27}, {40, 36}}); err != nil {
		t.Fatal(err)
	}
	if p := d.Progress(); p.Certificate.Objective != 100 || p.Certificate.Dual != 92 ||
		string(p.Report) != `{"per_node":[{"node":"a","objective":10,"dual":9},{"node":"b","objective":20,"dual":20},{"node":"c","objective":30,"dual":27},{"node":"d","objective":40,"dual":36}],"x":1}` {
		t.Errorf("%+v, %s", p, p.Report)
	}
	if got := runs(d); !reflect.DeepEqual(got, [][2]uint32{{0, 1}, {2, 2}}) {
		t.Fatal(got)
	}
	if d = of(d.State()); !reflect.DeepEqual(runs(d), [][2]uint32{{0, 1}, {2, 2}}) {
		t.Error("from a checkpoint:", runs(d))
	}
	if _, err := d.Commit([]method.Sums{{10, 10}, nil, {40, 40}}); err != nil {
		t.Fatal(err)
	}
	if c := d.Progress().Certificate; c.Dual != 97 || d.StoppedBy != "" || !reflect.DeepEqual(runs(d),
		[][2]uint32{{2, 1}}) {
		t.Errorf("%+v, %v", c, runs(d))
	}
	if _, err := d.Commit([]method.Sums{{30, 30}}); err != nil || d.StoppedBy != "gap" {
		t.Errorf("%+v, %v", d.state, err)
	}
	if s, _ := d.Next(); !s.Emit || s.Tasks[0].Count != 4 {
		t.Errorf("%+v", s)
	}
	if _, err := New(o, Setup{Value: "dual", Nodes: []string{"a"}}, d.State()); err == nil {
		t.Error("a checkpoint of other problems passes")
	}
}
