package scoring

import (
	"math"

	"taxon/internal/model"
)

// average holds all draws of a model, with the terminals of a column side by side. The score of
// class y is
//
//	log( 1/K sum_k softmax_y(w_1k.x, w_2k.x, ...) )
//
// over the K draws, so that the probabilities are the means of the draws' probabilities.
type average struct {
	terminals []int32
	// draws holds each draw column by column.
	draws [][]float32
}

// derived is the type of the keys under which a model caches results of this package.
type derived string

// averages collects the draws, once per model. A training that was ended early has fewer draws than
// planned.
func averages(m *model.Model) *average {
	return m.Derive(derived("average"), func() any {
		w, a := m.Columns(), &average{}
		for n, leaf := range m.Tree.Leaf {
			if leaf {
				a.terminals = append(a.terminals, int32(n))
			}
		}
		for t, n := range a.terminals {
			r := m.Rest()[n]
			for i, c := range r.Columns {
				k, f := int(c)/w-1, int(c)%w
				for len(a.draws) <= k {
					a.draws = append(a.draws, make([]float32, w*len(a.terminals)))
				}
				a.draws[k][f*len(a.terminals)+t] = r.Values[i]
			}
		}
		return a
	}).(*average)
}

// Draws returns the number of posterior draws that predictions average. It is 0 if the model has
// one vector per class.
func Draws(m *model.Model) int {
	if m.Form.Draws == 0 {
		return 0
	}
	return len(averages(m).draws)
}

// scoreDraws scores the rows of a batch one after the other.
func (s *Scorer) scoreDraws(b *Batch) {
	a := s.p.average
	classes := len(a.terminals)
	s.reset(b.Rows())
	score, sum := make([]float64, classes), make([]float64, classes)
	for row := range b.Rows() {
		clear(sum)
		for _, draw := range a.draws {
			clear(score)
			for i := b.Begin[row]; i < b.Begin[row+1]; i++ {
				if c := int(b.Column[i]); c < len(s.p.m.Feature) {
					raise(score, float64(b.Value[i]), draw[c*classes:])
				}
			}
			if s.p.m.Columns() > len(s.p.m.Feature) {
				raise(score, s.p.bias, draw[len(s.p.m.Feature)*classes:])
			}
			norm := mass{most: math.Inf(-1)}
			for _, x := range score {
				norm.add(x)
			}
			log := norm.log()
			for t, x := range score {
				sum[t] += math.Exp(x - log)
			}
		}
		for t, n := range a.terminals {
			p := max(sum[t], math.SmallestNonzeroFloat64) // probability 0 ranks last, with a finite score
			s.offerOne(row, Scored{n, math.Log(p) - math.Log(float64(len(a.draws)))})
		}
	}
}

// raise adds x times the weights of a column.
func raise(score []float64, x float64, weights []float32) {
	for t, w := range weights[:len(score)] {
		score[t] += float64(x * float64(w))
	}
}
