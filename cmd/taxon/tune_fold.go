package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"taxon/internal/engine"
	"taxon/internal/eval"
	"taxon/internal/fs"
	"taxon/internal/jobs"
	"taxon/internal/train"
	"taxon/internal/tune"
	taxonv1 "taxon/proto/taxon/v1"
)

// foldResult is what is kept of a finished training: a file of pointsDir beside its
// predictions.
type foldResult struct {
	tune.Point
	Fold       int          `json:"fold"`
	Measures   *eval.Result `json:"measures"`
	Sweeps     int          `json:"sweeps"`
	Gap        float64      `json:"gap"`
	StoppedBy  string       `json:"stopped_by"`
	CPUSeconds float64      `json:"cpu_seconds"`
	From       *float64     `json:"from_C,omitempty"` // where it began; unset: from nothing
}

func (s *search) file(p tune.Point, fold int, ext string) string {
	return s.join(pointsDir, fmt.Sprintf("%s.%d%s", p.Name(), fold, ext))
}

func (s *search) stateDir(p tune.Point, fold int) string {
	return s.join(statesDir, fmt.Sprintf("%s.%d", p.Name(), fold))
}

// fold trains a rung without one fold's rows and measures its points that are in the race
// on them, unless that has been done. It begins where the training of `before` ended on the
// same fold; keep leaves behind where it ended itself. old: an earlier run had done it.
func (s *search) fold(ctx context.Context, d *foldData, g *rung, before *tune.Point, keep bool) (results []*foldResult, old bool, err error) {
	points := g.in()
	results, err = s.loaded(ctx, points, d.fold)
	if results != nil || err != nil {
		return results, true, err
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	t, err := s.foldTraining(g.base, d)
	if err != nil {
		return nil, false, err
	}
	begin := "" // or the state left by the training before
	if before != nil && fs.Exists(s.stateDir(*before, d.fold)) {
		begin = s.stateDir(*before, d.fold)
	}
	job, st, err := s.train(ctx, t, s.stateDir(g.base, d.fold), begin)
	if err != nil {
		return nil, false, err
	}
	for i, p := range points {
		r := &foldResult{Point: p.point, Fold: d.fold, Gap: st.GetCertificate().GetGap(), StoppedBy: st.GetStoppedBy()}
		if begin != "" {
			r.From = &before.C
		}
		if i == 0 { // the others take no training
			r.Sweeps, r.CPUSeconds = int(st.GetSweep()), st.GetCpuSeconds()
		}
		results = append(results, r)
	}
	if err := s.measure(ctx, t, st, d, results); err != nil {
		return nil, false, err
	}
	if keep {
		if err := s.engine.Save(ctx, job, s.stateDir(g.base, d.fold)); err != nil {
			return nil, false, err
		}
	}
	if err := s.engine.Discard(ctx, job); err != nil {
		return nil, false, engine.Plain(err)
	}
	for _, r := range results { // from now on it counts
		if err := writeJSON(s.file(r.Point, d.fold, ".json"), r); err != nil {
			return nil, false, err
		}
	}
	_ = fs.RemoveAll(s.checkpoint(job))
	if begin != "" {
		_ = fs.RemoveAll(begin)
	}
	return results, false, nil
}

// loaded reads the results of finished points; nil unless all are there.
func (s *search) loaded(ctx context.Context, points []*racer, fold int) ([]*foldResult, error) {
	var results []*foldResult
	for _, p := range points {
		r, err := s.load(ctx, p.point, fold)
		if r == nil || err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// load reads a finished training; nil: there is none.
func (s *search) load(ctx context.Context, p tune.Point, fold int) (*foldResult, error) {
	path := s.file(p, fold, ".json")
	data, err := fs.ReadFile(ctx, path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fs.Explain(path, err)
	}
	r := &foldResult{}
	if err := json.Unmarshal(data, r); err != nil || r.Measures == nil || r.Point != p {
		return nil, fs.Inputf(path, 0, "is damaged: delete it, or use --force to search anew")
	}
	return r, nil
}

// foldTraining is the training of a point on a fold's rows.
func (s *search) foldTraining(p tune.Point, d *foldData) (*train.Training, error) {
	return s.whole.On(s.a.silent().told(), s.o.at(p).proto(), d.set)
}

// train runs a training to its end: from nothing, or from the state of another in the folder
// begin. If an earlier run of the search was stopped in it, it goes on from its checkpoint.
// The names of both make the job's id, which is the same in every run.
func (s *search) train(ctx context.Context, t *train.Training, name, begin string) (job string, _ *taxonv1.JobStatus, err error) {
	job = fmt.Sprintf("tune-%.16x", sha256.Sum256([]byte(filepath.Base(name)+"\n"+filepath.Base(begin))))
	if err := s.start(ctx, t, job, begin); err != nil {
		return "", nil, engine.Plain(err)
	}
	stop := context.AfterFunc(ctx, func() {
		_, _ = s.engine.Jobs.Cancel(context.WithoutCancel(ctx), &taxonv1.CancelRequest{Job: job}) // leaves a checkpoint
	})
	defer stop()
	st, err := jobs.Watch(context.WithoutCancel(ctx), s.engine.Jobs, job, 0, func(*taxonv1.JobStatus) error { return nil })
	switch {
	case err != nil:
		return "", nil, engine.Plain(err)
	case st.GetState() == taxonv1.JobState_JOB_STATE_DONE:
		return job, st, nil
	case st.GetState() == taxonv1.JobState_JOB_STATE_CANCELLED:
		return "", nil, context.Canceled
	}
	return "", nil, fmt.Errorf("at C = %g: %w", t.Spec.GetOptions().GetC(), train.Failed(st))
}

// start submits a training, or goes on with its checkpoint.
func (s *search) start(ctx context.Context, t *train.Training, job, begin string) error {
	stopped, err := engine.LoadCheckpoint(s.checkpoint(job))
	if err != nil {
		return err
	}
	if stopped != nil {
		_, err = s.engine.Resume(ctx, stopped)
		return err
	}
	if begin == "" {
		_, err = s.engine.Jobs.Submit(ctx, &taxonv1.SubmitRequest{Spec: t.Spec, Job: job})
		return err
	}
	from, err := engine.LoadCheckpoint(begin)
	if err != nil {
		return err
	}
	return s.engine.Branch(ctx, from, job, t.Spec)
}

// checkpoint is the folder of a training that is under way.
func (s *search) checkpoint(job string) string { return s.join(statesDir, job) }
