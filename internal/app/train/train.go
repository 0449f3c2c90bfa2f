package train

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"google.golang.org/protobuf/proto"

	"taxon/coordinator/footprint"
	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/engine"
	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	"taxon/internal/jobspec"
	"taxon/internal/model"
	"taxon/internal/model/calibration"
	"taxon/internal/model/pruning"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker/program"
)

// Training is one run, from files to a published model. Callers of Open may read its exported
// fields.
type Training struct {
	// Dir is the folder of Set.
	Dir string
	// Set is the ingested data.
	Set *dataset.Set
	// Structure is the hierarchy as the user gave it. It is nil if there is none, or if it is a
	// graph.
	Structure *taxonomy.Structure
	// Edges are the edges of Options.Graph. They are nil if there is no graph.
	Edges *taxonomy.Structure
	// Spec is the specification of the job, with the structure that is trained on.
	Spec *taxonv1.JobSpec
	// Tree holds the nodes of the job's structure in the coordinator's order.
	Tree *taxonomy.Tree

	ui progress.Reporter
	o  *Options
	// work is the working folder. It is nil if the training writes no model.
	work *Work
	// mode is the memory mode. Fit sets it.
	mode footprint.Mode
	// scratch is a folder for temporary files.
	scratch string
	// usage measures CPU time. It is never nil if a model is written.
	usage *usage
	// resumeNote is a message about the checkpoint from which the training is resumed.
	resumeNote string
	// learned caches the structures that were learned from the data. It is nil if there are none.
	learned *learned
	// warmSum is the digest of the weights of Options.Warm, as in weights_sha256.
	warmSum string
	scores  *sweepScores
	// left reports that an engine was abandoned and may still read Set.
	left bool

	// earlySum is the digest of the data of Options.EarlyStop.
	earlySum string
}

// Run trains the model at o.Out and returns its report. If the folder already holds the finished
// model, Run returns the stored report. If it holds a checkpoint of the same training, Run resumes
// it.
func Run(ctx context.Context, o *Options, ui progress.Reporter) (*model.Report, error) {
	if err := o.Validate("train"); err != nil {
		return nil, err
	}
	if o.Out == "" {
		return nil, option.Errorf("train: ‹out=%q›: a model is a folder, give its path", o.Out)
	}
	if err := model.Replaceable(o.Out); err != nil { // before any work
		return nil, err
	}
	work, err := OpenWork(o.Out, o.Force)
	if err != nil {
		return nil, err
	}
	defer work.Close()
	if o.Remote != nil {
		if err := work.keepState(o.Remote, o.Force); err != nil {
			work.abandon()
			return nil, err
		}
	}
	if o.Threads > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.Threads))
	}
	report, err := run(ctx, o, ui, work)
	if err != nil {
		err = work.kept(ctx, err)
		work.abandon()
		return nil, err
	}
	return report, nil
}

// Open reads the structure and the data, and makes the job's specification. Data that are not yet
// ingested are ingested into the folder scratch. The caller must call Close.
func Open(ctx context.Context, o *Options, ui progress.Reporter, scratch string) (t *Training, err error) {
	t = &Training{ui: ui, o: o, scratch: scratch, usage: new(usage), learned: new(learned)}
	if err := t.readStructure(ctx); err != nil {
		return nil, err
	}
	if err := t.readWarm(); err != nil {
		return nil, err
	}
	if err := t.openData(ctx); err != nil {
		return nil, err
	}
	if err = t.learn(ctx); err == nil {
		err = fs.Compute(ctx, t.specify)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Of returns the training of a job that ran on a cluster. The training has no Set and serves only
// to describe the model.
func Of(spec *taxonv1.JobSpec) (t *Training, err error) {
	t = &Training{o: &Options{Job: spec.GetOptions()}, Spec: spec}
	t.takeStructure()
	t.Tree, _, err = registry.Tree(spec)
	return t, err
}

// On returns a training with other options on some of the rows. It has the classes of all data, so
// a class without instances among the rows has only negative ones. If alone is set, or the method
// needs both positive and negative instances of each class, only classes that the rows support are
// kept. A learned hierarchy is learned again from the rows.
func (t *Training) On(ui progress.Reporter, job *taxonv1.Options, rows *dataset.Set,
	alone bool) (_ *Training, err error) {
	o := *t.o
	o.Job = job
	on := &Training{ui: ui, o: &o, usage: new(usage), scratch: t.scratch, Set: rows, Structure: t.Structure,
		Edges: t.Edges, learned: t.learned}
	if err := on.learn(context.Background()); err != nil {
		return nil, err
	}
	described, leaves := t.Set, rows != t.Set && registry.Populated(job.GetMethod())
	if alone || leaves {
		described = rows
	}
	on.Spec = &taxonv1.JobSpec{Options: job, Data: program.DescribeData(described)}
	on.Spec.Data.Fingerprint = rows.Fingerprint
	if leaves {
		on.Spec.Options = proto.Clone(job).(*taxonv1.Options)
		on.Spec.Options.Set("prune", "empty")
		for l, n := range on.Spec.Data.LabelInstances {
			// The tree must leave out a class of all instances, too.
			if uint64(n) == on.Spec.Data.Instances {
				on.Spec.Data.LabelInstances[l] = 0
			}
		}
	}
	if err := on.specifyStructure(); err != nil {
		return nil, err
	}
	on.Tree, _, err = registry.Tree(on.Spec) // warnings were given for the whole data
	return on, err
}

// Close releases what Open opened.
func (t *Training) Close() {
	if !t.left {
		// nothing was written
		_ = t.Set.Close()
	}
}

// run does what Run does, within the working folder.
func run(ctx context.Context, o *Options, ui progress.Reporter, work *Work) (*model.Report, error) {
	t, err := Open(ctx, o, ui, work.Path)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	t.work = work
	if o.Calibrate == calibration.Levels && (!t.joint() || t.Tree.MaxDepth() < 1) {
		return nil, option.Errorf("train: ‹calibrate=levels› needs a hierarchy that the method uses, and one label an " +
			"instance: choose temperature or isotonic")
	}
	for _, path := range []string{o.Test, o.EarlyStop} {
		if err := t.checkTest(ctx, path); err != nil {
			return nil, err
		}
	}
	if err := t.checkEarlyStop(); err != nil {
		return nil, err
	}
	if t.earlySum, err = sumOf(o.EarlyStop); err != nil {
		return nil, err
	}
	if r, err := t.finished(ctx); r != nil || err != nil {
		return r, err
	}
	// remotely, large data are elsewhere
	if o.Remote == nil {
		if err := fs.Compute(ctx, func() error {
			_, err := t.Fit(1)
			return err
		}); err != nil {
			return nil, err
		}
		t.noteMode()
	}
	var asBefore func()
	if err := fs.Compute(ctx, func() error {
		asBefore = t.CollectOften(1)
		return nil
	}); err != nil {
		return nil, err
	}
	defer asBefore()
	if err := t.CheckLengths(); err != nil {
		return nil, err
	}
	checkpoint, err := work.begin(t.Identity())
	if err != nil {
		return nil, err
	}
	if checkpoint != nil {
		if t.resumeNote, err = t.adoptCheckpoint(checkpoint); err != nil {
			return nil, err
		}
	}
	work.begun = true
	report, err := t.train(ctx, checkpoint)
	if err == nil && t.wantsMore() {
		report, err = t.complete(ctx, report, model.Meta{})
	}
	if err == nil {
		work.Remove() // not earlier, as the engine's shards may be in the folder
	}
	return report, err
}

// specify makes the job's specification and its tree. It returns an error if structure, labels and
// options do not fit together.
func (t *Training) specify() error {
	t.Spec = &taxonv1.JobSpec{Options: t.o.Job, Data: program.DescribeData(t.Set)}
	if err := t.specifyStructure(); err != nil {
		return err
	}
	m, err := registry.Lookup(t.o.Job.Method)
	if err != nil {
		return option.Errorf("%w", err)
	}
	tree, warnings, err := registry.Tree(t.Spec)
	if err == nil {
		err = t.Set.Featureless()
	}
	if err == nil {
		err = jobspec.Learnable(t.Spec.Data, func() bool {
			more := proto.Clone(t.Spec).(*taxonv1.JobSpec)
			more.Data.Instances++
			more.Data.NoLabel++
			return m.Check(&method.Problem{Spec: more, Tree: tree}) == nil
		})
		if err != nil && t.o.Warm != "" && t.Set.Matrix.Cols > 0 {
			err = fmt.Errorf("%w (‹warm-start› takes weights from %s, not instances: give those of all classes)", err, t.o.Warm)
		}
	}
	if err != nil {
		return fs.Inputf(t.o.Data[0], 0, "%w", err)
	}
	problem := &method.Problem{Spec: t.Spec, Tree: tree}
	if err := method.Violations(m.Check(problem)); err != nil {
		return option.Errorf("%w", err)
	}
	if (t.o.Threshold > 0 || t.o.ModelSize > 0) && registry.Form(t.Spec.GetOptions()).Draws > 0 {
		return option.Errorf("train: ‹threshold› and ‹model-size›: a model of method %s averages draws, which have to be "+
			"whole: leave them out", t.o.Job.Method)
	}
	for _, p := range registry.Of(t.o.Job.Method) {
		if _, said := t.o.Said[p.Name]; said && p.With == "" && p.On == method.Graphs && !tree.IsGraph() {
			return option.Errorf("train: ‹%s› is for class graphs, and %s is a tree: leave it out", p.Name, t.o.Hierarchy)
		}
	}
	if c, ok := m.(method.Warner); ok {
		warnings = append(warnings, c.Warnings(problem)...)
	}
	for _, w := range warnings {
		t.ui.Warn("%s", w)
	}
	t.Tree = tree
	return nil
}

// specifyStructure adds the structure that is trained on to the specification.
func (t *Training) specifyStructure() error {
	s := t.Structure
	if err := s.CheckLabels(t.o.Hierarchy, t.Set.Labels); err != nil {
		return err
	}
	if err := t.Edges.CheckLabels(t.o.Graph, t.Set.Labels); err != nil {
		return err
	}
	graph := t.Edges != nil
	switch {
	case t.o.flat() || s == nil && !graph:
		return nil
	case graph:
		s = t.Edges
	case !s.IsDAG():
	case t.o.DAG == "first-parent":
		s = s.FirstParent()
	case t.o.DAG != "graph":
		return fs.Inputf(t.o.Hierarchy, 0, "some classes have several parents: add ‹dag=first-parent› to keep the first "+
			"parent of each, or ‹dag=graph›")
	default:
		if err := registry.NeedTree(t.o.Job); err != nil {
			return fs.Inputf(t.o.Hierarchy, 0, "some classes have several parents: %w, or add ‹dag=first-parent›",
				method.Violations(err))
		}
		if s.IsReversed() {
			t.ui.Warn("%s: classes have several parents, but none has several children: lines are PARENT CHILD, and the two "+
				"columns seem to be swapped", t.o.Hierarchy)
		}
		t.ui.Note("%s: some classes have several parents: read as a graph (‹dag=first-parent› makes it a tree)",
			t.o.Hierarchy)
		graph = true
	}
	t.Spec.Structure = &taxonv1.Structure{Names: s.Names, Parents: s.Parents, Children: s.Children, Graph: graph}
	return nil
}

// finished returns the stored report if the model is already in place, or if it is in the working
// folder and lacks only its cut-offs, which are then fitted. Data and options must be the same. It
// returns nil if there is no finished model.
func (t *Training) finished(ctx context.Context) (*model.Report, error) {
	dir := t.o.Out
	if t.o.Force {
		return nil, nil
	}
	if !model.IsModel(dir) {
		if dir = t.work.finished(); !model.IsModel(dir) {
			return nil, nil
		}
	}
	m, err := model.ReadManifest(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: use ‹force› to train anew", err)
	}
	if m.Data.Fingerprint != t.Set.Fingerprint {
		return nil, option.Errorf("%s: holds a model of other data: choose another ‹out›, or use ‹force› to replace it",
			t.o.Out)
	}
	if m.Options.Graph != t.graphSum() {
		return nil, option.Errorf("%s: holds a model of another graph: choose another ‹out›, or use ‹force› to replace it",
			t.o.Out)
	}
	if err := t.otherCaps(m, dir); err != nil {
		return nil, err
	}
	if diff := optionsDiffer(m.Options, t.modelOptions(), true); diff != "" {
		return nil, option.Errorf("%s: holds a model trained with other options (%s): choose another ‹out›, or use "+
			"‹force› to replace it", t.o.Out, diff)
	}
	if err := t.prunedAlike(m, dir); err != nil {
		return nil, err
	}
	full, err := model.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: use ‹force› to train anew", err)
	}
	defer full.Close()
	if !sameStructure(full.Structure, t.Structure) {
		return nil, option.Errorf("%s: holds a model of another hierarchy: choose another ‹out›, or use "+
			"‹force› to replace it", t.o.Out)
	}
	r := &m.Report
	switch missing := t.lacksCutoffs(full.Cutoffs) || t.lacksCalibration(full.Calibration); {
	case missing && dir == t.o.Out:
		if r, err = t.fitRest(ctx, dir, r, full.Meta); err == nil && t.lacksCalibration(full.Calibration) &&
			r.Calibration != nil && r.Calibration.Kind == t.o.Calibrate {
			t.ui.Note("%s was finished: a calibration (%s) was added to it, its weights are as they were", dir,
				r.Calibration.Kind)
		}
	case missing:
		r, err = t.complete(ctx, r, full.Meta)
	case dir != t.o.Out:
		r, err = t.keep(ctx, dir, r)
	default:
		t.ui.Note("%s is finished: nothing to do (‹force› trains anew)", t.o.Out)
	}
	if err != nil {
		return nil, err
	}
	t.work.Remove()
	return r, nil
}

// train runs the job on an engine in this process and writes the model.
func (t *Training) train(ctx context.Context, from *engine.Checkpoint) (report *model.Report, err error) {
	t.usage.start()
	t.scores = t.newScores(ctx, from != nil)
	config, job := t.engineConfig(), "train"
	if there := t.o.Remote; there != nil {
		defer there.Ended()
		if job, err = there.Configure(ctx, t, from, &config); err != nil {
			return nil, err
		}
	}
	e, err := engine.Start(config)
	if err != nil {
		return nil, err
	}
	t.scores.engine = e
	// preparing reports that a job is being prepared, which cannot be interrupted.
	preparing := false
	defer func() {
		// Otherwise the engine's store would stay in memory while cut-offs are fitted.
		t.scores.engine = nil
		if preparing && ctx.Err() != nil {
			t.left = true
			go func() { _ = e.Close() }() // the process ends first
			return
		}
		if closed := e.Close(); err == nil {
			err = closed
		}
	}()
	if t.o.Watch != nil {
		t.o.Watch(e.Jobs, func(st *taxonv1.JobStatus) any { return t.trace(st) })
		defer t.o.Watch(nil, nil)
	}
	if from != nil {
		if job, err = e.Resume(ctx, from); err != nil {
			return nil, err
		}
		t.ui.Note("%s", t.resumeNote)
	} else {
		preparing = t.o.Warm == "" && t.o.Remote == nil
		if err = t.submit(ctx, e, job); err != nil {
			return nil, err
		}
		preparing = false
	}
	st, err := t.follow(ctx, e, job)
	if err != nil {
		return nil, err
	}
	t.usage.stop()
	if t.o.Remote != nil { // its tasks ran elsewhere
		t.usage.cpuSeconds += st.GetCpuSeconds()
	}
	// The training is complete, so an interrupt no longer stops it.
	return t.publish(context.WithoutCancel(ctx), e, st, t.trace(st))
}

// engineConfig returns the configuration of the engine for this training.
func (t *Training) engineConfig() engine.Config {
	c := engine.Config{
		Slots: t.o.slots(), Shards: t.o.Stores, NoCache: t.mode >= footprint.Compact, Scratch: t.scratch,
		Checkpoints:     func(string) string { return t.work.checkpoint() },
		CheckpointEvery: time.Duration(t.o.Pause * float64(time.Second)), Spent: t.usage.spent,
		Open:   func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return t.Set, nil },
		Failed: func(err error) { t.ui.Warn("%v", err) },
	}
	if registry.Number(t.o.Job, method.EvalEvery.Name) > 0 {
		c.Show = t.scores.show
	}
	if t.o.Store == "badger" || t.mode == footprint.Spill {
		c.BadgerDir = t.work.Join("store")
		// A killed run may have left this; its state is in the checkpoint.
		_ = fs.Discard(c.BadgerDir)
	}
	if limit := t.o.Memory; limit > 0 {
		c.ShardBytes = uint64(limit) / uint64(max(t.o.Stores, 1))
	} else {
		c.ShardBytes = 1 << 40 // bounded by Fit
	}
	return c
}

// publish writes the model, pruned if Options.Threshold is set. It writes to the model's place, or
// to the working folder if something is still to be fitted on held-out rows.
func (t *Training) publish(ctx context.Context, e *engine.Engine, st *taxonv1.JobStatus,
	trace []model.TraceRow) (*model.Report, error) {
	to := t.o.Out
	if t.wantsMore() {
		to = t.work.finished()
	}
	if t.o.Threshold == 0 {
		return t.WriteModel(ctx, to, e, st, trace)
	}
	whole := t.work.Join("whole")
	defer func() { _ = fs.Discard(whole) }()
	report, err := t.WriteModel(ctx, whole, e, st, trace)
	if err != nil {
		return nil, err
	}
	m, err := model.Open(whole)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if _, err := pruning.Write(ctx, m, to, pruning.Options{Threshold: t.o.Threshold}, t.o.slots()); err != nil {
		return nil, err
	}
	return report, nil
}
