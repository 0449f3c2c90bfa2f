package tune

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"taxon/coordinator/method"
	"taxon/internal/fs"
	"taxon/internal/ui/format"
	taxonv1 "taxon/proto/taxon/v1"
)

// endShare is the share of the time left after which a training ends, to be measured in the rest.
const endShare = 0.9

// trials trains rungs without each of the folds, side by side. It measures their points on these
// folds, and together with the stage's earlier folds.
func (c *climb) trials(ctx context.Context, rungs []*trial, from, to int) error {
	reserve := c.reserve()
	bounded, cancel := c.clock.bound(ctx, reserve)
	defer cancel()
	group, within := errgroup.WithContext(bounded)
	group.SetLimit(c.together)
	b := c.costs.batch(c.clock.now())
	// A training that is cut short is worth little, so each may take as long as the roughest
	// estimate with which it could begin. But it ends in time to be measured.
	may := min(breakOffFactor*c.cap(), endShare*c.clock.left(reserve)) * min(1, float64(c.together)/float64(to-from))
	results := make([][][]*result, len(rungs)) // by rung and fold
	for i, r := range rungs {
		results[i] = make([][]*result, to-from)
		for f := from; f < to; f++ {
			group.Go(fs.Guarded(func() (err error) {
				if c.clock.left(reserve) <= 0 { // bound looks at the clock now and then only
					return errTimeUp
				}
				results[i][f-from], err = c.trial(within, r, f, min(may, c.useful(r.family)), b)
				return err
			}))
		}
	}
	err := c.clock.ended(ctx, bounded, group.Wait())
	b.end(c.clock.now(), min(c.together, len(rungs)*(to-from)))
	if err != nil {
		return err
	}
	for i, r := range rungs {
		if r.family.failed == "" && !slices.ContainsFunc(r.family.lost, r.base.Equal) {
			if err := c.measure(ctx, r, results[i], to); err != nil {
				return err
			}
		}
	}
	return nil
}

// trial trains a rung without a fold, and measures its points on the fold. A training that fails
// ends its point; a full disk, which is no point's fault, ends the search.
func (c *climb) trial(ctx context.Context, r *trial, fold int, may float64, b *batch) ([]*result, error) {
	var points []Point
	for _, p := range r.in() {
		points = append(points, p.point)
	}
	h := c.folds.take(c.vectorsOf(r.base), fold)
	defer c.folds.release(h)
	began := c.clock.now()
	within, cancel := c.clock.bound(ctx, c.clock.left(max(2*may, writing)))
	defer cancel()
	results, old, err := c.trainer.trial(within, h, r.base, points, trialOptions{seconds: may * c.clock.secondsRatio,
		alone: true, watch: func(st *taxonv1.JobStatus) {
			gap := ""
			if g := st.GetCertificate(); g != nil && g.GetGap() > 0 {
				gap = fmt.Sprintf(", gap %.2g", g.GetGap())
			}
			c.tell("%s: sweep %d%s", r.base.Name(), st.GetSweep(), gap)
		}})
	if err != nil {
		if ctx.Err() == nil && !fs.IsDiskFull(err) {
			if errors.Is(c.clock.ended(ctx, within, err), errTimeUp) {
				err = fmt.Errorf("nothing came of it in %s", format.Seconds(2*may))
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lose(r, err.Error())
			return nil, nil
		}
		return nil, err
	}
	if !old {
		b.add(results[0].CPUSeconds, c.clock.now().Sub(began).Seconds()-results[0].Seconds)
	}
	return results, nil
}

// lose leaves out a point whose training failed; its family, too, if nothing of it was trained yet or
// this is the last of a few.
func (c *climb) lose(r *trial, why string) {
	f := r.family
	if slices.ContainsFunc(f.lost, r.base.Equal) { // on another fold
		return
	}
	f.lost = append(f.lost, r.base)
	if f.best == nil || len(f.lost) == maxLost {
		f.failed = why
	}
	c.skip(r.base, why)
}

// measure adds a rung's results on folds up to `to`, and finds its best point over all folds.
func (c *climb) measure(ctx context.Context, r *trial, folds [][]*result, to int) (err error) {
	in := r.in()
	r.lead = nil
	for k, p := range in {
		for _, of := range folds {
			p.results = append(p.results, of[k])
		}
		if p.jack, err = c.meter.jackknife(p.point, c.stage.from, to, c.group); err != nil {
			return err
		}
		if p.first == nil {
			p.first = p.jack
		}
		if r.lead == nil || Better(p.jack[0], r.lead.jack[0], c.goal.Low) {
			r.lead = p
		}
	}
	for _, of := range folds {
		r.cpu, r.bytes = max(r.cpu, of[0].CPUSeconds), of[0].Bytes
		r.stopped = r.stopped || of[0].StoppedBy == method.StoppedByMaxTime
	}
	r.first = r.lead.first
	c.tell("%s: %s", r.lead.point.Name(), c.goal.Words(r.lead.jack[0]))
	return nil
}

// tell shows what happened, after the best value so far.
func (c *climb) tell(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if best := c.leader(); best != nil {
		text = fmt.Sprintf("best so far %s, %s; %s", best.point.Name(), c.goal.Words(best.jack[0]), text)
	}
	c.clock.set(c.line, len(c.sampled)+len(c.stage.rungs), text)
}
