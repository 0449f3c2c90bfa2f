package tune

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/engine"
	"taxon/internal/eval"
	"taxon/internal/exit"
	"taxon/internal/fs"
	"taxon/internal/human"
	"taxon/internal/jobspec"
	"taxon/internal/labelset"
	"taxon/internal/tell"
	"taxon/internal/train"
)

// Run searches, or goes on with the search in o.Train.Out, and leaves the outcome there. If ctx
// ends, what is finished stays, and the error says how to go on.
func Run(ctx context.Context, o *Options, ui tell.Teller) (_ *Table, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if n := o.Train.Threads; n > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	}
	s, err := open(ctx, o, ui)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	defer s.largest.CollectOften(s.together)()
	r, err := s.run(ctx)
	if err != nil {
		return nil, s.ended(ctx, err)
	}
	if err := r.write(s.record); err != nil {
		return nil, err
	}
	_ = fs.RemoveAll(s.record.join(statesDir)) // nothing is left to begin at them
	return r, nil
}

// search is one run.
type search struct {
	o        *Options
	ui       tell.Teller
	goal     *eval.Measure
	work     *train.Work // scratch
	record   record
	whole    *train.Training // the data, and its tree as a training on all of it would have
	largest  *train.Training // the one that takes the most memory,
	together int             // and how many of it fit side by side
	folds    *partition
	paths    [][]Rung
	meter    *meter
	trainer  *trainer
}

// open reads structure and data, deals out the folds and takes the folder. One process
// searches in it at a time.
func open(ctx context.Context, o *Options, ui tell.Teller) (_ *search, err error) {
	s := &search{o: o, ui: ui, record: record{o.Train.Out}}
	if s.goal, err = goalOf(o.Goal); err != nil {
		return nil, err
	}
	if err := s.record.free(); err != nil {
		return nil, err
	}
	// The folder's lock and scratch are those of a training of that name.
	if s.work, err = train.OpenWork(o.Train.Out, o.Train.Force); err != nil {
		return nil, err
	}
	if s.work.HasCheckpoint() {
		s.work.Close()
		return nil, exit.Usagef("%s: holds the checkpoint of a training: choose another --out", s.work.Keep)
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
	if err := s.record.begin(ctx, s.identity(), o.Train.Force); err != nil {
		return nil, err
	}
	s.trainer = &trainer{o: o, record: s.record, whole: s.whole, meter: s.meter}
	s.trainer.engine, err = engine.Start(engine.Config{
		Slots: runtime.GOMAXPROCS(0), Shards: 1, ShardBytes: 1 << 40, // bounded by Fit
		Open:        s.folds.open,
		Failed:      func(err error) { ui.Warn("%v", err) },
		Checkpoints: s.record.checkpoint,
	})
	return s, err
}

// read opens the data, refuses what can't be searched on it, and deals out the folds.
func (s *search) read(ctx context.Context) (err error) {
	o := s.o.Train
	o.Said = nil
	o.Job = s.o.job(Point{Method: s.o.Grid.Methods[0]})
	if s.whole, err = train.Open(ctx, &o, s.ui, s.work.Path); err != nil {
		return err
	}
	if err := s.whole.CheckLengths(); err != nil {
		return err
	}
	set := s.whole.Set
	if set.Matrix.Rows < s.o.Folds {
		return fs.Inputf(o.Data[0], 0, "%d instances can't make %d folds: lower --folds", set.Matrix.Rows, s.o.Folds)
	}
	s.paths = s.o.Grid.Paths(s.structure())
	for _, path := range s.paths {
		t, err := s.trainable(path[0].Base)
		if err != nil {
			return err
		}
		if s.largest == nil || t.Needs(1) > s.largest.Needs(1) {
			s.largest = t
		}
	}
	if s.together, err = s.largest.Fit(parallelPaths); err != nil {
		return err
	}
	s.folds = &partition{whole: set, held: map[int]*heldFold{}, fold: labelset.Folds(set.LabelBegin, set.LabelIndex, len(set.Labels), s.o.Folds, s.o.Train.Job.GetSeed())}
	if fewer, single := Thin(set.PosBegin, s.o.Folds); fewer > 0 {
		s.ui.Note("%s have fewer instances than the %d folds, %d of them only one: some folds train or measure without an instance of them",
			human.Counted(int64(fewer), "class", "classes"), s.o.Folds, single)
	}
	return nil
}

// trainable is a training by the point's method, which has checked the problem.
func (s *search) trainable(p Point) (*train.Training, error) {
	t, err := s.whole.On(tell.Silent{}, s.o.job(p), s.whole.Set)
	if err != nil {
		return nil, err
	}
	if jobspec.Uncertified(t.Spec) {
		return nil, exit.Usagef("tune: --anchor 0: must be above 0, as without an anchor there is no gap to train to")
	}
	m, err := registry.Lookup(p.Method)
	if err != nil {
		return nil, exit.Usagef("tune: %w", err)
	}
	if err := method.Violations(m.Check(&method.Problem{Spec: t.Spec, Tree: t.Tree})); err != nil {
		return nil, exit.Usagef("tune: %w", err)
	}
	return t, nil
}

func (s *search) close() (err error) {
	if s.trainer != nil && s.trainer.engine != nil {
		err = s.trainer.engine.Close()
	}
	if s.whole != nil {
		s.whole.Close()
	}
	s.work.Remove()
	s.work.Close()
	return err
}

// run races the points of the grid and lists those that were tried.
func (s *search) run(ctx context.Context) (*Table, error) {
	race := newRace(s)
	defer race.counter.line.Done()
	if err := race.run(ctx); err != nil {
		return nil, err
	}
	r := &Table{Goal: s.goal.Key, Low: s.goal.Low, Folds: s.o.tried(), OfFolds: s.o.Folds, Gap: s.o.Train.Job.GetGap(),
		Instances: len(s.folds.fold), Measured: s.folds.rowsOf(s.o.tried()), Measure: s.goal}
	for c := range race.candidates() {
		if c.skipped {
			r.Skipped++
			continue
		}
		row, err := s.row(ctx, c.point, c.results)
		if err != nil {
			return nil, err
		}
		r.Points = append(r.Points, row)
	}
	r.choose(s.o.OneSE)
	chosen, rule := r.Points[r.Chosen], "the best value"
	if s.o.OneSE {
		rule = "the smallest C within one standard error of the best value"
	}
	r.JobFile = s.record.join(jobFile)
	return r, s.writeJob(chosen.Point, fmt.Sprintf("chosen by taxon tune, %s: %s (standard error %s) on %s",
		rule, s.goal.Words(chosen.Value), chosen.Error(s.goal, "unknown: one fold has none"), s.measuredOn(r.Folds)))
}

// row measures the rows of the folds that a point was tried on together.
func (s *search) row(ctx context.Context, p Point, results []*result) (*TablePoint, error) {
	whole, err := s.meter.over(ctx, p, 0, len(results))
	if err != nil {
		return nil, err
	}
	out := &TablePoint{p, Figures{Tried: len(results), MicroF1: whole.MicroF1, MacroF1: whole.MacroF1}}
	if out.Value, err = s.meter.value(&whole); err != nil {
		return nil, err
	}
	for _, r := range results {
		v, err := s.meter.value(r.Measures)
		if err != nil {
			return nil, err
		}
		out.FoldValues = append(out.FoldValues, v)
		out.CPUSeconds += r.CPUSeconds
		out.Sweeps += r.Sweeps
		if r.StoppedBy != "gap" {
			out.Unfinished++
		}
	}
	if len(results) > 1 {
		spread := NewScore(out.Value, out.FoldValues).Spread
		out.StandardError = &spread
	}
	return out, nil
}

// measuredOn says what a value rests on: the rows of the first folds.
func (s *search) measuredOn(folds int) string {
	return fmt.Sprintf("%d of %d folds, %s of %s", folds, s.o.Folds, human.Count(int64(s.folds.rowsOf(folds))), human.Counted(int64(len(s.folds.fold)), "instance", "instances"))
}

// writeJob writes a point as a job file.
func (s *search) writeJob(p Point, origin string) error {
	return s.record.writeJob(&s.o.Train, s.o.job(p), p.Shift(), s.structure(), origin)
}

// structure is what methods that heed a structure train on.
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

// identity is what another run must have in common to go on with this search.
func (s *search) identity() identity {
	id := identity{Format: searchFormat, Options: s.whole.Identity(), Said: registry.Values{}, Folds: s.o.Folds, Text: s.o.Train.Text}
	o := &id.Options.Options
	o.Method, o.Loss, o.Bias = "", "", 0 // the grid's
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

// ended words an interruption.
func (s *search) ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	best := ""
	if path := s.record.join(jobFile); fs.Exists(path) {
		best = fmt.Sprintf("; the best point so far is in %s", path)
	}
	return exit.Interruptedf("interrupted after %s%s; to go on from there: %s", human.Counted(int64(s.record.finished()), "training", "trainings"), best, s.o.Train.Again)
}
