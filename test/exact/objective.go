package exact

import "math"

// Primal is P(W); w has one row a node of Tree, Width columns each.
func (p *Problem) Primal(w [][]float64) float64 {
	nodes, x := p.Tree(), p.Matrix()
	y := p.signs(nodes)
	sum := 0.0
	for n, node := range nodes {
		for f := range w[n] {
			up := 0.0
			if node.Parent >= 0 {
				up = w[node.Parent][f]
			}
			sum += (w[n][f] - up) * (w[n][f] - up) / 2
		}
		for i := range y[n] {
			loss := math.Max(0, 1-y[n][i]*dot(w[n], x[i]))
			if p.Squared {
				loss *= loss
			}
			sum += p.C * loss
		}
	}
	return sum
}

// Dual is D(a) of feasible duals a[n][i] (design section 1, global certificate): with
// v_n = sum_i a_in y_in x_i and W(a) = L^-1 v,
//
//	D(a) = sum a - 1/2 sum_n w_n(a).v_n  (- sum a^2/4C for the squared hinge)
func (p *Problem) Dual(a [][]float64) float64 {
	nodes := p.Tree()
	v := p.combine(nodes, a)
	inverse := invert(laplacian(nodes))
	sum := 0.0
	for n := range nodes {
		for i := range a[n] {
			sum += a[n][i]
			if p.Squared {
				sum -= a[n][i] * a[n][i] / (4 * p.C)
			}
		}
		for m := range nodes {
			sum -= inverse[n][m] * dot(v[n], v[m]) / 2
		}
	}
	return sum
}

// combine returns v_n = sum_i a_in y_in x_i.
func (p *Problem) combine(nodes []Node, a [][]float64) [][]float64 {
	x, y := p.Matrix(), p.signs(nodes)
	v := zeros(len(nodes), p.Width())
	for n := range nodes {
		for i := range a[n] {
			axpy(v[n], a[n][i]*y[n][i], x[i])
		}
	}
	return v
}

// laplacian of the tree, each root tied to zero.
func laplacian(nodes []Node) [][]float64 {
	l := zeros(len(nodes), len(nodes))
	for n, node := range nodes {
		l[n][n]++
		if q := node.Parent; q >= 0 {
			l[q][q]++
			l[n][q]--
			l[q][n]--
		}
	}
	return l
}

// invert is Gauss-Jordan elimination for positive definite matrices (no pivoting); m is
// not changed. O(n^3).
func invert(m [][]float64) [][]float64 {
	n := len(m)
	a, inv := zeros(n, n), zeros(n, n)
	for i := range m {
		copy(a[i], m[i])
		inv[i][i] = 1
	}
	for k := range n {
		d := 1 / a[k][k]
		for j := range n {
			a[k][j] *= d
			inv[k][j] *= d
		}
		for i := range n {
			if i == k || a[i][k] == 0 {
				continue
			}
			s := a[i][k]
			axpy(a[i], -s, a[k])
			axpy(inv[i], -s, inv[k])
		}
	}
	return inv
}

func zeros(rows, columns int) [][]float64 {
	m := make([][]float64, rows)
	for i := range m {
		m[i] = make([]float64, columns)
	}
	return m
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func axpy(to []float64, s float64, from []float64) {
	for i := range from {
		to[i] += s * from[i]
	}
}
