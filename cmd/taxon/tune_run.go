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
	"taxon/internal/tune"
)

// parallelPaths bounds the paths that train side by side: each holds vectors of its own,
// and each fold a copy of its rows. Their tasks share the engine's slots.
const parallelPaths = 4

// search is one run of tune.
type search struct {
	a      *app
	o      *tuneOptions
	goal   *goal
	work   *workDir
	whole  *training // the data, and its tree as a training on all of it would have
	folds  []int     // row -> fold
	opts   eval.Options
	engine *engine.Engine
	line   *progress
	jobs   int

	mu   sync.Mutex // guards what follows
	sets map[int]*foldData
	done int
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
	work, err := openWork(o.train.out, o.train.force)
	if err != nil {
		return nil, err
	}
	if work.hasCheckpoint() {
		work.close()
		return nil, usagef("%s: holds the checkpoint of a training: choose another --out", work.keep)
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
	s.work.remove()
	s.work.close()
	if s.whole != nil && s.whole.set != nil {
		s.whole.set.Close()
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
	s.engine, err = engine.Start(engine.Config{
		Slots: workers(s.o.train.threads), Shards: 1, ShardBytes: 1 << 40, // bounded by fits
		Open:   s.dataOf,
		Failed: func(err error) { s.a.ui.Warn("%v", err) },
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.engine.Close()) }()
	defer s.whole.collectOften()()
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

// open reads structure and data and deals out the folds.
func (s *search) open(ctx context.Context) error {
	t := &training{a: s.a, o: &s.o.train, work: s.work}
	s.whole = t
	if err := t.readStructure(ctx); err != nil {
		return err
	}
	if err := t.openData(ctx); err != nil {
		return err
	}
	if err := t.specify(); err != nil {
		return err
	}
	if err := t.fits(); err != nil {
		return err
	}
	if err := t.checkLengths(); err != nil {
		return err
	}
	if t.set.Matrix.Rows < s.o.folds {
		return fs.Inputf(t.o.data[0], 0, "%d instances can't make %d folds: lower --folds", t.set.Matrix.Rows, s.o.folds)
	}
	s.folds = tune.Folds(t.set.LabelBegin, t.set.LabelIndex, len(t.set.Labels), s.o.folds, t.o.seed)
	if fewer, single := tune.Thin(t.set.PosBegin, s.o.folds); fewer > 0 {
		s.a.ui.Note("%s have fewer than %d instances, %d of them one: some folds can't measure them, or can't train them",
			counted(int64(fewer), "class", "classes"), s.o.folds, single)
	}
	return s.measures()
}

// measures settles what is measured: the class set is that of all the data.
func (s *search) measures() error {
	set := s.whole.set
	s.opts = eval.Options{Classes: set.Labels, Ranked: true}
	given := s.whole.structure
	if given == nil {
		given = s.whole.edges
	}
	if s.whole.structure != nil {
		c, err := taxonomy.NewClosure(given)
		if err != nil {
			return err
		}
		s.opts.Structure = c
	}
	if s.goal.hierarchical && s.opts.Structure == nil {
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
	Format    string   `json:"format"`
	Options   identity `json:"options"` // those that are no part of the grid
	Folds     int      `json:"folds"`
	Anchor    float64  `json:"anchor"`
	TextOrRaw bool     `json:"text"`
}

// begin makes the folder, or finds a search of the same there.
func (s *search) begin(ctx context.Context) error {
	id := searchIdentity{Format: "taxon-search-1", Options: s.whole.identity(), Folds: s.o.folds, Anchor: s.o.train.anchor, TextOrRaw: s.o.train.text}
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
		return nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return fs.Explain(path, err)
	}
	for _, name := range []string{pointsDir, statesDir} {
		if err := errors.Join(fs.RemoveAll(s.join(name)), fs.MkdirAll(s.join(name))); err != nil {
			return fs.Explain(s.join(name), err)
		}
	}
	return writeJSON(path, id)
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
	s.line = s.a.ui.Start("tune: training", int64(race.trainings()*s.o.tries()))
	defer s.line.Done()
	if err := race.run(ctx); err != nil {
		return nil, s.ended(ctx, err)
	}
	r := &tuned{Goal: s.goal.key, Low: s.goal.low, Folds: s.o.tries(), Gap: s.o.train.gap, Instances: len(s.folds)}
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
		v, err := s.goal.of(r.Measures)
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
	if out.Value, err = s.goal.of(&whole); err != nil {
		return nil, err
	}
	out.MicroF1, out.MacroF1 = whole.MicroF1, whole.MacroF1
	out.StandardError = tune.NewScore(out.Value, out.FoldValues).Spread
	return out, nil
}

func (s *search) advance(n int) {
	s.mu.Lock()
	s.done += n
	s.line.Set(int64(s.done))
	s.mu.Unlock()
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
	return interruptedf("interrupted after %d trainings; to go on from there: %s", done, s.a.commandLine())
}
