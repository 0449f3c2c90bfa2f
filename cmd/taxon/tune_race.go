package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"taxon/internal/eval"
	"taxon/internal/tune"
)

// racer is a point of the grid in the race: see internal/tune.
type racer struct {
	point   tune.Point
	results []*foldResult // of the folds so far
	jack    *tune.Jackknife
	out     bool // left behind
	skipped bool // never tried: its path had passed its best
}

// race is the state of a search: which points are still in it. It follows from the results
// of finished folds alone, so a search that is gone on with takes the same way.
type race struct {
	*search
	paths [][]*racer
	group []int // row -> group of the jackknife
	light eval.Options
}

func (s *search) newRace() *race {
	r := &race{search: s, group: tune.Group(len(s.folds), s.o.train.seed), light: s.opts}
	r.light.Ranked = s.goal.ranked
	if !s.goal.hierarchical {
		r.light.Structure = nil
	}
	for _, points := range s.o.grid().Paths() {
		var path []*racer
		for _, p := range points {
			path = append(path, &racer{point: p})
		}
		r.paths = append(r.paths, path)
	}
	return r
}

// run trains all points on the first fold, then those that are left on the others, one fold
// after the other as long as there are many paths.
func (r *race) run(ctx context.Context) error {
	for f := 0; f < r.o.folds; {
		to := f + 1
		if f > 0 && r.live() <= fewPaths {
			to = r.o.folds
		}
		if err := r.round(ctx, f, to); err != nil {
			return err
		}
		if f = to; f < r.o.folds {
			if err := r.leave(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// fewPaths: with no more of them the folds after the first run side by side.
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

// racing lists the points of a path that are in the race.
func racing(path []*racer) []*racer {
	var in []*racer
	for _, p := range path {
		if !p.out && !p.skipped {
			in = append(in, p)
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
		for _, p := range in { // a place for each, as folds end in any order
			p.results = append(p.results, make([]*foldResult, to-from)...)
		}
		if len(in) == 0 {
			continue
		}
		for f := from; f < to; f++ {
			group.Go(func() error { return r.runPath(within, in, f) })
		}
	}
	return group.Wait()
}

// runPath trains a path's points on a fold, C ascending, each from where the one before it
// ended. On the first fold it ends behind the path's best.
func (r *race) runPath(ctx context.Context, in []*racer, f int) error {
	data := r.take(f)
	defer r.release(f)
	var jacks []*tune.Jackknife
	for i, p := range in {
		var before *tune.Point
		if i > 0 {
			before = &in[i-1].point
		}
		result, err := r.fold(ctx, data, p.point, before, i+1 < len(in))
		if err != nil {
			return err
		}
		p.results[f] = result
		r.advance(1)
		if f > 0 || r.o.exhaustive {
			continue
		}
		if p.jack, err = r.jackknife(p, 1); err != nil {
			return err
		}
		jacks = append(jacks, p.jack)
		r.show(fmt.Sprintf("%s C %g: %.4f on the first fold", p.point.Method, p.point.C, p.jack[0]))
		if tune.Past(jacks, r.o.patience, r.goal.low, r.o.oneSE) {
			for _, rest := range in[i+1:] {
				rest.skipped = true
			}
			r.advance((len(in) - i - 1) * r.o.folds)
			return nil
		}
	}
	return nil
}

// leave takes points out of the race after so many folds.
func (r *race) leave(folds int) (err error) {
	if r.o.exhaustive {
		return nil
	}
	var in []*racer
	var jacks []*tune.Jackknife
	for _, path := range r.paths {
		for _, p := range racing(path) {
			if folds > 1 {
				if p.jack, err = r.jackknife(p, folds); err != nil {
					return err
				}
			}
			in, jacks = append(in, p), append(jacks, p.jack)
		}
	}
	best := tune.Leader(jacks, r.goal.low)
	gone := 0
	for _, p := range in {
		if tune.Out(jacks[best], p.jack, r.goal.low, r.o.oneSE) {
			p.out = true
			gone++
		}
	}
	r.advance(gone * (r.o.folds - folds))
	r.show(fmt.Sprintf("%s left after %s", counted(int64(len(in)-gone), "point", "points"), counted(int64(folds), "fold", "folds")))
	return nil
}

// jackknife measures the rows of a point's first folds, all of them and without each group.
func (r *race) jackknife(p *racer, folds int) (*tune.Jackknife, error) {
	var acc [1 + tune.Groups]*eval.Accumulator
	for i := range acc {
		var err error
		if acc[i], err = eval.NewAccumulator(r.light); err != nil {
			return nil, err
		}
	}
	for f := range folds {
		err := r.replay(p.point, f, acc[0], func(row uint32, truth, predicted, ranked []int32) {
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
		v, err := r.goal.of(&result)
		if err != nil {
			return nil, err
		}
		j[i] = v
	}
	return j, nil
}
