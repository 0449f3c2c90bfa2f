package main

import (
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"

	"taxon/internal/model"
	taxonv1 "taxon/proto/taxon/v1"
)

// TestDriverEnded: who asks a MapReduce driver that has ended, or was killed, is told so at
// once, and how the job ended.
func TestDriverEnded(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	// drove is the address of a driver that nobody answers at.
	drove := func() *driving {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		d := &driving{dir: t.TempDir(), id: "wf", out: "hdfs:///models/wf", addr: l.Addr().String()}
		d.accepted()
		d.saw(&taxonv1.JobStatus{Job: "wf", State: taxonv1.JobState_JOB_STATE_DONE, Sweep: 7})
		return d
	}
	ask := func(verb string, d *driving) (int, string, string) {
		t.Helper()
		return runTaxon(t, "", verb+" --coordinator "+d.addr+" --patience 5m", nil)
	}
	for name, c := range map[string]struct {
		err   error
		state string
		lines []string
	}{
		"done":      {nil, "done", []string{"done; its driver has ended", "hdfs:///models/wf", "1f27ba4b"}},
		"failed":    {errors.New("no room"), "failed", []string{"failed; its driver has ended", "no room", "supervisor.log"}},
		"cancelled": {interruptedf("interrupted after sweep 7"), "cancelled", []string{"cancelled; its driver has ended", "the same `taxon submit` goes on"}},
	} {
		d := drove()
		var report *model.Report
		if c.err == nil {
			report = &model.Report{StoppedBy: "gap", WeightsSHA256: "1f27ba4b"}
		}
		d.end(report, c.err)
		code, out, stderr := ask("status wf", d)
		for _, want := range c.lines {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("%s: status %d, want %q in %q%q", name, code, want, out, stderr)
			}
		}
		var doc jobDocument
		if code, out, _ := ask("status wf --json", d); code != 0 || json.Unmarshal([]byte(out), &doc) != nil || doc.State != c.state || doc.Sweep != 7 {
			t.Errorf("%s: status %d: %s", name, code, out)
		}
		if code, _, stderr := ask("cancel wf", d); code != exitUsage || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "the driver of wf has ended") {
			t.Errorf("%s: cancel: status %d: %q", name, code, stderr)
		}
	}
	d := drove()
	d.end(nil, nil)
	other, err := net.Listen("tcp", d.addr)
	if err != nil {
		t.Fatal(err)
	}
	if err := driverGone(t.Context(), "status", d.addr); err != nil {
		t.Errorf("another process at the port: %v", err)
	}
	other.Close()
	d = drove()
	if code, out, stderr := ask("status wf", d); code != exitFailed || out != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "has been killed: the same `taxon submit` goes on") {
		t.Errorf("killed: status %d: %q%q", code, out, stderr)
	}
}
