package labelset

import "errors"

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
