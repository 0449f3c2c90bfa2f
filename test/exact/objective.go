package exact

import "math"

// Primal returns P(W). w has one row per node of Nodes, of Width columns each.
func (p *Problem) Primal(w [][]float64) float64 {
	nodes, x := p.Nodes(), p.Matrix()
	y := p.signs(nodes)
	c := p.costs(y)
	sum := 0.0
	for f, edges := range p.laplacians() {
		for n, row := range edges {
			// 1/2 w'Lw without its cancellation: the remainder of the diagonal, then the edges
			sum += rowSum(row) * w[n][f] * w[n][f] / 2
			for m := n + 1; m < len(row); m++ {
				if l := row[m]; l != 0 {
					sum += -l * (w[n][f] - w[m][f]) * (w[n][f] - w[m][f]) / 2
				}
			}
		}
	}
	for n := range nodes {
		for i := range y[n] {
			sum += c[n][i] * p.loss(y[n][i]*dot(w[n], x[i]))
		}
	}
	return sum
}

func rowSum(row []float64) (s float64) {
	for _, v := range row {
		s += v
	}
	return s
}

// loss returns the loss at margin z.
func (p *Problem) loss(z float64) float64 {
	switch {
	case p.Logistic && z < 0:
		return -z + math.Log1p(math.Exp(z))
	case p.Logistic:
		return math.Log1p(math.Exp(-z))
	case p.Squared:
		return math.Max(0, 1-z) * math.Max(0, 1-z)
	}
	return math.Max(0, 1-z)
}

// gain returns the term of a dual in D.
func (p *Problem) gain(a, c float64) float64 {
	switch {
	case p.Logistic:
		q := a / c
		h := 0.0
		if q > 0 {
			h -= q * math.Log(q)
		}
		if q < 1 {
			h -= (1 - q) * math.Log1p(-q)
		}
		return c * h
	case p.Squared:
		return a - a*a/(4*c)
	}
	return a
}

// Dual returns D(a) of feasible duals a[n][i] (design section 1, global certificate): with v_n =
// sum_i a_i y_in x_i and W(a) = L^-1 v,
//
//	D(a) = sum gain(a) - 1/2 sum_n w_n(a).v_n
func (p *Problem) Dual(a [][]float64) float64 {
	nodes := p.Nodes()
	c := p.costs(p.signs(nodes))
	v := p.combine(nodes, a)
	sum := 0.0
	for n := range nodes {
		for i := range a[n] {
			sum += p.gain(a[n][i], c[n][i])
		}
	}
	var edges, inverse [][]float64
	for f, l := range p.laplacians() {
		if f == 0 || &l[0] != &edges[0] {
			edges, inverse = l, invert(l)
		}
		for n := range nodes {
			for m := range nodes {
				sum -= inverse[n][m] * v[n][f] * v[m][f] / 2
			}
		}
	}
	return sum
}

// laplacians returns the Laplacians of the columns. If biases are pulled to zero, internal nodes
// have none, and the edges of a terminal pull its bias to zero.
func (p *Problem) laplacians() [][][]float64 {
	l := p.laplacian()
	out := make([][][]float64, p.Width())
	for f := range out {
		out[f] = l
	}
	if p.Apart && p.Bias > 0 {
		own := zeros(len(l), len(l))
		for n, node := range p.Nodes() {
			own[n][n] = 1
			if node.Terminal {
				own[n][n] = l[n][n]
			}
		}
		out[len(out)-1] = own
	}
	return out
}

// edge returns the weight of the edge above node n of a tree.
func (p *Problem) edge(nodes []Node, n int) float64 {
	if nodes[n].Terminal || nodes[n].Parent < 0 {
		return 1
	}
	depth, classes := 0.0, 0.0
	for q := nodes[n].Parent; q >= 0; q = nodes[q].Parent {
		depth++
	}
	for c := range nodes {
		for q := c; nodes[c].Terminal && q >= 0; q = nodes[q].Parent {
			if q == n {
				classes++
			}
		}
	}
	switch p.EdgesBy {
	case "depth":
		return p.inner() * depth
	case "size":
		return p.inner() * classes
	}
	return p.inner()
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

// laplacian returns the Laplacian of the edges, with each root of a tree tied to zero.
func (p *Problem) laplacian() [][]float64 {
	if p.IsGraph {
		return p.graphLaplacian()
	}
	nodes := p.Tree()
	l := zeros(len(nodes), len(nodes))
	for n, node := range nodes {
		q, weight := node.Parent, p.edge(nodes, n)
		l[n][n] += weight
		if q >= 0 {
			l[q][q] += weight
			l[n][q] -= weight
			l[q][n] -= weight
		}
	}
	return l
}

// invert runs Gauss-Jordan elimination for positive definite matrices (without pivoting) and does
// not change m. It takes O(n^3) time.
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
