package train

import (
	"math"
	"slices"

	"taxon/internal/taxonomy"
)

// Classes with few instances score too low beside those with many: each was trained for
// itself against all the rest, and regularised the harder the fewer losses pull at it.
// --prior-shift T adds to the score of class c
//
//	T ln(n_max / n_c),   n_c: its training instances, n_max: those of the largest class
//
// (post-hoc logit adjustment, A. Menon et al.: Long-tail learning via logit adjustment, ICLR
// 2021). It goes into the weight of the bias feature as the model is written, so that
// whatever reads the weights gives the same labels. The certificate is about the weights
// without it.

// PriorShift is what is added to each terminal's score; nil: nothing.
func (t *Training) PriorShift(by float64) []float64 {
	if by == 0 {
		return nil
	}
	counts := t.Spec.GetData().GetLabelInstances()
	most := float64(slices.Max(append([]uint32{1}, counts...)))
	shift := make([]float64, t.Tree.Len())
	for _, n := range t.Tree.Terminals() {
		if l := t.Tree.Label[n]; l >= 0 {
			shift[n] = by * math.Log(most/max(float64(counts[l]), 1))
		}
	}
	return shift
}

// nodeWriter takes the overrides of the nodes in order, as model.Writer.WriteNode does.
type nodeWriter func(n int, columns []uint32, values []float32) error

// shifted puts the shift between the weights and their writer.
func (t *Training) shifted(write nodeWriter) nodeWriter {
	shift := t.PriorShift(t.o.Shift)
	if shift == nil {
		return write
	}
	s := &shifter{tree: t.Tree, write: write, shift: shift, perUnit: 1 / t.o.Job.Bias, column: uint32(t.Set.Matrix.Cols), bias: make([]float32, t.Tree.Len())}
	return s.node
}

// shifter writes bias weights that are shifted at the terminals.
type shifter struct {
	tree    *taxonomy.Tree
	write   nodeWriter
	shift   []float64 // of the scores, by node
	perUnit float64   // of the bias feature
	column  uint32    // the last one
	bias    []float32 // weight of the bias feature by node, before the shift
	columns []uint32
	values  []float32
}

func (s *shifter) node(n int, columns []uint32, values []float32) error {
	if p := s.tree.Parent[n]; p >= 0 {
		s.bias[n] = s.bias[p]
	}
	last := len(columns) - 1
	own := last >= 0 && columns[last] == s.column
	if own {
		s.bias[n] = values[last]
	}
	if s.shift[n] == 0 {
		return s.write(n, columns, values)
	}
	s.columns, s.values = append(s.columns[:0], columns...), append(s.values[:0], values...)
	if !own {
		s.columns, s.values = append(s.columns, s.column), append(s.values, 0)
	}
	s.values[len(s.values)-1] = float32(float64(s.bias[n]) + s.shift[n]*s.perUnit)
	return s.write(n, s.columns, s.values)
}
