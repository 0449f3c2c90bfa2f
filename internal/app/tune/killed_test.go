package tune

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"taxon/coordinator/machine"
	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/engine"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// TestKilled: after a SIGKILL in the middle of a training the same search goes on within it, and
// comes to what an undisturbed one comes to.
func TestKilled(t *testing.T) {
	o := climbing(t, "rr-svm")
	o.Grid.Values = map[string][]string{"C": {"1000"}, "loss": {"hinge"}} // and one value of all else: one point
	for _, p := range o.Grid.tunable("rr-svm") {
		if o.Grid.Values[p.Name] == nil && p.On != method.Graphs {
			o.Grid.Values[p.Name] = []string{p.Default}
		}
	}
	o.Train.Said = registry.Values{"gap": "1e-13", "max-sweeps": "100000", "checkpoint-every": "1"}
	o.Train.Pause = 1e-9
	exact := func() *search {
		// trainings end at the gap asked for, so that they take a while
		s, err := open(t.Context(), validated(t, o), progress.Discard{})
		if err != nil {
			t.Fatal(err)
		}
		delete(o.rough, "gap")
		return s
	}
	whole := func() *Table {
		r, err := exact().search(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if dir := os.Getenv("TAXON_TEST_KILLED"); dir != "" {
		o.Train.Data, o.Train.Hierarchy, o.Train.Out = []string{filepath.Join(dir, "train.svm")},
			filepath.Join(dir, "tree.txt"), filepath.Join(dir, "tuned")
		whole()
		return
	}
	const reached = 10
	left := func() uint32 { // the least sweep that is kept of both folds
		dirs, _ := filepath.Glob(filepath.Join(o.Train.Out, statesDir, "tune-*"))
		var sweeps [2]uint32
		for i, dir := range slices.DeleteFunc(dirs,
			func(dir string) bool { return len(filepath.Base(dir)) != len("tune-")+32 }) {
			if c, err := engine.LoadCheckpoint(dir); err == nil && c != nil {
				if state, err := machine.ReadState(c.State); err == nil {
					sweeps[i] = state.Sweep
				}
			}
		}
		return min(sweeps[0], sweeps[1])
	}
	for killed := false; !killed; killed = left() >= reached {
		// but for a kill while a checkpoint takes the place of the last
		child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		child.Env = append(os.Environ(), "TAXON_TEST_KILLED="+filepath.Dir(o.Train.Out))
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); left() < reached; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no checkpoint within a minute")
			}
		}
		_ = child.Process.Kill()
		if err := child.Wait(); err == nil {
			t.Fatal("it ended before it was killed")
		}
	}
	s := exact()
	ctx, cancel := context.WithCancel(t.Context())
	began := uint32(math.MaxUint32)
	p := s.starts[0]
	_, old, err := s.trainer.trial(ctx, s.folds.acquire(s.whole, 0), p, []Point{p}, trialOptions{seconds: math.Inf(1),
		alone: true, watch: func(st *taxonv1.JobStatus) {
			began = min(began, st.GetSweep())
			cancel()
		}})
	if old || began < reached {
		t.Errorf("the training begins at sweep %d, %d had been kept (%t, %v)", began, reached, old, err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	got := whole()
	o.Train.Out += "-undisturbed"
	want := whole()
	for _, r := range []*Table{got, want} {
		for _, p := range r.Points {
			p.CPUSeconds = 0
		}
	}
	if !reflect.DeepEqual(got.Points, want.Points) {
		t.Errorf("gone on with: %+v; undisturbed: %+v", got.Points, want.Points)
	}
}
