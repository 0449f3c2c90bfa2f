package tune

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/engine"
	"taxon/internal/app/train"
	"taxon/internal/cluster/jobs"
	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/internal/model/form"
	"taxon/internal/model/measure"
	"taxon/internal/model/parallel"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
)

// Run searches, or continues the search in o.Train.Out, and writes the outcome there. If ctx is
// cancelled, finished trainings are kept and the error says how to continue.
func Run(ctx context.Context, o *Options, ui progress.Reporter) (_ *Table, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if n := o.Train.Threads; n > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	}
	s, err := open(ctx, o, &once{Reporter: ui, shown: map[string]bool{}})
	if err != nil {
		return nil, err
	}
	r, err := s.search(ctx)
	if err != nil || o.NoTrain {
		return r, err
	}
	return r, s.train(ctx, r)
}

// once is a Reporter that shows each warning once, because the last training reads the same data
// again.
type once struct {
	progress.Reporter
	mu sync.Mutex
	// shown holds the warnings shown so far.
	shown map[string]bool
}

func (o *once) Warn(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !o.shown[text] {
		o.shown[text] = true
		o.Reporter.Warn("%s", text)
	}
}

// search finds the options and writes the outcome into the folder.
func (s *search) search(ctx context.Context) (r *Table, err error) {
	defer func() { err = errors.Join(err, s.close()) }()
	if s.o.Cluster == nil {
		defer s.largest.CollectOften(s.together)()
	}
	if r, err = s.run(ctx); err != nil {
		return nil, s.interrupted(ctx, err)
	}
	if err := r.write(s.record); err != nil {
		return nil, err
	}
	if m := s.remote; m != nil {
		if err := m.clean(ctx); err != nil {
			return nil, err
		}
	}
	if !r.TimeUp {
		_ = s.record.disk.RemoveAll(s.record.join(statesDir)) // nothing begins at them any more
	}
	return r, nil
}

// strategy decides what is trained next and what is dropped.
type strategy interface {
	// run tries points until the strategy is done. It returns errTimeUp if the time ended it.
	run(ctx context.Context) error
	// candidates yields all points.
	candidates() iter.Seq[*candidate]
	// choose selects a point of the table. It returns false if there is none.
	choose(*Table) bool
	// explain adds to the table which options mattered.
	explain(*Table)
	// on returns the folds [from, to) on which every point that was not dropped is measured.
	on() (from, to int)
}

// search is one run of a search.
type search struct {
	o     *Options
	ui    progress.Reporter
	goal  *measure.Measure
	clock *clock
	// work is the scratch folder.
	work   *train.Work
	record record
	// whole is the training on all data, with the tree of all data.
	whole *train.Training
	// vectors holds, for text data, a training for each configuration of features.
	vectors map[dataset.Words]*train.Training
	// largest is the training that needs the most memory, and together is how many of it fit side
	// by side.
	largest  *train.Training
	together int
	// slots is the number of tasks of trainings that run at a time.
	slots int
	folds *partition
	// paths are the points of a grid.
	paths [][]PathStep
	// starts are the first points of a hill climb.
	starts  []Point
	untried []Untried
	// short reports that something was skipped for lack of time.
	short bool
	// reading is the number of seconds that reading the data took.
	reading float64
	meter   *meter
	trainer *trainer
	// remote runs the trainings on a cluster. If it is nil, they run in this process.
	remote *remote
}

// open reads the structure and the data, assigns rows to folds, and locks the folder. Only one
// process at a time searches in a folder.
func open(ctx context.Context, o *Options, ui progress.Reporter) (_ *search, err error) {
	s := &search{o: o, ui: ui, record: recordIn(ctx, o.Train.Out), clock: newClock(o.Time)}
	if s.goal, err = goalOf(o.Goal); err != nil {
		return nil, err
	}
	if err := s.record.free(); err != nil {
		return nil, err
	}
	// A search uses the lock and the scratch folder of a training of the same name.
	if s.work, err = train.OpenWork(o.Train.Out, o.Train.Force); err != nil {
		return nil, err
	}
	if s.work.HasCheckpoint() {
		s.work.Close()
		return nil, option.Errorf("%s: holds the checkpoint of a training: choose another ‹out›", s.work.Keep)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	if s.meter, err = newMeter(s); err != nil {
		return nil, err
	}
	if err := s.record.begin(s.identity(), o.Train.Force); err != nil {
		return nil, err
	}
	var before struct {
		Goal string `json:"goal"`
	}
	there, err := s.record.readJSON(s.record.join(tableFile), &before)
	if there && err == nil && before.Goal != s.goal.Key {
		ui.Warn("%s was searched for the best %s: its trainings are measured by %s now, and its job file "+
			"and model are replaced", o.Train.Out, before.Goal, s.goal.Key)
	}
	s.trainer = &trainer{o: o, record: s.record, meter: s.meter}
	if o.Cluster != nil {
		s.remote, s.slots, err = openRemote(ctx, o.Cluster, s.record)
		s.trainer.runner = s.remote
		return s, err
	}
	s.trainer.runner = local{s.trainer}
	s.slots = s.threads()
	s.trainer.engine, err = engine.Start(engine.Config{
		Slots: runtime.GOMAXPROCS(0), Shards: 1, ShardBytes: 1 << 40, // bounded by Fit
		Scratch:     s.work.Path,
		Open:        s.folds.open,
		Failed:      func(err error) { ui.Warn("%v", err) },
		Checkpoints: s.record.checkpoint, CheckpointEvery: time.Duration(o.Train.Pause * float64(time.Second)),
	})
	return s, err
}

// read opens the data, returns an error if they do not permit a search, and assigns rows to folds.
func (s *search) read(ctx context.Context) (err error) {
	start := Point{Method: s.o.Grid.Methods[0], Values: s.o.Grid.textStart()}
	o := s.o.trained(start)
	o.Said = nil
	o.Job = s.o.job(start)
	if s.whole, err = train.Open(ctx, &o, s.ui, s.work.Path); err != nil {
		return err
	}
	s.vectors = map[dataset.Words]*train.Training{s.o.words(start): s.whole}
	if err := s.whole.CheckLengths(); err != nil {
		return err
	}
	set := s.whole.Set
	if set.Documents() < s.o.Folds {
		return fs.Inputf(o.Data[0], 0, "%d instances can't make %d folds: lower ‹folds›", set.Documents(), s.o.Folds)
	}
	if err := s.points(ctx); err != nil {
		return err
	}
	s.reading = s.clock.now().Sub(s.clock.began).Seconds()
	s.folds = &partition{whole: set, taken: map[foldOf]*heldFold{}, fold: train.Folds(set, s.o.Folds,
		registry.Seed(s.o.Train.Job))}
	if fewer, single := CountRareLabels(set.LabelSizes(), s.o.Folds); fewer > 0 {
		s.ui.Note("%s have fewer instances than the %d folds, %d of them only one: some folds train or measure without "+
			"an instance of them",
			format.Counted(int64(fewer), "class", "classes"), s.o.Folds, single)
	}
	return nil
}

// points lists the points to train, and computes how many trainings of the largest fit side by
// side. A hill climb skips points that do not fit the data or the memory.
func (s *search) points(ctx context.Context) (err error) {
	for name := range s.o.Grid.Values {
		for _, m := range s.o.Grid.Methods {
			if o := s.o.Grid.find(m, name); o != nil && o.On == method.Graphs && s.structure() != method.Graphs {
				return option.Errorf("tune: ‹%s› is for class graphs: add ‹graph=FILE›, or leave it out", name)
			}
		}
	}
	if !s.o.climbsHill() {
		s.paths = s.o.Grid.Paths(s.structure())
		for _, path := range s.paths {
			if _, err := s.features(ctx, path[0].Base); err != nil {
				return err
			}
			t, err := s.trainable(path[0].Base)
			if err != nil {
				return err
			}
			s.rememberLargest(t)
		}
		return s.fit()
	}
	for _, start := range s.o.Grid.starts(s.structure()) {
		t, err := s.trainable(start)
		if err == nil && s.o.Cluster == nil {
			_, err = t.Fit(1)
		}
		if err != nil {
			s.skip(start, strings.TrimPrefix(strings.TrimPrefix(err.Error(), "train: "), "tune: "))
			if len(s.o.Grid.Methods) == 1 {
				return err
			}
			continue
		}
		s.rememberLargest(t)
		s.starts = append(s.starts, start)
	}
	if s.largest == nil {
		return option.Errorf("tune: no method fits the data: %s", s.untried[0].Why)
	}
	return s.fit()
}

// fit computes how many trainings run side by side. On a cluster the workers' own memory limits
// apply.
func (s *search) fit() (err error) {
	if s.together = parallelPaths; s.o.Cluster == nil {
		s.together, err = s.largest.Fit(parallelPaths)
	}
	return err
}

// rememberLargest keeps t if it needs more memory than the largest training so far.
func (s *search) rememberLargest(t *train.Training) {
	if s.largest == nil || t.Needs(1) > s.largest.Needs(1) {
		s.largest = t
	}
}

// skip records the reason why a point was not tried.
func (s *search) skip(p Point, why string) {
	for i := range s.untried {
		if s.untried[i].Equal(p) {
			s.untried[i] = Untried{Point: p, Why: why}
			return
		}
	}
	s.untried = append(s.untried, Untried{Point: p, Why: why})
}

// threads returns the number of threads.
func (s *search) threads() int { return parallel.Threads(s.o.Train.Threads) }

// trainable returns a training with the point's method. It returns an error if the method rejects
// the problem.
func (s *search) trainable(p Point) (*train.Training, error) {
	t, err := s.whole.On(progress.Discard{}, s.o.job(p), s.whole.Set, false)
	if err != nil {
		return nil, err
	}
	m, err := registry.Lookup(p.Method)
	if err != nil {
		return nil, option.Errorf("tune: %w", err)
	}
	if f := registry.Form(t.Spec.GetOptions()); s.goal.Probable && (!f.Probable() ||
		f.Predictor != form.Linear) {
		return nil, option.Errorf("tune: ‹goal=%s›: scores by %s are no probabilities", s.o.Goal, p.Method)
	}
	if err := method.Violations(m.Check(&method.Problem{Spec: t.Spec, Tree: t.Tree})); err != nil {
		return nil, option.Errorf("tune: %w", err)
	}
	if err := registry.NoGap(t.Spec); err != nil {
		return nil, option.Errorf("tune: %w", err)
	}
	return t, nil
}

// close stops the engine and removes the scratch folder.
func (s *search) close() (err error) {
	if s.trainer != nil && s.trainer.engine != nil {
		err = s.trainer.engine.Close()
	}
	s.closeFeatures()
	s.work.Remove()
	s.work.Close()
	return err
}

// run runs the strategy and lists the points that were tried.
func (s *search) run(ctx context.Context) (*Table, error) {
	if s.o.settled() {
		r := &Table{Goal: s.goal.Key, Low: s.goal.Low, OfFolds: s.o.Folds, Gap: registry.Number(s.o.Train.Job, "gap"),
			Instances: len(s.folds.fold), Rule: "only", Best: -1, Chosen: -1,
			Options: s.starts[0], Points: []*TablePoint{}, JobFile: s.record.join(jobFile), Measure: s.goal}
		return r, s.writeJob(r.Options, "from taxon tune, which had nothing to search")
	}
	var way strategy = newHillClimb(s)
	if !s.o.climbsHill() {
		way = newRace(s)
	}
	err := way.run(ctx)
	if err != nil && !errors.Is(err, errTimeUp) {
		return nil, err
	}
	from, to := way.on()
	folds := to - from
	r := &Table{Goal: s.goal.Key, Low: s.goal.Low, Folds: folds, OfFolds: s.o.Folds,
		Gap:    registry.Number(s.o.Train.Job, "gap"),
		TimeUp: err != nil || s.short, Sample: from < 0,
		Instances: len(s.folds.fold), Measured: s.folds.rows(from, to), Measure: s.goal}
	for c := range way.candidates() {
		if at := slices.Index(c.results, nil); at >= 0 { // time was up
			c.results = c.results[:at]
		}
		if c.skipped || len(c.results) == 0 {
			r.Skipped++
			continue
		}
		row, err := s.row(ctx, c.point, from, c.results)
		if err != nil {
			return nil, err
		}
		r.Points = append(r.Points, row)
	}
	if !way.choose(r) {
		if len(s.untried) > 0 && !s.short && !errors.Is(err, errTimeUp) {
			return nil, fmt.Errorf("tune: no training succeeded; %s: %s", s.untried[0].Name(), s.untried[0].Why)
		}
		return nil, option.Errorf("tune: ‹time=%s› was not enough for one training: raise it, lower ‹folds›, or name a "+
			"quicker ‹method›", s.o.Time)
	}
	way.explain(r)
	for _, u := range s.untried { // except those that were tried later
		if !slices.ContainsFunc(r.Points, func(p *TablePoint) bool { return p.Equal(u.Point) }) {
			r.Untried = append(r.Untried, u)
		}
	}
	chosen, rule := r.Points[r.Chosen], map[string]string{"best": "the best value", "one-se": "the smallest C within " +
		"one standard error of the best value",
		"quickest": "the quickest to train of those that are as good but for chance"}[r.Rule]
	r.JobFile = s.record.join(jobFile)
	return r, s.writeJob(chosen.Point, fmt.Sprintf("chosen by taxon tune, %s: %s (standard error %s) on %s",
		rule, s.goal.Words(chosen.Value), chosen.Error(s.goal, "unknown: one fold has none"), s.measuredOn(from, to)))
}

// row measures a point on the rows of all folds on which it was tried, taken together.
func (s *search) row(ctx context.Context, p Point, from int, results []*result) (*TablePoint, error) {
	whole, err := s.meter.over(p, from, from+len(results))
	if err != nil {
		return nil, err
	}
	out := &TablePoint{p, Figures{Tried: len(results), MicroF1: whole.MicroF1, MacroF1: whole.MacroF1}}
	if out.Value, err = s.meter.value(&whole); err != nil {
		return nil, err
	}
	for _, r := range results {
		v, ok := s.goal.Of(r.Measures)
		if !ok { // the record does not name it
			fold, err := s.meter.over(p, r.Fold, r.Fold+1)
			if err != nil {
				return nil, err
			}
			if v, err = s.meter.value(&fold); err != nil {
				return nil, err
			}
		}
		out.FoldValues = append(out.FoldValues, v)
		out.CPUSeconds += r.CPUSeconds
		out.Sweeps += r.Sweeps
		if r.StoppedBy != "gap" && r.StoppedBy != "stationary" {
			out.Unfinished++
		}
	}
	if len(results) > 1 {
		spread := NewScore(out.Value, out.FoldValues).Spread
		out.StandardError = &spread
	}
	return out, nil
}

// measuredOn describes the rows on which a value is based: those of folds from..to-1.
func (s *search) measuredOn(from, to int) string {
	on := fmt.Sprintf("%d of %d folds", to-from, s.o.Folds)
	if from < 0 {
		on = "a sample"
	}
	return fmt.Sprintf("%s, %s of %s", on, format.Count(int64(s.folds.rows(from, to))),
		format.Counted(int64(len(s.folds.fold)), "instance", "instances"))
}

// writeJob writes a point as a job file.
func (s *search) writeJob(p Point, origin string) error {
	o := s.o.trained(p)
	return s.record.writeJob(&o, s.o.job(p), p.Shift(), s.structure(), origin)
}

// structure returns the kind of structure that structured methods train on.
func (s *search) structure() method.Structure {
	t, given := &s.o.Train, s.whole.Structure
	switch {
	case t.Graph != "" || given != nil && given.IsDAG() && t.DAG == "graph":
		return method.Graphs
	case given != nil:
		return method.Structured
	}
	return method.Anything
}

// identity returns the properties that another run must share to continue this search.
func (s *search) identity() identity {
	id := identity{Format: searchFormat, Options: s.whole.Identity(), Said: registry.Values{}, Rough: s.o.rough,
		Losses: s.goal.Probable, Folds: s.o.Folds, Text: s.o.Train.Text}
	if n := s.goal.Places(); n > measure.RankedPlaces {
		id.Places = n
	}
	o := &id.Options.Options
	o.Method, o.Loss, o.Bias = "", "", 0 // these are searched
	for _, p := range registry.Tunable() {
		delete(o.Own, p.WireKey())
	}
	for name, v := range s.o.Train.Said {
		if p := registry.Option(name); v != p.Default && p.Effect != method.OnNothing {
			id.Said[name] = v
		}
	}
	return id
}

// interrupted returns the error of an interrupted search, worded for the user.
func (s *search) interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	best := ""
	if path := s.record.join(jobFile); s.record.has(path) {
		best = fmt.Sprintf("; the best point so far is in %s", path)
	}
	if s.o.Cluster != nil {
		best += "; running jobs continue in the cluster, and are found there"
	}
	return jobs.Interruptedf("interrupted after %s%s; to continue from there: %s",
		format.Counted(int64(s.record.finished()), "training", "trainings"), best, s.o.Train.Again)
}
