package solver

// Variant determines which nodes have precisions of their own.
type Variant uint8

// These are the variants of [TKDD] 3.
const (
	// M1 has one precision for each internal node, which all of its children share.
	M1 Variant = 1 + iota
	// M2 has one precision for each internal node and feature, which all of the node's children
	// share.
	M2
	// M3 has one precision for each node except the root.
	M3
)

// Tree is the tree of all nodes. Parents come before their children. A node without a parent is
// below the zero vector, with precision 1.
type Tree struct {
	// Parent is each node's parent, or -1.
	Parent []int32
	Leaf   []bool
	// Internal is each node's index among the internals, or -1 for a leaf. Nodes is its inverse.
	Internal []int32
	Nodes    []int32
	// Children lists the children of each node.
	Children [][]int32
}

// NewTree returns the tree with these parents.
func NewTree(parent []int32, leaf []bool) *Tree {
	t := &Tree{Parent: parent, Leaf: leaf, Internal: make([]int32, len(parent)), Children: make([][]int32, len(parent))}
	for n, p := range parent {
		t.Internal[n] = -1
		if !leaf[n] {
			t.Internal[n] = int32(len(t.Nodes))
			t.Nodes = append(t.Nodes, int32(n))
		}
		if p >= 0 {
			t.Children[p] = append(t.Children[p], int32(n))
		}
	}
	return t
}

// above returns the index of node n's parent among the internals, or -1 for the zero vector.
func (t *Tree) above(n int32) int32 {
	if p := t.Parent[n]; p >= 0 {
		return t.Internal[p]
	}
	return -1
}

// Owns reports whether node n has precisions of its own.
func (t *Tree) Owns(v Variant, n int32) bool {
	if v == M3 {
		return t.Parent[n] >= 0
	}
	return !t.Leaf[n]
}

// owner returns the node whose alpha is the precision of node n. With -1 the precision is 1.
func (t *Tree) owner(v Variant, n int32) int32 {
	if v == M3 && t.Parent[n] >= 0 {
		return n
	}
	return t.Parent[n]
}

// Alpha holds expected precisions. M1 and M3 have one for each node that owns one, by node. M2 has
// a row for each internal node, by its index among the internals.
type Alpha []float64

// Precision is A_n at the columns of a range: entry j is Value[j*Step]. If Step is 0, all columns
// have the same precision.
type Precision struct {
	Value []float64
	Step  int
}

// At returns the precision of column j.
func (p Precision) At(j int) float64 { return p.Value[j*p.Step] }

// Unit is the precision of a node below the zero vector, which is 1.
var Unit = Precision{Value: []float64{1}}

// Precision returns A_n. columns is the width of M2's rows.
func (t *Tree) Precision(v Variant, a Alpha, n int32, columns int) Precision {
	o := t.owner(v, n)
	switch {
	case o < 0:
		return Unit
	case v == M2:
		at := int(t.Internal[o]) * columns
		return Precision{a[at : at+columns], 1}
	}
	return Precision{Value: a[o : o+1]}
}

// Variance returns Psi_n of an internal node at column j: 1/(A_n + sum over children of A_c).
func (t *Tree) Variance(v Variant, a Alpha, n int32, columns, j int) float64 {
	sum := t.Precision(v, a, n, columns).At(j)
	if v == M3 {
		for _, c := range t.Children[n] {
			sum += a[c]
		}
		return 1 / sum
	}
	own := Precision{Value: a, Step: 0}
	if v == M2 {
		at := int(t.Internal[n]) * columns
		own = Precision{a[at : at+columns], 1}
	} else {
		own.Value = a[n : n+1]
	}
	return 1 / (sum + float64(float64(len(t.Children[n]))*own.At(j)))
}

// Contribution holds the leaves' contributions to their parents' update at the columns of a range.
// It has a row for each internal node, or for each parent of a block's leaves.
type Contribution struct {
	// Slope is the sum over leaf children c of A_c (mu_c - mu_n), at the mu_n that the leaves were
	// solved with.
	Slope []float64
	// Curvature is the sum of A_c h_c/(A_c + h_c), where h_c bounds the loss's Hessian.
	Curvature []float64
	// Variance is the sum of Psi_c, and Square is the sum of (mu_c - mu_n)^2. Only M2 has them.
	Variance []float64
	Square   []float64
}

// NewContribution returns a contribution of no leaves, with n entries.
func NewContribution(v Variant, n int) *Contribution {
	p := &Contribution{Slope: make([]float64, n), Curvature: make([]float64, n)}
	if v == M2 {
		p.Variance, p.Square = make([]float64, n), make([]float64, n)
	}
	return p
}

// Add adds a leaf at an entry: its precision a, its distance mu_c - mu_n, a bound h of its loss's
// curvature, and its Psi.
func (p *Contribution) Add(at int, a, distance, h, variance float64) {
	p.Slope[at] += float64(a * distance)
	p.Curvature[at] += float64(a * (h / (a + h)))
	if p.Variance != nil {
		p.Variance[at] += variance
		p.Square[at] += float64(distance * distance)
	}
}

// Fields returns the contribution's parts, in the order in which they are stored.
func (p *Contribution) Fields() [][]float64 {
	if p.Variance == nil {
		return [][]float64{p.Slope, p.Curvature}
	}
	return [][]float64{p.Slope, p.Curvature, p.Variance, p.Square}
}

// Solve minimises over the internals' means at the columns of a range
//
//	1/2 sum_{internal n} A_n (mu_n - mu_parent)^2 + sum_n [ 1/2 K_n (mu_n - m_n)^2 - G_n (mu_n - m_n) ]
//
// m are the means at which the leaves were solved, G = Slope and K = share Curvature. With share 1
// the bracket is an upper bound of what the leaves would contribute if they were solved again, and
// touches it at m. So the step never overshoots. With 1/2 it may go up to twice as far as the
// optimum, and so it does not diverge either. At a fixed point it is, with any share,
// mu_n = Psi (A_n mu_parent + sum_c A_c mu_c). With S_n = K_n + sum_c A_c S_c/(A_c + S_c), and r
// likewise, from the leaves to the root, mu_n = (r_n + A_n mu_parent)/(A_n + S_n) on the way back.
// It costs internals x columns.
func (t *Tree) Solve(v Variant, a Alpha, m []float64, p *Contribution, share float64, columns int) []float64 {
	s, r := make([]float64, len(m)), make([]float64, len(m))
	for i, k := range p.Curvature {
		k *= share
		s[i] = k
		r[i] = p.Slope[i] + float64(k*m[i])
	}
	for i := len(t.Nodes) - 1; i >= 0; i-- {
		n := t.Nodes[i]
		up := t.above(n)
		if up < 0 {
			continue
		}
		prec := t.Precision(v, a, n, columns)
		si, ri := s[i*columns:][:columns], r[i*columns:][:columns]
		su, ru := s[int(up)*columns:][:columns], r[int(up)*columns:][:columns]
		for j := range si {
			x := prec.At(j)
			share := x / (x + si[j])
			su[j] += float64(share * si[j])
			ru[j] += float64(share * ri[j])
		}
	}
	for i, n := range t.Nodes {
		prec, up := t.Precision(v, a, n, columns), t.above(n)
		si, ri := s[i*columns:][:columns], r[i*columns:][:columns]
		for j := range ri {
			x, above := prec.At(j), 0.0
			if up >= 0 {
				above = r[int(up)*columns+j]
			}
			ri[j] = (ri[j] + float64(x*above)) / (x + si[j])
		}
	}
	return r
}

// Average sets the means of the internal nodes for which holds returns true to Psi (A_n
// mu_parent + sum_c A_c mu_c), in mu, with the others fixed. Slope must be from leaves that were
// solved at the present mu.
func (t *Tree) Average(v Variant, a Alpha, mu []float64, p *Contribution, columns int, holds func(n int32) bool) {
	for i, n := range t.Nodes {
		if !holds(n) {
			continue
		}
		own, prec, up := mu[i*columns:][:columns], t.Precision(v, a, n, columns), t.above(n)
		for j := range own {
			// Relative to mu_n itself: a leaf adds its slope A_c (mu_c - mu_n).
			above := 0.0
			if up >= 0 {
				above = mu[int(up)*columns+j]
			}
			sum := float64(prec.At(j)*(above-own[j])) + p.Slope[i*columns+j]
			for _, c := range t.Children[n] {
				if k := t.Internal[c]; k >= 0 {
					sum += float64(t.Precision(v, a, c, columns).At(j) * (mu[int(k)*columns+j] - own[j]))
				}
			}
			own[j] += float64(sum * t.Variance(v, a, n, columns, j))
		}
	}
}

// Penalty returns 1/2 sum over internals of A_n ||mu_n - mu_parent||^2 at the columns of a range.
func (t *Tree) Penalty(v Variant, a Alpha, mu []float64, columns int) (sum float64) {
	for i, n := range t.Nodes {
		prec, up := t.Precision(v, a, n, columns), t.above(n)
		for j, x := range mu[i*columns:][:columns] {
			if up >= 0 {
				x -= mu[int(up)*columns+j]
			}
			sum += float64(prec.At(j) * float64(x*x))
		}
	}
	return sum / 2
}

// Squares returns, for each internal node, ||mu_n - mu_parent||^2 and ||mu_n||^2 at the columns of
// a range.
func (t *Tree) Squares(mu []float64, columns int) (distance, norm []float64) {
	distance, norm = make([]float64, len(t.Nodes)), make([]float64, len(t.Nodes))
	for i, n := range t.Nodes {
		up := t.above(n)
		for j, x := range mu[i*columns:][:columns] {
			norm[i] += float64(x * x)
			if up >= 0 {
				x -= mu[int(up)*columns+j]
			}
			distance[i] += float64(x * x)
		}
	}
	return distance, norm
}
