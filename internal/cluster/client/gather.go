package client

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"taxon/internal/cluster"
	"taxon/internal/cluster/jobs"
	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker"
)

// FetchModel writes the result of a finished job as a model.
func (c *Client) FetchModel(ctx context.Context, job, dir string) (*model.Report, error) {
	return c.fetchModel(ctx, job, dir, nil)
}

// fetchModel writes the result of a finished job as a model, the same that `taxon train` makes of
// the same data, options and seed. early is a model gathered ahead of the job's end, or nil. It
// is used if it belongs to that end.
func (c *Client) fetchModel(ctx context.Context, job, dir string, early *ahead) (*model.Report, error) {
	r, err := c.Jobs.Describe(ctx, &taxonv1.JobRequest{Job: job})
	if err != nil {
		return nil, c.Fail(err)
	}
	st, err := c.Jobs.Status(ctx, &taxonv1.StatusRequest{Job: job})
	if err != nil {
		return nil, c.Fail(err)
	}
	report := jobs.ReportOf(st)
	switch {
	case st.GetState().Ended() && report == nil:
		return nil, option.Errorf("%s: job %s has no weights: it is %s", c.Verb, job, jobs.StateName(st.GetState()))
	case report == nil:
		return nil, option.Errorf("%s: job %s is %s: wait for its end, `taxon status %s ‹watch›` shows it", c.Verb, job,
			jobs.StateName(st.GetState()), job)
	case len(r.GetPlan().GetItems()) == 0:
		return nil, option.Errorf("%s: job %s has no weights (any more): it was discarded", c.Verb, job)
	case report.WeightsSHA256 == "" || st.GetResumable(): // its weights are lost
		return nil, fmt.Errorf("%s: %s", c.Verb, st.GetError())
	}
	line := c.Tell.Start("fetch", int64(len(st.GetFinalAttempts())))
	defer line.Done()
	g := early.take(st, line)
	if g == nil {
		values := &values{}
		values.show(line)
		if g, err = c.gather(ctx, r, st, dir, values); err != nil {
			return nil, lostOf(job, err)
		}
	}
	defer g.abort()
	return g.publish(st, *report)
}

// gathered is a model that is complete except for its report.
type gathered struct {
	names  *dataset.Set // the writer reads from it
	w      *model.Writer
	report func(*model.Report) // adds what follows from the job's options and tree
}

// Describe returns everything in a model but its weights, from a job's specification and the
// names of its data. report adds to a report what follows from them.
type Describe func(spec *taxonv1.JobSpec, names *dataset.Set) (meta model.Meta, report func(*model.Report), err error)

// gather fetches what belongs to a job's model, as its status names it, and writes it next to
// dir. Memory does not grow with the weights: see worker.StreamWeights.
func (c *Client) gather(ctx context.Context, r *taxonv1.JobResult, st *taxonv1.JobStatus, dir string,
	values *values) (g *gathered, err error) {
	names, err := c.fetchNames(ctx, r.GetSpec().GetData())
	if err != nil {
		return nil, err
	}
	meta, report, err := c.Describe(r.GetSpec(), names)
	if err != nil {
		return nil, errors.Join(err, names.Close())
	}
	stores := &cluster.JobStores{Shards: c.Shards, Patience: c.Patience}
	src, err := stores.Of(st.GetJob(), r.GetShards(), r.GetReplicas())
	if err != nil {
		return nil, errors.Join(err, names.Close())
	}
	w, err := model.NewWriter(dir, meta)
	if err != nil {
		return nil, errors.Join(err, names.Close())
	}
	g = &gathered{names, w, report}
	// "": next to dir; a model for another file system is assembled in a temporary folder
	spool := ""
	if !fs.Shared(dir) {
		spool = filepath.Dir(filepath.Clean(dir))
	}
	values.Store = src
	if err := worker.StreamWeights(ctx, values, meta.Tree.Len(), st, spool, w.WriteNode); err != nil {
		g.abort()
		return nil, err
	}
	return g, nil
}

// publish publishes the model if its weights have the digest in the report.
func (g *gathered) publish(st *taxonv1.JobStatus, report model.Report) (*model.Report, error) {
	g.report(&report)
	if sum, err := g.w.Sum(); err != nil || sum != report.WeightsSHA256 {
		return nil, errors.Join(err, fmt.Errorf("job %s: the weights that came have digest %.12s, the job says %.12s",
			st.GetJob(), sum, report.WeightsSHA256))
	}
	report, err := g.w.Close(report, jobs.TraceOf(st))
	if err != nil {
		return nil, err
	}
	return &report, nil
}

// abort removes what was written, unless it is published.
func (g *gathered) abort() {
	g.w.Abort()
	_ = g.names.Close() // nothing was written
}

// lostOf returns an error that says what to do if the store has lost what a job needs.
func lostOf(job string, err error) error {
	if err == nil || !errors.Is(err, cluster.ErrNotThere) && store.Lost(err) == nil {
		return err
	}
	return fmt.Errorf("job %s: the store has lost what belongs to it: `taxon resume %s` makes it again, `taxon restore` "+
		"goes on from a snapshot: %w", job, job, err)
}

// values is the store of a job's weights. It shows how many were read.
type values struct {
	worker.Store
	done atomic.Int64
	line atomic.Pointer[progress.Progress] // nil: not shown
}

// show makes the count visible from now on.
func (v *values) show(line progress.Progress) {
	v.line.Store(&line)
	line.Set(v.done.Load())
}

func (v *values) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	data, err := v.Store.Get(ctx, keys)
	done := v.done.Add(int64(len(keys)))
	if line := v.line.Load(); line != nil {
		(*line).Set(done)
	}
	return data, err
}

// fetchNames opens the part of the training data that a model needs.
func (c *Client) fetchNames(ctx context.Context, d *taxonv1.Data) (*dataset.Set, error) {
	temp, done, err := fs.TempDir("names")
	if err != nil {
		return nil, err
	}
	defer done() // mapped files stay readable
	data := &cluster.DataStore{Shards: c.Shards, Patience: c.Patience}
	if err := cluster.FetchNames(ctx, data, d, temp); err != nil {
		return nil, err
	}
	return dataset.OpenNames(temp)
}
