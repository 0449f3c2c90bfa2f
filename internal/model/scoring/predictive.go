package scoring

import (
	"encoding/json"
	"fmt"
	"slices"

	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/form"
)

// predictive returns the function of the model's predictive distribution.
func predictive(m *model.Model) (form.Predictive, error) {
	if !HasMoments(m) || !m.Form.Probable() {
		return nil, noMoments(m, "variances for ‹predictive›")
	}
	inference := ""
	if raw, ok := m.Options.Own["inference"]; ok {
		if err := json.Unmarshal(raw, &inference); err != nil {
			return nil, &fs.InputError{Path: m.Dir, Msg: fmt.Sprintf("option inference: %v", err)}
		}
	}
	if inference == "variational" {
		return form.Variational, nil
	}
	return form.Laplace, nil
}

// widen converts scores of terminal n to scores of its predictive distribution.
func (s *Scorer) widen(n int32, scores []float64) {
	s.setVariance(n, scores)
	for row, variance := range s.variance {
		scores[row] = s.p.predictive(scores[row], variance)
	}
}

// setVariance sets the variance of terminal n for each row: sum_c x_c^2 Psi_c, where Psi is the
// diagonal that the model holds.
func (s *Scorer) setVariance(n int32, scores []float64) {
	s.variance = append(s.variance[:0], make([]float64, len(scores))...)
	width := len(s.cols.begin) - 1
	r, first := s.p.m.Rest()[n], form.VarianceColumn(s.p.m.Columns(), 0)
	for i, c := range r.Columns {
		c, variance := int(c)-first, float64(r.Values[i])
		if c >= s.p.m.Columns() {
			break
		}
		if c >= width { // the bias
			for row := range scores {
				s.variance[row] += float64(variance * float64(s.p.bias*s.p.bias))
			}
			break
		}
		for _, x := range s.cols.entries[s.cols.begin[c]:s.cols.begin[c+1]] {
			s.variance[x.row] += float64(variance * (float64(x.value) * float64(x.value)))
		}
	}
}

// jointly reports whether the predictive distribution is over all terminals together, as under the
// soft-max.
func (p *Predictor) jointly() bool {
	return p.predictive != nil && p.m.Form.Link == form.Softmax
}

// keepTerminal retains the scores and variances of terminal n.
func (s *Scorer) keepTerminal(n int32, scores []float64) {
	s.setVariance(n, scores)
	s.joint = append(s.joint, terminalScores{n, slices.Clone(scores), slices.Clone(s.variance)})
}

// terminalScores are a terminal's scores and variances, by row.
type terminalScores struct {
	node             int32
	scores, variance []float64
}

// offerJoint offers the retained terminals.
func (s *Scorer) offerJoint(rows int) {
	n := len(s.joint)
	score, variance := make([]float64, n), make([]float64, n)
	for row := range rows {
		for k, t := range s.joint {
			score[k], variance[k] = t.scores[row], t.variance[row]
		}
		form.Joint(score, variance)
		for k := range s.joint {
			s.joint[k].scores[row] = score[k]
		}
	}
	for _, t := range s.joint {
		s.offer(t.node, t.scores)
	}
	s.joint = s.joint[:0]
}
