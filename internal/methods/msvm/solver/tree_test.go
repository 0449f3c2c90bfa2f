package solver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// onTree puts a problem's classes under a random tree with chains, leaves directly below the root,
// and wide and deep parts. Node numbers are depth first.
func onTree(seed uint64, p *Problem, form Form, margin bool, alpha float64) *Problem {
	r := rand.New(rand.NewPCG(seed, 3))
	tree := &Tree{Parent: []int32{-1}, Leaf: []bool{false}, Form: form, Margin: margin, Alpha: alpha}
	var of []int32
	var grow func(parent int32, leaves int)
	grow = func(parent int32, leaves int) {
		n := int32(len(tree.Parent))
		tree.Parent, tree.Leaf = append(tree.Parent, parent), append(tree.Leaf, leaves == 1 && r.IntN(4) > 0)
		if tree.Leaf[n] {
			of = append(of, n)
			return
		}
		for leaves > 0 {
			some := 1 + r.IntN(leaves)
			grow(n, some)
			leaves -= some
		}
	}
	for left := p.Classes; left > 0; {
		some := 1 + r.IntN(left)
		grow(0, some)
		left -= some
	}
	q := &Problem{Rows: p.Rows, Classes: len(tree.Parent), Tree: tree}
	for _, y := range p.Class {
		q.Class = append(q.Class, of[y])
	}
	return q
}

// pathTo lists the nodes from a child of the root to n.
func (t *Tree) pathTo(n int32) (path []int32) {
	for ; n > 0; n = t.Parent[n] {
		path = append(path, n)
	}
	slices.Reverse(path)
	return path
}

// direction returns the choice r of an instance at leaf y: the coefficients of its product with
// each node's vector, s and e. ok is false if r is not a choice.
func (t *Tree) direction(y, r int32) (by []float64, s, e float64, ok bool) {
	by = make([]float64, len(t.Parent))
	py, pr := t.pathTo(y), t.pathTo(r)
	if t.Form == Paths {
		if !t.Leaf[r] || r == y {
			return nil, 0, 0, false
		}
		for _, n := range py {
			by[n]++
		}
		for _, n := range pr {
			by[n]--
		}
		steps := 0.0
		for _, x := range by {
			steps += math.Abs(x)
		}
		if t.Unit {
			return by, 1, 1, true
		}
		if t.Margin {
			return by, 1, steps / 2, true
		}
		return by, steps / 2, 1, true
	}
	for _, n := range py {
		if r > 0 && n != r && t.Parent[n] == t.Parent[r] {
			by[n], by[r] = 1, -1
			return by, 1, 1, true
		}
	}
	return nil, 0, 0, false
}

// regular is R from its definition.
func (t *Tree) regular(w [][]float64) (sum float64) {
	below := make([]float64, len(t.Parent))
	for n := len(below) - 1; n > 0; n-- {
		below[n]++
		below[t.Parent[n]] += below[n]
	}
	for n := 1; n < len(w); n++ {
		switch t.Form {
		case Paths:
			sum += product(w[n], w[n]) / 2
		case Transfer:
			sum += product(w[n], w[n]) / 2
			if a := t.Parent[n]; a > 0 {
				for f := range w[n] {
					sum += (w[n][f] - w[a][f]) * (w[n][f] - w[a][f]) / 2
				}
			}
		case Orthogonal:
			sum += below[n] * product(w[n], w[n]) / 2
			for a := t.Parent[n]; a > 0; a = t.Parent[a] {
				sum += t.Alpha * math.Abs(product(w[n], w[a]))
			}
		}
	}
	return sum
}

// primalTree is P, from its definition.
func (p *Problem) primalTree(w [][]float64) float64 {
	sum := p.Tree.regular(w)
	for i, y := range p.Class {
		x, xi := p.row(i), 0.0
		for r := range w {
			if by, s, e, ok := p.Tree.direction(y, int32(r)); ok {
				m := 0.0
				for n, c := range by {
					if c != 0 {
						m += c * product(w[n], x)
					}
				}
				xi = max(xi, s*(e-m))
			}
		}
		sum += p.Rows.RowC(i) * xi
	}
	return sum
}

// metric is M, dense.
func (t *Tree) metric(signs []float64) [][]float64 {
	n := len(t.Parent)
	m := make([][]float64, n)
	for a := range m {
		m[a] = make([]float64, n)
		m[a][a] = 1
	}
	at := 0
	for k := 1; k < n; k++ {
		a := t.Parent[k]
		if t.Form == Transfer && a > 0 {
			m[k][k]++
			m[a][a]++
			m[k][a], m[a][k] = -1, -1
		}
		for ; t.Form == Orthogonal && a > 0; a = t.Parent[a] {
			m[a][a]++
			m[k][a], m[a][k] = t.Alpha*signs[at], t.Alpha*signs[at]
			at++
		}
	}
	return m
}

// solved returns M^-1 v, by elimination.
func solved(m, v [][]float64) [][]float64 {
	n := len(m)
	a := make([][]float64, n)
	for k := range a {
		a[k] = append(slices.Clone(m[k]), v[k]...)
	}
	for k := range a {
		for j := range a {
			if by := a[j][k] / a[k][k]; j != k && by != 0 {
				for c := range a[j] {
					a[j][c] -= by * a[k][c]
				}
			}
		}
	}
	for k := range a {
		for c := n; c < len(a[k]); c++ {
			a[k][c] /= a[k][k]
		}
		a[k] = a[k][n:]
	}
	return a
}

// dualTree returns D of a state by the definition, and checks that the state is within its bounds.
// Zero rows are at their bound without a dual.
func (p *Problem) dualTree(t *testing.T, st *State) float64 {
	t.Helper()
	v := make([][]float64, p.Classes)
	for n := range v {
		v[n] = make([]float64, p.Rows.X.Cols+1)
	}
	d := 0.0
	for i, y := range p.Class {
		x, total := p.row(i), 0.0
		if product(x, x) == 0 {
			most := 0.0
			for r := range p.Classes {
				if _, s, e, ok := p.Tree.direction(y, int32(r)); ok {
					most = max(most, s*e)
				}
			}
			d += p.Rows.RowC(i) * most
			continue
		}
		for k := st.Begin[i]; k < st.Begin[i+1]; k++ {
			b := st.Value[k]
			by, s, e, ok := p.Tree.direction(y, int32(st.Class[k]))
			if !ok || b < 0 {
				t.Fatalf("row %d: dual %g of %d, which is no choice", i, b, st.Class[k])
			}
			total += b
			d += b * s * e
			for n, c := range by {
				for f := range x {
					v[n][f] += b * s * c * x[f]
				}
			}
		}
		if total > p.Rows.RowC(i)*(1+1e-12) {
			t.Fatalf("row %d: duals add up to %g of %g", i, total, p.Rows.RowC(i))
		}
	}
	for _, s := range st.Sign {
		if math.Abs(s) > 1 {
			t.Fatalf("sign %g", s)
		}
	}
	for n, w := range solved(p.Tree.metric(st.Sign), v) {
		d -= product(w, v[n]) / 2
	}
	return d
}

// TestTree checks, on random trees with zero rows and duplicates, weights, biases, and small and
// large C, that a certificate of 1e-7 is that of P and D by their definitions. Weak duality then
// proves the optimum.
func TestTree(t *testing.T) {
	for _, form := range []Form{Paths, Transfer, Orthogonal} {
		for n := range 12 {
			margin := form == Paths && n%2 == 1
			t.Run(fmt.Sprint(form, n), func(t *testing.T) {
				c := []float64{0.03, 1, 0.001, 30}[n%4]
				p := onTree(uint64(n), small(uint64(n), 60+n, 12, 3+n%7, c, []float32{1, 0, 3}[n%3]), form, margin, 0.5)
				if n%5 == 2 {
					p.weigh()
				}
				p.Tree.Unit = form == Paths && n%3 == 0
				for _, s := range p.layouts() {
					st := run(t, s, 1e-7)
					w := dense(p, st, false)
					if p.primalTree(w)-st.Dual > 1e-7*st.Primal { // see TestRounding
						w = dense(p, st, true)
					}
					if mine := p.primalTree(w); math.Abs(mine-st.Primal) > 1e-9*mine {
						t.Errorf("P %.12g, from its definition %.12g", st.Primal, mine)
					}
					if mine := p.dualTree(t, st); math.Abs(mine-st.Dual) > 1e-9*st.Primal {
						t.Errorf("D %.12g, from its definition %.12g", st.Dual, mine)
					}
				}
			})
		}
	}
}
