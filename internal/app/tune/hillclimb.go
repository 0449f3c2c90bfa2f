package tune

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"sync"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/ui/progress"
)

// hillClimb is the strategy of a search without lists of values: coordinate ascent over the options
// of every method that fits the data, quickest method first. It starts at the defaults. For each
// family it varies C, and for the best families then their other options. A method with a class
// structure starts at the best options of its flat form, whose trainings are far cheaper. Trainings
// stop at a rough gap.
//
// Of texts the kinds of features are compared before all else. Small data are searched on some of
// the folds. Large data are searched on a sample first; the best families there continue on the
// first fold. At the end the best points are compared on the other folds. Each step depends only on
// results, except that the clock ends the search and skips trainings that would take too long.
type hillClimb struct {
	*search
	// group maps a row to its group of the jackknife.
	group    []int
	families []*family
	// inTree lists the labels in the order of the tree. It is nil if there is no tree.
	inTree []int32
	costs  costs
	// stage is the current stage.
	stage *stage
	// sampled are the trials of the stage on a sample.
	sampled []*trial
	// trials are the trials of the stage on whole folds, in the order of their first training.
	trials []*trial
	// share is the share of the remaining time that one training may take.
	share float64
	// kept is the number of seconds reserved for later stages.
	kept float64
	line progress.Progress
	// settled reports that the features of texts are chosen, and compared has what other kinds of
	// features would have given.
	settled  bool
	compared []Effect
	// mu guards the progress line while trainings run side by side.
	mu sync.Mutex
}

// family is a method with one of its losses.
type family struct {
	// start is the first point to try.
	start Point
	// flat is the family with the same loss and without the structure. It is nil if there is none.
	flat *family
	// best is the best trial of the current stage. It is nil if none has succeeded.
	best *trial
	// failed is the reason why the family cannot be trained. It is empty if it can.
	failed string
	// lost are the points whose trainings failed.
	lost []Point
	// estimate is the estimated CPU time of a training on all rows, in seconds. It is right within
	// a factor of three.
	estimate float64
	// sampled is the estimated CPU time of a training on the sample, in seconds.
	sampled float64
}

// stage is the part of the data on which points are compared. It consists of the folds from..to-1.
// A sample is a fold with a negative number.
type stage struct {
	from, to int
	trials   []*trial
}

// count returns the number of folds.
func (s *stage) count() int { return s.to - s.from }

// trial is the training of one base point on each fold of a stage, with the points that share this
// training.
type trial struct {
	base   Point
	family *family
	points []*candidate
	// top is the best of the points. It is nil if the training failed.
	top *candidate
	// first holds the measure of the best point on the folds on which it was first measured.
	first *Jackknife
	// cpu is the largest CPU time of a training on one fold, in seconds.
	cpu float64
	// bytes is the size of a fold's model.
	bytes int64
	// stopped reports that a training ran out of time.
	stopped bool
}

const (
	// breakOffFactor bounds the duration of a training by a multiple of the time allowed for it. A
	// training starts if its predicted time is within this bound, because predictions are rough and
	// training stops when the allowed time is over. A training that has not stopped at the bound,
	// as within a long sweep, is broken off.
	breakOffFactor = 2
	// noise is the share of the standard error of a difference that a step must gain.
	noise = 0.25
	// At most maxRefined families vary all their options, at most maxMoved continue from a sample,
	// and at most maxFinal points are compared on the last folds.
	maxRefined, maxMoved, maxFinal = 3, 5, 8
	// maxLost is the number of failed trainings after which a family is given up.
	maxLost = 3
	// dropStdErrs is the number of standard errors behind the best at which a family is dropped.
	dropStdErrs = 2
	// maxFirst is the share of the whole time that the first training may take.
	maxFirst = 0.3
	// afterSample and after are the shares of the time that are reserved for later stages.
	// afterSample is the share during a stage on a sample, and after the share during a stage on
	// folds.
	afterSample, after = 0.5, 0.15
	// wide and narrow are the step sizes along the values of an option, as numbers of values.
	wide, narrow = 2, 1
)

// shares lists, per round, the share of the remaining time that one training may take: for a
// family's first point, along C, and along the other options. A round starts when the previous one
// has tried everything that was cheap enough.
var shares = [...]struct{ begin, climb, refine float64 }{{0.04, 0.08, 0.015}, {0.15, 0.2, 0.2}, {0.4, 0.4, 0.4},
	{1, 1, 1}}

// newHillClimb returns the strategy for s.
func newHillClimb(s *search) *hillClimb {
	return &hillClimb{search: s, group: Group(len(s.folds.fold), registry.Seed(s.o.Train.Job)), costs: newCosts(s.slots)}
}

// candidates yields the best point of each trial, by path, with C ascending.
func (c *hillClimb) candidates() iter.Seq[*candidate] {
	var all []*candidate
	for _, r := range c.trials {
		all = append(all, r.top)
	}
	slices.SortStableFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.point.Path(), b.point.Path()), cmp.Compare(a.point.C(), b.point.C()))
	})
	return slices.Values(all)
}

// on returns the folds of the current stage.
func (c *hillClimb) on() (from, to int) { return c.stage.from, c.stage.to }

// run searches until no step gains or the time is up.
func (c *hillClimb) run(ctx context.Context) error {
	c.line = c.ui.Start("tune", 0)
	defer c.line.Done()
	defer c.clock.show(c.line)()
	if err := c.list(); err != nil {
		return err
	}
	if err := c.chooseFeatures(ctx); err != nil {
		return err
	}
	var sample *stage
	part, folds := c.plan()
	if part < 1 {
		c.kept = afterSample * c.o.Time.Seconds()
		err := c.sample(ctx, part)
		if err == nil {
			err = c.improve(ctx)
		}
		if err != nil && (!errors.Is(err, errTimeUp) || c.leader() == nil) {
			return err
		}
		sample, c.sampled = c.stage, c.stage.trials
	}
	seeds := c.seeds()
	c.stage, c.kept = &stage{from: 0, to: folds}, 0
	err := c.move(ctx, seeds)
	if c.kept = after * c.o.Time.Seconds(); err == nil {
		err = c.improve(ctx)
	}
	if c.stage.trials == nil && sample != nil { // no time for whole folds: the sample decides
		c.stage = sample
	}
	if c.trials = c.stage.trials; err != nil && !errors.Is(err, errTimeUp) || c.stage == sample || len(c.trials) == 0 {
		return err
	}
	c.kept, c.share = 0, 1
	if last := c.final(ctx); last != nil || err == nil || c.stage.to > folds {
		return cmp.Or(last, err)
	}
	// Nothing is near the best point, so the time reserved for comparing points is left.
	err = c.improve(ctx)
	c.trials = c.stage.trials
	return err
}

// sample draws a sample and tries the first family on it. If that takes far longer than estimated,
// as on a busy machine, it draws a smaller one.
func (c *hillClimb) sample(ctx context.Context, part float64) error {
	for again := false; ; again = true {
		number := c.folds.draw(part, c.structure() == method.Graphs, c.inTree, registry.Seed(c.o.Train.Job))
		c.stage = &stage{from: number, to: number + 1}
		if err := c.sized(); err != nil {
			return err
		}
		if err := c.first(ctx); err != nil || again || c.clock.limit == 0 || len(c.stage.trials) == 0 {
			return err
		}
		f := c.families[0]
		late := c.costs.pace() * c.stage.trials[0].cpu / (f.sampled / float64(c.slots))
		if late < muchCheaper {
			return nil
		}
		c.untried, f.best, part = nil, nil, part/late
	}
}

// improve tries all families and improves the best ones, cheap trainings first.
func (c *hillClimb) improve(ctx context.Context) error {
	before := c.short
	for _, may := range shares { // the last round skips what there is no time for
		c.short = before
		c.untried = slices.DeleteFunc(c.untried, func(u Untried) bool { return u.late == c.stage })
		c.share = may.climb
		if err := c.continueStopped(ctx); err != nil {
			return err
		}
		if c.sampled == nil { // otherwise the sample has selected the families
			if err := c.begin(ctx, may.begin, may.climb); err != nil {
				return err
			}
		}
		c.share = may.climb
		if err := c.scales(ctx, narrow, c.leading(maxRefined)); err != nil {
			return err
		}
		c.share = may.refine
		if err := c.refine(ctx); err != nil {
			return err
		}
		if err := c.scales(ctx, wide, c.leading(1)); err != nil {
			return err
		}
	}
	return nil
}

// first tries the quickest family, whatever time it takes, because otherwise there might be no
// model.
func (c *hillClimb) first(ctx context.Context) error {
	f, kept := c.families[0], c.kept
	if len(c.stage.trials) > 0 || f.failed != "" {
		return nil
	}
	c.kept, c.share = 0, maxFirst
	defer func() { c.kept = kept }()
	return c.try(ctx, f, f.start)
}

// begin tries each family that was not tried yet, and varies its C in wide steps, because the
// defaults suit some families less than others. A family with a tried flat form starts at that
// form's options.
func (c *hillClimb) begin(ctx context.Context, may, climbing float64) error {
	if err := c.first(ctx); err != nil {
		return err
	}
	for _, f := range c.families {
		if f.best == nil && f.failed == "" {
			c.share = may
			if f.flat != nil && f.flat.best != nil {
				f.start = c.o.Grid.as(f.flat.best.base, f.start)
			}
			if !c.fitsTime(f, f.start) {
				continue
			}
			if err := c.try(ctx, f, f.start); err != nil {
				return err
			}
		}
		if c.share = climbing; f.best != nil && (f.flat == nil || f.flat.best == nil) {
			if err := c.scales(ctx, wide, []*family{f}); err != nil {
				return err
			}
		}
	}
	return nil
}

// seeds returns the trials that continue from a sample, best family first. It is empty without a
// sample.
func (c *hillClimb) seeds() (out []*trial) {
	if c.stage == nil {
		return nil
	}
	for _, f := range c.leading(maxMoved) {
		out = append(out, f.best)
	}
	out = out[:min(len(out), maxMoved)]
	for _, f := range c.families {
		f.best = nil
	}
	return out
}

// move tries the points of the seeds on the current stage.
func (c *hillClimb) move(ctx context.Context, seeds []*trial) error {
	c.share = 1
	for _, r := range seeds {
		if p := c.onAllRows(r.base); c.fitsTime(r.family, p) {
			if err := c.try(ctx, r.family, p); err != nil {
				return err
			}
		}
	}
	for i := range c.untried { // no later round tries them
		c.untried[i].late = nil
	}
	return nil
}

// onAllRows returns a point of the sample with C adjusted to all rows. From a share rho of the rows
// to all rows, C grows by 1/sqrt(rho), as in the trainings on which cut-offs are fitted.
func (c *hillClimb) onAllRows(p Point) Point {
	if o := c.o.Grid.find(p.Method, method.Cost.Name); o != nil && c.folds.share < 1 {
		l := &valueList{option: o, values: c.o.Grid.listValues(o), open: c.o.Grid.Values[o.Name] == nil}
		if v := l.times(l.at(p), math.Sqrt(c.folds.share)); v != "" {
			return p.with(o.Name, v)
		}
	}
	return p
}

// leading returns the tried families that are not far behind, best first, but at least `least` of
// them, because the gain from the other options is not yet known. The best family may be refined
// already, so the others are compared with its best point that differs in C alone. A flat form far
// behind its structured form is omitted: the structured form would gain as much.
func (c *hillClimb) leading(least int) (out []*family) {
	best := c.front()
	for _, f := range c.families {
		if f.best != nil && !slices.ContainsFunc(c.families, func(g *family) bool {
			return g.flat == f && g.best != nil && Out(g.best.top.jack, f.best.top.jack, dropStdErrs, c.goal.Low, false)
		}) {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b *family) int { return c.better(a.best, b.best) })
	rank := 0
	return slices.DeleteFunc(out, func(f *family) bool {
		rank++
		return rank > least && Out(c.plain(best.family).top.jack, f.best.top.jack, dropStdErrs, c.goal.Low, false)
	})
}

// plain returns the best trial of a family that differs from the family's start in C alone.
func (c *hillClimb) plain(f *family) (best *trial) {
	cost := method.Cost.Name
	for _, r := range c.stage.trials {
		if r.family == f && r.base.with(cost, "").Equal(f.start.with(cost, "")) && (best == nil || c.better(r, best) < 0) {
			best = r
		}
	}
	return cmp.Or(best, f.best)
}

// better compares two trials by their best points. It returns a negative number if a is better.
func (c *hillClimb) better(a, b *trial) int {
	x, y := a.top.jack[0], b.top.jack[0]
	switch {
	case Better(x, y, c.goal.Low):
		return -1
	case x == y:
		return 0
	}
	return 1
}

// scales varies the options that matter most: C and, on graphs, the options for graphs.
func (c *hillClimb) scales(ctx context.Context, stride int, in []*family) error {
	for _, f := range in {
		for _, o := range c.o.Grid.tunable(f.start.Method) {
			if o.Name == method.Cost.Name || o.On == method.Graphs {
				if err := c.improveAlong(ctx, f, o.Name, stride); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// refine varies the other options of the best families. It finishes an option for all families
// before the next one. The options of least influence are varied only for families that are still
// close to the best.
func (c *hillClimb) refine(ctx context.Context) error {
	leaders := c.leading(maxRefined)
	leaders = leaders[:min(maxRefined, len(leaders))]
	var options []method.Option
	for _, f := range leaders {
		for _, o := range c.o.Grid.tunable(f.start.Method) {
			if o.Name != method.Cost.Name && !o.Carried && !slices.ContainsFunc(options,
				func(p method.Option) bool { return p.Name == o.Name }) {
				options = append(options, o)
			}
		}
	}
	slices.SortStableFunc(options, func(a, b method.Option) int { return cmp.Compare(orderOf(&a), orderOf(&b)) })
	for gained := true; gained; {
		gained = false
		for _, o := range options {
			near := c.leading(1)
			for _, f := range leaders {
				if orderOf(&o) == fine && !slices.Contains(near, f) {
					continue
				}
				was := f.best
				for stride := wide; stride >= narrow; stride-- {
					if err := c.improveAlong(ctx, f, o.Name, stride); err != nil {
						return err
					}
				}
				if f.best != was {
					gained = true
					if err := c.improveAlong(ctx, f, method.Cost.Name, narrow); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// These are the classes of options, in the order in which they are refined.
const (
	ofTexts  = iota // text options, which change the features
	withCost        // options that are varied together with C
	fine
)

// orderOf returns the class of o.
func orderOf(o *method.Option) int {
	switch {
	case o.Group == groupText:
		return ofTexts
	case o.Offset != 0:
		return withCost
	}
	return fine
}

// continueStopped continues trainings that ran out of time, best first, if the time allowed now is more than
// twice the time that they had.
func (c *hillClimb) continueStopped(ctx context.Context) error {
	short := slices.DeleteFunc(slices.Clone(c.stage.trials), func(r *trial) bool { return !r.stopped })
	slices.SortStableFunc(short, c.better)
	for _, r := range short {
		if r.family.failed != "" || slices.ContainsFunc(r.family.lost, r.base.Equal) || !c.fitsTime(r.family, r.base) {
			continue
		}
		next := &trial{base: r.base, family: r.family}
		for _, p := range r.points {
			next.points = append(next.points, &candidate{point: p.point})
		}
		if err := c.runTrials(ctx, []*trial{next}, c.stage.from, c.stage.to); err != nil {
			return err
		}
		if next.top == nil {
			continue
		}
		c.stage.trials[slices.Index(c.stage.trials, r)] = next
		if r.family.best == r || c.gainsOn(next, r.family.best) {
			r.family.best = next
		}
		if err := c.save(); err != nil {
			return err
		}
	}
	return nil
}

// improveAlong varies an option of a family, from the family's best point, in steps of `stride` values,
// until no step gains. If nothing within the listed values gains, it continues beyond their ends in
// the ratio of the last two.
func (c *hillClimb) improveAlong(ctx context.Context, f *family, option string, stride int) error {
	l := c.valueList(f, option)
	if l == nil {
		return nil
	}
	for next := []int{-stride, stride}; ; {
		from := f.best
		var points, beyond []Point
		for _, d := range next {
			inside := l.has(from.base, d)
			for _, p := range l.step(from.base, d) {
				switch {
				case !c.fitsTime(f, p):
				case inside:
					points = append(points, p)
				default:
					beyond = append(beyond, p)
				}
			}
		}
		for _, points := range [][]Point{points, beyond} {
			if err := c.try(ctx, f, points...); err != nil {
				return err
			}
			if f.best != from {
				break
			}
		}
		if f.best == from {
			return nil
		}
		next = []int{stride} // continue in the direction that gained
		if l.at(f.best.base) < l.at(from.base) {
			next[0] = -stride
		}
	}
}

// try trains points on the stage's folds, side by side. The family's best trial becomes the best of
// those that gain on it.
func (c *hillClimb) try(ctx context.Context, f *family, bases ...Point) error {
	var fresh []*trial
	for _, base := range bases {
		if f.failed != "" || slices.ContainsFunc(f.lost, base.Equal) || slices.ContainsFunc(c.stage.trials,
			func(r *trial) bool { return r.base.Equal(base) }) {
			continue
		}
		if _, err := c.features(ctx, base); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			c.skip(base, err.Error())
			continue
		}
		if slices.ContainsFunc(c.stage.trials, func(r *trial) bool { return c.repeats(base, r.base) }) {
			continue
		}
		fresh = append(fresh, c.newTrial(f, base))
	}
	if len(fresh) == 0 {
		return nil
	}
	err := c.runTrials(ctx, fresh, c.stage.from, c.stage.to)
	for _, r := range fresh { // independent of which ended first
		if r.top == nil {
			continue
		}
		c.stage.trials = append(c.stage.trials, r)
		if f.best == nil || c.gainsOn(r, f.best) {
			f.best = r
		}
	}
	if err == nil {
		err = c.save()
	}
	return err
}

// gainsOn reports whether a is better than b by more than noise.
func (c *hillClimb) gainsOn(a, b *trial) bool {
	d := difference(a.top.jack, b.top.jack)
	return Better(a.top.jack[0], b.top.jack[0], c.goal.Low) && math.Abs(d[0]) > noise*d.error()
}
