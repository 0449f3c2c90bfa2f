package exact

import (
	"maps"
	"math"
	"slices"
)

// Bracket encloses the optimum: Dual <= P* <= Primal, each evaluated by its definition.
type Bracket struct {
	Primal, Dual float64
	W            [][]float64 // attains Primal
	Duals        [][]float64 // attains Dual; nil rows for internal nodes
	Iterations   int
}

// Width returns the bracket's relative width.
func (b *Bracket) Width() float64 { return (b.Primal - b.Dual) / b.Primal }

const (
	maxIterations = 300

	// patience is the number of steps that may fail to narrow the bracket before the precision of
	// float64 counts as exhausted (at a width of 3.3e-10 in the worst case seen).
	patience = 20

	// refinements is the number of refinements of each Newton step. Without them the residual of L
	// w = v(a) grows again as mu decreases (1e-7 relative at C = 100 with repeated rows and
	// columns).
	refinements = 2
)

// Solve narrows the bracket to the requested relative width, or as far as float64 permits.
//
// It is a primal-dual interior point method. With slacks s = y w.x + xi - 1 >= 0 (multiplier a)
// and, for the hinge, xi >= 0 (multiplier C - a; for the squared hinge xi = a/2C):
//
//	L w = sum_i a_i y_i x_i     a_i s_i = mu     (C - a_i) xi_i = mu
//
// A Newton step of this system eliminates all but dw (the logistic loss: newton.go):
//
//	(L + sum_i theta_i x_i x_i') dw = L-residual + sum_i theta_i rho_i y_i x_i
//
// which is solved node by node with dense width x width blocks. A step takes O(nodes width^3) on
// trees.
func (p *Problem) Solve(width float64) *Bracket {
	if p.Logistic {
		return p.newton(width)
	}
	s := newInterior(p)
	best := &Bracket{Primal: math.Inf(1), Dual: math.Inf(-1)}
	for k, narrowed := 0, 0; k < maxIterations && k-narrowed < patience; k++ {
		best.Iterations = k
		if v := p.Primal(s.w); v < best.Primal {
			best.Primal, best.W, narrowed = v, copyRows(s.w), k
		}
		if v := p.Dual(s.a); v > best.Dual {
			best.Dual, best.Duals, narrowed = v, copyRows(s.a), k
		}
		if best.Width() < width {
			break
		}
		s.step()
	}
	return best
}

// interior is the state of the method. All per-instance values are indexed [n][i].
type interior struct {
	p     *Problem
	nodes []Node
	l     [][][]float64 // Laplacians by column
	c     [][]float64   // C_in
	x     [][]float64
	y     [][]float64
	w     [][]float64
	a     [][]float64 // multiplier of the margin, strictly inside its box

	// b is C - a, stored separately because it would lose its digits for a close to C. Only the
	// hinge uses it.
	b  [][]float64
	s  [][]float64 // margin's slack, > 0
	xi [][]float64 // loss, > 0; hinge only
}

func newInterior(p *Problem) *interior {
	nodes := p.Nodes()
	m := &interior{p: p, nodes: nodes, l: p.laplacians(), x: p.Matrix(), y: p.signs(nodes),
		w: zeros(len(nodes), p.Width())}
	m.c = p.costs(m.y)
	m.a, m.b, m.s, m.xi = m.perInstance(), m.perInstance(), m.perInstance(), m.perInstance()
	for n := range nodes {
		for i := range m.a[n] {
			m.a[n][i], m.b[n][i], m.s[n][i], m.xi[n][i] = m.c[n][i]/2, m.c[n][i]/2, 1, 2 // w = 0: s = xi - 1 holds
		}
	}
	return m
}

// perInstance returns zeros indexed [n][i].
func (m *interior) perInstance() [][]float64 {
	v := make([][]float64, len(m.nodes))
	for n := range v {
		v[n] = make([]float64, len(m.y[n]))
	}
	return v
}

// mu returns the mean complementarity.
func (m *interior) mu() float64 {
	sum, count := 0.0, 0
	for n := range m.nodes {
		for i := range m.a[n] {
			sum += m.a[n][i] * m.s[n][i]
			count++
			if !m.p.Squared {
				sum += m.b[n][i] * m.xi[n][i]
				count++
			}
		}
	}
	return sum / float64(count)
}

// step takes a predictor step that aims at mu = 0 and, depending on how far it gets, a corrector
// step (Mehrotra's rule for the centring, without his second-order term).
func (m *interior) step() {
	mu := m.mu()
	reach := m.longest(m.direction(0), 1)
	sigma := math.Max(math.Pow(1-reach, 3), 1e-3)
	d := m.direction(sigma * mu)
	m.move(d, m.longest(d, 0.995))
}

// direction is a Newton step.
type direction struct{ w, a, s, xi [][]float64 }

// direction solves the Newton system that aims at complementarity mu:
//
//	L dw - sum_i da_i y_i x_i = right        da_i/theta_i + y_i dw.x_i = rho_i
func (m *interior) direction(mu float64) direction {
	size := m.p.Width()
	hessian, right := make([][][]float64, len(m.nodes)), zeros(len(m.nodes), size)
	theta, rho := m.perInstance(), m.perInstance()
	m.pull(right, m.w)
	for n := range m.nodes {
		hessian[n] = zeros(size, size)
		for i, a := range m.a[n] {
			theta[n][i], rho[n][i] = m.reduce(n, i, mu)
			axpy(right[n], a*m.y[n][i], m.x[i])
			for f, v := range m.x[i] {
				axpy(hessian[n][f], theta[n][i]*v, m.x[i])
			}
		}
	}
	system := m.factor(hessian)
	d := direction{w: zeros(len(m.nodes), size), a: m.perInstance(), s: m.perInstance(), xi: m.perInstance()}
	for range 1 + refinements {
		m.refine(d, system, theta, rho, right)
	}
	for n := range m.nodes {
		for i, a := range m.a[n] {
			d.s[n][i] = (mu - a*m.s[n][i] - m.s[n][i]*d.a[n][i]) / a
			if !m.p.Squared {
				d.xi[n][i] = (mu - m.b[n][i]*m.xi[n][i] + m.xi[n][i]*d.a[n][i]) / m.b[n][i]
			}
		}
	}
	return d
}

// reduce eliminates an instance's slacks. It returns theta and rho of its row of the system.
func (m *interior) reduce(n, i int, mu float64) (theta, rho float64) {
	a, s := m.a[n][i], m.s[n][i]
	xi, r2, curve := a/(2*m.c[n][i]), 0.0, 1/(2*m.c[n][i]) // squared hinge
	if !m.p.Squared {
		b := m.b[n][i]
		xi = m.xi[n][i]
		r2, curve = (mu-b*xi)/b, xi/b
	}
	residual := m.y[n][i]*dot(m.w[n], m.x[i]) + xi - 1 - s
	return 1 / (s/a + curve), (mu-a*s)/a - r2 - residual
}

// refine adds to dw and da the solution for the residuals of both equations.
func (m *interior) refine(d direction, system *blocks, theta, rho, right [][]float64) {
	r, left := copyRows(right), m.perInstance()
	m.pull(r, d.w)
	for n := range m.nodes {
		for i, y := range m.y[n] {
			left[n][i] = rho[n][i] - d.a[n][i]/theta[n][i] - y*dot(d.w[n], m.x[i])
			axpy(r[n], (d.a[n][i]+theta[n][i]*left[n][i])*y, m.x[i])
		}
	}
	dw := m.solve(system, r)
	for n := range m.nodes {
		for i, y := range m.y[n] {
			d.a[n][i] += theta[n][i] * (left[n][i] - y*dot(dw[n], m.x[i]))
		}
		axpy(d.w[n], 1, dw[n])
	}
}

// pull subtracts L w.
func (m *interior) pull(right, w [][]float64) {
	for f, edges := range m.l {
		for n, row := range edges {
			for k, l := range row {
				if l != 0 {
					right[n][f] -= l * w[k][f]
				}
			}
		}
	}
}

// blocks is a symmetric matrix of dense blocks whose pivots are eliminated from the last node to
// the first. Children follow their parents, so trees have no fill-in.
type blocks struct {
	inverse [][][]float64 // inverses of the pivots

	// below maps n and an earlier neighbour q to the block (q, n) when n was eliminated.
	below []map[int][][]float64
}

// factor eliminates L + diag(h_n). It overwrites h.
func (m *interior) factor(h [][][]float64) *blocks {
	size := m.p.Width()
	b := &blocks{make([][][]float64, len(m.nodes)), make([]map[int][][]float64, len(m.nodes))}
	for n := range m.nodes {
		b.below[n] = map[int][][]float64{}
		for f, edges := range m.l {
			for q, l := range edges[n] {
				if q == n {
					h[n][f][f] += l
				} else if q < n && l != 0 {
					if b.below[n][q] == nil {
						b.below[n][q] = zeros(size, size)
					}
					b.below[n][q][f][f] = l
				}
			}
		}
	}
	for n := len(m.nodes) - 1; n >= 0; n-- {
		b.inverse[n] = invert(h[n])
		earlier := slices.Sorted(maps.Keys(b.below[n]))
		for _, q := range earlier {
			scaled := multiply(b.below[n][q], b.inverse[n])
			for _, k := range earlier {
				right := b.below[n][k]
				if k > q {
					continue
				}
				to := h[q]
				if k < q {
					if b.below[q][k] == nil {
						b.below[q][k] = zeros(size, size)
					}
					to = b.below[q][k]
				}
				// block (q, k) of the rest, stored as (k, q) transposed if k < q
				for f := range size {
					for g := range size {
						value := dot(scaled[f], right[g])
						if k < q {
							to[g][f] -= value
						} else {
							to[f][g] -= value
						}
					}
				}
			}
		}
	}
	return b
}

// multiply returns the product of two square matrices.
func multiply(a, b [][]float64) [][]float64 {
	c := zeros(len(a), len(a))
	for i := range a {
		for k, v := range a[i] {
			if v != 0 {
				axpy(c[i], v, b[k])
			}
		}
	}
	return c
}

// solve substitutes backwards and forwards. It overwrites r.
func (m *interior) solve(b *blocks, r [][]float64) [][]float64 {
	d := zeros(len(m.nodes), m.p.Width())
	for n := len(m.nodes) - 1; n >= 0; n-- {
		for f := range d[n] {
			d[n][f] = dot(b.inverse[n][f], r[n])
		}
		for q, block := range b.below[n] {
			for f := range r[q] {
				r[q][f] -= dot(block[f], d[n])
			}
		}
	}
	for n := range m.nodes {
		pull := make([]float64, len(r[n]))
		for _, q := range slices.Sorted(maps.Keys(b.below[n])) {
			block := b.below[n][q]
			for f := range pull {
				axpy(pull, d[q][f], block[f]) // the transposed block
			}
		}
		for f := range d[n] {
			d[n][f] -= dot(b.inverse[n][f], pull)
		}
	}
	return d
}

// longest returns the step length, at most 1, that goes the given share of the way to the boundary.
func (m *interior) longest(d direction, share float64) float64 {
	t := 1 / share
	limit := func(value, change float64) {
		if change < 0 {
			t = math.Min(t, -value/change)
		}
	}
	for n := range m.nodes {
		for i := range m.a[n] {
			limit(m.a[n][i], d.a[n][i])
			limit(m.s[n][i], d.s[n][i])
			if !m.p.Squared {
				limit(m.b[n][i], -d.a[n][i])
				limit(m.xi[n][i], d.xi[n][i])
			}
		}
	}
	return math.Min(1, share*t)
}

func (m *interior) move(d direction, t float64) {
	for n := range m.nodes {
		axpy(m.w[n], t, d.w[n])
		axpy(m.a[n], t, d.a[n])
		axpy(m.b[n], -t, d.a[n])
		axpy(m.s[n], t, d.s[n])
		axpy(m.xi[n], t, d.xi[n])
	}
}

func copyRows(m [][]float64) [][]float64 {
	c := make([][]float64, len(m))
	for i := range m {
		c[i] = append([]float64(nil), m[i]...)
	}
	return c
}
