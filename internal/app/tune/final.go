package tune

import (
	"context"
	"fmt"
	"math"
	"slices"

	"taxon/internal/ui/format"
)

// final compares the best points on the remaining folds, as far as the time allows.
func (c *hillClimb) final(ctx context.Context) error {
	left := c.clock.left(0)
	in := slices.DeleteFunc(slices.Clone(c.trials), func(r *trial) bool { return !c.trains(r, left) })
	slices.SortStableFunc(in, c.better)
	for _, r := range c.trials {
		for _, p := range r.points {
			p.dropped = p != r.top
		}
	}
	for f := c.stage.to; f < c.o.tried() && len(in) > 1; f++ {
		best, limit := in[0].top, Limit(f, c.o.tried())
		left = c.clock.left(c.reserve())
		next := in[:0:0]
		for _, r := range in {
			need := c.costs.seconds(r.cpu)
			if len(next) < maxFinal && need < left && !Out(best.jack, r.top.jack, limit, c.goal.Low, c.o.OneSE) {
				next, left = append(next, r), left-need
			}
		}
		if len(next) < 2 { // nothing to compare with, or no time
			break
		}
		kept := make([]candidate, len(next))
		for i, r := range next {
			kept[i] = *r.top
		}
		if err := c.runTrials(ctx, next, f, f+1); err != nil {
			for i, r := range next { // only folds that all have
				*r.top = kept[i]
			}
			return err
		}
		// A training that failed, or did not end in its time, leaves its point on fewer folds.
		next = slices.DeleteFunc(next, func(r *trial) bool { return len(r.top.results) <= f })
		if len(next) == 0 {
			break
		}
		in, c.stage.to = next, f+1
		slices.SortStableFunc(in, c.better)
	}
	return c.save()
}

// leader returns the best point among those measured on the most folds for whose last training
// there is time. It is nil if there is none.
func (c *hillClimb) leader() *candidate {
	if r := c.front(); r != nil {
		return r.top
	}
	return nil
}

// front returns the trial of the leader.
func (c *hillClimb) front() (best *trial) {
	left := c.clock.left(0)
	for _, r := range c.stage.trials {
		if len(r.top.results) < c.stage.count() {
			continue
		}
		in, was := c.trains(r, left), best != nil && c.trains(best, left)
		if best == nil || in && !was || in == was && Better(r.top.jack[0], best.top.jack[0], c.goal.Low) {
			best = r
		}
	}
	return best
}

// save writes the job file of the best point so far.
func (c *hillClimb) save() error {
	best := c.leader()
	if best == nil {
		return nil
	}
	return c.writeJob(best.point, fmt.Sprintf("the best so far of %s that taxon tune has tried; the search "+
		"has not ended, and the same command continues it\n"+
		"# %s (standard error unknown until it has ended) on %s", format.Counted(int64(len(c.sampled)+len(c.stage.trials)),
		"training", "trainings"),
		c.goal.Words(best.jack[0]), c.measuredOn(c.stage.from, c.stage.to)))
}

// choose selects the best point whose last training fits the remaining time. Among points within
// noise of the best it prefers the quickest, if that is much quicker. With oneSE it selects the
// smallest C within a standard error, all else being equal.
func (c *hillClimb) choose(t *Table) bool {
	if !t.choose(false) {
		return false
	}
	front := c.front()
	if front == nil {
		return true
	}
	chosen, best := front, front.top
	for _, r := range c.trials {
		if len(r.top.results) < t.Folds {
			continue
		}
		behind := difference(best.jack, r.top.jack)
		switch loss := math.Abs(behind[0]); {
		case c.o.OneSE && r.top.point.Path() == best.point.Path() && r.top.point.C() < chosen.top.point.C() &&
			loss <= best.jack.error():
			chosen, t.Rule = r, "one-se"
		case !c.o.OneSE && chosen.cpu > minPreferSeconds && r.cpu*preferredSpeedup < chosen.cpu &&
			loss <= noise*behind.error():
			chosen, t.Rule = r, "quickest"
		}
	}
	at := slices.IndexFunc(t.Points, func(p *TablePoint) bool { return p.Equal(chosen.top.point) && p.Tried == t.Folds })
	if at < 0 {
		return true
	}
	t.Chosen, t.Options = at, t.Points[at].Point
	return true
}

// Among points within noise of the best, one is preferred if it trains preferredSpeedup times as
// fast and the best takes at least minPreferSeconds.
const preferredSpeedup, minPreferSeconds = 2, 1
