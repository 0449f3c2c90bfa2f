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

// endShare is the share of the remaining time that a training may take, so that its measurement
// still fits.
const endShare = 0.9

// runTrials trains each of the trials without each of the folds from..to-1, side by side. It measures
// their points on these folds, and together with the earlier folds of the stage.
func (c *hillClimb) runTrials(ctx context.Context, trials []*trial, from, to int) error {
	reserve := c.reserve()
	bounded, cancel := c.clock.bound(ctx, reserve)
	defer cancel()
	group, within := errgroup.WithContext(bounded)
	group.SetLimit(c.together)
	b := c.costs.batch(c.clock.now())
	// A training that is cut short is worth little, so each may take as long as the roughest
	// estimate with which it could start, less the time for its measurement.
	may := min(breakOffFactor*c.cap(), endShare*c.clock.left(reserve)) * min(1, float64(c.together)/float64(to-from))
	results := make([][][]*result, len(trials)) // by trial and fold
	for i, r := range trials {
		results[i] = make([][]*result, to-from)
		for f := from; f < to; f++ {
			group.Go(fs.Guarded(func() (err error) {
				if c.clock.left(reserve) <= 0 { // bound looks at the clock only now and then
					return errTimeUp
				}
				results[i][f-from], err = c.runTrial(within, r, f, min(may, c.useful(r.family)), b)
				return err
			}))
		}
	}
	err := c.clock.ended(ctx, bounded, group.Wait())
	b.end(c.clock.now(), min(c.together, len(trials)*(to-from)))
	if err != nil {
		return err
	}
	for i, r := range trials {
		if r.family.failed == "" && !slices.ContainsFunc(r.family.lost, r.base.Equal) {
			if err := c.measure(ctx, r, results[i], to); err != nil {
				return err
			}
		}
	}
	return nil
}

// runTrial trains without a fold and measures the points of r on the fold. A failed training drops its
// base point. A full disk is not the point's fault and ends the search.
func (c *hillClimb) runTrial(ctx context.Context, r *trial, fold int, may float64, b *batch) ([]*result, error) {
	var points []Point
	for _, p := range r.in() {
		points = append(points, p.point)
	}
	h := c.folds.acquire(c.vectorsOf(r.base), fold)
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
			c.report("%s: sweep %d%s", r.base.Name(), st.GetSweep(), gap)
		}})
	if err != nil {
		if ctx.Err() == nil && !fs.IsDiskFull(err) {
			if errors.Is(c.clock.ended(ctx, within, err), errTimeUp) {
				err = fmt.Errorf("it did not end within %s", format.Seconds(2*may))
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

// lose drops a point whose training failed. It gives up the point's family if that has no
// successful trial yet, or after maxLost failures.
func (c *hillClimb) lose(r *trial, why string) {
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

// measure adds the results on folds up to `to` to a trial, and finds its best point over all folds.
func (c *hillClimb) measure(ctx context.Context, r *trial, folds [][]*result, to int) (err error) {
	in := r.in()
	r.top = nil
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
		if r.top == nil || Better(p.jack[0], r.top.jack[0], c.goal.Low) {
			r.top = p
		}
	}
	for _, of := range folds {
		r.cpu, r.bytes = max(r.cpu, of[0].CPUSeconds), of[0].Bytes
		r.stopped = r.stopped || of[0].StoppedBy == method.StoppedByMaxTime
	}
	r.first = r.top.first
	c.report("%s: %s", r.top.point.Name(), c.goal.Words(r.top.jack[0]))
	return nil
}

// report shows a message after the best value so far.
func (c *hillClimb) report(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := fmt.Sprintf(format, args...)
	if best := c.leader(); best != nil {
		text = fmt.Sprintf("best so far %s, %s; %s", best.point.Name(), c.goal.Words(best.jack[0]), text)
	}
	c.clock.set(c.line, len(c.sampled)+len(c.stage.trials), text)
}

// newTrial returns the trial of a base point. Its points have all values of the options that only the
// trainer uses. If each point needs a fit of cut-offs, only the values next to the family's best
// one are used.
func (c *hillClimb) newTrial(f *family, base Point) *trial {
	r := &trial{base: base, family: f}
	points := []Point{base}
	for _, o := range c.o.Grid.tunable(base.Method) {
		if !o.Carried || o.Name == method.PriorShift.Name && (base.Values[method.Bias.Name] == "0" || c.goal.Probable) {
			continue
		}
		var more []Point
		for _, p := range points {
			values := c.o.Grid.listValues(&o)
			if c.whole.Meta().Data.MultiLabel() {
				at := 1
				if f.best != nil {
					at = max(slices.Index(values, f.best.top.point.Values[o.Name]), 1)
				}
				values = values[min(at, len(values))-1 : min(at+2, len(values))]
			}
			for _, v := range values {
				more = append(more, p.with(o.Name, v))
			}
		}
		points = more
	}
	for _, p := range points {
		r.points = append(r.points, &candidate{point: p})
	}
	return r
}

// in lists the points that are not dropped.
func (r *trial) in() (in []*candidate) {
	for _, p := range r.points {
		if !p.dropped {
			in = append(in, p)
		}
	}
	return in
}

// valueList returns the values of a family's option. It is nil if the option has no values, or no
// effect on these data.
func (c *hillClimb) valueList(f *family, option string) *valueList {
	o := c.o.Grid.find(f.start.Method, option)
	if o == nil || o.Idle(c.structure(), f.best.base.Values) || c.idleText(option, f.best.base) {
		return nil
	}
	l := &valueList{option: o, values: c.o.Grid.listValues(o), open: c.o.Grid.Values[option] == nil &&
		o.Kind != method.Choice && o.Group != groupText}
	if o.Offset != 0 {
		l.cost = c.valueList(f, method.Cost.Name)
	}
	if l.at(f.best.base) < 0 || len(l.values) == 1 {
		return nil
	}
	return l
}
