package tune

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"taxon/internal/app/train"
	"taxon/internal/cluster/jobs"
	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// Cluster runs trainings as jobs of a cluster instead of in this process.
type Cluster interface {
	// Slots returns the number of tasks that run at a time.
	Slots(ctx context.Context) (int, error)
	// Train submits a job on the data in a folder, or finds it already there, and follows it until
	// it ends. If ctx is cancelled first, the job continues.
	Train(ctx context.Context, ui progress.Reporter, job string, spec *taxonv1.JobSpec, data string,
		see func(*taxonv1.JobStatus)) (*taxonv1.JobStatus, error)
	// Fetch writes the model of a finished job into the folder dir.
	Fetch(ctx context.Context, ui progress.Reporter, job, dir string) (*model.Report, error)
	// Held lists the jobs that have values and whose ids begin with prefix.
	Held(ctx context.Context, prefix string) ([]string, error)
	// Discard cancels a job that has not ended, and drops its values.
	Discard(ctx context.Context, job string) error
}

// remote runs the trainings of a search on a cluster. The data are uploaded once. A job on a part
// of them lists its rows. Every training starts at zero, and one that ran out of time is repeated.
type remote struct {
	Cluster
	// search is the prefix of the jobs' ids, so that jobs of other searches are left alone.
	search string
}

// openRemote returns the runner for a cluster and the cluster's slots. It reads the search's id
// prefix from the folder, or creates it.
func openRemote(ctx context.Context, c Cluster, r record) (_ *remote, slots int, err error) {
	if slots, err = c.Slots(ctx); err != nil {
		return nil, 0, err
	}
	if slots == 0 {
		return nil, 0, option.Errorf("tune: no worker of the cluster is up: start one, `taxon workers` shows them")
	}
	var name string
	there, err := r.readJSON(r.join(jobsFile), &name)
	if !there || name == "" {
		name = "tune-" + strings.ToLower(rand.Text()[:8])
		err = r.writeJSON(r.join(jobsFile), name)
	}
	return &remote{c, name}, slots, err
}

// id returns the id of a training's job, which is the same in every run.
func (m *remote) id(spec *taxonv1.JobSpec) (string, error) {
	text, err := proto.MarshalOptions{Deterministic: true}.Marshal(spec)
	return fmt.Sprintf("%s-%.12x", m.search, sha256.Sum256(text)), err
}

// train runs a training as a job.
func (m *remote) train(ctx context.Context, t *train.Training, h *heldFold, _, _ string,
	watch func(*taxonv1.JobStatus)) (job string, _ *taxonv1.JobStatus, err error) {
	t.GiveStructure()
	data := t.Spec.GetData()
	data.Fingerprint, data.Rows = h.whole.Set.Fingerprint, dataset.Bitmap(h.trained, h.whole.Set.Matrix.Rows)
	return m.run(ctx, progress.Discard{}, t, h.whole.Dir, watch)
}

// write fetches the model of a job.
func (m *remote) write(ctx context.Context, _ *train.Training, job string, _ *taxonv1.JobStatus, dir string) error {
	_, err := m.Fetch(ctx, progress.Discard{}, job, dir)
	return err
}

// discard drops the values of a job.
func (m *remote) discard(ctx context.Context, job string) error { return m.Discard(ctx, job) }

// run submits a job and follows it until it ends.
func (m *remote) run(ctx context.Context, ui progress.Reporter, t *train.Training, dir string,
	watch func(*taxonv1.JobStatus)) (job string, st *taxonv1.JobStatus, err error) {
	if job, err = m.id(t.Spec); err != nil {
		return "", nil, err
	}
	if watch == nil {
		watch = func(*taxonv1.JobStatus) {}
	}
	st, err = m.Train(ctx, ui, job, t.Spec, dir, watch)
	switch {
	case errors.Is(context.Cause(ctx), errTimeUp):
		_ = m.Discard(context.WithoutCancel(ctx), job) // its values are useless
		return "", nil, context.Cause(ctx)
	case ctx.Err() != nil:
		return "", nil, jobs.Interruptedf("interrupted; job %s continues in the cluster, and the same command finds it there",
			job)
	case err != nil:
		return "", nil, err
	case st.GetState() == taxonv1.JobState_JOB_STATE_CANCELLED:
		return "", nil, fmt.Errorf("job %s was cancelled", job)
	case st.GetState() != taxonv1.JobState_JOB_STATE_DONE:
		return "", nil, fmt.Errorf("job %s: %w", job, train.Failed(st))
	}
	return job, st, nil
}

// last trains the model at o.Out on the cluster, and fits in this process the parts that a cluster
// does not fit.
func (s *search) last(ctx context.Context, m *remote, o *train.Options) (*model.Report, error) {
	if err := o.Validate("tune"); err != nil {
		return nil, err
	}
	report, err := m.fetch(ctx, s.ui, o)
	if err != nil || !s.whole.Meta().Data.MultiLabel() {
		return report, err
	}
	o.Force = false // it finds the model there, still without cut-offs
	return train.Run(ctx, o, s.ui)
}

// fetch trains a model on all rows and copies it to this machine.
func (m *remote) fetch(ctx context.Context, ui progress.Reporter, o *train.Options) (*model.Report, error) {
	temp, done, err := fs.TempDir("tune")
	if err != nil {
		return nil, err
	}
	defer done()
	t, err := train.Open(ctx, o, ui, temp)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	t.GiveStructure()
	job, _, err := m.run(ctx, ui, t, t.Dir, nil)
	if err != nil {
		return nil, err
	}
	if o.Shift == 0 {
		return m.Fetch(ctx, ui, job, o.Out)
	}
	plain := fs.Join(temp, "model")
	if _, err := m.Fetch(ctx, ui, job, plain); err != nil {
		return nil, err
	}
	return t.Shift(plain, o.Out)
}

// clean discards the jobs that trainings of an interrupted run left on the cluster.
func (m *remote) clean(ctx context.Context) error {
	left, err := m.Held(ctx, m.search)
	for _, job := range left {
		err = errors.Join(err, m.Discard(ctx, job))
	}
	return err
}
