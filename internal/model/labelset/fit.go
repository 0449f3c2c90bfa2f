package labelset

import (
	"cmp"
	"errors"
	"math"
	"slices"
)

// Options configure a fit.
type Options struct {
	// Goal is the measure to maximise. If it is empty, it is MeanF1.
	Goal Goal
	// Tree holds the groups of the classes, towards which scut shrinks.
	Tree Tree
	// Rough tries fewer values, which takes a fifth of the time and is nearly as good. It serves to
	// compare scores.
	Rough bool
}

// effort lists the values that are tried.
type effort struct{ mixes, strengths, slopes []float64 }

var (
	thorough = effort{[]float64{0.25, 0.5, 0.75, 1}, []float64{1, 4, 16, 64, math.Inf(1)}, []float64{0, 0.05, 0.1}}
	rough    = effort{[]float64{0.5}, []float64{16}, []float64{0, 0.05}}
)

// Fit fits all cut-offs to held-out instances.
//
// Global and the rank are chosen to maximise the goal. An instance's threshold is
//
//	t(s) = mix theta.phi(s) + (1 - mix) global + shift
//
// where mix is one of 0, 1/4, ..., 1 (fewer if Rough), and mix and shift maximise the goal. For
// this choice the regression is cross-fitted on folds parts, so that a regression that overfits
// loses to the one threshold (mix = 0). The stored regression is fitted on all rows. newShrinker
// gives the classes' thresholds, which are shifted in the same way. Rule is the better of the two.
func Fit(p *Profiles, o Options) (*Cutoffs, error) {
	if p.Rows() == 0 {
		return nil, errors.New("label sets: no held-out instance to fit the cut-offs on")
	}
	if o.Goal == "" {
		o.Goal = MeanF1
	}
	c := &Cutoffs{Depth: p.depth, Goal: o.Goal, Weight: make([]float64, p.depth)}
	c.HeldOut.Instances = p.Rows()
	c.HeldOut.Zero = judge(p, func(dst []int, row int) []int { return leading(dst, Above(p.scores(row), 0)) })
	c.Global, c.HeldOut.Global = bestShift(p, o.Goal, p.score)
	e := thorough
	if o.Rough {
		e = rough
	}
	c.fitInstance(p, e.mixes)
	c.fitRank(p)
	c.fitClasses(p, o.Tree, e)
	c.Rule = RuleInstance
	if c.HeldOut.Scut.Of(o.Goal) > c.HeldOut.Instance.Of(o.Goal) {
		c.Rule = RuleScut
	}
	return c, nil
}

// leading appends the indices 0..n-1.
func leading(dst []int, n int) []int {
	for k := range n {
		dst = append(dst, k)
	}
	return dst
}

// folds is the number of parts in cross-fitting.
const folds = 5

// fitInstance fits the regression for the instances' thresholds.
func (c *Cutoffs) fitInstance(p *Profiles, mixes []float64) {
	cross := make([]float64, p.Rows())
	for fold := range folds {
		l := regress(p, c.Global, func(row int) bool { return row%folds != fold })
		for row := fold; row < p.Rows(); row += folds {
			cross[row] = l.at(p.scores(row))
		}
	}
	l := regress(p, c.Global, func(int) bool { return true })
	margin := make([]float64, len(p.score))
	c.Intercept, c.HeldOut.Instance = c.Global, c.HeldOut.Global
	for _, mix := range mixes {
		for i, s := range p.score {
			margin[i] = s - (float64(mix*cross[i/p.depth]) + float64((1-mix)*c.Global))
		}
		shift, q := bestShift(p, c.Goal, margin)
		if q.Of(c.Goal) <= c.HeldOut.Instance.Of(c.Goal) {
			continue
		}
		c.HeldOut.Instance = q
		c.Intercept = float64(mix*l.intercept) + float64((1-mix)*c.Global) + shift
		for k, w := range l.weight {
			c.Weight[k] = mix * w
		}
	}
}

// fitRank finds the best number of labels per instance.
func (c *Cutoffs) fitRank(p *Profiles) {
	s := newScorer(p)
	for k := range p.depth {
		for row := range p.Rows() {
			s.add(row, k)
		}
		if q := s.quality(); k == 0 || q.Of(c.Goal) > c.HeldOut.Rcut.Of(c.Goal) {
			c.Rank, c.HeldOut.Rcut = k+1, q
		}
	}
}

// fitClasses fits the classes' thresholds.
func (c *Cutoffs) fitClasses(p *Profiles, tree Tree, e effort) {
	var parts [folds]*shrinker
	for fold := range parts {
		parts[fold] = newShrinker(p, tree, c.Goal, c.Global, func(row int) bool { return row%folds != fold })
	}
	c.HeldOut.Scut = c.HeldOut.Global
	var strength, slope, by float64
	own := false
	margin := make([]float64, len(p.score))
	for _, k := range e.strengths {
		for _, steep := range e.slopes {
			for fold, part := range parts {
				t := part.thresholds(k, steep)
				for row := fold; row < p.Rows(); row += folds {
					for i, class := range p.ranked(row) {
						margin[row*p.depth+i] = p.score[row*p.depth+i] - t[class]
					}
				}
			}
			if shift, q := bestShift(p, c.Goal, margin); q.Of(c.Goal) > c.HeldOut.Scut.Of(c.Goal) {
				c.HeldOut.Scut, strength, slope, by, own = q, k, steep, shift, true
			}
		}
	}
	c.Class = slices.Repeat([]float64{c.Global}, p.classes)
	if own {
		c.Class = newShrinker(p, tree, c.Goal, c.Global, func(int) bool { return true }).thresholds(strength, slope)
		for class := range c.Class {
			c.Class[class] += by
		}
	}
}

// CrossFit selects the labels of every instance by cut-offs that are fitted on the instances of the
// other parts. So it shows, without a second training, the performance of a model with its cut-offs
// on instances that neither has seen. Instance i is in part i mod parts. The result holds the
// indices of each instance's classes.
func CrossFit(p *Profiles, parts int, o Options) ([][]int, error) {
	if parts < 2 || p.Rows() < parts {
		return nil, errors.New("label sets: too few held-out instances to fit cut-offs on a part of them")
	}
	out := make([][]int, p.Rows())
	for part := range parts {
		others, err := NewProfiles(p.depth, p.classes)
		if err != nil {
			return nil, err
		}
		for row := range p.Rows() {
			if row > 0 && p.part[row] != p.part[row-1] {
				others.NextPart()
			}
			if row%parts == part {
				continue
			}
			if err := others.Add(p.weight[row], p.scores(row), p.ranked(row), p.truth[p.begin[row]:p.begin[row+1]]); err != nil {
				return nil, err
			}
		}
		c, err := Fit(others, o)
		if err != nil {
			return nil, err
		}
		for row := part; row < p.Rows(); row += parts {
			out[row] = c.Places(nil, c.Rule, p.scores(row), p.ranked(row))
		}
	}
	return out, nil
}

// candidate is a class of a row that may be admitted as the threshold decreases.
type candidate struct {
	margin float64
	row    int32
	place  int32
}

// bestShift finds the threshold d that maximises the goal when every row keeps the classes whose
// margin is above d, or its first class if there is none:
//
//	find   d = argmax goal({classes with margin > d}, or the first one)
//
// It admits candidates in order of decreasing margin, equal ones together. d is halfway between two
// margins. margin has rows x depth entries; floor selects those that can matter. It takes the time
// of sorting them.
func bestShift(p *Profiles, goal Goal, margin []float64) (float64, Quality) {
	s := newScorer(p)
	floor := p.floor(margin)
	list := make([]candidate, 0, min(len(margin), enough*len(p.truth)+p.Rows()+len(margin)/buckets))
	alone := make([]bool, p.Rows()) // the first class stands in for an empty set
	for row := range p.Rows() {
		s.add(row, 0)
		alone[row] = true
		for k, m := range margin[row*p.depth : (row+1)*p.depth] {
			if m >= floor {
				list = append(list, candidate{m, int32(row), int32(k)})
			}
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		if c := byFalling(a.margin, b.margin); c != 0 {
			return c
		}
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.place, b.place))
	})
	best, quality := list[0].margin, s.quality()
	for i := 0; i < len(list); {
		j := i
		for ; j < len(list) && list[j].margin == list[i].margin; j++ {
			row, place := int(list[j].row), int(list[j].place)
			if alone[row] {
				s.remove(row, 0)
				alone[row] = false
			}
			s.add(row, place)
		}
		if q := s.quality(); q.Of(goal) > quality.Of(goal) {
			best, quality = justBelow(list[i].margin), q
			if j < len(list) {
				best = (list[i].margin + list[j].margin) / 2
			}
		}
		i = j
	}
	return best, quality
}

// justBelow returns a number that is less than x by more than the rounding of sums of thresholds.
func justBelow(x float64) float64 { return x - 1e-6*(1+math.Abs(x)) }

// enough bounds the number of candidates: except on data with hardly any labels, goals are maximal
// with at most enough times as many predictions as true labels. If there are few candidates, all
// are used.
const (
	enough = 4
	few    = 1 << 14
)

// buckets is the resolution of the histogram that finds the floor.
const buckets = 1 << 12

// floor returns a margin below which no class needs to be considered: at least enough times the
// number of true labels, and one class per row, are at or above it. Rows count by their weights.
func (p *Profiles) floor(margin []float64) float64 {
	want, all := 0.0, 0.0
	for row, w := range p.weight {
		want += float64(w * float64(enough*(p.begin[row+1]-p.begin[row])+1))
		all += float64(w * float64(p.depth))
	}
	if want >= all || len(margin) <= few {
		return slices.Min(margin)
	}
	low, high := slices.Min(margin), slices.Max(margin)
	if low == high {
		return low
	}
	var count [buckets]float64
	scale := buckets / (high - low)
	for i, m := range margin {
		count[min(int((m-low)*scale), buckets-1)] += p.weight[i/p.depth]
	}
	at := buckets - 1
	for ; at > 0 && want > count[at]; at-- {
		want -= count[at]
	}
	return low + float64(at)/scale - 1e-9*(high-low)
}
