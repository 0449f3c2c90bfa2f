package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"taxon/internal/engine"
	"taxon/internal/eval"
	"taxon/internal/fs"
	"taxon/internal/taxonomy"
	"taxon/internal/train"
	"taxon/internal/tune"
)

// parallelPaths bounds the paths that train side by side: each holds vectors of its own,
// and each fold a copy of its rows. Their tasks share the engine's slots.
const parallelPaths = 4

// search is one run of tune.
type search struct {
	a      *app
	o      *tuneOptions
	goal   *eval.Measure
	work   *train.Work
	whole  *train.Training // the data, and its tree as a training on all of it would have
	folds  []int           // row -> fold
	opts   eval.Options
	engine *engine.Engine
	line   *progress

	mu               sync.Mutex // guards what follows
	sets             map[int]*foldData
	done, old, total int // trainings; old: of done, those of an earlier run
}

// newSearch takes the folder: one process searches in it at a time.
func newSearch(a *app, o *tuneOptions) (*search, error) {
	g, err := parseGoal(o.goal)
	if err != nil {
		return nil, err
	}
	if err := tunable(o.train.out); err != nil {
		return nil, err
	}
	// The folder's lock and scratch are those of a training of that name.
	work, err := train.OpenWork(o.train.out, o.train.force)
	if err != nil {
		return nil, err
	}
	if work.HasCheckpoint() {
		work.Close()
		return nil, usagef("%s: holds the checkpoint of a training: choose another --out", work.Keep)
	}
	return &search{a: a, o: o, goal: g, work: work, sets: map[int]*foldData{}}, nil
}

// tunable refuses a place that holds something else than a search.
func tunable(dir string) error {
	names, err := fs.ReadDirNames(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(names) == 0 {
		return nil
	}
	if err != nil {
		return fs.Explain(dir, err)
	}
	if _, err := fs.Stat(fs.Join(dir, searchFile)); err != nil {
		return usagef("%s: is no folder of a search: choose another --out", dir)
	}
	return nil
}

func (s *search) close() {
	s.work.Remove()
	s.work.Close()
	if s.whole != nil {
		s.whole.Close()
	}
}

func (s *search) join(names ...string) string {
	return fs.Join(s.o.train.out, names...)
}

// run searches, or goes on with a search, and writes the result.
func (s *search) run(ctx context.Context) (_ *tuned, err error) {
	if n := s.o.train.threads; n > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	if err := s.startEngine(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.engine.Close()) }()
	defer s.whole.CollectOften()()
	r, err := s.searched(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.finish(r); err != nil {
		return nil, err
	}
	_ = fs.RemoveAll(s.join(statesDir)) // nothing is left to begin at them
	return r, nil
}

// startEngine brings up what runs the trainings.
func (s *search) startEngine() (err error) {
	s.engine, err = engine.Start(engine.Config{
		Slots: workers(s.o.train.threads), Shards: 1, ShardBytes: 1 << 40, // bounded by fits
		Open:        s.dataOf,
		Failed:      func(err error) { s.a.ui.Warn("%v", err) },
		Checkpoints: s.checkpoint,
	})
	return err
}

// open reads structure and data and deals out the folds.
func (s *search) open(ctx context.Context) error {
	t, err := train.Open(ctx, s.o.train.options(s.a), s.a.told(), s.work.Path)
	if err != nil {
		return err
	}
	s.whole = t
	if err := t.Fits(); err != nil {
		return err
	}
	if err := t.CheckLengths(); err != nil {
		return err
	}
	if t.Set.Matrix.Rows < s.o.folds {
		return fs.Inputf(s.o.train.data[0], 0, "%d instances can't make %d folds: lower --folds", t.Set.Matrix.Rows, s.o.folds)
	}
	s.folds = tune.Folds(t.Set.LabelBegin, t.Set.LabelIndex, len(t.Set.Labels), s.o.folds, s.o.train.seed)
	if fewer, single := tune.Thin(t.Set.PosBegin, s.o.folds); fewer > 0 {
		s.a.ui.Note("%s have fewer instances than the %d folds, %d of them only one: some folds train or measure without an instance of them",
			counted(int64(fewer), "class", "classes"), s.o.folds, single)
	}
	return s.measures()
}

// measures settles what is measured: the class set is that of all the data.
func (s *search) measures() error {
	set := s.whole.Set
	s.opts = eval.Options{Classes: set.Labels, Ranked: true}
	given := s.whole.Structure
	if given == nil {
		given = s.whole.Edges
	}
	if s.whole.Structure != nil {
		c, err := taxonomy.NewClosure(given)
		if err != nil {
			return err
		}
		s.opts.Structure = c
	}
	if s.goal.Hierarchical && s.opts.Structure == nil {
		return usagef("tune: --goal %s needs a class structure: add --hierarchy FILE", s.o.goal)
	}
	return nil
}

// Names within the folder of a search.
const (
	searchFile = "search.json"
	tableFile  = "table.json"
	jobFile    = "job.yaml"
	pointsDir  = "points"
	statesDir  = "states"
)

// searchIdentity is what a search must agree with to be gone on with. More points may be
// asked for: finished ones count as far as they are asked for.
type searchIdentity struct {
	Format    string         `json:"format"`
	Options   train.Identity `json:"options"` // those that are no part of the grid
	Folds     int            `json:"folds"`
	Anchor    float64        `json:"anchor"`
	TextOrRaw bool           `json:"text"`
}

// begin makes the folder, or finds a search of the same there.
func (s *search) begin(ctx context.Context) error {
	id := searchIdentity{Format: "taxon-search-1", Options: s.whole.Identity(), Folds: s.o.folds, Anchor: s.o.train.anchor, TextOrRaw: s.o.train.text}
	id.Options.Options.Method, id.Options.Options.Loss = "", "" // the grid's
	path := s.join(searchFile)
	data, err := fs.ReadFile(ctx, path)
	switch {
	case err == nil && !s.o.train.force:
		var old searchIdentity
		if json.Unmarshal(data, &old) != nil {
			return usagef("%s: is damaged: use --force to search anew", path)
		}
		if old != id {
			return usagef("%s: holds a search on other data or with other options: choose another --out, or use --force to search anew", s.o.train.out)
		}
		return s.makeFolders()
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fs.Explain(path, err)
	}
	for _, name := range []string{pointsDir, statesDir, jobFile, tableFile} { // of the search before
		if err := fs.RemoveAll(s.join(name)); err != nil {
			return fs.Explain(s.join(name), err)
		}
	}
	if err := s.makeFolders(); err != nil {
		return err
	}
	return writeJSON(path, id)
}

func (s *search) makeFolders() error {
	for _, name := range []string{pointsDir, statesDir} {
		if err := fs.MkdirAll(s.join(name)); err != nil {
			return fs.Explain(s.join(name), err)
		}
	}
	return nil
}

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return fs.WriteFile(path, append(data, '\n'))
}

// searched races the points of the grid, and lists those that were tried.
func (s *search) searched(ctx context.Context) (*tuned, error) {
	race := s.newRace()
	s.total = race.trainings() * s.o.tries()
	s.line = s.a.ui.Start("tune: training", int64(s.total))
	defer s.line.Done()
	if err := race.run(ctx); err != nil {
		return nil, s.ended(ctx, err)
	}
	r := &tuned{Goal: s.goal.Key, Low: s.goal.Low, Folds: s.o.tries(), OfFolds: s.o.folds, Gap: s.o.train.gap,
		Instances: len(s.folds), Measured: s.rowsOf(s.o.tries())}
	err := race.each(func(p *racer) error {
		if p.skipped {
			r.Skipped++
			return nil
		}
		point, err := s.pool(ctx, p.point, p.results)
		r.Points = append(r.Points, point)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.choose(s.o.oneSE)
	if err := s.writeChosen(r); err != nil {
		return nil, err
	}
	if s.o.cold {
		if err := s.naive(ctx, race, r); err != nil {
			return nil, s.ended(ctx, err)
		}
	}
	return r, nil
}

// pool measures the rows of the folds that a point was tried on together.
func (s *search) pool(ctx context.Context, p tune.Point, results []*foldResult) (*tunedPoint, error) {
	acc, err := eval.NewAccumulator(s.opts)
	if err != nil {
		return nil, err
	}
	out := &tunedPoint{Point: p, Tried: len(results)}
	for f, r := range results {
		if err := s.replay(ctx, p, f, acc, func(_ uint32, truth, predicted, ranked []int32) { acc.Add(truth, predicted, ranked) }); err != nil {
			return nil, err
		}
		v, err := measured(s.goal, r.Measures)
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
	whole := acc.Result()
	if out.Value, err = measured(s.goal, &whole); err != nil {
		return nil, err
	}
	out.MicroF1, out.MacroF1 = whole.MicroF1, whole.MacroF1
	if len(results) > 1 {
		spread := tune.NewScore(out.Value, out.FoldValues).Spread
		out.StandardError = &spread
	}
	return out, nil
}

// advance counts trainings that are there; old: since before this run.
func (s *search) advance(n int, old bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done += n
	if old {
		s.old += n
		s.line.Resume(int64(s.old))
	}
	s.line.Set(int64(s.done))
}

// spare takes trainings out that are not needed.
func (s *search) spare(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total -= n
	s.line.Total(int64(s.total))
}

func (s *search) show(text string) {
	s.mu.Lock()
	s.line.Set(int64(s.done), text)
	s.mu.Unlock()
}

// ended words an interruption.
func (s *search) ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	done := 0
	names, _ := fs.ReadDirNames(s.join(pointsDir))
	for _, name := range names {
		if strings.HasSuffix(name, ".json") && !strings.HasPrefix(name, ".") {
			done++
		}
	}
	best := ""
	if path := s.join(jobFile); fs.Exists(path) {
		best = fmt.Sprintf("; the best point so far is in %s", path)
	}
	return interruptedf("interrupted after %s%s; to go on from there: %s", counted(int64(done), "training", "trainings"), best, s.a.commandLine())
}
