package reducer

// equations solves the internals' system of one feature after another, A(s) w = right, s
// being how many terminals of each fan are stiff. Where nobody is, and where everybody is,
// all features have the same matrix, and its factorisation (Graph.free, Graph.held).
// Between the two an LDL' factorisation of the feature's own is cheap on trees and what is
// like them; where it fills in, the graph is well connected, and conjugate gradients with
// the diagonal as preconditioner need some 20 to 50 products. equations is the scratch of one task.
type equations struct {
	g         *Graph
	n         int       // nodes; the fans' means follow as unknowns n, n+1, ...
	x         []float64 // by position in the factor's order
	own       *factored // of the feature at hand
	scratch   *numbers
	conjugate *conjugate
}

func newEquations(g *Graph, n int) *equations {
	return &equations{g: g, n: n, x: make([]float64, n+len(g.Fans))}
}

// follow is M_g, the fan's terminals that are not stiff; stiff nil: all of them.
func (g *Graph) follow(stiff []float64, fan int32) float64 {
	if stiff == nil {
		return g.Fans[fan].Terminals
	}
	return g.Fans[fan].Terminals - stiff[fan]
}

// mul sets out = A w over the nodes, the fans' means eliminated.
func (g *Graph) mul(stiff []float64, w, out []float64) {
	for p := range out {
		out[p] = float64((g.degree[p] + g.hold(int32(p))) * w[p])
	}
	for _, e := range g.Edges {
		a, b := e[0], e[1]
		out[a] -= float64(g.Weight * w[b])
		out[b] -= float64(g.Weight * w[a])
	}
	for i := range g.Fans {
		m := g.follow(stiff, int32(i))
		if m == 0 {
			continue
		}
		f := &g.Fans[i]
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

// solve sets w to the solution of A(stiff) w = right; stiff nil: nobody is. w comes as a guess.
func (s *equations) solve(stiff, right, w []float64) {
	some, all := false, true
	for i, v := range stiff {
		some = some || v > 0
		all = all && v == s.g.Fans[i].Terminals
	}
	switch {
	case s.g.order.dense:
		s.iterate(stiff, right, w, conjugateSteps)
	case !some:
		s.g.free.substitute(s.n, right, w, s.x)
	case all:
		s.g.held.substitute(s.n, right, w, s.x)
	case s.g.steps >= fewSteps && s.iterate(stiff, right, w, s.g.steps):
	default:
		s.factorise(stiff, right, w)
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
	for _, f := range g.Fans {
		product += 2 * len(f.Nodes)
	}
	return int(min(factorisation/(1.1*float64(product)), conjugateSteps))
}

// iterate reports whether conjugate gradients got there within the steps.
func (s *equations) iterate(stiff, right, w []float64, steps int) bool {
	if s.conjugate == nil {
		s.conjugate = newConjugate(s.n)
	}
	return s.conjugate.solve(s.g, stiff, right, w, steps)
}

// factorise solves by a factorisation of the feature's own.
func (s *equations) factorise(stiff, right, w []float64) {
	if s.own == nil {
		s.own, s.scratch = newFactored(s.g.order), newNumbers(len(s.x))
	}
	s.own.factorise(s.g, stiff, s.scratch)
	s.own.substitute(s.n, right, w, s.x)
}
