package jobs

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"taxon/coordinator/method/methodtest"
	taxonv1 "taxon/proto/taxon/v1"
)

// Documents leave out what is not known: a gap that nothing bounds, a guess that is none.
func TestDocuments(t *testing.T) {
	gap := &taxonv1.Certificate{Gap: 0.25}
	for _, c := range []struct {
		name        string
		state       taxonv1.JobState
		certificate *taxonv1.Certificate
		eta         float64
		gap, left   bool
	}{
		{"before the first certificate", taxonv1.JobState_JOB_STATE_RUNNING, nil, 0, false, false},
		{"under way", taxonv1.JobState_JOB_STATE_RUNNING, gap, 12, true, true},
		{"without a bound", taxonv1.JobState_JOB_STATE_RUNNING, &taxonv1.Certificate{PrimalOnly: true, Gap: 1}, math.Inf(1),
			false, false},
		{"over", taxonv1.JobState_JOB_STATE_DONE, gap, 0, true, true},
	} {
		d := StatusOf(&taxonv1.JobStatus{State: c.state, Certificate: c.certificate, EtaSeconds: c.eta})
		if (d.Gap != nil) != c.gap || (d.ETASeconds != nil) != c.left || c.left && *d.ETASeconds != c.eta {
			t.Errorf("%s: gap %v, ETA %v", c.name, d.Gap, d.ETASeconds)
		}
		l := LineOf(&taxonv1.JobInfo{State: c.state, Certificate: c.certificate, EtaSeconds: c.eta})
		if (l.Gap != nil) != c.gap || (l.ETASeconds != nil) != (c.left && c.eta > 0) {
			t.Errorf("%s, in a list: gap %v, ETA %v", c.name, l.Gap, l.ETASeconds)
		}
	}
}

// A job that can do nothing waits, in status and lists, and no time is told for it.
func TestWaiting(t *testing.T) {
	running := taxonv1.JobState_JOB_STATE_RUNNING
	st := &taxonv1.JobStatus{State: running, EtaSeconds: 20, EtaLowSeconds: 15, EtaHighSeconds: 30}
	if d := StatusOf(st); d.State != "running" || *d.ETASeconds != 20 || *d.ETALow != 15 || *d.ETAHigh != 30 ||
		!strings.HasSuffix(StatusLine(st), "ETA 15 to 30 s") {
		t.Errorf("%+v, %s", d, StatusLine(st))
	}
	st = &taxonv1.JobStatus{State: running, WaitsFor: "a worker: none is up", IdleSeconds: 7}
	if d := StatusOf(st); d.State != "waiting" || d.ETASeconds != nil || d.ETALow != nil || d.IdleSeconds != 7 ||
		strings.Contains(StatusLine(st), "ETA") {
		t.Errorf("%+v, %s", d, StatusLine(st))
	}
	if l := LineOf(&taxonv1.JobInfo{State: running, Waits: true}); l.State != "waiting" || l.ETASeconds != nil {
		t.Errorf("%+v", l)
	}
}

func TestKept(t *testing.T) {
	until := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC).UnixMilli()
	for _, c := range []struct {
		kept                      *taxonv1.Kept
		text, state, values, goes string
		after                     uint32
	}{
		{nil, "kept", "done", "kept", "", 0},
		{&taxonv1.Kept{UntilUnixMs: until, Jobs: 100}, "until 2026-11-23", "done", "kept", "2026-11-23T12:00:00Z", 100},
		{&taxonv1.Kept{UntilUnixMs: until, Jobs: 1}, "until 2026-11-23, or 1 more job", "done", "kept",
			"2026-11-23T12:00:00Z", 1},
		{&taxonv1.Kept{Dropped: true}, "dropped", "done", "dropped", "", 0},
		{&taxonv1.Kept{Dropped: true, Discarded: true}, "discarded", "discarded", "discarded", "", 0},
	} {
		l := LineOf(&taxonv1.JobInfo{State: taxonv1.JobState_JOB_STATE_DONE, Kept: c.kept})
		if KeptText(c.kept) != c.text || l.State != c.state || l.Values != c.values || l.Until != c.goes ||
			l.After != c.after {
			t.Errorf("%v: %q, %+v", c.kept, KeptText(c.kept), l)
		}
	}
}

// The report of a job tells the kind of its certificate; that of a coordinator of before, none.
func TestReportTellsItsCertificate(t *testing.T) {
	for _, c := range []struct {
		certificate *taxonv1.Certificate
		kind        string
		gap         bool
	}{
		{&taxonv1.Certificate{Objective: 2, Gap: 0.25, Kind: "gap"}, "gap", true},
		{&taxonv1.Certificate{Objective: 2, PrimalOnly: true, Kind: "stationarity"}, "stationarity", false},
		{&taxonv1.Certificate{Objective: 2, Gap: 0.25}, "", true},
	} {
		r := ReportOf(&taxonv1.JobStatus{State: taxonv1.JobState_JOB_STATE_DONE, Certificate: c.certificate,
			Options: &taxonv1.Options{}})
		b, err := json.Marshal(r)
		if err != nil || r.Certificate != c.kind || r.Objective != 2 || (r.Gap != nil) != c.gap || strings.Contains(string(b),
			`"certificate"`) != (c.kind != "") {
			t.Errorf("%v: %s, %v", c.certificate, b, err)
		}
	}
}

// A job's options are shown by their names, numbers as numbers; those of zero are left out.
func TestOptionsShown(t *testing.T) {
	st := &taxonv1.JobStatus{Options: methodtest.Options("rr-svm", "C", 0.5, "gap", 1e-5, "bias", 0, "seed", 3,
		"max_sweeps", 40, "edge_weights", "size", "positive_weight", 2)}
	text := "rr-svm, gap 1e-05, max-sweeps 40, c 0.5, edge-weights size, positive-weight 2, seed 3"
	if got := MethodText(st); got != text {
		t.Errorf("%q", got)
	}
	b, err := json.Marshal(StatusOf(st).Options)
	want := `{"c":0.5,"edge_weights":"size","gap":0.00001,"max_sweeps":40,"method":"rr-svm",` +
		`"positive_weight":"2","seed":3}`
	if string(b) != want || err != nil {
		t.Errorf("%s, %v", b, err)
	}
}
