package evaluate

import (
	"slices"

	"taxon/internal/model"
	"taxon/internal/model/measure"
	"taxon/internal/model/predict"
	"taxon/internal/model/scoring"
)

// thresholds are the probabilities of a coverage table.
var thresholds = []float64{0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99}

// coverage counts the outcomes of predictions that back off.
type coverage struct {
	sure *predict.Sure
	rows int
	// at is by threshold.
	at []struct{ answered, correct, classes, right int }
}

// newCoverage returns an empty coverage. It is nil if rows have several labels.
func newCoverage(m *model.Model) (*coverage, error) {
	sure, err := predict.NewSure(m)
	if err != nil || !sure.Joint() {
		return nil, err
	}
	c := &coverage{sure: sure}
	c.at = append(c.at, make([]struct{ answered, correct, classes, right int }, len(thresholds))...)
	return c, nil
}

// add adds row i of a result and its true labels.
func (c *coverage) add(r *scoring.Result, i int, labels []string) {
	c.rows++
	c.sure.Take(r, i)
	for k, least := range thresholds {
		set := c.sure.Of(least)
		if len(set) == 0 {
			continue
		}
		n, at := set[0].Node, &c.at[k]
		at.answered++
		if slices.ContainsFunc(labels, func(name string) bool { return c.sure.Holds(n, name) }) {
			at.correct++
		}
		if best := c.sure.Class(); best.Score >= least {
			at.classes++
			if slices.Contains(labels, c.sure.Names[best.Node]) {
				at.right++
			}
		}
	}
}

func (c *coverage) table() (out []measure.Covered) {
	share := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
	for k, a := range c.at {
		out = append(out, measure.Covered{MinProbability: thresholds[k], Answered: share(a.answered, c.rows),
			Correct: share(a.correct, a.answered),
			Classes: share(a.classes, c.rows), ClassCorrect: share(a.right, a.classes)})
	}
	return out
}
