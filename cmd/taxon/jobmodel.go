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
	"taxon/internal/jobspec"
	"taxon/internal/model"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker"
)

// optionsOf turns a job's options back into train's flags: the inverse of proto.
func optionsOf(o *taxonv1.Options) trainOptions {
	inner := o.GetInternalWeight()
	if inner == 0 { // a job of a program that left it out
		inner = 1
	}
	return trainOptions{
		method: o.GetMethod(), loss: o.GetLoss(), schedule: o.GetSchedule(), c: o.GetC(), bias: o.GetBias(), gap: o.GetGap(),
		maxSweeps: int(o.GetMaxSweeps()), maxTime: o.GetMaxSeconds(), prune: o.GetPrune(), seed: o.GetSeed(),
		stiffness: o.GetStiffness(), momentum: o.GetMomentum(), epochs: int(o.GetInnerEpochs()),
		evalEvery: int(o.GetEvalEvery()), checkpoint: int(o.GetCheckpointSweeps()),
		anchor: o.GetAnchor(), inner: inner, colouring: o.GetColouring(), positive: o.GetPositiveWeight(),
	}
}

func structureOf(s *taxonv1.Structure) *taxonomy.Structure {
	if s == nil {
		return nil
	}
	return &taxonomy.Structure{Names: s.GetNames(), Parents: s.GetParents(), Children: s.GetChildren()}
}

// giveStructure adds the structure as the user gave it to the specification, where what
// is trained on is another one: a model keeps it.
func (t *training) giveStructure() {
	given := t.structure
	if given == nil || !t.spec.GetStructure().GetGraph() && sameStructure(given, structureOf(t.spec.GetStructure())) {
		return
	}
	t.spec.Given = &taxonv1.Structure{Names: given.Names, Parents: given.Parents, Children: given.Children}
}

// takeStructure is the way back.
func (t *training) takeStructure() {
	trained, given := t.spec.GetStructure(), t.spec.GetGiven()
	switch {
	case given != nil && trained.GetGraph():
		t.structure, t.o.dag = structureOf(given), "graph"
	case given != nil:
		t.structure, t.o.dag = structureOf(given), "first-parent"
	case trained.GetGraph():
		t.edges = structureOf(trained)
	default:
		t.structure = structureOf(trained)
	}
}

// fetchModel writes the result of a job that is done as a model: the same as `taxon
// train` makes of the same data, options and seed.
func (c *client) fetchModel(ctx context.Context, a *app, job, dir string) (*model.Report, error) {
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
	case len(r.GetPlan().GetBlockBegin()) == 0:
		return nil, usagef("%s: job %s has no weights (any more): it was discarded", c.verb, job)
	case report.WeightsSHA256 == "" || st.GetResumable(): // its weights are lost
		return nil, fmt.Errorf("%s: %s", c.verb, st.GetError())
	}
	o := optionsOf(r.GetSpec().GetOptions())
	t := &training{a: a, o: &o, spec: r.GetSpec()}
	t.takeStructure()
	if t.tree, _, err = jobspec.Tree(t.spec); err != nil {
		return nil, err
	}
	t.reportGraph(report)
	if err := c.fetchNames(ctx, t); err != nil {
		return nil, lostOf(job, err)
	}
	defer t.set.Close()
	stores := &cluster.JobStores{Shards: c.shards, Patience: c.dialer.Patience}
	src, err := stores.Of(job, r.GetShards(), r.GetReplicas())
	if err != nil {
		return nil, err
	}
	plan := r.GetPlan()
	line := a.ui.Start("fetch", int64(len(plan.GetBlockBegin())+len(plan.GetRangeBegin())-2))
	defer line.Done()
	made, err := t.writeWeights(ctx, dir, &countedStore{Store: src, line: line}, plan, st, *report)
	return made, lostOf(job, err)
}

// lostOf says what to do where the store has lost what a job needs.
func lostOf(job string, err error) error {
	if err == nil || !errors.Is(err, cluster.ErrNotThere) && store.Lost(err) == nil {
		return err
	}
	return fmt.Errorf("job %s: the store has lost what belongs to it: `taxon resume %s` makes it again, `taxon restore` goes on from a snapshot: %w", job, job, err)
}

// countedStore shows how many values were read.
type countedStore struct {
	worker.Store
	line *progress
	done atomic.Int64
}

func (s *countedStore) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	values, err := s.Store.Get(ctx, keys)
	s.line.Set(s.done.Add(int64(len(keys))))
	return values, err
}

// fetchNames opens what a model takes over from its training data.
func (c *client) fetchNames(ctx context.Context, t *training) error {
	temp, done, err := fs.TempDir("names")
	if err != nil {
		return err
	}
	defer done() // mapped files stay readable
	data := &cluster.DataStore{Shards: c.shards, Patience: c.dialer.Patience}
	if err := cluster.FetchNames(ctx, data, t.spec.GetData(), temp); err != nil {
		return err
	}
	t.set, err = dataset.OpenNames(temp)
	return err
}

// writeWeights assembles the weights that a status names and publishes them as dir, if
// their digest is the report's. Memory does not grow with them: see worker.StreamWeights.
func (t *training) writeWeights(ctx context.Context, dir string, src worker.Store, plan *taxonv1.Plan, st *taxonv1.JobStatus, report model.Report) (*model.Report, error) {
	w, err := model.NewWriter(dir, t.meta())
	if err != nil {
		return nil, err
	}
	defer w.Abort()
	spool := "" // a model on another file system is put together in a temporary folder, too
	if !fs.IsRemote(dir) {
		spool = filepath.Dir(filepath.Clean(dir))
	}
	if err := worker.StreamWeights(ctx, src, t.tree, plan, st, spool, w.WriteNode); err != nil {
		return nil, err
	}
	if sum, err := w.Sum(); err != nil || sum != report.WeightsSHA256 {
		return nil, errors.Join(err, fmt.Errorf("job %s: the weights that came have digest %.12s, the job says %.12s", st.GetJob(), sum, report.WeightsSHA256))
	}
	report, err = w.Close(report, traceOf(st))
	if err != nil {
		return nil, err
	}
	return &report, nil
}
