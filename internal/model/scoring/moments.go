package scoring

import (
	"fmt"
	"slices"

	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/form"
)

// HasMoments reports whether the model holds variances and precisions.
func HasMoments(m *model.Model) bool { return m.Rest() != nil && m.Form.Precision != form.NoPrecision }

// CheckMoments returns an error if the model does not hold the moment named what.
func CheckMoments(m *model.Model, what string) error {
	if !HasMoments(m) {
		return noMoments(m, what)
	}
	return nil
}

// noMoments returns the error of a model that does not hold what.
func noMoments(m *model.Model, what string) error {
	if m.Manifest.Pruned != nil && m.Form.Precision != form.NoPrecision {
		return &fs.InputError{Path: m.Dir, Msg: fmt.Sprintf("was made for predictions by the means alone (export "+
			"‹format=model›, or train ‹model-size›), and holds no %s: give the model that it was made from, or train again "+
			"without ‹model-size›", what)}
	}
	return &fs.InputError{Path: m.Dir, Msg: fmt.Sprintf("a model of method %s holds no %s: hierarchical Bayesian ones do",
		m.Options.Method, what)}
}

// ByFeature reports whether there is a precision for each feature.
func ByFeature(m *model.Model) bool { return m.Form.Precision == form.ByFeature }

// OfItself reports whether a node's precision refers to the node's distance from its parent, and
// not to its children's distances from the node.
func OfItself(m *model.Model) bool { return m.Form.Precision == form.Own }

// Moment is a column with its value.
type Moment struct {
	Column int
	Value  float64
}

// Precisions returns the precisions that belong to node n: one per column, or one for all at column
// 0.
func Precisions(m *model.Model, n int) (list []Moment) {
	r, w := m.Rest()[n], m.Columns()
	first, _ := slices.BinarySearch(r.Columns, uint32(form.PrecisionColumn(w, 0)))
	for i := first; i < len(r.Columns); i++ {
		c, x := int(r.Columns[i])-form.PrecisionColumn(w, 0), float64(r.Values[i])
		if c%2 == 0 {
			list = append(list, Moment{c / 2, x})
		} else { // the remainder of the previous precision's rounding
			list[len(list)-1].Value += x
		}
	}
	return list
}

// Occurring returns the columns that occur in the training data, ascending. Leaves have a variance
// at exactly these columns.
func Occurring(m *model.Model) (columns []int) {
	for n, leaf := range m.Tree.Leaf {
		if leaf {
			for _, v := range leafVariances(m, n) {
				columns = append(columns, v.Column)
			}
			break
		}
	}
	return columns
}

// leafVariances returns the stored variances of a leaf.
func leafVariances(m *model.Model, n int) (list []Moment) {
	r, w := m.Rest()[n], m.Columns()
	for i, c := range r.Columns {
		if int(c) >= form.PrecisionColumn(w, 0) {
			break
		}
		list = append(list, Moment{int(c) - form.VarianceColumn(w, 0), float64(r.Values[i])})
	}
	return list
}

// Variances calls visit with the diagonal of each node's covariance at the columns that occur, in
// node order. A leaf's variances are stored. An internal node's are 1/(A_n + sum over children of
// A_c). The slice is valid during the call only.
func Variances(m *model.Model, first, last int, visit func(n int, list []Moment) error) error {
	columns, children := Occurring(m), m.Tree.Children()
	for n := first; n < last; n++ {
		list := []Moment(nil)
		if m.Tree.Leaf[n] {
			list = leafVariances(m, n)
		} else {
			list = make([]Moment, len(columns))
			sum := precision(m, n, columns)
			for _, c := range children.Of(int32(n)) {
				for i, a := range precision(m, int(c), columns) {
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

// precision returns the precision of node n's prior at the columns that occur. It is 1 for a root.
func precision(m *model.Model, n int, columns []int) []float64 {
	out := make([]float64, len(columns))
	list := []Moment{{0, 1}}
	if p := m.Tree.Parent[n]; p >= 0 {
		if list = Precisions(m, n); m.Form.Precision != form.Own {
			list = Precisions(m, int(p))
		}
	}
	for i := range out {
		if out[i] = list[0].Value; m.Form.Precision == form.ByFeature && m.Tree.Parent[n] >= 0 {
			out[i] = list[i].Value
		}
	}
	return out
}

// Expected returns the means a/b of the priors of node n's precisions by feature, at the given
// columns that occur. The columns must ascend. a is the number of leaves below n. b is found from
// the precisions' fixed point (docs/methods.md). A precision far above its expected value means
// that n's children are more alike in that feature than its size explains; one far below means the
// opposite.
func Expected(m *model.Model, n int, columns []int) (list []Moment) {
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
		above = Precisions(m, int(p))
	}
	k, own := float64(len(below)), Precisions(m, n)
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
			variance = leafVariances(m, int(child))
		} else {
			variance = Precisions(m, int(child))
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
