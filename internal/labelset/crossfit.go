package labelset

import "errors"

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
