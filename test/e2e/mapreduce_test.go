package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// mapReduce are the flags of a training by processes of this machine.
var mapReduce = []string{"--engine", "mapreduce"}

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
	conf := at("hadoop.yaml")
	if err := os.WriteFile(conf, []byte("queue: q\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	refused(t, taxon(t, append(training(at("x"), mapReduce...), "--hadoop-conf", conf)...), 2, "only YARN has queues")
	if names, err := os.ReadDir(dir); err != nil || len(names) != 5 {
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
