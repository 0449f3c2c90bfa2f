package tune

import (
	"context"
	"fmt"
	"iter"
	"math"
	"sync"

	"golang.org/x/sync/errgroup"

	"taxon/coordinator/method/registry"
	"taxon/internal/fs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/progress"
)

// race is the strategy of a search over a grid. All points are trained on the first fold, and those
// not far behind on further folds (see jackknife.go). Its decisions depend only on results of
// finished folds, so a continued search makes the same ones.
type race struct {
	*search
	paths [][]*raceEntry
	// group maps a row to its group of the jackknife.
	group   []int
	counter *counter

	// measured is the number of folds on which all remaining points are measured.
	measured int
	// saving guards jacks and the job file while paths run side by side.
	saving sync.Mutex
}

// raceEntry is one training of the race on each fold, with the points that share it.
type raceEntry struct {
	base   Point
	points []*candidate
}

// candidate is a point that a strategy compares with others.
type candidate struct {
	point Point
	// results are those of the folds so far.
	results []*result
	// jack holds the measure over the first folds, race.measured many. It is nil before the first
	// measurement.
	jack *Jackknife
	// first holds the measure when the point was first measured in a stage of a hill climb.
	first *Jackknife
	// dropped reports that the point was far behind the best.
	dropped bool
	// skipped reports that the point was never tried, because its path had passed its best point.
	skipped bool
}

// newRace returns the strategy for s.
func newRace(s *search) *race {
	r := &race{search: s, measured: 1, group: Group(len(s.folds.fold), registry.Seed(s.o.Train.Job))}
	for _, steps := range s.paths {
		var path []*raceEntry
		for _, step := range steps {
			c := &raceEntry{base: step.Base}
			for _, p := range step.Points {
				c.points = append(c.points, &candidate{point: p})
			}
			path = append(path, c)
		}
		r.paths = append(r.paths, path)
	}
	trainings, _ := r.left()
	r.counter = newCounter(s.ui, trainings*s.o.tried())
	return r
}

// candidates yields all points, by path and shift, with C ascending.
func (r *race) candidates() iter.Seq[*candidate] {
	return func(yield func(*candidate) bool) {
		for _, path := range r.paths {
			for i := range path[0].points {
				for _, c := range path {
					if !yield(c.points[i]) {
						return
					}
				}
			}
		}
	}
}

// in lists the points that are still in the race.
func (c *raceEntry) in() (in []*candidate) {
	for _, p := range c.points {
		if !p.dropped && !p.skipped {
			in = append(in, p)
		}
	}
	return in
}

// racing lists the trainings of a path that have points in the race.
func racing(path []*raceEntry) (in []*raceEntry) {
	for _, c := range path {
		if len(c.in()) > 0 {
			in = append(in, c)
		}
	}
	return in
}

// left counts the trainings per fold that are still in the race, and their paths.
func (r *race) left() (trainings, paths int) {
	for _, path := range r.paths {
		if n := len(racing(path)); n > 0 {
			trainings, paths = trainings+n, paths+1
		}
	}
	return trainings, paths
}

// choose applies the rule of the options to the table.
func (r *race) choose(t *Table) bool { return t.choose(r.o.OneSE) }

// fewPaths is the number of paths up to which the folds between the first and the last run side by
// side.
const fewPaths = 4

// run trains all points on the first fold, then the remaining ones on the other folds. With many
// paths the folds run one after the other; with few, all but the last run side by side.
func (r *race) run(ctx context.Context) error {
	defer r.counter.line.Done()
	bounded, cancel := r.clock.bound(ctx, r.clock.left(0)*finalShare)
	defer cancel()
	return r.clock.ended(ctx, bounded, r.rounds(bounded))
}

// finalShare is the share of the time that is reserved for training the chosen point.
const finalShare = 0.25

// rounds runs fold by fold and drops points after each.
func (r *race) rounds(ctx context.Context) error {
	folds := r.o.tried()
	for f := 0; f < folds; {
		to := f + 1
		if _, paths := r.left(); f > 0 && paths <= fewPaths {
			to = max(folds-1, f+1)
		}
		if err := r.round(ctx, f, to); err != nil {
			return err
		}
		if f = to; f < folds {
			if err := r.drop(ctx, f); err != nil {
				return err
			}
		}
	}
	r.measured = folds
	return nil
}

// explain adds nothing, because the table is complete.
func (r *race) explain(*Table) {}

// on returns the folds on which all remaining points are measured.
func (r *race) on() (from, to int) { return 0, r.measured }

// parallelPaths bounds the number of paths that train side by side, if memory does not. Each has
// its own vectors, and each fold a copy of its rows. Their tasks share the engine's slots.
const parallelPaths = 4

// round runs the paths on the folds from..to-1, several side by side.
func (r *race) round(ctx context.Context, from, to int) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(r.together)
	for _, path := range r.paths {
		in := racing(path)
		for _, c := range in { // indexed, because folds end in any order
			for _, p := range c.in() {
				p.results = append(p.results, make([]*result, to-from)...)
			}
		}
		for f := from; f < to && len(in) > 0; f++ {
			group.Go(fs.Guarded(func() error { return r.path(within, in, f) }))
		}
	}
	return group.Wait()
}

// path trains the points of a path on a fold, with C ascending, each from the final state of the
// one before it. On the first fold it ends when the path has passed its best point.
func (r *race) path(ctx context.Context, entries []*raceEntry, f int) error {
	h := r.folds.acquire(r.vectorsOf(entries[0].base), f)
	defer r.folds.release(h)
	var jacks []*Jackknife // measures of the best point of each training
	for i, c := range entries {
		var before *Point
		if i > 0 {
			before = &entries[i-1].base
		}
		in := c.in()
		points := make([]Point, len(in))
		for k, p := range in {
			points[k] = p.point
		}
		results, old, err := r.trainer.trial(ctx, h, c.base, points, trialOptions{before: before, next: i+1 < len(entries),
			seconds: math.Inf(1)})
		if err != nil {
			return err
		}
		for k, p := range in {
			p.results[f] = results[k]
		}
		r.counter.add(old)
		if f > 0 {
			continue
		}
		best, err := r.first(ctx, in)
		if err != nil {
			return err
		}
		jacks = append(jacks, best)
		r.counter.show(fmt.Sprintf("%s C %g: %s on the first fold", c.base.Method, c.base.C(), r.goal.Words(best[0])))
		if !r.o.Exhaustive && Past(jacks, r.o.Patience, r.goal.Low, r.o.OneSE) {
			for _, rest := range entries[i+1:] {
				for _, p := range rest.points {
					p.skipped = true
				}
			}
			r.counter.spare((len(entries) - i - 1) * r.o.tried())
			return nil
		}
	}
	return nil
}

// first measures the points of a training on the first fold, and returns the measures of the best.
func (r *race) first(ctx context.Context, in []*candidate) (*Jackknife, error) {
	var jacks []*Jackknife
	for _, p := range in {
		j, err := r.meter.jackknife(p.point, 0, 1, r.group)
		if err != nil {
			return nil, err
		}
		r.saving.Lock()
		p.jack = j
		r.saving.Unlock()
		jacks = append(jacks, j)
	}
	return jacks[Leader(jacks, r.goal.Low)], r.save()
}

// drop measures the points in the race on the first folds, and drops those far behind.
func (r *race) drop(ctx context.Context, folds int) (err error) {
	var in []*candidate
	var jacks []*Jackknife
	for p := range r.candidates() {
		if p.dropped || p.skipped {
			continue
		}
		if folds > 1 {
			if p.jack, err = r.meter.jackknife(p.point, 0, folds, r.group); err != nil {
				return err
			}
		}
		in, jacks = append(in, p), append(jacks, p.jack)
	}
	r.measured = folds
	if err := r.save(); err != nil || r.o.Exhaustive {
		return err
	}
	before, _ := r.left()
	best := jacks[Leader(jacks, r.goal.Low)]
	limit, stay := Limit(folds, r.o.tried()), 0
	for _, p := range in {
		if p.dropped = Out(best, p.jack, limit, r.goal.Low, r.o.OneSE); !p.dropped {
			stay++
		}
	}
	after, _ := r.left()
	r.counter.spare((before - after) * (r.o.tried() - folds))
	r.counter.show(fmt.Sprintf("%s still in the race after %s", format.Counted(int64(stay), "point", "points"),
		format.Counted(int64(folds), "fold", "folds")))
	return nil
}

// save writes the job file of the best point in the race, by the folds on which all are measured.
func (r *race) save() error {
	r.saving.Lock()
	defer r.saving.Unlock()
	var in []Point
	var jacks []*Jackknife
	tried := 0
	for p := range r.candidates() {
		if p.jack == nil {
			continue
		}
		tried++
		if !p.dropped {
			in, jacks = append(in, p.point), append(jacks, p.jack)
		}
	}
	best := Leader(jacks, r.goal.Low)
	return r.writeJob(in[best], fmt.Sprintf("the best so far of %s that taxon tune has tried; the search "+
		"has not ended, and the same command continues it\n"+
		"# %s on %s", format.Counted(int64(tried), "point", "points"), r.goal.Words(jacks[best][0]),
		r.measuredOn(0, r.measured)))
}

// counter counts trainings on the progress line.
type counter struct {
	mu   sync.Mutex
	line progress.Progress
	// old counts those of done that an earlier run finished.
	done, old, total int
}

// newCounter returns a counter of total trainings.
func newCounter(ui progress.Reporter, total int) *counter {
	return &counter{total: total, line: ui.Start("tune: training", int64(total))}
}

// add counts a finished training. old reports that an earlier run finished it.
func (c *counter) add(old bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	if old {
		c.old++
		c.line.Resume(int64(c.old))
	}
	c.line.Set(int64(c.done))
}

// spare removes n trainings that are no longer needed from the total.
func (c *counter) spare(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total -= n
	c.line.Total(int64(c.total))
}

// show shows text on the progress line.
func (c *counter) show(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line.Set(int64(c.done), text)
}
