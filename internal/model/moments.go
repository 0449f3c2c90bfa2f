package model

import (
	"slices"

	"taxon/internal/modelform"
)

// cutMoments parts records with precisions: their means stay in recs.
func (m *Model) cutMoments(first int, recs []record) {
	if m.moments == nil {
		return
	}
	for i, r := range recs {
		at, _ := slices.BinarySearch(r.columns, uint32(m.columns()))
		recs[i] = record{r.columns[:at], r.values[:at]}
		m.moments[first+i] = record{r.columns[at:], r.values[at:]}
	}
}

// HasMoments says whether the model holds variances and precisions.
func (m *Model) HasMoments() bool { return m.moments != nil }

// Moment is the value of a column.
type Moment struct {
	Column int
	Value  float64
}

// Precisions are those that node n owns: by column, or one, at column 0, for all.
func (m *Model) Precisions(n int) (list []Moment) {
	r, w := m.moments[n], m.columns()
	first, _ := slices.BinarySearch(r.columns, uint32(modelform.PrecisionColumn(w, 0)))
	for i := first; i < len(r.columns); i++ {
		c, x := int(r.columns[i])-modelform.PrecisionColumn(w, 0), float64(r.values[i])
		if c%2 == 0 {
			list = append(list, Moment{c / 2, x})
		} else { // what rounding left of the one before
			list[len(list)-1].Value += x
		}
	}
	return list
}

// Occurring are the columns that occur in the training data, ascending: those of which the
// leaves have a variance.
func (m *Model) Occurring() (columns []int) {
	for n, leaf := range m.Tree.Leaf {
		if leaf {
			for _, v := range m.leafVariances(n) {
				columns = append(columns, v.Column)
			}
			break
		}
	}
	return columns
}

func (m *Model) leafVariances(n int) (list []Moment) {
	r, w := m.moments[n], m.columns()
	for i, c := range r.columns {
		if int(c) >= modelform.PrecisionColumn(w, 0) {
			break
		}
		list = append(list, Moment{int(c) - modelform.VarianceColumn(w, 0), float64(r.values[i])})
	}
	return list
}

// Variances is the diagonal of each node's covariance at columns that occur: of leaves as it
// was stored, of internal nodes 1/(A_n + sum over children of A_c). They are visited in node
// order; the slice is valid during the call only.
func (m *Model) Variances(first, last int, visit func(n int, list []Moment) error) error {
	columns, children := m.Occurring(), m.Tree.Children()
	for n := first; n < last; n++ {
		list := []Moment(nil)
		if m.Tree.Leaf[n] {
			list = m.leafVariances(n)
		} else {
			list = make([]Moment, len(columns))
			sum := m.precision(n, columns)
			for _, c := range children.Of(int32(n)) {
				for i, a := range m.precision(int(c), columns) {
					sum[i] += a
				}
			}
			for i, c := range columns {
				list[i] = Moment{c, 1 / sum[i]}
			}
		}
		if err := visit(n, list); err != nil {
			return err
		}
	}
	return nil
}

// precision is that of node n's prior at the columns that occur: 1 of a root.
func (m *Model) precision(n int, columns []int) []float64 {
	out := make([]float64, len(columns))
	list := []Moment{{0, 1}}
	if p := m.Tree.Parent[n]; p >= 0 {
		if list = m.Precisions(n); m.Form.Precision != modelform.Own {
			list = m.Precisions(int(p))
		}
	}
	for i := range out {
		if out[i] = list[0].Value; m.Form.Precision == modelform.ByFeature && m.Tree.Parent[n] >= 0 {
			out[i] = list[i].Value
		}
	}
	return out
}
