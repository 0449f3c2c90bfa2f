package labelset

import (
	"cmp"
	"errors"
	"slices"
)

// Fit learns all cut-offs from held-out instances.
//
// Global and the rank are what reaches the best mean of micro- and macro-F1. The instance's
// threshold is
//
//	t(s) = mix theta.phi(s) + (1 - mix) global + shift
//
// with mix out of 0, 1/4, ..., 1 and shift by the same goal; the regression that they are
// chosen with is cross-fitted on `folds` parts, so that a regression that learned nothing
// but its own rows loses to the one threshold (mix = 0). The stored regression is of all rows.
func Fit(p *Profiles) (*Cutoffs, error) {
	if p.Rows() == 0 {
		return nil, errors.New("label sets: no held-out instance to fit the cut-offs on")
	}
	c := &Cutoffs{Depth: p.depth, Weight: make([]float64, p.depth)}
	c.HeldOut.Instances = p.Rows()
	c.HeldOut.Zero = judge(p, func(dst []int, row int) []int { return leading(dst, Above(p.scores(row), 0)) })
	c.Global, c.HeldOut.Global = bestShift(p, make([]float64, p.Rows()))
	c.fitInstance(p)
	c.fitRank(p)
	c.fitClasses(p)
	return c, nil
}

// leading appends the places 0..n-1.
func leading(dst []int, n int) []int {
	for k := range n {
		dst = append(dst, k)
	}
	return dst
}

// folds of the cross-fitted regression.
const folds = 5

func (c *Cutoffs) fitInstance(p *Profiles) {
	cross := make([]float64, p.Rows())
	for fold := range folds {
		l := regress(p, c.Global, func(row int) bool { return row%folds != fold })
		for row := fold; row < p.Rows(); row += folds {
			cross[row] = l.at(p.scores(row))
		}
	}
	l := regress(p, c.Global, func(int) bool { return true })
	base := make([]float64, p.Rows())
	c.Intercept, c.HeldOut.Instance = c.Global, c.HeldOut.Global
	for _, mix := range []float64{0.25, 0.5, 0.75, 1} {
		for row := range base {
			base[row] = float64(mix*cross[row]) + float64((1-mix)*c.Global)
		}
		shift, q := bestShift(p, base)
		if q.goal() <= c.HeldOut.Instance.goal() {
			continue
		}
		c.HeldOut.Instance = q
		c.Intercept = float64(mix*l.intercept) + float64((1-mix)*c.Global) + shift
		for k, w := range l.weight {
			c.Weight[k] = mix * w
		}
	}
}

func (c *Cutoffs) fitRank(p *Profiles) {
	s := newScorer(p)
	for k := range p.depth {
		for row := range p.Rows() {
			s.add(row, k)
		}
		if q := s.quality(); k == 0 || q.goal() > c.HeldOut.Rcut.goal() {
			c.Rank, c.HeldOut.Rcut = k+1, q
		}
	}
}

// CrossFit cuts every instance of a collection by the instance-based cut-off that is fitted
// on the instances of the other parts: what a model together with its cut-off makes of
// instances that neither has seen, without a second training. Instance i is in part
// i mod parts. The result is the number of leading classes that each instance bears.
func CrossFit(p *Profiles, parts int) ([]int, error) {
	if parts < 2 || p.Rows() < parts {
		return nil, errors.New("label sets: too few held-out instances to fit cut-offs on a part of them")
	}
	out := make([]int, p.Rows())
	for part := range parts {
		others, err := NewProfiles(p.depth, p.classes)
		if err != nil {
			return nil, err
		}
		for row := range p.Rows() {
			if row%parts == part {
				continue
			}
			if err := others.Add(p.weight[row], p.scores(row), p.ranked(row), p.truth[p.begin[row]:p.begin[row+1]]); err != nil {
				return nil, err
			}
		}
		c := &Cutoffs{Depth: p.depth, Weight: make([]float64, p.depth)}
		c.Global, c.HeldOut.Global = bestShift(others, make([]float64, others.Rows()))
		c.fitInstance(others)
		for row := part; row < p.Rows(); row += parts {
			out[row] = Above(p.scores(row), c.Threshold(p.scores(row)))
		}
	}
	return out, nil
}

// fewPositives: a class with fewer held-out positives takes the global threshold. A
// threshold fitted on one or two instances is noise, and a low one costs many false
// positives (Yang 2001, the "FBR" variants of scut).
const fewPositives = 4

// fitClasses finds for each class the threshold with its best F1:
//
//	t_c = argmax F1 of class c over the rows whose profile it is in, predicted where its score > t
//
// half-way between two scores. A positive that is in no profile counts as missed.
func (c *Cutoffs) fitClasses(p *Profiles) {
	type scored struct {
		score, weight float64
		hit           bool
	}
	lists := make([][]scored, p.classes)
	for row := range p.Rows() {
		scores, hits := p.scores(row), p.hits(row)
		for k, class := range p.ranked(row) {
			if p.bears[class] >= fewPositives {
				lists[class] = append(lists[class], scored{scores[k], p.weight[row], hits[k]})
			}
		}
	}
	c.Class = make([]float64, p.classes)
	for class, list := range lists {
		c.Class[class] = c.Global
		slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
		right, taken, best := 0.0, 0.0, 0.0
		for i := 0; i < len(list); {
			j := i
			for ; j < len(list) && list[j].score == list[i].score; j++ {
				taken += list[j].weight
				if list[j].hit {
					right += list[j].weight
				}
			}
			if f := ratio(2*right, taken+p.count[class]); f > best {
				below := list[i].score - 1
				if j < len(list) {
					below = list[j].score
				}
				best, c.Class[class] = f, (list[i].score+below)/2
			}
			i = j
		}
	}
	c.HeldOut.Scut = judge(p, func(dst []int, row int) []int { return c.PerClass(dst, p.scores(row), p.ranked(row)) })
}

// candidate is a place of a row that a falling threshold may admit.
type candidate struct {
	margin float64 // score minus the row's base
	row    int32
	place  int32
}

// bestShift finds the threshold d that reaches the best goal when every row keeps the
// places whose score minus the row's base is above d, and its first place anyway:
//
//	find   d = argmax goal({places with score - base[row] > d} and the first ones)
//
// by admitting candidates in falling order of their margin, equal ones together. d lies
// half-way between two margins. Cost: a sort of rows x depth candidates.
func bestShift(p *Profiles, base []float64) (float64, Quality) {
	s := newScorer(p)
	list := make([]candidate, 0, len(p.score))
	first := make([]float64, 0, p.Rows()) // margins of the first places: no threshold is needed to admit them
	for row := range p.Rows() {
		s.add(row, 0)
		scores := p.scores(row)
		first = append(first, scores[0]-base[row])
		for k := 1; k < p.depth; k++ {
			list = append(list, candidate{scores[k] - base[row], int32(row), int32(k)})
		}
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.margin, a.margin), cmp.Compare(a.row, b.row), cmp.Compare(a.place, b.place))
	})
	best, quality := highest(list, first), s.quality()
	for i := 0; i < len(list); {
		j := i
		for ; j < len(list) && list[j].margin == list[i].margin; j++ {
			s.add(int(list[j].row), int(list[j].place))
		}
		if q := s.quality(); q.goal() > quality.goal() {
			below := list[i].margin - 1
			if j < len(list) {
				below = list[j].margin
			}
			best, quality = (list[i].margin+below)/2, q
		}
		i = j
	}
	return best, quality
}

// highest is a threshold that admits first places only: the best margin of all others, or
// of any where there are no others.
func highest(list []candidate, first []float64) float64 {
	switch {
	case len(list) > 0:
		return list[0].margin
	case len(first) > 0:
		return slices.Max(first)
	}
	return 0
}
