package engine

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
)

// TestBranch: a job that begins where another ended reaches its own optimum within the gap,
// certified, from a smaller as from a larger C, for every loss, and sooner than from nothing.
func TestBranch(t *testing.T) {
	j := jobs.Small(8, 300, 40)
	for _, c := range []struct{ method, loss string }{
		{"rr-svm", "hinge"}, {"rr-svm", "squared-hinge"}, {"rr-lr", "logistic"}, {"bsvm", "hinge"},
	} {
		t.Run(c.method+" "+c.loss, func(t *testing.T) {
			work := *j
			if c.method == "bsvm" {
				work.Structure = nil
			}
			at := func(cost float64) *taxonv1.JobSpec {
				o := jobs.Defaults()
				o.Method = c.method
				o.Set("loss", c.loss)
				o.Set("c", cost)
				o.Set("max_sweeps", 600)
				return work.Spec(o)
			}
			ctx := context.Background()
			e := start(t, &work, Config{Slots: 2})
			cold := map[float64]*taxonv1.JobStatus{}
			dir := t.TempDir()
			for id, cost := range map[string]float64{"small": 0.5, "large": 5} {
				if _, err := e.Jobs.Submit(ctx, &taxonv1.SubmitRequest{Job: id, Spec: at(cost)}); err != nil {
					t.Fatal(err)
				}
				cold[cost] = follow(t, e, id, nil)
				if err := e.Save(ctx, id, filepath.Join(dir, id)); err != nil {
					t.Fatal(err)
				}
				if err := e.Discard(ctx, id); err != nil {
					t.Fatal(err)
				}
			}
			for _, from := range []struct {
				id string
				to float64
			}{{"small", 5}, {"large", 0.5}, {"small", 0.5}} {
				cp, err := LoadCheckpoint(filepath.Join(dir, from.id))
				if err != nil || cp == nil {
					t.Fatal(cp, err)
				}
				id := from.id + "-on"
				if from.id == "small" && from.to == 0.5 {
					id = "same"
				}
				if err := e.Branch(ctx, cp, id, at(from.to)); err != nil {
					t.Fatal(err)
				}
				st := follow(t, e, id, nil)
				weights(t, e, at(from.to), st)
				p, q := st.GetCertificate(), cold[from.to].GetCertificate()
				if st.GetStoppedBy() != "gap" || p.GetGap() > 1e-3 || p.GetObjective() < q.GetDual() ||
					q.GetObjective() < p.GetDual() {
					t.Errorf("from %s to C = %g: %s at %v, from nothing %v", from.id, from.to, st.GetStoppedBy(), p, q)
				}
				if id == "same" && st.GetSweep() > 3 {
					t.Errorf("from its own optimum it took %d sweeps", st.GetSweep())
				}
			}
		})
	}
}

// TestBranchRefused: a plan of its own, other data.
func TestBranchRefused(t *testing.T) {
	j := jobs.Small(9, 100, 20)
	e := start(t, j, Config{})
	ctx := context.Background()
	spec := j.Spec(jobs.Defaults())
	submit(t, e, spec)
	follow(t, e, "j", nil)
	dir := filepath.Join(t.TempDir(), "saved")
	if err := e.Save(ctx, "j", dir); err != nil {
		t.Fatal(err)
	}
	if err := e.Save(ctx, "nobody", dir); err == nil {
		t.Error("a job that is not there was saved")
	}
	cp, err := LoadCheckpoint(dir)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*taxonv1.JobSpec){
		"on other data": func(s *taxonv1.JobSpec) { s.Data.Fingerprint = "x" },
		"structure":     func(s *taxonv1.JobSpec) { s.Structure = nil },
		"its plan":      func(s *taxonv1.JobSpec) { s.Options.Set("bias", 0) },
		"must be above": func(s *taxonv1.JobSpec) { s.Options.Set("c", -1) },
	} {
		other := j.Spec(jobs.Defaults())
		change(other)
		if err := e.Branch(ctx, cp, "k", other); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := e.Branch(ctx, cp, "j", spec); err == nil {
		t.Error("an id was given twice")
	}
}
