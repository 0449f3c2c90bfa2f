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

// costs predicts seconds from CPU seconds, by what trainings took so far. CPU seconds do not
// depend on what else runs on the machine.
type costs struct {
	threads   int
	cpu, wall float64 // of trainings
	rest, n   float64 // seconds of everything else, and for how many trainings
}

func newCosts(threads int) costs { return costs{threads: threads} }

// assumedPace is the pace before anything was measured.
const assumedPace = 1.5

// pace is how many seconds a CPU second takes. assumedPace counts like a training of one second.
func (c *costs) pace() float64 {
	return (c.wall + assumedPace/float64(c.threads)) / (c.cpu + 1)
}

// seconds is how long a training takes, with measuring.
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

// add counts a training: its CPU seconds, and the seconds of everything else.
func (b *batch) add(cpu, rest float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cpu, b.rest, b.n = b.cpu+cpu, b.rest+max(rest, 0), b.n+1
}

// end closes the batch; together is how many of it ran at a time.
func (b *batch) end(now time.Time, together int) {
	c, rest := b.costs, b.rest/float64(max(together, 1))
	c.cpu, c.rest, c.n = c.cpu+b.cpu, c.rest+rest, c.n+b.n
	c.wall += max(now.Sub(b.began).Seconds()-rest, b.cpu/float64(c.threads))
}

const (
	// roughShare is the cost of a training of the search, as a share of one to the default
	// tolerance.
	roughShare = 0.4
	// exactTimes is how much longer a training to the wanted tolerance takes than one of the
	// search. A point is chosen only if there is time for minTimes as long.
	exactTimes, minTimes = 2, 1.5
	// Points are tried on as many folds as there is time for trialsOf trainings of middling cost
	// on each. A sample ranks options worse than all rows. So one is taken only if there is not
	// the time for leastTrials on all rows, and it is small enough for sampleTrials.
	trialsOf, leastTrials, sampleTrials = 120, 20, 240
)

// list finds the families that fit the data and the memory, quickest first.
func (c *climb) list() error {
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

// estimateOf is how many CPU seconds a training of the search takes.
func estimateOf(t *train.Training) (float64, error) {
	j, err := registry.Prepare(t.Spec)
	if err != nil {
		return 0, err
	}
	return roughShare * estimate.Seconds(j, 1), nil
}

// sized estimates the families' trainings on the sample.
func (c *climb) sized() error {
	h := c.folds.take(c.whole, c.stage.from)
	defer c.folds.release(h)
	for _, f := range c.families {
		t, err := c.whole.On(progress.Discard{}, c.o.job(f.start), h.rest, true)
		if err != nil {
			return err
		}
		if f.sampled, err = estimateOf(t); err != nil {
			return err
		}
	}
	return nil
}

// estimate is the estimate for a family's training in the present stage.
func (c *climb) estimate(f *family) float64 {
	if c.stage.from < 0 {
		return f.sampled
	}
	return f.estimate
}

// plan chooses the share of rows and classes on which the search begins (1: all), and the number
// of folds on which points are tried before the best are compared. It depends on the estimates
// and the limit alone.
func (c *climb) plan() (part float64, folds int) {
	total, threads := c.o.Time, float64(c.slots)
	if total == 0 {
		total, threads = DefaultTime, 2
	}
	trials := total.Seconds() / (c.families[len(c.families)/2].estimate / threads) // of middling cost
	if trials >= leastTrials {
		return 1, min(max(int(trials/trialsOf), 1), c.o.tried())
	}
	return trials / sampleTrials, 1
}

// predictCost predicts the CPU seconds of a training on a fold of the present stage: what the
// nearest training of its family took (known), else its estimate, corrected by how well others'
// estimates held.
func (c *climb) predictCost(f *family, p Point) (seconds float64, known bool) {
	if took, ok := c.nearest(c.stage.rungs, f, p); ok {
		return took, true
	}
	if took, ok := c.nearest(c.sampled, f, p); ok {
		return took * f.estimate / f.sampled, true
	}
	var ratios []float64
	for _, r := range c.stage.rungs {
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

// nearest is what the training of a family took that is nearest in C; a larger C takes longer, and
// so do a larger bias and more features.
func (c *climb) nearest(rungs []*trial, f *family, p Point) (seconds float64, ok bool) {
	far := math.Inf(1)
	for _, r := range rungs {
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

// fitsTime says whether a training may end in its allowed time, and the last training in what is
// left after it. If not, the outcome says so.
func (c *climb) fitsTime(f *family, p Point) bool {
	if c.clock.limit == 0 {
		return true
	}
	cpu, known := c.predictCost(f, p)
	need, may, last, left := c.costs.seconds(cpu)*float64(c.stage.count()), c.cap(), c.last(f, cpu, minTimes),
		c.clock.left(0)
	if c.vectorsOf(p) == nil {
		need, last = need+c.reading*bigramSize, last+c.reading*(bigramSize-1) // read here, and for the model
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

// cap is how many seconds a training may take.
func (c *climb) cap() float64 { return c.share * c.clock.left(c.reserve()) }

// last predicts the seconds of the training on all rows, with cut-offs and the writing of its
// model, for a point whose trainings took so many CPU seconds a fold, to a tolerance that takes so
// many times as long.
func (c *climb) last(f *family, cpu, times float64) float64 {
	if c.o.NoTrain {
		return 0
	}
	return c.costs.seconds(cpu*times*c.grown(f)) + c.ending(f)
}

// useful is how many seconds a training may take at most: after a longer one there is no time
// left to train its point on all rows.
func (c *climb) useful(f *family) float64 {
	if c.o.NoTrain {
		return math.Inf(1)
	}
	return (c.clock.left(0) - c.ending(f)) / (1 + minTimes*c.grown(f))
}

// grown is how many times the CPU seconds of one in the present stage the last training takes, to
// the same tolerance.
func (c *climb) grown(f *family) float64 {
	times := float64(c.o.Folds) / float64(c.o.Folds-1)
	if c.stage.from < 0 {
		times = f.estimate / f.sampled
	}
	if c.whole.Meta().Data.MultiLabel() {
		times *= 2 // a second training is needed to fit its cut-offs
	}
	return times
}

// ending is how many seconds the last training takes beside its sweeps: for the reading, and for
// the writing of a model as large as those of the family so far.
func (c *climb) ending(f *family) float64 {
	size := 0.0
	for _, r := range slices.Concat(c.sampled, c.stage.rungs) {
		if r.family != f || r.lead == nil {
			continue
		}
		times := float64(c.o.Folds) / float64(c.o.Folds-1)
		if r.lead.results[0].Fold < 0 {
			// work grows with rows and classes, a model with the classes
			times = math.Sqrt(f.estimate / f.sampled)
		}
		size = float64(r.bytes) * times
	}
	return c.reading + size/writeRate
}

// trains says whether so many seconds are enough for the last training of a rung's point.
func (c *climb) trains(r *trial, left float64) bool {
	return c.last(r.family, r.cpu, minTimes) <= left
}

// reserve is how many seconds are kept for later stages and the last training.
func (c *climb) reserve() float64 {
	total, last := c.clock.limit.Seconds(), c.reading
	if r := c.front(); r != nil {
		last = min(c.last(r.family, r.cpu, exactTimes), maxLast*total)
	}
	if c.stage.from < 0 { // what follows a sample is mostly that training
		return max(c.kept, last+after*total)
	}
	return last + c.kept
}

// maxLast is the largest share of the time that is reserved for the last training.
const maxLast = 0.5
