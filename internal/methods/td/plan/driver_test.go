package plan

import (
	"reflect"
	"strings"
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	taxonv1 "taxon/proto/taxon/v1"
)

// twoNodes returns a plan of three blocks: two of node 0 and one of node 5.
func twoNodes() *method.Plan {
	return &method.Plan{Detail: method.Encode(&Plan{Node: []int32{0, 5}, Name: []string{"a", "b"}, Problem: []uint32{0, 0,
		1},
		Begin: []uint32{0, 2, 3, 5}, Children: []uint32{1, 2, 3, 6, 7}})}
}

func driverOf(t *testing.T, o *taxonv1.Options, s method.State) *driver {
	t.Helper()
	d, err := Method.Driver(&taxonv1.JobSpec{Options: o}, twoNodes(), s)
	if err != nil {
		t.Fatal(err)
	}
	return d.(*driver)
}

// solved returns the figures of the three blocks after `solves` solves: P = 10, 20, 30, and D below
// P by a share.
func solved(share float64, solves float64) []method.Sums {
	var out []method.Sums
	for p := 10.0; p <= 30; p += 10 {
		out = append(out, method.Sums{SumPrimal: p, SumDual: p * (1 - share), SumSolves: solves, SumVisits: 0})
	}
	return out
}

func commit(t *testing.T, d *driver, sums []method.Sums) method.Outcome {
	t.Helper()
	out, err := d.Commit(sums)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSteps checks that one step solves and one emits, that the figures are the sums by node, and
// that a driver restored from a checkpoint behaves alike.
func TestSteps(t *testing.T) {
	o := methodtest.Options("td", "gap", 0.1)
	d := driverOf(t, o, nil)
	s, ok := d.Next()
	if !ok || s.Emit || len(s.Tasks) != 1 || s.Tasks[0].Count != 3 || string(s.Tasks[0].Params) != "{}" {
		t.Fatalf("%+v", s)
	}
	if p := d.Progress(); p.Certificate != nil || p.Report != nil {
		t.Errorf("before the first step: %+v", p)
	}
	if out := commit(t, d, solved(0.05, 2)); !out.SweepDone || !out.Certified {
		t.Errorf("%+v", out)
	}
	p := d.Progress()
	if c := p.Certificate; c.Objective != 60 || c.Dual != 57 || c.Gap < 0.0499 || c.Gap > 0.0501 || p.StoppedBy != "gap" {
		t.Errorf("%+v", p)
	}
	if want := `{"per_node":[{"node":"a","objective":30,"dual":28.5},{"node":"b","objective":30,"dual":28.5}]}`; string(p.Report) != want {
		t.Errorf("report %s, want %s", p.Report, want)
	}
	again := driverOf(t, o, d.State())
	if !reflect.DeepEqual(again, d) {
		t.Errorf("from a checkpoint: %+v, want %+v", again, d)
	}
	if s, ok = again.Next(); !ok || !s.Emit || s.Tasks[0].Reads[0].Value != Weights {
		t.Errorf("%+v", s)
	}
	commit(t, again, nil)
	if s, ok = again.Next(); ok {
		t.Errorf("behind the end: %+v", s)
	}
	_, err := newDriver(&Settings{Gap: 0.1}, &Plan{Node: []int32{0}}, d.State())
	if err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("a checkpoint of another plan: %v", err)
	}
}

// TestTimeUp checks that blocks that no worker has started are solved once, and that all blocks are
// if the time was up before.
func TestTimeUp(t *testing.T) {
	d := driverOf(t, methodtest.Options("td", "gap", 1e-3), nil)
	s, _ := d.Next()
	if late := d.TimeUp(true); late != method.RunReduced || string(s.Tasks[0].Late) != `{"Once":true}` {
		t.Errorf("late tasks: %v, %s", late, s.Tasks[0].Late)
	}
	if now, _ := d.Step(); !reflect.DeepEqual(now, s) {
		t.Error("the step under way has changed")
	}
	if s, _ := driverOf(t, methodtest.Options("td",
		"gap", 1e-3), d.State()).Next(); string(s.Tasks[0].Params) != `{"Once":true}` {
		t.Errorf("a step that begins late: %s", s.Tasks[0].Params)
	}
	commit(t, d, solved(0.05, 1))
	if d.StoppedBy != "max_time" || d.TimeUp(true) != method.RunFull {
		t.Errorf("stopped by %s", d.StoppedBy)
	}
}

// TestResume checks that a finished job is solved again only if its new criteria require more.
func TestResume(t *testing.T) {
	for _, c := range []struct {
		before, now *taxonv1.Options
		share       float64
		reason      string // of the first end
		then        string // empty if the job continues
	}{
		{methodtest.Options("td", "gap", 0.1), methodtest.Options("td", "gap", 0.01), 0.05, "gap", ""},
		{methodtest.Options("td", "gap", 0.1), methodtest.Options("td", "gap", 0.06), 0.05, "gap", "gap"},
		{methodtest.Options("td", "gap", 0.01, "max_sweeps", 2), methodtest.Options("td", "gap", 0.01,
			"max_sweeps", 3), 0.05, "max_sweeps", ""},
		{methodtest.Options("td", "gap", 0.01, "max_sweeps", 2), methodtest.Options("td", "gap", 0.01,
			"max_sweeps", 1), 0.05, "max_sweeps",
			"max_sweeps"},
		{methodtest.Options("td", "gap", 0.01, "max_sweeps", 2), methodtest.Options("td", "gap", 0.1,
			"max_sweeps", 2), 0.05, "max_sweeps", "gap"},
		{methodtest.Options("td", "gap", 0.01), methodtest.Options("td", "gap", 0.02), 0.05, "stationary", "stationary"},
	} {
		first := driverOf(t, c.before, nil)
		first.Next()
		commit(t, first, solved(c.share, 2))
		if first.StoppedBy != c.reason {
			t.Errorf("%+v: stopped by %s", c, first.StoppedBy)
		}
		d := driverOf(t, c.now, first.State())
		d.Resume(true)
		s, _ := d.Next()
		if d.StoppedBy != c.then || s.Emit != (c.then != "") {
			t.Errorf("%+v: %q, emits %v", c, d.StoppedBy, s.Emit)
		}
		if c.then == "" && (s.Sweep != 2 || d.Progress().Certificate != nil) {
			t.Errorf("solved anew as %+v", s)
		}
	}
}
