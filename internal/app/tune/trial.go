package tune

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path/filepath"

	"taxon/coordinator/machine"
	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/engine"
	"taxon/internal/app/train"
	"taxon/internal/cluster/jobs"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// trainer trains points without a fold and measures them on the fold.
type trainer struct {
	o      *Options
	record record
	runner runner
	// engine is nil if the trainings run on a cluster.
	engine *engine.Engine
	meter  *meter
}

// runner runs trainings, either on the engine of this process or on a cluster.
type runner interface {
	// train runs a training without a fold to its end. end and begin are folders of states; see
	// trainer.train.
	train(ctx context.Context, t *train.Training, h *heldFold, end, begin string,
		watch func(*taxonv1.JobStatus)) (job string, _ *taxonv1.JobStatus, err error)
	// write writes the model of a training that has ended.
	write(ctx context.Context, t *train.Training, job string, st *taxonv1.JobStatus, dir string) error
	discard(ctx context.Context, job string) error
}

// local is the runner that uses the engine of this process.
type local struct{ *trainer }

// train runs a training on the engine.
func (l local) train(ctx context.Context, t *train.Training, _ *heldFold, end, begin string,
	watch func(*taxonv1.JobStatus)) (string, *taxonv1.JobStatus, error) {
	return l.trainer.train(ctx, t, end, begin, watch)
}

// write assembles the model from the engine's weights.
func (l local) write(ctx context.Context, t *train.Training, _ string, st *taxonv1.JobStatus, dir string) error {
	_, err := t.WriteModel(ctx, dir, l.engine, st, nil)
	return err
}

// discard drops the values of a job.
func (l local) discard(ctx context.Context, job string) error {
	return engine.StripStatus(l.engine.Discard(ctx, job))
}

// trialOptions configure one training of the search.
type trialOptions struct {
	// before is the point at whose final state the training starts. If it is nil, the training
	// starts at zero.
	before *Point
	// next keeps the final state for the next training.
	next bool
	// seconds is the most time that the training may take.
	seconds float64
	// alone trains as if the other rows did not exist: classes without rows are left out. Every
	// result then has the cost of its own training.
	alone bool
	// watch is called with each status. It may be nil.
	watch func(*taxonv1.JobStatus)
}

// trial returns the results of points that share a training on a fold. Results that are not
// recorded yet are obtained by training on the other rows, starting at the final state of the
// training of o.before on the same fold. old reports that the results were recorded, by trainings
// that had at least half of the time that is allowed now.
func (t *trainer) trial(ctx context.Context, h *heldFold, base Point, points []Point,
	o trialOptions) (results []*result, old bool, err error) {
	results, err = t.record.results(points, h.number)
	if err != nil || results != nil && (results[0].StoppedBy != method.StoppedByMaxTime ||
		results[0].Seconds > o.seconds/2) {
		return results, true, err
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	// The training on the whole data has already shown all warnings.
	training, err := h.whole.On(progress.Discard{}, t.o.trial(base, o.seconds), h.rest, o.alone)
	if err != nil {
		return nil, false, err
	}
	end, short := t.record.state(base, h.number), outcome{}
	begin := "" // empty, or the final state of another training
	switch {
	case t.engine == nil: // on a cluster a training begins at zero
	case results != nil && t.record.has(end): // continue where the time had cut it short
		begin, short = end, results[0].outcome
	case o.before != nil && t.record.has(t.record.state(*o.before, h.number)):
		begin = t.record.state(*o.before, h.number)
	}
	results = nil
	job, st, err := t.runner.train(ctx, training, h, end, begin, o.watch)
	if err != nil {
		return nil, false, err
	}
	for i, p := range points {
		r := &result{p, outcome{Fold: h.number, Gap: st.GetCertificate().GetGap(), StoppedBy: st.GetStoppedBy()}}
		if begin != "" && begin != end {
			c := o.before.C()
			r.From = &c
		}
		if i == 0 || o.alone {
			r.Sweeps, r.CPUSeconds, r.Seconds = short.Sweeps+int(st.GetSweep()), short.CPUSeconds+st.GetCpuSeconds(),
				short.Seconds+st.GetSeconds()
		}
		results = append(results, r)
	}
	write := func(dir string) error { return t.runner.write(ctx, training, job, st, dir) }
	if err := t.meter.measure(ctx, training, write, h, results); err != nil {
		return nil, false, err
	}
	leaves := o.next || st.GetStoppedBy() == method.StoppedByMaxTime
	if leaves = leaves && t.engine != nil && engine.CanBranch(base.Method); leaves {
		if err := t.engine.Save(ctx, job, end); err != nil {
			return nil, false, err
		}
	}
	if err := t.runner.discard(ctx, job); err != nil {
		return nil, false, err
	}
	for _, r := range results {
		if err := t.record.keep(r); err != nil {
			return nil, false, err
		}
	}
	_ = t.record.disk.RemoveAll(t.record.checkpoint(job))
	if begin != "" && !(begin == end && leaves) { // nothing begins there any more
		_ = t.record.disk.RemoveAll(begin)
	}
	return results, false, nil
}

// train runs a training to its end, from zero or from the state in the folder begin. A training
// that an earlier run of the search left unfinished continues from its checkpoint. The job's id is
// derived from the names of the folders end and begin, so it is the same in every run.
func (t *trainer) train(ctx context.Context, training *train.Training, end, begin string,
	watch func(*taxonv1.JobStatus)) (job string, _ *taxonv1.JobStatus, err error) {
	job = fmt.Sprintf("tune-%.16x", sha256.Sum256([]byte(filepath.Base(end)+"\n"+filepath.Base(begin))))
	if err := t.start(ctx, training.Spec, job, begin); err != nil {
		return "", nil, engine.StripStatus(err)
	}
	stop := context.AfterFunc(ctx, func() {
		_, _ = t.engine.Jobs.Cancel(context.WithoutCancel(ctx), &taxonv1.CancelRequest{Job: job}) // leaves a checkpoint
	})
	defer stop()
	st, err := jobs.Watch(context.WithoutCancel(ctx), t.engine.Jobs, job, 0, func(st *taxonv1.JobStatus) error {
		if watch != nil {
			watch(st)
		}
		return nil
	})
	switch {
	case err != nil:
		return "", nil, engine.StripStatus(err)
	case st.GetState() == taxonv1.JobState_JOB_STATE_DONE:
		return job, st, nil
	case st.GetState() == taxonv1.JobState_JOB_STATE_CANCELLED:
		return "", nil, context.Canceled
	}
	return "", nil, fmt.Errorf("at C = %g: %w", registry.Number(training.Spec.GetOptions(), "C"), train.Failed(st))
}

// start submits a training. It resumes one that this search has broken off, or one that an earlier
// run left with a checkpoint.
func (t *trainer) start(ctx context.Context, spec *taxonv1.JobSpec, job, begin string) error {
	if st, err := t.engine.Jobs.Status(ctx, &taxonv1.StatusRequest{Job: job}); err == nil &&
		st.GetState() == taxonv1.JobState_JOB_STATE_CANCELLED {
		c := machine.StopCriteriaOf(spec.GetOptions())
		_, err := t.engine.Jobs.Resume(ctx, &taxonv1.ResumeRequest{Job: job, Gap: c.Gap, MaxSweeps: c.MaxSweeps,
			MaxSeconds: c.MaxSeconds})
		return err
	}
	stopped, err := engine.LoadCheckpoint(t.record.checkpoint(job))
	if err != nil {
		return err
	}
	if stopped != nil {
		if _, err := stopped.UpdateStopCriteria(machine.StopCriteriaOf(spec.GetOptions())); err != nil {
			return err
		}
		_, err = t.engine.Resume(ctx, stopped)
		return err
	}
	if begin == "" {
		_, err = t.engine.Jobs.Submit(ctx, &taxonv1.SubmitRequest{Spec: spec, Job: job})
		return err
	}
	from, err := engine.LoadCheckpoint(begin)
	if err != nil {
		return err
	}
	return t.engine.Branch(ctx, from, job, spec)
}
