package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSubmitTune interrupts a search whose trainings are jobs, resumes it, and kills a worker. The
// resulting model equals that of train with its job file, including the prior shift, and the stores
// keep nothing of the trials.
func TestSubmitTune(t *testing.T) {
	t.Parallel()
	c := bench.Up(t, 2, 2)
	out := filepath.Join(t.TempDir(), "tuned")
	args := append([]string{"submit", "--tune", "--method", "rr-svm,bsvm", "--C", "0.1,1,10", "--x", "prior-shift=0.2",
		"--folds", "2", "--json", "--out", out}, bench.Job("1e-2")...)
	first := exec.Command(bench.Bin, args...)
	first.Env = append(os.Environ(), c.env)
	var stderr strings.Builder
	first.Stderr = &stderr
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	for range 2000 {
		if done, _ := filepath.Glob(filepath.Join(out, "points", "*.0.json")); len(done) > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = first.Process.Signal(os.Interrupt)
	_ = first.Wait() // the exit status has the result
	if code := first.ProcessState.ExitCode(); code != 130 || !strings.Contains(stderr.String(), "in the cluster, and") {
		t.Fatalf("interrupted: status %d, %s", code, stderr.String())
	}
	_ = syscall.Kill(c.Process(t, "worker-0").PID, syscall.SIGKILL)
	var tuned struct{ Model string }
	Decode(t, c.Taxon(t, args...).Stdout, &tuned)
	var trained struct {
		SHA string `json:"weights_sha256"`
	}
	Decode(t, bench.Must(t, "", "train", "--json", "--quiet", "--job", filepath.Join(out, "job.yaml"), "--data",
		bench.Data, "--hierarchy", bench.Tree, "--out", filepath.Join(t.TempDir(), "model")).Stdout, &trained)
	manifest, err := os.ReadFile(filepath.Join(tuned.Model, "manifest.json"))
	if err != nil || len(trained.SHA) != 64 || !strings.Contains(string(manifest), trained.SHA) {
		t.Errorf("the model is not that of train, %s: %v", trained.SHA, err)
	}
	var list []struct{ Job, State string }
	Decode(t, c.Taxon(t, "jobs", "--json").Stdout, &list)
	kept := 0
	for _, j := range list {
		if j.State != "discarded" {
			kept++
		}
	}
	if len(list) < 6 || kept != 1 { // the remaining one is that of the model
		t.Errorf("jobs: %+v", list)
	}
}
