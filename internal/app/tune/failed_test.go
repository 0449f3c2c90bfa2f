package tune

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/train"
	"taxon/internal/fs"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// TestBrokenOff: a training that does not keep to its time is broken off, and its family is left
// out. If the same training is wanted again, it continues.
func TestBrokenOff(t *testing.T) {
	o := climbing(t, "rr-svm")
	o.Grid.Values = map[string][]string{"C": {"1000"}, "loss": {"hinge"}}
	o.Train.Said = registry.Values{"gap": "1e-13", "max-sweeps": "100000"}
	s, err := open(t.Context(), validated(t, o), progress.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	delete(o.rough, "gap")
	c := newHillClimb(s)
	c.line, c.families, c.stage = c.ui.Start("tune", 0), []*family{{start: s.starts[0]}}, &stage{to: 1}
	began := time.Now()
	s.clock.now, s.clock.secondsRatio = func() time.Time { return began.Add(1e6 * time.Since(began)) }, 1e9
	s.clock.limit, c.share = 1e6*time.Hour, 1e-9
	if err := c.try(t.Context(), c.families[0], s.starts[0]); err != nil || len(c.stage.trials) != 0 ||
		!strings.Contains(c.families[0].failed, "it did not end within") {
		t.Errorf("%+v, %d trials (%v)", c.families[0], len(c.stage.trials), err)
	}
	h := c.folds.acquire(c.whole, 0)
	defer c.folds.release(h)
	within, stop := context.WithCancel(t.Context())
	if _, _, err := c.trainer.trial(within, h, s.starts[0], s.starts[:1], trialOptions{seconds: 1e9, alone: true,
		watch: func(st *taxonv1.JobStatus) {
			if st.GetSweep() > 0 {
				stop()
			}
		}}); !errors.Is(err, context.Canceled) {
		t.Fatalf("broken off in its sweeps: %v", err)
	}
	results, _, err := c.trainer.trial(t.Context(), h, s.starts[0], s.starts[:1], trialOptions{seconds: 0.05, alone: true})
	if err != nil || results[0].StoppedBy != method.StoppedByMaxTime {
		t.Errorf("again: %+v (%v)", results, err)
	}
}

// fullDisk is a runner whose disk is full when models are written.
type fullDisk struct{ runner }

func (fullDisk) write(_ context.Context, _ *train.Training, _ string, _ *taxonv1.JobStatus, dir string) error {
	return fs.Explain(dir, &os.PathError{Op: "write", Path: dir, Err: syscall.ENOSPC})
}

// TestFullDisk: a full disk ends the search and is told, as it is no point's fault; the same search goes on later.
func TestFullDisk(t *testing.T) {
	o := climbing(t, "rr-svm")
	s, err := open(t.Context(), validated(t, o), progress.Discard{})
	if err != nil {
		t.Fatal(err)
	}
	s.trainer.runner = fullDisk{s.trainer.runner}
	if _, err := s.search(t.Context()); !fs.IsDiskFull(err) || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("%v", err)
	}
	if r := run(t, o, ""); len(r.Points) == 0 {
		t.Error("with space again: nothing")
	}
}

// TestLose: a training that fails ends its point; its family only if nothing of it was trained, or at the third.
func TestLose(t *testing.T) {
	start := Point{Method: "rr-svm", Values: map[string]string{"C": "1"}}
	c := &hillClimb{search: &search{}}
	f := &family{start: start}
	c.lose(&trial{base: start, family: f}, "no")
	if f.failed != "no" || len(c.untried) != 1 {
		t.Errorf("%+v, %v", f, c.untried)
	}
	f = &family{start: start, best: &trial{}}
	for i, cost := range []string{"10", "10", "30", "100"} {
		if c.lose(&trial{base: start.with("C", cost), family: f}, "no"); (f.failed != "") != (i == 3) {
			t.Errorf("after %d failures: %q", i+1, f.failed)
		}
	}
}

// broken is a runner whose models cannot be written.
type broken struct{ runner }

func (broken) write(context.Context, *train.Training, string, *taxonv1.JobStatus, string) error {
	return errors.New("no")
}

// TestLastFoldsFail: if all trainings on further folds fail, the points stand on the folds before.
func TestLastFoldsFail(t *testing.T) {
	o := climbing(t, "bsvm")
	o.Grid.Values = map[string][]string{"loss": {"hinge"}}
	c := exactly(t, o)
	f := &family{start: c.starts[0]}
	c.families, c.stage, c.share = []*family{f}, &stage{from: 0, to: 1}, 1
	if err := c.try(t.Context(), f, f.start, f.start.with("C", "0.9")); err != nil || len(c.stage.trials) != 2 {
		t.Fatalf("%d trials (%v)", len(c.stage.trials), err)
	}
	c.trials, c.trainer.runner = c.stage.trials, broken{c.trainer.runner}
	if err := c.final(t.Context()); err != nil || c.stage.count() != 1 || c.leader() == nil || len(f.lost) == 0 {
		t.Errorf("%d folds count, %d points lost (%v)", c.stage.count(), len(f.lost), err)
	}
}
