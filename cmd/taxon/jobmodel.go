package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"taxon/internal/cluster"
	"taxon/internal/dataset"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/train"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker"
)

// fetchModel writes the result of a job that is done as a model: the same as `taxon
// train` makes of the same data, options and seed. What has been gathered ahead of the
// job's end (nil: nothing) is used if it is of that end.
func (c *client) fetchModel(ctx context.Context, a *app, job, dir string, ahead *ahead) (*model.Report, error) {
	r, err := c.jobs.Describe(ctx, &taxonv1.JobRequest{Job: job})
	if err != nil {
		return nil, c.fail(err)
	}
	st, err := c.jobs.Status(ctx, &taxonv1.StatusRequest{Job: job})
	if err != nil {
		return nil, c.fail(err)
	}
	report := reportOf(st)
	switch {
	case hasEnded(st.GetState()) && report == nil:
		return nil, usagef("%s: job %s has no weights: it is %s", c.verb, job, stateName(st.GetState()))
	case report == nil:
		return nil, usagef("%s: job %s is %s: wait for its end, `taxon status %s --watch` shows it", c.verb, job, stateName(st.GetState()), job)
	case len(r.GetPlan().GetItems()) == 0:
		return nil, usagef("%s: job %s has no weights (any more): it was discarded", c.verb, job)
	case report.WeightsSHA256 == "" || st.GetResumable(): // its weights are lost
		return nil, fmt.Errorf("%s: %s", c.verb, st.GetError())
	}
	line := a.ui.Start("fetch", int64(len(st.GetFinalAttempts())))
	defer line.Done()
	g := ahead.take(st, line)
	if g == nil {
		values := &values{}
		values.show(line)
		if g, err = c.gather(ctx, a, r, st, dir, values); err != nil {
			return nil, lostOf(job, err)
		}
	}
	defer g.abort()
	return g.publish(st, *report)
}

// gathered is a model that lacks nothing but its report.
type gathered struct {
	t *train.Training
	w *model.Writer
}

// gather fetches what belongs to a job's model, as its status names it, and writes it
// beside dir. Memory does not grow with the weights: see worker.StreamWeights.
func (c *client) gather(ctx context.Context, a *app, r *taxonv1.JobResult, st *taxonv1.JobStatus, dir string, values *values) (g *gathered, err error) {
	t, err := train.Of(r.GetSpec())
	if err != nil {
		return nil, err
	}
	if err := c.fetchNames(ctx, t); err != nil {
		return nil, err
	}
	stores := &cluster.JobStores{Shards: c.shards, Patience: c.dialer.Patience}
	src, err := stores.Of(st.GetJob(), r.GetShards(), r.GetReplicas())
	if err != nil {
		return nil, errors.Join(err, t.Set.Close())
	}
	w, err := model.NewWriter(dir, t.Meta())
	if err != nil {
		return nil, errors.Join(err, t.Set.Close())
	}
	g = &gathered{t, w}
	spool := "" // a model on another file system is put together in a temporary folder, too
	if !fs.IsRemote(dir) {
		spool = filepath.Dir(filepath.Clean(dir))
	}
	values.Store = src
	if err := worker.StreamWeights(ctx, values, t.Tree.Len(), st, spool, w.WriteNode); err != nil {
		g.abort()
		return nil, err
	}
	return g, nil
}

// publish gives the model its name, if its weights' digest is the report's.
func (g *gathered) publish(st *taxonv1.JobStatus, report model.Report) (*model.Report, error) {
	g.t.ReportGraph(&report)
	if sum, err := g.w.Sum(); err != nil || sum != report.WeightsSHA256 {
		return nil, errors.Join(err, fmt.Errorf("job %s: the weights that came have digest %.12s, the job says %.12s", st.GetJob(), sum, report.WeightsSHA256))
	}
	report, err := g.w.Close(report, train.TraceOf(st))
	if err != nil {
		return nil, err
	}
	return &report, nil
}

// abort removes what was written, unless it was published.
func (g *gathered) abort() {
	g.w.Abort()
	_ = g.t.Set.Close() // nothing was written
}

// lostOf says what to do where the store has lost what a job needs.
func lostOf(job string, err error) error {
	if err == nil || !errors.Is(err, cluster.ErrNotThere) && store.Lost(err) == nil {
		return err
	}
	return fmt.Errorf("job %s: the store has lost what belongs to it: `taxon resume %s` makes it again, `taxon restore` goes on from a snapshot: %w", job, job, err)
}

// values is the store of a job's weights. It shows how many were read.
type values struct {
	worker.Store
	done atomic.Int64
	line atomic.Pointer[progress] // nil: not shown
}

// show shows it from now on.
func (v *values) show(line *progress) {
	v.line.Store(line)
	line.Set(v.done.Load())
}

func (v *values) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	data, err := v.Store.Get(ctx, keys)
	done := v.done.Add(int64(len(keys)))
	if line := v.line.Load(); line != nil {
		line.Set(done)
	}
	return data, err
}

// fetchNames opens what a model takes over from its training data.
func (c *client) fetchNames(ctx context.Context, t *train.Training) error {
	temp, done, err := fs.TempDir("names")
	if err != nil {
		return err
	}
	defer done() // mapped files stay readable
	data := &cluster.DataStore{Shards: c.shards, Patience: c.dialer.Patience}
	if err := cluster.FetchNames(ctx, data, t.Spec.GetData(), temp); err != nil {
		return err
	}
	t.Set, err = dataset.OpenNames(temp)
	return err
}
