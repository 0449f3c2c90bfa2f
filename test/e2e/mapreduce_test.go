package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mapReduce holds the flags of a short training by processes of this machine.
var mapReduce = []string{"--engine", "mapreduce", "--runner", "processes"}

// few keeps a training short.
var few = []string{"--gap", "1e-6", "--max-sweeps", "4"}

// TestMapReduce checks that a training by MapReduce, with an evaluation, from a warm start with
// instance weights, or interrupted, gives the bytes of one in a process, and leaves only the model.
func TestMapReduce(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	more := append([]string{"--test", data, "--eval-every", "2"}, few...)
	plain := trained(t, taxon(t, training(at("plain"), more...)...))
	if r := trained(t, taxon(t, training(at("jobs"),
		append(more, mapReduce...)...)...)); r.WeightsSHA256 != plain.WeightsSHA256 || r.Gap != plain.Gap {
		t.Errorf("%+v, embedded %+v", r, plain)
	}
	warm := append([]string{"--warm-start", at("plain"), "--C", "2", "--instance-weights", weights}, few...)
	want := trained(t, taxon(t, training(at("warm"), warm...)...))
	if r := trained(t, taxon(t, training(at("warm-jobs"),
		append(warm, mapReduce...)...)...)); r.WeightsSHA256 != want.WeightsSHA256 {
		t.Errorf("from a warm start %+v, embedded %+v", r, want)
	}
	refused(t, taxon(t, append(training(at("x"), mapReduce...), "--queue", "q")...), 2, "only YARN has queues")
	refused(t, taxon(t, append(training(at("x"), mapReduce...), "--hadoop-property", "q")...), 2, "give NAME=VALUE")
	if names, err := os.ReadDir(dir); err != nil || len(names) != 4 {
		t.Errorf("left behind: %v (%v)", names, err)
	}
}

// TestMapReduceInterrupted checks that Ctrl-C and kill -9 keep the last complete sweep.
func TestMapReduceInterrupted(t *testing.T) {
	out := filepath.Join(t.TempDir(), "model")
	few := []string{"--gap", "1e-7", "--max-sweeps", "10"}
	args := training(out, append(few, mapReduce...)...)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		p := start(t, args...)
		before, _ := os.ReadFile(filepath.Join(out+".train", "mapreduce", "state"))
		for range 2000 {
			if now, err := os.ReadFile(filepath.Join(out+".train", "mapreduce", "state")); err == nil &&
				string(now) != string(before) {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		_ = p.cmd.Process.Signal(s)
		r := p.wait()
		if s == syscall.SIGINT {
			refused(t, r, 130, "interrupted after sweep", "to continue from there: taxon train")
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatalf("it was done before it could be interrupted: %s", r.stderr)
		}
	}
	got := trained(t, taxon(t, args...))
	want := trained(t, taxon(t, training(filepath.Join(t.TempDir(), "model"), few...)...))
	if got.WeightsSHA256 != want.WeightsSHA256 || got.Sweeps != want.Sweeps {
		t.Errorf("%+v, embedded %+v", got, want)
	}
	if _, err := os.Stat(out + ".train"); err == nil {
		t.Error("the working folder was left behind")
	}
}

// TestSubmitMapReduce checks that a driver continues in the background, answers, and writes the
// model.
func TestSubmitMapReduce(t *testing.T) {
	out := filepath.Join(t.TempDir(), "model")
	text, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(t.TempDir(), "odd.svm") // the same data with an empty line
	if err := os.WriteFile(odd, append(text, '\n'), 0o666); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"submit", "--data", odd, "--hierarchy", tree, "--out", out, "--id", "mine", "--json",
		"--quiet"}, append(few, mapReduce...)...)
	r := taxon(t, args...)
	if !strings.Contains(r.stderr, "taxon: warning: 1 empty line skipped\n") {
		t.Errorf("the driver's warnings are lost: %q", r.stderr)
	}
	var d struct {
		Job, Coordinator string
		PID              int
	}
	if err := json.Unmarshal([]byte(r.stdout), &d); r.code != 0 || err != nil || d.Job != "mine" {
		t.Fatalf("exit status %d, %q: %s (%v)", r.code, r.stdout, r.stderr, err)
	}
	defer syscall.Kill(d.PID, syscall.SIGKILL)
	status := taxon(t, "status", d.Job, "--coordinator", d.Coordinator, "--patience", "1s", "--json")
	if status.code == 0 && !strings.Contains(status.stdout, `"job": "mine"`) {
		t.Errorf("status: %s", status.stdout)
	}
	for range 600 {
		if _, err := os.Stat(filepath.Join(out, "manifest.json")); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	var info struct{ Report report }
	if err := json.Unmarshal([]byte(taxon(t, "info", out, "--json").stdout), &info); err != nil {
		t.Fatal(err)
	}
	want := trained(t, taxon(t, training(filepath.Join(t.TempDir(), "model"), few...)...))
	if info.Report.WeightsSHA256 != want.WeightsSHA256 {
		t.Errorf("%+v, embedded %+v", info.Report, want)
	}
	for _, k := range [][]string{{"--replicas", "2"}, {"--in-place"}, {"--coordinator", "127.0.0.1:1"}} {
		refused(t, taxon(t, append(args, k...)...), 2, "leave it out with --engine mapreduce")
	}
	bad := append([]string{"submit", "--data", data + ".none", "--out", out + "2"}, mapReduce...)
	refused(t, taxon(t, append(bad, "--quiet")...), 2, data+".none: no such file")
	if left, _ := filepath.Glob(out + "2*"); left != nil {
		t.Errorf("left behind: %v", left)
	}
}
