package reducer

// equations solves the internals' system of one feature after another, A(s) w = right, s
// being the curvature of each leaf group. Where no terminal has any, and where all have it in
// full, all features have the same matrix, and its factorisation (Graph.withNone, Graph.withAll).
// Between the two an LDL' factorisation of the feature's own is cheap on trees and what is
// like them; where it fills in, the graph is well connected, and conjugate gradients with
// the diagonal as preconditioner need some 20 to 50 products. equations is the scratch of one task.
type equations struct {
	g         *Graph
	n         int       // nodes; the leaf groups' means follow as unknowns n, n+1, ...
	x         []float64 // by position in the factor's order
	own       *factored // of the feature at hand
	scratch   *numbers
	conjugate *conjugate
}

func newEquations(g *Graph, n int) *equations {
	return &equations{g: g, n: n, x: make([]float64, n+len(g.LeafGroups))}
}

// follow is M_g, how many of the leaf group's terminals follow its mean; curvature nil: all of them.
func (g *Graph) follow(curvature []float64, group int32) float64 {
	if curvature == nil {
		return g.LeafGroups[group].Terminals
	}
	return g.LeafGroups[group].Terminals - curvature[group]
}

// mul sets out = A w over the nodes, the leaf groups' means eliminated.
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

// solve sets w to the solution of A(curvature) w = right; curvature nil: none. w comes as a guess.
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

// fewSteps is how many steps of conjugate gradients a factorisation must cost for them to
// be tried first.
const fewSteps = 60

// stepsWorth is how many such steps one factorisation is worth, by nanoseconds measured on
// graphs of 459 to 3,000 nodes.
func (g *Graph) stepsWorth() int {
	factorisation := 0.75*g.order.work + 12*float64(g.order.fill())
	product := 5*len(g.degree) + 2*len(g.Edges)
	for _, f := range g.LeafGroups {
		product += 2 * len(f.Nodes)
	}
	return int(min(factorisation/(1.1*float64(product)), conjugateSteps))
}

// iterate reports whether conjugate gradients got there within the steps.
func (s *equations) iterate(curvature, right, w []float64, steps int) bool {
	if s.conjugate == nil {
		s.conjugate = newConjugate(s.n)
	}
	return s.conjugate.solve(s.g, curvature, right, w, steps)
}

// factorise solves by a factorisation of the feature's own.
func (s *equations) factorise(curvature, right, w []float64) {
	if s.own == nil {
		s.own, s.scratch = newFactored(s.g.order), newNumbers(len(s.x))
	}
	s.own.factorise(s.g, curvature, s.scratch)
	s.own.substitute(s.n, right, w, s.x)
}
