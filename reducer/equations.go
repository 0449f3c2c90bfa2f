package reducer

import "taxon/internal/linalg/conjugate"

// equations solves the internals' system A(s) w = right, one feature after another. s is the
// curvature of each leaf group. It is the scratch of one task.
//
// Where no terminal has curvature, and where all have it in full, all features have the same matrix
// and share its factorisation (Graph.withNone, Graph.withAll). Between the two, an LDL'
// factorisation of the feature's own is cheap on trees and similar graphs. Where it fills in, the
// graph is well connected, and conjugate gradients with the diagonal as preconditioner converge
// fast.
type equations struct {
	g *Graph
	// n is the number of nodes. The leaf groups' means follow as unknowns n, n+1, ...
	n int
	// x is by position in the factor's order.
	x []float64
	// own is the factorisation of the feature at hand.
	own       *factored
	scratch   *numbers
	gradients *gradients
}

func newEquations(g *Graph, n int) *equations {
	return &equations{g: g, n: n, x: make([]float64, n+len(g.LeafGroups))}
}

// follow returns M_g, the number of terminals of the leaf group that follow the group's mean. If
// curvature is nil, all do.
func (g *Graph) follow(curvature []float64, group int32) float64 {
	if curvature == nil {
		return g.LeafGroups[group].Terminals
	}
	return g.LeafGroups[group].Terminals - curvature[group]
}

// mul sets out to A w over the nodes. The means of the leaf groups are eliminated from A.
func (g *Graph) mul(curvature []float64, w, out []float64) {
	for p := range out {
		out[p] = float64((g.degree[p] + g.diagonalShift(int32(p))) * w[p])
	}
	for _, e := range g.Edges {
		a, b := e[0], e[1]
		out[a] -= float64(g.Weight * w[b])
		out[b] -= float64(g.Weight * w[a])
	}
	for i := range g.LeafGroups {
		m := g.follow(curvature, int32(i))
		if m == 0 {
			continue
		}
		f := &g.LeafGroups[i]
		sum := 0.0
		for _, p := range f.Nodes {
			sum += w[p]
		}
		mean := m * sum / f.Pull
		for _, p := range f.Nodes {
			out[p] -= mean
		}
	}
}

// solve sets w to the solution of A(curvature) w = right. A nil curvature stands for none. w holds
// a first guess for the iterative solvers.
func (s *equations) solve(curvature, right, w []float64) {
	some, all := false, true
	for i, v := range curvature {
		some = some || v > 0
		all = all && v == s.g.LeafGroups[i].Terminals
	}
	switch {
	case s.g.order.dense:
		s.iterate(curvature, right, w, conjugateSteps)
	case !some:
		s.g.withNone.substitute(s.n, right, w, s.x)
	case all:
		s.g.withAll.substitute(s.n, right, w, s.x)
	case s.g.steps >= fewSteps && s.iterate(curvature, right, w, s.g.steps):
	default:
		s.factorise(curvature, right, w)
	}
}

// fewSteps is the number of conjugate gradient steps above which a factorisation is so expensive
// that conjugate gradients are tried first.
const fewSteps = 60

// stepsWorth returns the number of steps of conjugate gradients that cost as much as a
// factorisation.
func (g *Graph) stepsWorth() int {
	factorisation := 0.75*g.order.work + 12*float64(g.order.fill())
	product := 5*len(g.degree) + 2*len(g.Edges)
	for _, f := range g.LeafGroups {
		product += 2 * len(f.Nodes)
	}
	return int(min(factorisation/(1.1*float64(product)), conjugateSteps))
}

// iterate solves by conjugate gradients. It reports whether they converged within the steps.
func (s *equations) iterate(curvature, right, w []float64, steps int) bool {
	if s.gradients == nil {
		s.gradients = newGradients(s.n)
	}
	return s.gradients.solve(s.g, curvature, right, w, steps)
}

// factorise solves the system by factorising the feature's own matrix.
func (s *equations) factorise(curvature, right, w []float64) {
	if s.own == nil {
		s.own, s.scratch = newFactored(s.g.order), newNumbers(len(s.x))
	}
	s.own.factorise(s.g, curvature, s.scratch)
	s.own.substitute(s.n, right, w, s.x)
}

// gradients is the scratch of conjugate gradients, with the diagonal as preconditioner.
type gradients struct {
	conjugate.Gradients
	conjugate.Vectors
	g         *Graph
	curvature []float64
	// inverse is that of the diagonal.
	inverse []float64
}

func newGradients(n int) *gradients {
	c := &gradients{}
	for _, v := range []*[]float64{&c.P, &c.R, &c.Z, &c.Q, &c.inverse} {
		*v = make([]float64, n)
	}
	return c
}

// Conjugate gradients stop at this share of the right-hand side in the preconditioner's norm, or
// after conjugateSteps steps.
const (
	conjugateShare = 1e-13
	conjugateSteps = 2000
)

// solve sets w to the solution of A(curvature) w = right, starting from w. ok is false if it did not
// converge within the steps.
func (c *gradients) solve(g *Graph, curvature, right, w []float64, steps int) (ok bool) {
	c.g, c.curvature, c.X = g, curvature, w
	c.prepare()
	copy(c.R, right)
	c.Enough[0] = conjugateShare * conjugateShare * c.scale()
	g.mul(curvature, w, c.Q)
	for i, v := range c.Q {
		c.R[i] -= v
	}
	c.Size[0], c.Running = c.scale(), 1
	c.Solve(c, steps)
	return c.Converged(0)
}

// Multiply implements conjugate.System.
func (c *gradients) Multiply(of *conjugate.Gradients) {
	c.Turn(of, 1)
	c.g.mul(c.curvature, c.P, c.Q)
	c.Bend(of, 1)
}

// Advance implements conjugate.System.
func (c *gradients) Advance(of *conjugate.Gradients) {
	c.Vectors.Advance(of, 1)
	of.Next[0] = c.scale()
}

// prepare sets inverse to the inverse of the diagonal.
func (c *gradients) prepare() {
	for i := range c.inverse {
		d := c.g.degree[i] + c.g.diagonalShift(int32(i))
		for _, group := range c.g.at[i] {
			d -= c.g.follow(c.curvature, group) / c.g.LeafGroups[group].Pull
		}
		c.inverse[i] = 1 / d
	}
}

// scale sets z = r / diagonal and returns r.z.
func (c *gradients) scale() (rz float64) {
	for i, r := range c.R {
		c.Z[i] = r * c.inverse[i]
		rz += float64(r * c.Z[i])
	}
	return rz
}
