package main

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"taxon/internal/cluster/jobs"
	"taxon/internal/hadoop/mapreduce/driver"
	"taxon/internal/model"
	taxonv1 "taxon/proto/taxon/v1"
)

// TestDriverEnded: who asks a MapReduce driver that has ended, or was killed, is told so at
// once, and how the job ended.
func TestDriverEnded(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	// drive is a driver that answers, as far as anybody does, until kill is called or its End.
	type driven struct {
		*driver.Driver
		at   driver.Info
		kill func()
	}
	silent := func(d driven) driven {
		for conn, err := net.Dial("tcp", d.at.Coordinator); err == nil; conn, err = net.Dial("tcp", d.at.Coordinator) {
			conn.Close()
		}
		return d
	}
	drive := func() (d driven) {
		t.Helper()
		dir := t.TempDir()
		d.Driver = &driver.Driver{Dir: dir, Job: "wf", Out: "hdfs:///models/wf"}
		err := d.Listen(func(s grpc.ServiceRegistrar) { d.kill = s.(*grpc.Server).Stop })
		d.Accepted()
		d.Saw(&taxonv1.JobStatus{Job: "wf", State: taxonv1.JobState_JOB_STATE_DONE, Sweep: 7})
		data, readErr := os.ReadFile(filepath.Join(dir, "driver.json"))
		if err := errors.Join(err, readErr, json.Unmarshal(data, &d.at)); err != nil {
			t.Fatal(err)
		}
		return d
	}
	ask := func(verb string, d driven) (int, string, string) {
		t.Helper()
		return runTaxon(t, "", verb+" --coordinator "+silent(d).at.Coordinator+" --patience 5m", nil)
	}
	for name, c := range map[string]struct {
		err   error
		state string
		lines []string
	}{
		"done":   {nil, "done", []string{"done; its driver has ended", "hdfs:///models/wf", "1f27ba4b"}},
		"failed": {errors.New("no room"), "failed", []string{"failed; its driver has ended", "no room", "supervisor.log"}},
		"cancelled": {jobs.Interruptedf("interrupted after sweep 7"), "cancelled", []string{"cancelled; its driver has ended",
			"the same `taxon submit` continues"}},
	} {
		d := drive()
		var report *model.Report
		if c.err == nil {
			report = &model.Report{StoppedBy: "gap", WeightsSHA256: "1f27ba4b"}
		}
		d.End(driver.EndedDocument(report, c.err))
		code, out, stderr := ask("status wf", d)
		for _, want := range c.lines {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("%s: status %d, want %q in %q%q", name, code, want, out, stderr)
			}
		}
		var doc jobs.Status
		if code, out, _ := ask("status wf --json", d); code != 0 || json.Unmarshal([]byte(out), &doc) != nil ||
			doc.State != c.state || doc.Sweep != 7 {
			t.Errorf("%s: status %d: %s", name, code, out)
		}
		if code, _, stderr := ask("cancel wf", d); code != exitUsage || strings.Count(stderr, "\n") != 1 ||
			!strings.Contains(stderr, "the driver of wf has ended") {
			t.Errorf("%s: cancel: status %d: %q", name, code, stderr)
		}
	}
	d := drive()
	d.End(driver.EndedDocument(nil, nil))
	other, err := net.Listen("tcp", silent(d).at.Coordinator)
	if err != nil {
		t.Fatal(err)
	}
	if err := driverGone(t.Context(), "status", d.at.Coordinator); err != nil {
		t.Errorf("another process at the port: %v", err)
	}
	other.Close()
	d = drive()
	d.kill()
	if code, out, stderr := ask("status wf", d); code != exitFailed || out != "" || strings.Count(stderr, "\n") != 1 ||
		!strings.Contains(stderr, "has been killed: the same `taxon submit` continues") {
		t.Errorf("killed: status %d: %q%q", code, out, stderr)
	}
}

// TestMapReduceFlagsRefused: what means nothing to the engine is refused, not ignored.
func TestMapReduceFlagsRefused(t *testing.T) {
	vars := map[string]string{"DATA": writeText(t, "t.svm", graphData), "OUT": filepath.Join(t.TempDir(), "m")}
	for _, flag := range []string{"--runner processes", "--state x", "--mapred mapred", "--queue q",
		"--hadoop-property a=b", "--task-memory 1GiB", "--task-cores 2", "--map-tasks 2", "--reduce-tasks 2"} {
		for _, line := range []string{"train --out $OUT ", "submit --coordinator 127.0.0.1:1 "} {
			code, _, stderr := runTaxon(t, "", line+"--data $DATA "+flag, vars)
			if want := strings.Fields(flag)[0] + ": is for --engine mapreduce"; code != exitUsage || !strings.Contains(stderr,
				want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s%s: status %d: %q", line, flag, code, stderr)
			}
		}
	}
	code, _, stderr := runTaxon(t, "", "train --engine mapreduce --runner processes --store badger "+
		"--data $DATA --out $OUT", vars)
	if code != exitUsage || !strings.Contains(stderr, "--store badger: leave it out") {
		t.Errorf("status %d: %q", code, stderr)
	}
}
