package main

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"taxon/internal/eval"
	"taxon/internal/tune"
)

// racer is a point of the grid in the race: see internal/tune.
type racer struct {
	point   tune.Point
	results []*foldResult   // of the folds so far
	jack    *tune.Jackknife // of the first folds, as many as race.measured; nil: not yet
	out     bool            // left behind
	skipped bool            // never tried: its path had passed its best
}

// rung is a value of C on a path: points that differ in nothing but the shift of rare
// classes' scores, and so in no training.
type rung struct {
	base   tune.Point // without a shift
	racers []*racer
}

// in lists the points that are in the race.
func (g *rung) in() []*racer {
	var in []*racer
	for _, p := range g.racers {
		if !p.out && !p.skipped {
			in = append(in, p)
		}
	}
	return in
}

// race is the state of a search: which points are still in it. It follows from the results
// of finished folds alone, so a search that is gone on with takes the same way.
type race struct {
	*search
	paths [][]*rung
	group []int // row -> group of the jackknife
	light eval.Options

	measured int        // folds that all points in the race are measured on; on the first, some
	saving   sync.Mutex // guards jacks and the job file while paths run side by side
}

func (s *search) newRace() *race {
	r := &race{search: s, measured: 1, group: tune.Group(len(s.folds), s.o.train.seed), light: s.opts}
	r.light.Ranked = s.goal.Ranked
	if !s.goal.Hierarchical {
		r.light.Structure = nil
	}
	for _, points := range s.o.grid().Paths() {
		var path []*rung
		for _, p := range points {
			g := &rung{base: p}
			for _, p.Shift = range s.o.shifts {
				g.racers = append(g.racers, &racer{point: p})
			}
			path = append(path, g)
		}
		r.paths = append(r.paths, path)
	}
	return r
}

// each gives all points, path by path, shift by shift, C ascending.
func (r *race) each(f func(p *racer) error) error {
	for _, path := range r.paths {
		for i := range r.o.shifts {
			for _, g := range path {
				if err := f(g.racers[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// trainings is how many of them a fold takes.
func (r *race) trainings() int {
	n := 0
	for _, path := range r.paths {
		n += len(path)
	}
	return n
}

// run trains all points on the first fold, then those that are left on the others, one fold
// after the other as long as there are many paths; with few, all but the last side by side.
func (r *race) run(ctx context.Context) error {
	for f := 0; f < r.o.tries(); {
		to := f + 1
		if f > 0 && r.live() <= fewPaths {
			to = max(r.o.tries()-1, f+1)
		}
		if err := r.round(ctx, f, to); err != nil {
			return err
		}
		if f = to; f < r.o.tries() {
			if err := r.leave(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// fewPaths: with no more of them the folds between the first and the last run side by side.
const fewPaths = 4

// live counts the paths with points in the race.
func (r *race) live() int {
	n := 0
	for _, path := range r.paths {
		if len(racing(path)) > 0 {
			n++
		}
	}
	return n
}

// racing lists the rungs of a path with points in the race.
func racing(path []*rung) []*rung {
	var in []*rung
	for _, g := range path {
		if len(g.in()) > 0 {
			in = append(in, g)
		}
	}
	return in
}

// round runs the paths on the folds from..to-1, several side by side.
func (r *race) round(ctx context.Context, from, to int) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(parallelPaths)
	for _, path := range r.paths {
		in := racing(path)
		for _, g := range in { // a place for each, as folds end in any order
			for _, p := range g.in() {
				p.results = append(p.results, make([]*foldResult, to-from)...)
			}
		}
		for f := from; f < to && len(in) > 0; f++ {
			group.Go(func() error { return r.runPath(within, in, f) })
		}
	}
	return group.Wait()
}

// runPath trains a path's rungs on a fold, C ascending, each from where the one before it
// ended. On the first fold it ends behind the path's best.
func (r *race) runPath(ctx context.Context, in []*rung, f int) error {
	data := r.take(f)
	defer r.release(f)
	var jacks []*tune.Jackknife // the best point's of each rung
	for i, g := range in {
		var before *tune.Point
		if i > 0 {
			before = &in[i-1].base
		}
		points := g.in()
		results, old, err := r.fold(ctx, data, g, before, i+1 < len(in))
		if err != nil {
			return err
		}
		for k, p := range points {
			p.results[f] = results[k]
		}
		r.advance(1, old)
		if f > 0 {
			continue
		}
		var own []*tune.Jackknife
		for _, p := range points {
			j, err := r.jackknife(ctx, p, 1)
			if err != nil {
				return err
			}
			r.saving.Lock()
			p.jack = j
			r.saving.Unlock()
			own = append(own, j)
		}
		if err := r.save(); err != nil {
			return err
		}
		best := own[tune.Leader(own, r.goal.Low)]
		jacks = append(jacks, best)
		r.show(fmt.Sprintf("%s C %g: %s on the first fold", g.base.Method, g.base.C, r.goal.Words(best[0])))
		if !r.o.exhaustive && tune.Past(jacks, r.o.patience, r.goal.Low, r.o.oneSE) {
			for _, rest := range in[i+1:] {
				for _, p := range rest.racers {
					p.skipped = true
				}
			}
			r.spare((len(in) - i - 1) * r.o.tries())
			return nil
		}
	}
	return nil
}

// leave measures the points in the race after so many folds, and takes out those that are
// far behind.
func (r *race) leave(ctx context.Context, folds int) error {
	var in []*racer
	var jacks []*tune.Jackknife
	err := r.each(func(p *racer) (err error) {
		if p.out || p.skipped {
			return nil
		}
		if folds > 1 {
			p.jack, err = r.jackknife(ctx, p, folds)
		}
		in, jacks = append(in, p), append(jacks, p.jack)
		return err
	})
	if err != nil {
		return err
	}
	r.measured = folds
	if err := r.save(); err != nil || r.o.exhaustive {
		return err
	}
	before := r.left()
	best := tune.Leader(jacks, r.goal.Low)
	limit, gone := tune.Limit(folds, r.o.tries()), 0
	for _, p := range in {
		if tune.Out(jacks[best], p.jack, limit, r.goal.Low, r.o.oneSE) {
			p.out = true
			gone++
		}
	}
	r.spare((before - r.left()) * (r.o.tries() - folds))
	r.show(fmt.Sprintf("%s still in the race after %s", counted(int64(len(in)-gone), "point", "points"), counted(int64(folds), "fold", "folds")))
	return nil
}

// save writes the job file of the best point so far: of those in the race, by the folds that
// all of them are measured on.
func (r *race) save() error {
	r.saving.Lock()
	defer r.saving.Unlock()
	var in []tune.Point
	var jacks []*tune.Jackknife
	tried := 0
	_ = r.each(func(p *racer) error {
		if p.jack != nil {
			tried++
			if !p.out {
				in, jacks = append(in, p.point), append(jacks, p.jack)
			}
		}
		return nil
	})
	best := tune.Leader(jacks, r.goal.Low)
	return r.writeJob(in[best], fmt.Sprintf("the best so far of %s that taxon tune has tried; it has not ended, and the same command goes on with it\n"+
		"# %s on %s", counted(int64(tried), "point", "points"), r.goal.Words(jacks[best][0]), r.rests(r.measured)))
}

// left counts the trainings of a fold that are in the race.
func (r *race) left() int {
	n := 0
	for _, path := range r.paths {
		n += len(racing(path))
	}
	return n
}

// jackknife measures the rows of a point's first folds, all of them and without each group.
func (r *race) jackknife(ctx context.Context, p *racer, folds int) (*tune.Jackknife, error) {
	var acc [1 + tune.Groups]*eval.Accumulator
	for i := range acc {
		var err error
		if acc[i], err = eval.NewAccumulator(r.light); err != nil {
			return nil, err
		}
	}
	for f := range folds {
		err := r.replay(ctx, p.point, f, acc[0], func(row uint32, truth, predicted, ranked []int32) {
			for i := range acc {
				if i != 1+r.group[row] {
					acc[i].Add(truth, predicted, ranked)
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	j := &tune.Jackknife{}
	for i := range acc {
		result := acc[i].Result()
		v, err := measured(r.goal, &result)
		if err != nil {
			return nil, err
		}
		j[i] = v
	}
	return j, nil
}
