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

// climb is the strategy of a search without lists of values. It tries all methods that fit the
// data, the quickest first, from the defaults of their options. For each it climbs along C; for
// the leading methods then along their other options. A method with a structure begins where its
// flat form stands, which is far cheaper. Trainings end at a rough gap. Small data are searched on
// some folds. Large data are searched on a sample first, and what leads there climbs on on the
// first fold. At the end the best points are compared on the other folds. Every step follows from
// the results alone, except that the clock ends the search and leaves out what would take too long.
type climb struct {
	*search
	group    []int // row -> group of the jackknife
	families []*family
	inTree   []int32 // labels in the order of the tree; nil: there is none
	costs    costs
	stage    *stage   // the present one
	sampled  []*trial // rungs of the stage on a sample
	rungs    []*trial // rungs of the stage on whole folds, by their first trial
	share    float64  // of the time left that one training may take
	kept     float64  // seconds reserved for later stages
	line     progress.Progress
	mu       sync.Mutex // guards the progress line while trainings run side by side
}

// family is a method with one of its losses.
type family struct {
	start  Point   // its first point
	flat   *family // the same loss without the structure; nil: there is none
	best   *trial  // in the present stage; nil: not tried
	failed string  // why it can't be trained
	lost   []Point // whose trainings failed
	// CPU seconds of a training on all rows, within a factor of three,
	estimate float64
	sampled  float64 // and on the sample
}

// stage says on what points are measured: folds from..to-1. A sample is a fold with a negative
// number.
type stage struct {
	from, to int
	rungs    []*trial
}

func (s *stage) count() int { return s.to - s.from }

// trial is a training on each fold of a stage, with the points that it serves.
type trial struct {
	base    Point
	family  *family
	points  []*candidate
	lead    *candidate // the best of its points
	first   *Jackknife // values of the best on the stage's folds
	cpu     float64    // CPU seconds of a fold's training
	bytes   int64      // size of its model
	stopped bool       // one of its trainings ran out of time
}

const (
	// breakOffFactor: a training begins if its predicted time is at most this many times the time
	// that it may take. Predictions are rough, and a training ends when its time is over. One
	// that does not end, as within a long sweep, is broken off after this many times its time.
	breakOffFactor = 2
	// noise: a step must gain more than this share of the difference's standard error.
	noise = 0.25
	// At most maxRefined families climb along all options, maxMoved continue from a sample, and
	// maxFinal points are compared on the last folds.
	maxRefined, maxMoved, maxFinal = 3, 5, 8
	// maxLost is how many failed trainings end a family.
	maxLost = 3
	// dropStdErrs: a family this many standard errors behind the best no longer climbs.
	dropStdErrs = 2
	// maxFirst is the share of the whole time that the first training may take.
	maxFirst = 0.3
	// Shares of the time reserved for what follows: afterSample for what follows a stage on a
	// sample, after for what follows a stage on folds.
	afterSample, after = 0.5, 0.15
	// wide and narrow are the steps along a ladder, in values.
	wide, narrow = 2, 1
)

// The share of the time left that one training may take: at a family's first point, on its way
// along C, and along the other options. The search goes to the next line when everything that was
// cheap enough has been tried.
var shares = [...]struct{ begin, climb, refine float64 }{{0.04, 0.08, 0.015}, {0.15, 0.2, 0.2}, {0.4, 0.4, 0.4},
	{1, 1, 1}}

func newClimb(s *search) *climb {
	return &climb{search: s, group: Group(len(s.folds.fold), registry.Seed(s.o.Train.Job)), costs: newCosts(s.slots)}
}

// candidates yields the best point of each training, path by path, C ascending.
func (c *climb) candidates() iter.Seq[*candidate] {
	var all []*candidate
	for _, r := range c.rungs {
		all = append(all, r.lead)
	}
	slices.SortStableFunc(all, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.point.Path(), b.point.Path()), cmp.Compare(a.point.C(), b.point.C()))
	})
	return slices.Values(all)
}

func (c *climb) on() (from, to int) { return c.stage.from, c.stage.to }

// run climbs until nothing gains or the time is up.
func (c *climb) run(ctx context.Context) error {
	c.line = c.ui.Start("tune", 0)
	defer c.line.Done()
	defer c.clock.show(c.line)()
	if err := c.list(); err != nil {
		return err
	}
	var sample *stage
	part, folds := c.plan()
	if part < 1 {
		c.kept = afterSample * c.o.Time.Seconds()
		err := c.sample(ctx, part)
		if err == nil {
			err = c.ascend(ctx)
		}
		if err != nil && (!errors.Is(err, errTimeUp) || c.leader() == nil) {
			return err
		}
		sample, c.sampled = c.stage, c.stage.rungs
	}
	seeds := c.seeds()
	c.stage, c.kept = &stage{from: 0, to: folds}, 0
	err := c.move(ctx, seeds)
	if c.kept = after * c.o.Time.Seconds(); err == nil {
		err = c.ascend(ctx)
	}
	if c.stage.rungs == nil && sample != nil { // no time for whole folds: the sample decides
		c.stage = sample
	}
	if c.rungs = c.stage.rungs; err != nil && !errors.Is(err, errTimeUp) || c.stage == sample || len(c.rungs) == 0 {
		return err
	}
	c.kept, c.share = 0, 1
	if last := c.final(ctx); last != nil || err == nil || c.stage.to > folds {
		return cmp.Or(last, err)
	}
	// nothing is near the best, so the time kept for comparing it is left
	err = c.ascend(ctx)
	c.rungs = c.stage.rungs
	return err
}

// sample draws a sample and tries the first family on it. If that takes far longer than
// estimated, as on a busy machine, it draws a smaller one.
func (c *climb) sample(ctx context.Context, part float64) error {
	for again := false; ; again = true {
		number := c.folds.draw(part, c.structure() == method.Graphs, c.inTree, registry.Seed(c.o.Train.Job))
		c.stage = &stage{from: number, to: number + 1}
		if err := c.sized(); err != nil {
			return err
		}
		if err := c.first(ctx); err != nil || again || c.clock.limit == 0 || len(c.stage.rungs) == 0 {
			return err
		}
		f := c.families[0]
		late := c.costs.pace() * c.stage.rungs[0].cpu / (f.sampled / float64(c.slots))
		if late < muchCheaper {
			return nil
		}
		c.untried, f.best, part = nil, nil, part/late
	}
}

// ascend tries all families and climbs, with cheap trainings first.
func (c *climb) ascend(ctx context.Context) error {
	before := c.short
	for _, may := range shares { // the last round leaves out what there is no time for
		c.short = before
		c.untried = slices.DeleteFunc(c.untried, func(u Untried) bool { return u.late == c.stage })
		c.share = may.climb
		if err := c.again(ctx); err != nil {
			return err
		}
		if c.sampled == nil { // else the sample has shown which families are worth it
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

// first tries the quickest family, however long it may take, or there would be no model.
func (c *climb) first(ctx context.Context) error {
	f, kept := c.families[0], c.kept
	if len(c.stage.rungs) > 0 || f.failed != "" {
		return nil
	}
	c.kept, c.share = 0, maxFirst
	defer func() { c.kept = kept }()
	return c.try(ctx, f, f.start)
}

// begin tries each family that was not tried yet, and climbs in wide steps, as the defaults suit
// some less than others. A family whose flat form did so begins where that stands.
func (c *climb) begin(ctx context.Context, may, climbing float64) error {
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

// seeds are the families that continue from a sample, best first, each at its best point there.
// Without a sample there are none.
func (c *climb) seeds() (out []*trial) {
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

// move tries the seeds' points on the present stage.
func (c *climb) move(ctx context.Context, seeds []*trial) error {
	c.share = 1
	for _, r := range seeds {
		if p := c.onAllRows(r.base); c.fitsTime(r.family, p) {
			if err := c.try(ctx, r.family, p); err != nil {
				return err
			}
		}
	}
	for i := range c.untried { // no later round comes to them
		c.untried[i].late = nil
	}
	return nil
}

// onAllRows is a point of the sample with the C that suits all rows: a share rho of the rows wants
// a C larger by 1/sqrt(rho), as the trainings that cut-offs are fitted on do.
func (c *climb) onAllRows(p Point) Point {
	if o := c.o.Grid.find(p.Method, method.Cost.Name); o != nil && c.folds.share < 1 {
		l := &ladder{option: o, values: c.o.Grid.ladder(o), open: c.o.Grid.Values[o.Name] == nil}
		if v := l.times(l.at(p), math.Sqrt(c.folds.share)); v != "" {
			return p.with(o.Name, v)
		}
	}
	return p
}

// leading lists the tried families that are not far behind, best first, and of the others as many
// as make up `least`: what a family gains by its other options is not known before. The best may
// have been refined, and the others not yet. So they are compared with what it reached by C alone.
// A flat form far behind its structured one is left out: what it gains, that one gains, too.
func (c *climb) leading(least int) (lead []*family) {
	best := c.front()
	for _, f := range c.families {
		if f.best != nil && !slices.ContainsFunc(c.families, func(g *family) bool {
			return g.flat == f && g.best != nil && Out(g.best.lead.jack, f.best.lead.jack, dropStdErrs, c.goal.Low, false)
		}) {
			lead = append(lead, f)
		}
	}
	slices.SortStableFunc(lead, func(a, b *family) int { return c.better(a.best, b.best) })
	rank := 0
	return slices.DeleteFunc(lead, func(f *family) bool {
		rank++
		return rank > least && Out(c.plain(best.family).lead.jack, f.best.lead.jack, dropStdErrs, c.goal.Low, false)
	})
}

// plain is the best of a family's rungs that differ from its start in C alone.
func (c *climb) plain(f *family) (best *trial) {
	cost := method.Cost.Name
	for _, r := range c.stage.rungs {
		if r.family == f && r.base.with(cost, "").Equal(f.start.with(cost, "")) && (best == nil || c.better(r, best) < 0) {
			best = r
		}
	}
	return cmp.Or(best, f.best)
}

// better orders rungs by their best points.
func (c *climb) better(a, b *trial) int {
	x, y := a.lead.jack[0], b.lead.jack[0]
	switch {
	case Better(x, y, c.goal.Low):
		return -1
	case x == y:
		return 0
	}
	return 1
}

// scales climbs along the options that matter most: C, and on graphs those that exist for graphs
// only.
func (c *climb) scales(ctx context.Context, stride int, in []*family) error {
	for _, f := range in {
		for _, o := range c.o.Grid.tunable(f.start.Method) {
			if o.Name == method.Cost.Name || o.On == method.Graphs {
				if err := c.along(ctx, f, o.Name, stride); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// refine climbs along the other options of the leading families: all along one before the next
// one, and the finest only those that are not far behind by then.
func (c *climb) refine(ctx context.Context) error {
	lead := c.leading(maxRefined)
	lead = lead[:min(maxRefined, len(lead))]
	var options []method.Option
	for _, f := range lead {
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
			for _, f := range lead {
				if orderOf(&o) == fine && !slices.Contains(near, f) {
					continue
				}
				was := f.best
				for stride := wide; stride >= narrow; stride-- {
					if err := c.along(ctx, f, o.Name, stride); err != nil {
						return err
					}
				}
				if f.best != was {
					gained = true
					if err := c.along(ctx, f, method.Cost.Name, narrow); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// The order in which options are refined.
const (
	ofTexts  = iota // other features
	withCost        // those that are varied with C
	fine
)

func orderOf(o *method.Option) int {
	switch {
	case o.Group == groupText:
		return ofTexts
	case o.Offset != 0:
		return withCost
	}
	return fine
}

// again continues trainings that ran out of time, best first, as long as the allowed time is now
// more than twice what they have had.
func (c *climb) again(ctx context.Context) error {
	short := slices.DeleteFunc(slices.Clone(c.stage.rungs), func(r *trial) bool { return !r.stopped })
	slices.SortStableFunc(short, c.better)
	for _, r := range short {
		if r.family.failed != "" || slices.ContainsFunc(r.family.lost, r.base.Equal) || !c.fitsTime(r.family, r.base) {
			continue
		}
		next := &trial{base: r.base, family: r.family}
		for _, p := range r.points {
			next.points = append(next.points, &candidate{point: p.point})
		}
		if err := c.trials(ctx, []*trial{next}, c.stage.from, c.stage.to); err != nil {
			return err
		}
		if next.lead == nil {
			continue
		}
		c.stage.rungs[slices.Index(c.stage.rungs, r)] = next
		if r.family.best == r || c.gains(next, r.family.best) {
			r.family.best = next
		}
		if err := c.save(); err != nil {
			return err
		}
	}
	return nil
}

// along climbs from a family's best point along an option, in steps of `stride` values. Beyond
// the ladder's ends it goes on in the ratio of its last values, if nothing on it gained.
func (c *climb) along(ctx context.Context, f *family, option string, stride int) error {
	l := c.ladder(f, option)
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
		next = []int{stride} // go on in the direction that gained
		if l.at(f.best.base) < l.at(from.base) {
			next[0] = -stride
		}
	}
}

// try trains points on the stage's folds, side by side, and makes the best of them that gains the
// family's best.
func (c *climb) try(ctx context.Context, f *family, bases ...Point) error {
	var fresh []*trial
	for _, base := range bases {
		if f.failed != "" || slices.ContainsFunc(f.lost, base.Equal) || slices.ContainsFunc(c.stage.rungs,
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
		if slices.ContainsFunc(c.stage.rungs, func(r *trial) bool { return c.repeats(base, r.base) }) {
			continue
		}
		fresh = append(fresh, c.rung(f, base))
	}
	if len(fresh) == 0 {
		return nil
	}
	err := c.trials(ctx, fresh, c.stage.from, c.stage.to)
	for _, r := range fresh { // in this order, whichever ended first
		if r.lead == nil {
			continue
		}
		c.stage.rungs = append(c.stage.rungs, r)
		if f.best == nil || c.gains(r, f.best) {
			f.best = r
		}
	}
	if err == nil {
		err = c.save()
	}
	return err
}

// gains says whether a is better than b by more than chance explains.
func (c *climb) gains(a, b *trial) bool {
	d := difference(a.lead.jack, b.lead.jack)
	return Better(a.lead.jack[0], b.lead.jack[0], c.goal.Low) && math.Abs(d[0]) > noise*d.error()
}

// trial is the training of a base. Its points have the values of the options that only the
// trainer uses. Where each costs a fit of cut-offs, only those next to the value of the family's
// best.
func (c *climb) rung(f *family, base Point) *trial {
	r := &trial{base: base, family: f}
	points := []Point{base}
	for _, o := range c.o.Grid.tunable(base.Method) {
		if !o.Carried || o.Name == method.PriorShift.Name && (base.Values[method.Bias.Name] == "0" || c.goal.Probable) {
			continue
		}
		var more []Point
		for _, p := range points {
			ladder := c.o.Grid.ladder(&o)
			if c.whole.Meta().Data.MultiLabel() {
				at := 1
				if f.best != nil {
					at = max(slices.Index(ladder, f.best.lead.point.Values[o.Name]), 1)
				}
				ladder = ladder[min(at, len(ladder))-1 : min(at+2, len(ladder))]
			}
			for _, v := range ladder {
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

// ladder is the ladder of a family's option; nil: it has no values, or no effect on these data.
func (c *climb) ladder(f *family, option string) *ladder {
	o := c.o.Grid.find(f.start.Method, option)
	if o == nil || o.Idle(c.structure(), f.best.base.Values) {
		return nil
	}
	l := &ladder{option: o, values: c.o.Grid.ladder(o), open: c.o.Grid.Values[option] == nil && o.Kind != method.Choice &&
		o.Group != groupText}
	if o.Offset != 0 {
		l.cost = c.ladder(f, method.Cost.Name)
	}
	if l.at(f.best.base) < 0 || len(l.values) == 1 {
		return nil
	}
	return l
}
