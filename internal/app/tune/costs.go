package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"taxon/coordinator/method"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/estimate"
	"taxon/internal/app/train"
	"taxon/internal/ui/format"
	"taxon/internal/ui/progress"
)

// costs predicts real time from CPU time, as the trainings so far suggest. CPU time does not depend
// on the other load of the machine.
type costs struct {
	threads int
	// cpu and wall are the sums of the trainings' CPU and real time, in seconds.
	cpu, wall float64
	// rest is the sum of the seconds spent outside the n trainings, as for measuring.
	rest, n float64
}

// newCosts returns costs without any training.
func newCosts(threads int) costs { return costs{threads: threads} }

// assumedPace is the pace before any training.
const assumedPace = 1.5

// pace returns the real seconds per CPU second. assumedPace is weighted like a training of one
// second.
func (c *costs) pace() float64 {
	return (c.wall + assumedPace/float64(c.threads)) / (c.cpu + 1)
}

// seconds returns the predicted real time of a training of cpu CPU seconds, including its
// measurement.
func (c *costs) seconds(cpu float64) float64 { return c.pace()*cpu + c.rest/max(c.n, 1) }

// batch is a set of trainings that run side by side.
type batch struct {
	costs *costs
	began time.Time

	mu        sync.Mutex
	cpu, rest float64
	n         float64
}

func (c *costs) batch(now time.Time) *batch { return &batch{costs: c, began: now} }

// add adds a training to the batch, by its CPU seconds and the seconds of everything else.
func (b *batch) add(cpu, rest float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cpu, b.rest, b.n = b.cpu+cpu, b.rest+max(rest, 0), b.n+1
}

// end closes the batch. together is the number of its trainings that ran at a time.
func (b *batch) end(now time.Time, together int) {
	c, rest := b.costs, b.rest/float64(max(together, 1))
	c.cpu, c.rest, c.n = c.cpu+b.cpu, c.rest+rest, c.n+b.n
	c.wall += max(now.Sub(b.began).Seconds()-rest, b.cpu/float64(c.threads))
}

const (
	// roughShare is the cost of a training to the rough gap of the search, divided by the cost of a
	// training to the default tolerance.
	roughShare = 0.4
	// exactTimes is the assumed cost of a training to the requested tolerance, relative to one of
	// the search. A point is chosen only if there is time for minTimes its cost in the search.
	exactTimes, minTimes = 2, 1.5
	// Points are tried on as many folds as there is time for trialsOf trainings of median cost on
	// each. A sample ranks options less reliably than all rows do. So one is drawn only if there is
	// no time for leastTrials trainings on all rows, and it is small enough for sampleTrials
	// trainings.
	trialsOf, leastTrials, sampleTrials = 120, 20, 240
)

// list lists the families that fit the data and the memory, quickest first.
func (c *hillClimb) list() error {
	for _, start := range c.starts {
		t, err := c.trainable(start)
		if err != nil {
			return err
		}
		seconds, err := estimateOf(t)
		if err != nil {
			return err
		}
		c.families = append(c.families, &family{start: start, estimate: seconds})
		if c.inTree == nil && c.structure() == method.Structured && !registry.Unstructured(start.Method) {
			for n, l := range t.Tree.Label {
				if t.Tree.Leaf[n] && l >= 0 {
					c.inTree = append(c.inTree, l)
				}
			}
		}
	}
	slices.SortStableFunc(c.families, func(a, b *family) int { return cmp.Compare(a.estimate, b.estimate) })
	for _, f := range c.families {
		loss := f.start.Values["loss"]
		if at := slices.IndexFunc(c.families, func(g *family) bool {
			return loss != "" && g.start.Values["loss"] == loss && registry.Unstructured(g.start.Method)
		}); at >= 0 && c.families[at] != f {
			f.flat = c.families[at]
		}
	}
	return nil
}

// estimateOf returns the estimated CPU time of a training of the search, in seconds.
func estimateOf(t *train.Training) (float64, error) {
	j, err := registry.Prepare(t.Spec)
	if err != nil {
		return 0, err
	}
	return roughShare * estimate.Seconds(j, 1), nil
}

// sized estimates the families' trainings on the sample.
func (c *hillClimb) sized() error {
	h := c.folds.acquire(c.whole, c.stage.from)
	defer c.folds.release(h)
	for _, f := range c.families {
		t, err := c.whole.On(progress.Discard{}, c.o.job(f.start), h.rest, true)
		if err != nil {
			return err
		}
		if f.sampled, err = estimateOf(t); err != nil {
			return err
		}
		f.sampled *= c.size(f.start)
	}
	return nil
}

// estimate returns the estimated CPU time of a family's training in the current stage, in seconds.
func (c *hillClimb) estimate(f *family) float64 {
	if c.stage.from < 0 {
		return f.sampled
	}
	return f.estimate
}

// plan chooses the share of rows and classes on which the search starts, where 1 means all, and the
// number of folds on which points are tried before the best are compared. It depends only on the
// estimates and the time limit.
func (c *hillClimb) plan() (part float64, folds int) {
	total, threads := c.o.Time, float64(c.slots)
	if total == 0 {
		total, threads = DefaultTime, 2
	}
	trials := total.Seconds() / (c.families[len(c.families)/2].estimate / threads) // of median cost
	if trials >= leastTrials {
		return 1, min(max(int(trials/trialsOf), 1), c.o.tried())
	}
	return trials / sampleTrials, 1
}

// predictCost predicts the CPU time of a training on a fold of the current stage, in seconds. If a
// similar training of the family has run, it returns the time of that training and true. Otherwise
// it returns false and the estimate, multiplied by the ratio of measured to estimated times of
// other families.
func (c *hillClimb) predictCost(f *family, p Point) (seconds float64, known bool) {
	if took, ok := c.nearest(c.stage.trials, f, p); ok {
		return took, true
	}
	if took, ok := c.nearest(c.sampled, f, p); ok {
		return took * f.estimate / f.sampled, true
	}
	var ratios []float64
	for _, r := range c.stage.trials {
		if r.base.Equal(r.family.start) {
			ratios = append(ratios, r.cpu/c.estimate(r.family))
		}
	}
	if len(ratios) == 0 {
		return c.estimate(f), false
	}
	slices.Sort(ratios)
	return c.estimate(f) * ratios[len(ratios)/2], false
}

// nearest returns the CPU time of the training of a family that is nearest in C. It is larger for a
// larger C, a larger bias and more features.
func (c *hillClimb) nearest(trials []*trial, f *family, p Point) (seconds float64, ok bool) {
	far := math.Inf(1)
	for _, r := range trials {
		d := math.Abs(math.Log(p.C() / r.base.C()))
		if p.Path() != r.base.Path() {
			d += 0.1
		}
		if r.family == f && d < far {
			bias := p.number(method.Bias.Name, 1) / r.base.number(method.Bias.Name, 1)
			if !(bias > 1) {
				bias = 1
			}
			seconds, far, ok = r.cpu*math.Sqrt(max(p.C()/r.base.C(), 1))*bias*c.size(p)/c.size(r.base), d, true
		}
	}
	return seconds, ok
}

// fitsTime reports whether a training can end in its allowed time, with enough time left for the
// last training. If not, it records that the point was not tried.
func (c *hillClimb) fitsTime(f *family, p Point) bool {
	if c.clock.limit == 0 {
		return true
	}
	cpu, known := c.predictCost(f, p)
	need, may, last, left := c.costs.seconds(cpu)*float64(c.stage.count()), c.cap(), c.last(f, cpu, minTimes),
		c.clock.left(0)
	if c.vectorsOf(p) == nil {
		need, last = need+c.reading*bigramSize, last+c.reading*(bigramSize-1) // read here, and again for the model
	}
	if !known {
		may, left = may*breakOffFactor, left*breakOffFactor
	}
	why := ""
	switch {
	case may <= 0:
		why = fmt.Sprintf("about %s, and no time was left", format.Seconds(need))
	case need > may:
		why = fmt.Sprintf("about %s, where one training may take %s", format.Seconds(need), format.Seconds(max(c.cap(), 0)))
	case need+last > left:
		why = fmt.Sprintf("its model would take about %s, where %s are left", format.Seconds(last),
			format.Seconds(max(c.clock.left(0)-need, 0)))
	default:
		return true
	}
	c.skip(p, why)
	for i := range c.untried {
		if c.untried[i].Equal(p) {
			c.untried[i].late = c.stage
		}
	}
	c.short = true
	return false
}

// cap returns the number of seconds that a training may take.
func (c *hillClimb) cap() float64 { return c.share * c.clock.left(c.reserve()) }

// last predicts the duration of the training on all rows, in seconds. This includes the cut-offs
// and the writing of the model. cpu is the CPU time of the point's trainings per fold. times is the
// factor by which a training to the final tolerance costs more.
func (c *hillClimb) last(f *family, cpu, times float64) float64 {
	if c.o.NoTrain {
		return 0
	}
	return c.costs.seconds(cpu*times*c.grown(f)) + c.ending(f)
}

// useful returns the largest useful duration of a training, in seconds. After a longer training no
// time would be left to train its point on all rows.
func (c *hillClimb) useful(f *family) float64 {
	if c.o.NoTrain {
		return math.Inf(1)
	}
	return (c.clock.left(0) - c.ending(f)) / (1 + minTimes*c.grown(f))
}

// grown returns the CPU time of the last training relative to one of the current stage to the same
// tolerance.
func (c *hillClimb) grown(f *family) float64 {
	times := float64(c.o.Folds) / float64(c.o.Folds-1)
	if c.stage.from < 0 {
		times = f.estimate / f.sampled
	}
	if c.whole.Meta().Data.MultiLabel() {
		times *= 2 // a second training is needed to fit its cut-offs
	}
	return times
}

// ending returns the seconds that the last training takes outside its sweeps. They are for reading
// the data, and for writing a model as large as the family's models so far.
func (c *hillClimb) ending(f *family) float64 {
	size := 0.0
	for _, r := range slices.Concat(c.sampled, c.stage.trials) {
		if r.family != f || r.top == nil {
			continue
		}
		times := float64(c.o.Folds) / float64(c.o.Folds-1)
		if r.top.results[0].Fold < 0 {
			// Work grows with rows and classes, a model with the classes.
			times = math.Sqrt(f.estimate / f.sampled)
		}
		size = float64(r.bytes) * times
	}
	return c.reading + size/writeRate
}

// trains reports whether left seconds suffice for the last training of a trial's point.
func (c *hillClimb) trains(r *trial, left float64) bool {
	return c.last(r.family, r.cpu, minTimes) <= left
}

// reserve returns the seconds that are reserved for later stages and the last training.
func (c *hillClimb) reserve() float64 {
	total, last := c.clock.limit.Seconds(), c.reading
	if r := c.front(); r != nil {
		last = min(c.last(r.family, r.cpu, exactTimes), maxLast*total)
	}
	if c.stage.from < 0 { // after a sample mostly that training remains
		return max(c.kept, last+after*total)
	}
	return last + c.kept
}

// maxLast is the largest share of the time that is reserved for the last training.
const maxLast = 0.5
