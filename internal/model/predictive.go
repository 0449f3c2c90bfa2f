package model

import (
	"encoding/json"
	"fmt"

	"taxon/internal/fs"
	"taxon/internal/modelform"
)

// predictive is the rule of a model's predictive distribution.
func (m *Model) predictive() (modelform.Predictive, error) {
	if m.moments == nil || m.Form.Link != modelform.Logistic {
		return nil, &fs.InputError{Path: m.Dir, Msg: fmt.Sprintf("a model of method %s holds no variances for --predictive: hierarchical Bayesian ones do, as they were trained", m.Options.Method)}
	}
	inference := ""
	if raw, ok := m.Options.Own["inference"]; ok {
		if err := json.Unmarshal(raw, &inference); err != nil {
			return nil, &fs.InputError{Path: m.Dir, Msg: fmt.Sprintf("option inference: %v", err)}
		}
	}
	if inference == "variational" {
		return modelform.Variational, nil
	}
	return modelform.Laplace, nil
}

// widen makes scores of terminal n those of its predictive distribution. The spread of a row is
// sum_c x_c^2 Psi_c over the diagonal that the model holds.
func (s *Scorer) widen(n int32, scores []float64) {
	s.spread = append(s.spread[:0], make([]float64, len(scores))...)
	width := len(s.cols.begin) - 1
	r, first := s.p.m.moments[n], modelform.VarianceColumn(s.p.m.columns(), 0)
	for i, c := range r.columns {
		c, variance := int(c)-first, float64(r.values[i])
		if c >= s.p.m.columns() {
			break
		}
		if c >= width { // the bias
			for row := range scores {
				s.spread[row] += float64(variance * float64(s.p.bias*s.p.bias))
			}
			break
		}
		for _, x := range s.cols.entries[s.cols.begin[c]:s.cols.begin[c+1]] {
			s.spread[x.row] += float64(variance * (float64(x.value) * float64(x.value)))
		}
	}
	for row, spread := range s.spread {
		scores[row] = s.p.predictive(scores[row], spread)
	}
}
