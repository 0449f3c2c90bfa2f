package model

import (
	"slices"

	"taxon/internal/model/form"
)

// cutRest splits records that hold more than a mean: recs keeps the mean, rest gets what follows.
func (m *Model) cutRest(first int, recs []record, rest []record) {
	if rest == nil {
		return
	}
	for i, r := range recs {
		at, _ := slices.BinarySearch(r.columns, uint32(m.columns()))
		recs[i] = record{r.columns[:at], r.values[:at]}
		rest[first+i] = record{r.columns[at:], r.values[at:]}
	}
}

// HasMoments says whether the model holds variances and precisions.
func (m *Model) HasMoments() bool { return m.moments != nil }

// ByFeature says whether there is a precision for each feature.
func (m *Model) ByFeature() bool { return m.Form.Precision == form.ByFeature }

// Own says whether a node's precision is that of its own distance from its parent, not that of
// its children's distances from it.
func (m *Model) Own() bool { return m.Form.Precision == form.Own }

// Moment is a column with its value.
type Moment struct {
	Column int
	Value  float64
}

// Precisions are those that belong to node n: one a column, or one for all at column 0.
func (m *Model) Precisions(n int) (list []Moment) {
	r, w := m.moments[n], m.columns()
	first, _ := slices.BinarySearch(r.columns, uint32(form.PrecisionColumn(w, 0)))
	for i := first; i < len(r.columns); i++ {
		c, x := int(r.columns[i])-form.PrecisionColumn(w, 0), float64(r.values[i])
		if c%2 == 0 {
			list = append(list, Moment{c / 2, x})
		} else { // the part that rounding left of the precision before
			list[len(list)-1].Value += x
		}
	}
	return list
}

// Occurring lists the columns that occur in the training data, ascending: those at which leaves
// have a variance.
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
		if int(c) >= form.PrecisionColumn(w, 0) {
			break
		}
		list = append(list, Moment{int(c) - form.VarianceColumn(w, 0), float64(r.values[i])})
	}
	return list
}

// Variances visits the diagonal of each node's covariance at the columns that occur, in node
// order. A leaf's is stored. An internal node's is 1/(A_n + sum over children of A_c). The slice
// is valid during the call only.
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

// precision is the precision of node n's prior at the columns that occur: 1 for a root.
func (m *Model) precision(n int, columns []int) []float64 {
	out := make([]float64, len(columns))
	list := []Moment{{0, 1}}
	if p := m.Tree.Parent[n]; p >= 0 {
		if list = m.Precisions(n); m.Form.Precision != form.Own {
			list = m.Precisions(int(p))
		}
	}
	for i := range out {
		if out[i] = list[0].Value; m.Form.Precision == form.ByFeature && m.Tree.Parent[n] >= 0 {
			out[i] = list[i].Value
		}
	}
	return out
}

// Expected are the means a/b of the priors of node n's precisions by feature, at the given
// columns, ascending, as far as they occur. a is the number of leaves below n. b is solved for
// from the precisions' fixed point (docs/methods.md). A precision far above its expected value
// says that n's children are more alike in that feature than its size explains; one far below
// says the opposite.
func (m *Model) Expected(n int, columns []int) (list []Moment) {
	tree, children := m.Tree, m.Tree.Children()
	at := func(list []Moment, c int) float64 {
		i, ok := slices.BinarySearchFunc(list, c, func(m Moment, c int) int { return m.Column - c })
		if !ok {
			return 0
		}
		return list[i].Value
	}
	mean := func(n int32, c int) float64 {
		cs, vs := m.Overrides(int(n))
		i, ok := slices.BinarySearch(cs, uint32(c))
		if !ok {
			return 0
		}
		return float64(vs[i])
	}
	var leaves func(n int32) float64
	leaves = func(n int32) (sum float64) {
		if tree.Leaf[n] {
			return 1
		}
		for _, c := range children.Of(n) {
			sum += leaves(c)
		}
		return sum
	}
	above, a, below := []Moment(nil), leaves(int32(n)), children.Of(int32(n))
	if p := tree.Parent[n]; p >= 0 {
		above = m.Precisions(int(p))
	}
	k, own := float64(len(below)), m.Precisions(n)
	square := make([]float64, len(columns)) // sum over children of Psi_n + Psi_c + (mu_n - mu_c)^2
	for i, c := range columns {
		prior := 1.0
		if above != nil {
			prior = at(above, c)
		}
		square[i] = k / (prior + k*at(own, c))
	}
	for _, child := range below {
		variance, count := []Moment(nil), float64(len(children.Of(child)))
		if tree.Leaf[child] {
			variance = m.leafVariances(int(child))
		} else {
			variance = m.Precisions(int(child))
		}
		for i, c := range columns {
			x := at(variance, c)
			if count > 0 {
				x = 1 / (at(own, c) + count*x)
			}
			d := mean(int32(n), c) - mean(child, c)
			square[i] += x + d*d
		}
	}
	for i, c := range columns {
		if alpha := at(own, c); alpha > 0 {
			list = append(list, Moment{c, a / ((a+k/2)/alpha - square[i]/2)})
		}
	}
	return list
}
