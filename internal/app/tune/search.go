package tune

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"strconv"
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
	"taxon/internal/model"
	"taxon/internal/model/form"
	"taxon/internal/model/labelset"
	"taxon/internal/model/measure"
	"taxon/internal/model/parallel"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// Run searches, or continues the search in o.Train.Out, and writes the outcome there. If ctx
// ends, what is finished stays, and the error says how to continue.
func Run(ctx context.Context, o *Options, ui progress.Reporter) (_ *Table, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if n := o.Train.Threads; n > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	}
	s, err := open(ctx, o, &once{Reporter: ui, told: map[string]bool{}})
	if err != nil {
		return nil, err
	}
	r, err := s.search(ctx)
	if err != nil || o.NoTrain {
		return r, err
	}
	return r, s.train(ctx, r)
}

// once shows each warning once. The last training reads the same data again.
type once struct {
	progress.Reporter
	mu   sync.Mutex
	told map[string]bool
}

func (o *once) Warn(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !o.told[text] {
		o.told[text] = true
		o.Reporter.Warn("%s", text)
	}
}

// search finds the options, and writes the outcome into the folder.
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

// strategy decides what is trained next, and what is dropped.
type strategy interface {
	// run tries points until the strategy is done; errTimeUp if time ended it.
	run(ctx context.Context) error
	// candidates are all points.
	candidates() iter.Seq[*candidate]
	// choose applies the rule to the table; false: there is no point.
	choose(*Table) bool
	// explain adds to the outcome what mattered.
	explain(*Table)
	// on returns the folds [from, to) on which every point that is still in the race is measured.
	on() (from, to int)
}

// modelDir is the model's folder within the search's.
const modelDir = "model"

// train makes the model of the chosen point, in the time left. A model in the folder is made
// again if it is another point's, or was cut short by the time.
func (s *search) train(ctx context.Context, r *Table) error {
	o := s.o.trained(r.Options)
	o.Said = registry.Values{}
	for _, p := range registry.Of(r.Options.Method) {
		if v, ok := s.o.Train.Said[p.Name]; ok {
			o.Said[p.Name] = v
		}
		if v, ok := r.Options.Values[p.Name]; ok && v != p.Default {
			o.Said[p.Name] = v
		}
	}
	o.Job = &taxonv1.Options{Method: r.Options.Method}
	o.Out, o.Cutoff, o.Store, o.Pause = s.record.join(modelDir), "auto", "memory", 10
	made := made{Point: r.Options, MaxTime: o.Said["max-time"]}
	if least, after := s.lastTime(ctx, r); s.clock.limit > 0 {
		left := s.clock.left(s.reading + after)
		if s.whole.Meta().Data.MultiLabel() {
			// the other half is for the trainings on which cut-offs are fitted
			left /= 2
			if most := max(left*float64(s.threads()), 1); most < cmp.Or(o.CutoffTime, train.FreeSeconds) {
				o.CutoffTime = most
			}
		}
		left = max(left, least) // a model cut short sooner is worth nothing
		said, err := strconv.ParseFloat(o.Said["max-time"], 64)
		if made.Capped = err != nil || said == 0 || said > left; made.Capped {
			made.MaxTime = strconv.FormatFloat(math.Ceil(max(left*s.clock.secondsRatio, 1)), 'g', -1, 64)
		}
	}
	old, path := madeOf(s.record), s.record.join(madeFile)
	switch {
	case old == nil || !old.Point.Equal(made.Point) || old.Report != nil && old.Capped &&
		old.Report.StoppedBy == method.StoppedByMaxTime:
		o.Force = true
	case old.Report != nil: // it is finished, and the same cap finds it so
		made.MaxTime, made.Capped = old.MaxTime, old.Capped
	}
	if made.MaxTime != "" {
		o.Said["max-time"] = made.MaxTime
	}
	if err := s.record.writeJSON(path, &made); err != nil {
		return err
	}
	var report *model.Report
	var err error
	switch m := s.remote; {
	case m == nil:
		report, err = train.Run(ctx, &o, s.ui)
	case old != nil && old.Report != nil && !o.Force && model.IsModel(o.Out):
		report = old.Report
	default:
		report, err = s.last(ctx, m, &o)
	}
	if err != nil {
		return err
	}
	r.Model, r.Report, made.Report = o.Out, report, report
	if made.Capped && report.StoppedBy == method.StoppedByMaxTime {
		s.ui.Warn("%s: ‹time› ended its training before the tolerance asked for: the same command goes on, and %s says "+
			"what to train with more time", o.Out, s.record.join(jobFile))
	}
	return errors.Join(s.record.writeJSON(path, &made), s.record.writeJSON(s.record.join(tableFile), r))
}

// writing is how many seconds are reserved for anything unforeseen, and writeRate how many bytes
// of a model are made and written in a second.
const writing, writeRate = 2, 64 << 20

// lastTime is how many seconds the last training takes at least, and how many it goes on when its
// time is up: for the sweep under way, one more for the certificate, and the model. They are
// those of a trial, by the rows. A training of one sweep ends within it.
func (s *search) lastTime(ctx context.Context, r *Table) (least, after float64) {
	number := 0
	if r.Sample {
		number = s.folds.sample
	}
	results, err := s.record.results([]Point{r.Options}, number)
	if err != nil || results == nil {
		return 0, writing
	}
	trained, _ := s.folds.split(number)
	grown := float64(len(s.folds.fold)) / float64(max(len(trained), 1))
	least = grown * results[0].CPUSeconds / float64(s.threads())
	after = writing + grown*float64(results[0].Bytes)/writeRate
	if sweeps := float64(results[0].Sweeps); sweeps > 1 {
		after += 2 * least / sweeps
	}
	return least, after
}

// made describes the model in the folder.
type made struct {
	Point   Point         `json:"point"`
	Report  *model.Report `json:"report"`   // null: its training has not ended
	Capped  bool          `json:"capped"`   // by the time of the search
	MaxTime string        `json:"max_time"` // "": none
}

// madeOf reads the description of the model in the folder, finished or not; nil: there is none.
func madeOf(r record) *made {
	var m made
	if there, err := r.readJSON(r.join(madeFile), &m); !there || err != nil {
		return nil
	}
	return &m
}

// search is one run.
type search struct {
	o      *Options
	ui     progress.Reporter
	goal   *measure.Measure
	clock  *clock
	work   *train.Work // scratch
	record record
	// the data, and its tree as a training on all of it would have
	whole    *train.Training
	vectors  map[dataset.Words]*train.Training // of texts: with the features of other words, too
	largest  *train.Training                   // the one that takes the most memory,
	together int                               // and how many of it fit side by side
	slots    int                               // tasks that trainings run at a time
	folds    *partition
	paths    [][]Rung // of a grid
	starts   []Point  // of a climb
	untried  []Untried
	short    bool    // something was left out for lack of time
	reading  float64 // seconds that reading the data took
	meter    *meter
	trainer  *trainer
	remote   *remote // nil: trainings run in this process
}

// open reads structure and data, deals out the folds and takes the folder. Only one process at a
// time searches in a folder.
func open(ctx context.Context, o *Options, ui progress.Reporter) (_ *search, err error) {
	s := &search{o: o, ui: ui, record: recordIn(ctx, o.Train.Out), clock: newClock(o.Time)}
	if s.goal, err = goalOf(o.Goal); err != nil {
		return nil, err
	}
	if err := s.record.free(); err != nil {
		return nil, err
	}
	// A search uses the lock and the scratch folder of a training with its name.
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

// read opens the data, refuses a search that they do not allow, and deals out the folds.
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
	if set.Matrix.Rows < s.o.Folds {
		return fs.Inputf(o.Data[0], 0, "%d instances can't make %d folds: lower ‹folds›", set.Matrix.Rows, s.o.Folds)
	}
	if err := s.points(ctx); err != nil {
		return err
	}
	s.reading = s.clock.now().Sub(s.clock.began).Seconds()
	s.folds = &partition{whole: set, taken: map[foldOf]*heldFold{}, fold: labelset.Folds(set.LabelBegin, set.LabelIndex,
		len(set.Labels), s.o.Folds, s.o.Train.Job.GetSeed())}
	if fewer, single := CountRareLabels(set.PosBegin, s.o.Folds); fewer > 0 {
		s.ui.Note("%s have fewer instances than the %d folds, %d of them only one: some folds train or measure without "+
			"an instance of them",
			format.Counted(int64(fewer), "class", "classes"), s.o.Folds, single)
	}
	return nil
}

// points lists what is to be trained, and how many trainings of the largest fit side by side.
// A climb leaves out what does not fit the data or the memory.
func (s *search) points(ctx context.Context) (err error) {
	for name := range s.o.Grid.Values {
		for _, m := range s.o.Grid.Methods {
			if o := s.o.Grid.find(m, name); o != nil && o.On == method.Graphs && s.structure() != method.Graphs {
				return option.Errorf("tune: ‹%s› is for class graphs: add ‹graph=FILE›, or leave it out", name)
			}
		}
	}
	if !s.o.climbs() {
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

// fit says how many trainings run side by side. On a cluster, the workers keep to their own
// memory.
func (s *search) fit() (err error) {
	if s.together = parallelPaths; s.o.Cluster == nil {
		s.together, err = s.largest.Fit(parallelPaths)
	}
	return err
}

// rememberLargest keeps the training that takes the most memory.
func (s *search) rememberLargest(t *train.Training) {
	if s.largest == nil || t.Needs(1) > s.largest.Needs(1) {
		s.largest = t
	}
}

// skip records why a point was not tried.
func (s *search) skip(p Point, why string) {
	for i := range s.untried {
		if s.untried[i].Equal(p) {
			s.untried[i] = Untried{Point: p, Why: why}
			return
		}
	}
	s.untried = append(s.untried, Untried{Point: p, Why: why})
}

// threads is how many there are.
func (s *search) threads() int { return parallel.Threads(s.o.Train.Threads) }

// trainable is a training with the point's method, which has accepted the problem.
func (s *search) trainable(p Point) (*train.Training, error) {
	t, err := s.whole.On(progress.Discard{}, s.o.job(p), s.whole.Set, false)
	if err != nil {
		return nil, err
	}
	m, err := registry.Lookup(p.Method)
	if err != nil {
		return nil, option.Errorf("tune: %w", err)
	}
	if f := registry.Form(t.Spec.GetOptions()); s.goal.Probable && (f.Link == form.Identity ||
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

func (s *search) close() (err error) {
	if s.trainer != nil && s.trainer.engine != nil {
		err = s.trainer.engine.Close()
	}
	s.closeFeatures()
	s.work.Remove()
	s.work.Close()
	return err
}

// run runs the strategy, and lists the points that were tried.
func (s *search) run(ctx context.Context) (*Table, error) {
	if s.o.settled() {
		r := &Table{Goal: s.goal.Key, Low: s.goal.Low, OfFolds: s.o.Folds, Gap: s.o.Train.Job.GetGap(),
			Instances: len(s.folds.fold), Rule: "only", Best: -1, Chosen: -1,
			Options: s.starts[0], Points: []*TablePoint{}, JobFile: s.record.join(jobFile), Measure: s.goal}
		return r, s.writeJob(r.Options, "from taxon tune, which had nothing to search")
	}
	var way strategy = newClimb(s)
	if !s.o.climbs() {
		way = newRace(s)
	}
	err := way.run(ctx)
	if err != nil && !errors.Is(err, errTimeUp) {
		return nil, err
	}
	from, to := way.on()
	folds := to - from
	r := &Table{Goal: s.goal.Key, Low: s.goal.Low, Folds: folds, OfFolds: s.o.Folds, Gap: s.o.Train.Job.GetGap(),
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
			return nil, fmt.Errorf("tune: no training has ended; %s: %s", s.untried[0].Name(), s.untried[0].Why)
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

// row measures together the rows of all folds on which a point was tried.
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

// measuredOn says on which rows a value is based: those of folds from..to-1.
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

// structure is what structured methods train on.
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

// identity is what another run must have in common to continue this search.
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

// interrupted is the error of an interrupted search, in words for the user.
func (s *search) interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	best := ""
	if path := s.record.join(jobFile); s.record.has(path) {
		best = fmt.Sprintf("; the best point so far is in %s", path)
	}
	if s.o.Cluster != nil {
		best += "; jobs that were under way go on in the cluster, and are found there"
	}
	return jobs.Interruptedf("interrupted after %s%s; to go on from there: %s", format.Counted(int64(s.record.finished()),
		"training", "trainings"), best, s.o.Train.Again)
}
