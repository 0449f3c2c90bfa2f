package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"taxon/coordinator"
	"taxon/internal/dataset"
	"taxon/internal/engine"
	"taxon/internal/fs"
	"taxon/internal/jobs"
	"taxon/internal/jobspec"
	"taxon/internal/mapreduce"
	"taxon/internal/mapreduce/driver"
	"taxon/internal/model"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
)

// training is one run of train: from files to a published model.
type training struct {
	a         *app
	o         *trainOptions
	work      *workDir
	temp      string // a submission's scratch folder, which has no workDir
	dir       string // of the set
	set       *dataset.Set
	structure *taxonomy.Structure // as the user gave it; nil: none, or a graph
	edges     *taxonomy.Structure // of --graph
	spec      *taxonv1.JobSpec
	tree      *taxonomy.Tree
	usage     *usage // never nil where a model is written
	told      string // what a checkpoint goes on from
	warmSum   string // of the weights of --warm-start
	scores    *sweepScores
	mr        *mapreduce.Backend // nil: the training runs in this process
	driving   *driver.Driver     // told how it goes, where somebody has submitted it
	mrDone    func()             // removes the data's copy; nil: there is none
}

// train makes the model at o.out, or finds it finished there, and returns its report.
func train(ctx context.Context, a *app, o *trainOptions) (*model.Report, error) {
	t := &training{a: a, o: o, usage: new(usage)}
	if err := t.checkOut(); err != nil {
		return nil, err
	}
	work, err := openWork(o.out, o.force)
	if err != nil {
		return nil, err
	}
	t.work = work
	defer work.close()
	if o.mr.on() {
		if err := work.keepState(&o.mr, o.force); err != nil {
			work.abandon()
			return nil, err
		}
	}
	if o.threads > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.threads))
	}
	report, err := t.run(ctx)
	if err != nil {
		work.abandon() // leaves a checkpoint if there is one, else nothing
		return nil, err
	}
	return report, nil
}

func (t *training) run(ctx context.Context) (*model.Report, error) {
	if err := t.readStructure(ctx); err != nil {
		return nil, err
	}
	if err := t.readWarm(); err != nil {
		return nil, err
	}
	if err := t.openData(ctx); err != nil {
		return nil, err
	}
	defer t.set.Close()
	if err := t.specify(); err != nil {
		return nil, err
	}
	if err := t.checkTest(ctx); err != nil {
		return nil, err
	}
	if r, err := t.finished(ctx); r != nil || err != nil {
		return r, err
	}
	if !t.o.mr.on() { // else what is large lies elsewhere
		if err := t.fits(); err != nil {
			return nil, err
		}
	}
	defer t.collectOften()()
	if err := t.checkLengths(); err != nil {
		return nil, err
	}
	checkpoint, err := t.work.begin(t.identity())
	if err != nil {
		return nil, err
	}
	if checkpoint != nil {
		if t.told, err = t.goOn(checkpoint); err != nil {
			return nil, err
		}
	}
	report, err := t.train(ctx, checkpoint)
	if err == nil && t.wantsCutoffs() {
		report, err = t.complete(ctx, report)
	}
	if err == nil {
		t.work.remove() // only now: the engine's shards may have lain in it
	}
	return report, err
}

// checkOut refuses a place where no model can go, before any work.
func (t *training) checkOut() error {
	return model.Replaceable(t.o.out)
}

func (t *training) readStructure(ctx context.Context) (err error) {
	switch {
	case t.o.graph != "":
		t.edges, err = t.a.readGraph(ctx, t.o.graph)
	case t.o.hierarchy != "" && t.o.dag == "refuse" && !t.o.flat():
		t.structure, err = t.a.readStructure(ctx, t.o.hierarchy, taxonomy.ReadTree)
	case t.o.hierarchy != "":
		t.structure, err = t.a.readHierarchy(ctx, t.o.hierarchy)
	}
	return err
}

// openData ingests the data beside the model's place, or opens the folder named.
func (t *training) openData(ctx context.Context) (err error) {
	dir := t.o.data[0]
	if !t.o.ingested() {
		if dir, err = t.ingest(ctx); err != nil {
			return err
		}
	}
	t.dir = dir
	if t.set, err = dataset.Open(dir); err != nil {
		return err
	}
	if t.set.Stats.LabelEntries > 0 { // else an error follows, which says all that warnings would
		for _, w := range t.set.Warnings {
			t.a.ui.Warn("%s", w)
		}
	}
	return nil
}

// scratch is the folder that ingested data goes to.
func (t *training) scratch() string {
	if t.work == nil {
		return t.temp
	}
	return t.work.path
}

func (t *training) ingest(ctx context.Context) (string, error) {
	dir := filepath.Join(t.scratch(), "data")
	p := &ingestProgress{ui: t.a.ui}
	defer p.end()
	o := dataset.Options{
		Paths: t.o.data, Out: dir, Replace: true, Text: t.o.text, ZeroBased: t.o.zeroBased,
		FS: fs.Local{In: t.a.stdin}, Threads: t.o.threads, Progress: p.set,
	}
	if t.o.memory > 0 {
		o.MemoryBytes = max(t.o.memory/4, 1<<20)
	}
	_, err := dataset.Ingest(ctx, o)
	return dir, err
}

// specify makes the job's specification and the tree, which checks structure and
// labels against one another.
func (t *training) specify() error {
	t.spec = &taxonv1.JobSpec{Options: t.o.proto(), Data: describeData(t.set)}
	if err := t.specifyStructure(); err != nil {
		return err
	}
	tree, warnings, err := jobspec.Tree(t.spec)
	if err == nil {
		err = jobspec.Learnable(t.spec.Data, t.set.Vocabulary != nil)
		if err != nil && t.o.warm != "" && t.set.Matrix.Cols > 0 {
			err = fmt.Errorf("%w (--warm-start takes weights from %s, not instances: give those of all classes)", err, t.o.warm)
		}
	}
	if err != nil {
		return fs.Inputf(t.o.data[0], 0, "%w", err)
	}
	if o := t.o; o.given != nil && o.given("anchor") && !o.flat() && !tree.IsGraph() {
		return usagef("train: --anchor is for class graphs, and %s is a tree: leave it out", o.hierarchy)
	}
	for _, w := range warnings {
		t.a.ui.Warn("%s", w)
	}
	t.tree = tree
	if t.o.loss == "logistic" && t.tree.IsGraph() && jobspec.Uncertified(t.spec) {
		t.a.ui.Warn("with --anchor 0 and the logistic loss the objective may have no minimum: the training ends when it hardly falls any more, or at --max-sweeps; an anchor above 0 (default 0.01) gives it one, and a certificate")
	}
	return nil
}

// flat says whether the method trains without a structure, which is then for evaluation only.
func (o *trainOptions) flat() bool { return o.oneVersusRest() || o.method == "mlr" }

// oneVersusRest says whether the method trains each class for itself.
func (o *trainOptions) oneVersusRest() bool { return o.method == "bsvm" || o.method == "blr" }

// specifyStructure puts the structure into the specification, in the way it is read.
func (t *training) specifyStructure() error {
	s := t.structure
	if err := s.CheckLabels(t.o.hierarchy, t.set.Labels); err != nil {
		return err
	}
	if err := t.edges.CheckLabels(t.o.graph, t.set.Labels); err != nil {
		return err
	}
	switch {
	case t.o.flat():
		return nil
	case t.edges != nil:
		t.spec.Structure = &taxonv1.Structure{Names: t.edges.Names, Parents: t.edges.Parents, Children: t.edges.Children, Graph: true}
		return nil
	case s == nil:
		return nil
	case !s.IsDAG():
		t.spec.Structure = &taxonv1.Structure{Names: s.Names, Parents: s.Parents, Children: s.Children}
		return nil
	}
	switch t.o.dag {
	case "first-parent":
		s = s.FirstParent()
		t.spec.Structure = &taxonv1.Structure{Names: s.Names, Parents: s.Parents, Children: s.Children}
	case "graph":
		if t.o.schedule == "parity" {
			return fs.Inputf(t.o.hierarchy, 0, "some classes have several parents, and --schedule parity needs a tree: add --dag first-parent, or use another schedule")
		}
		if s.IsReversed() {
			t.a.ui.Warn("%s: classes have several parents, but none has several children: lines are PARENT CHILD, and the two columns seem to be swapped", t.o.hierarchy)
		}
		t.a.ui.Note("%s: some classes have several parents: read as a graph (--dag first-parent makes it a tree)", t.o.hierarchy)
		t.spec.Structure = &taxonv1.Structure{Names: s.Names, Parents: s.Parents, Children: s.Children, Graph: true}
	default:
		return fs.Inputf(t.o.hierarchy, 0, "some classes have several parents: add --dag first-parent to keep the first parent of each, or --dag graph")
	}
	return nil
}

// finished returns the stored report if the model is there already, or in the working folder
// for want of its cut-offs. It must be of the same data and options.
func (t *training) finished(ctx context.Context) (*model.Report, error) {
	dir := t.o.out
	if t.o.force {
		return nil, nil
	}
	if !model.IsModel(dir) {
		if dir = t.work.finished(); !model.IsModel(dir) {
			return nil, nil
		}
	}
	m, err := model.ReadManifest(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: use --force to train anew", err)
	}
	if m.Data.Fingerprint != t.set.Fingerprint {
		return nil, usagef("%s: holds a model of other data: choose another --out, or use --force to replace it", t.o.out)
	}
	if m.Options.Graph != t.graphSum() {
		return nil, usagef("%s: holds a model of another graph: choose another --out, or use --force to replace it", t.o.out)
	}
	if err := t.otherCaps(m, dir); err != nil {
		return nil, err
	}
	if diff := optionsDiffer(m.Options, t.modelOptions()); diff != "" {
		return nil, usagef("%s: holds a model trained with other options (%s): choose another --out, or use --force to replace it", t.o.out, diff)
	}
	if err := t.prunedAlike(m); err != nil {
		return nil, err
	}
	full, err := model.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: use --force to train anew", err)
	}
	defer full.Close()
	if !sameStructure(full.Structure, t.structure) {
		return nil, usagef("%s: holds a model of another hierarchy: choose another --out, or use --force to replace it", t.o.out)
	}
	r := &m.Report
	switch missing := full.Cutoffs == nil && t.wantsCutoffs(); {
	case missing && dir == t.o.out:
		r, err = t.fitCutoffs(ctx, dir, r)
	case missing:
		r, err = t.complete(ctx, r)
	case dir != t.o.out:
		err = model.Publish(dir, t.o.out)
	default:
		t.a.ui.Note("%s is finished: nothing to do (--force trains anew)", t.o.out)
	}
	if err != nil {
		return nil, err
	}
	t.work.remove()
	return r, nil
}

// longRows is the C ||x||^2 from which inner solves converge slowly.
const longRows = 100

// maxSquaredLength is what float32 sums of products can hold.
const maxSquaredLength = 1e36

// checkLengths tells of data that was not normalised, and refuses what overflows.
func (t *training) checkLengths() error {
	longest := 0.0
	for i := range t.set.Matrix.Rows {
		_, values := t.set.Matrix.Row(i)
		n := t.o.bias * t.o.bias
		for _, v := range values {
			n += float64(v) * float64(v)
		}
		if n > maxSquaredLength {
			return fs.Inputf(t.o.data[0], 0, "instance %d has values too large to compute with (length %.3g): scale the data", i+1, math.Sqrt(n))
		}
		longest = max(longest, n)
	}
	if t.o.c*longest > longRows {
		t.a.ui.Warn("C times the squared length of an instance is up to %.3g: training may take many sweeps; scale instances to unit length, or lower C", t.o.c*longest)
	}
	return nil
}

// train runs the job on an embedded cluster and writes the model.
func (t *training) train(ctx context.Context, from *engine.Checkpoint) (report *model.Report, err error) {
	t.usage.start()
	t.scores = t.newScores(ctx, from != nil)
	config, job := t.engineConfig(), "train"
	t.driving = &driver.Driver{Dir: t.o.mr.drive, Job: t.o.mr.driveID, Out: t.o.out}
	defer func() { t.driving.End(endedDocument(report, err)) }()
	if t.o.mr.on() {
		if t.o.mr.drive != "" {
			job = t.o.mr.driveID
		}
		t.mr, err = t.mapReduce(ctx, from)
		if t.mrDone != nil {
			defer t.mrDone()
		}
		if err != nil {
			return nil, err
		}
		config.Failed = t.mrFailed
		plan, err := coordinator.NewPlan(t.spec)
		if err != nil {
			return nil, err
		}
		config.Backend, config.Slots = t.mr, slotsFor(plan)
	}
	e, err := engine.Start(config)
	if err != nil {
		return nil, err
	}
	t.scores.engine = e
	defer func() {
		t.scores.engine = nil // or what its store holds would stay while cut-offs are fitted
		err = errors.Join(err, e.Close())
	}()
	if err := t.driving.Listen(e.RegisterJobs); err != nil {
		return nil, err
	}
	if from != nil {
		if job, err = e.Resume(ctx, from); err != nil {
			return nil, err
		}
		t.a.ui.Note("%s", t.told)
		t.driving.Rename(job)
	} else if err = t.submit(ctx, e, job); err != nil {
		return nil, err
	}
	st, err := t.follow(ctx, e, job)
	if err != nil {
		return nil, err
	}
	t.usage.stop()
	if t.mr != nil { // its tasks ran elsewhere
		t.usage.cpuSeconds += st.GetCpuSeconds()
	}
	return t.write(ctx, e, st)
}

func (t *training) engineConfig() engine.Config {
	c := engine.Config{
		Slots: workers(t.o.threads), Shards: t.o.stores, Checkpoints: func(string) string { return t.work.checkpoint() },
		CheckpointEvery: time.Duration(t.o.pause * float64(time.Second)), Spent: t.usage.spent,
		Open:   func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return t.set, nil },
		Failed: func(err error) { t.a.ui.Warn("%v", err) },
	}
	if t.o.evalEvery > 0 {
		c.Show = t.scores.show
	}
	if t.o.store == "badger" {
		c.BadgerDir = t.work.join("store")
		_ = os.RemoveAll(c.BadgerDir) // values of a killed run: the checkpoint holds what counts
	}
	if limit := t.o.memory; limit > 0 {
		c.ShardBytes = uint64(limit) / uint64(max(t.o.stores, 1))
	} else {
		c.ShardBytes = 1 << 40 // bounded by fits
	}
	return c
}

// write assembles the model from the store and publishes it. The training is over, so
// an interrupt no longer takes it back.
func (t *training) write(ctx context.Context, e *engine.Engine, st *taxonv1.JobStatus) (*model.Report, error) {
	trace := jobs.TraceOf(st)
	t.scores.into(trace)
	return t.publish(context.WithoutCancel(ctx), e, st, trace)
}
