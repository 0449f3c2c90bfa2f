package reducer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"taxon/internal/linalg/contribution"
)

// netSystem is one random update on a graph, everything dense, terminals spelt out.
type netSystem struct {
	forest      *Forest
	leafGroupOf []int       // terminal -> leaf group
	v           [][]float64 // terminal, feature: v'_n
	curvature   [][]bool
	x, prev     [][]float32
	in          []contribution.Contribution
	beta        float32
	width       int
}

func randomNet(seed uint64, anchor float64) *netSystem {
	r := rand.New(rand.NewPCG(seed, 8))
	nodes, width := 2+r.IntN(9), 5
	s := &netSystem{forest: &Forest{Graph: &Graph{Anchor: anchor, Weight: 0.5 + r.Float64()}}, beta: float32(seed%2) / 2,
		width: width}
	g := s.forest.Graph
	for p := range nodes {
		s.forest.Parent, s.forest.Set = append(s.forest.Parent, -1), append(s.forest.Set, int32(p%2))
		for q := range p {
			if r.IntN(3) == 0 {
				g.Edges = append(g.Edges, [2]int32{int32(q), int32(p)})
			}
		}
	}
	g.Linked = make([]bool, nodes)
	for range 1 + r.IntN(5) {
		group := LeafGroup{}
		for p := range nodes {
			if r.IntN(3) == 0 {
				group.Nodes = append(group.Nodes, int32(p))
			}
		}
		if len(group.Nodes) == 0 {
			continue
		}
		group.Terminals, group.Pull = float64(1+r.IntN(3)), float64(len(group.Nodes))+anchor
		for range int(group.Terminals) {
			s.leafGroupOf = append(s.leafGroupOf, len(g.LeafGroups))
		}
		g.LeafGroups = append(g.LeafGroups, group)
	}
	for _, e := range g.Edges {
		g.Linked[e[0]], g.Linked[e[1]] = true, true
	}
	for _, f := range g.LeafGroups {
		for _, p := range f.Nodes {
			g.Linked[p] = true
		}
	}
	g.Prepare(nodes, nil)
	s.x, s.prev = make([][]float32, nodes), make([][]float32, nodes)
	for p := range nodes {
		s.x[p], s.prev[p] = make([]float32, width), make([]float32, width)
		for f := range width - 1 { // nobody holds the last feature
			if g.Linked[p] && r.IntN(3) > 0 {
				s.x[p][f], s.prev[p][f] = float32(r.NormFloat64()), float32(r.NormFloat64())
			}
		}
	}
	for n, group := range s.leafGroupOf {
		s.v, s.curvature = append(s.v, make([]float64, width)), append(s.curvature, make([]bool, width))
		c := contribution.Contribution{Parent: int32(group)}
		for f := range width - 1 {
			if r.IntN(2) == 0 {
				s.v[n][f], s.curvature[n][f] = r.NormFloat64(), true
				c.Feature, c.Sum, c.Curvature = append(c.Feature, uint32(f)), append(c.Sum, s.v[n][f]), append(c.Curvature, 1)
			}
		}
		s.in = append(s.in, c)
	}
	return s
}

func (s *netSystem) run(rule Rule, certify bool) ([][]float32, Sums) {
	t := Task{Forest: s.forest, Hi: uint32(s.width), Rule: rule, Certify: certify, Beta: s.beta, Damping: 0.7}
	v, sums := t.Run(slices.Clone(s.in), overrides(s.forest, s.x, 0, s.width), overrides(s.forest, s.prev, 0, s.width))
	return expand(s.forest, v, s.width), sums
}

func (s *netSystem) y(p, f int) float64 {
	return float64(Extrapolate(s.x[p][f], s.prev[p][f], s.beta))
}

func (s *netSystem) mean(group LeafGroup, f int) float64 {
	sum := 0.0
	for _, p := range group.Nodes {
		sum += s.y(int(p), f)
	}
	return float64(MeanAt(sum, group.Pull))
}

// laplacian of internals, then terminals, with the anchor at nodes with edges, 1 elsewhere.
func (s *netSystem) laplacian() [][]float64 {
	g, n := s.forest.Graph, len(s.x)
	l := zeros(n+len(s.leafGroupOf), n+len(s.leafGroupOf))
	join := func(a, b int, w float64) {
		l[a][a], l[b][b] = l[a][a]+w, l[b][b]+w
		l[a][b], l[b][a] = l[a][b]-w, l[b][a]-w
	}
	for _, e := range g.Edges {
		join(int(e[0]), int(e[1]), g.Weight)
	}
	for t, group := range s.leafGroupOf {
		for _, p := range g.LeafGroups[group].Nodes {
			join(n+t, int(p), 1)
		}
	}
	for i := range l {
		if i < n && !g.Linked[i] {
			l[i][i] = 1
		} else {
			l[i][i] += g.Anchor
		}
	}
	return l
}

// exact is the step of a rule, one dense system over internals and the terminals that
// follow; a terminal with curvature stays at m_old + v'.
func (s *netSystem) exact(rule Rule, f int) []float64 {
	l, n := s.laplacian(), len(s.x)
	b := make([]float64, len(l))
	for t, group := range s.leafGroupOf {
		if !s.curvature[t][f] && rule == Support {
			// w_n = m_n(w) + v'_n: row t of the Laplacian with right side S' v' = 0 here.
			continue
		}
		at := s.mean(s.forest.Graph.LeafGroups[group], f) + s.v[t][f]
		for i := range l {
			if i != n+t {
				b[i] -= l[i][n+t] * at
				l[i][n+t], l[n+t][i] = 0, 0
			}
		}
		l[n+t][n+t], b[n+t] = 1, at
	}
	return eliminate(l, b)[:n]
}

// TestGraphSteps: LDL' and conjugate gradients against the dense system, and the
// certificate's sums against the definitions.
func TestGraphSteps(t *testing.T) {
	for seed := range uint64(200) {
		anchor := []float64{0.01, 0.5}[seed%2]
		s := randomNet(seed, anchor)
		for _, iterate := range []bool{false, true} {
			if iterate {
				s.forest.Graph.order.dense = true
			}
			for _, rule := range []Rule{Support, Family, Full} {
				got, sums := s.run(rule, true)
				for f := range s.width - 1 {
					for p, want := range s.exact(rule, f) {
						if math.Abs(float64(got[p][f])-want) > 1e-5*(1+math.Abs(want)) {
							t.Fatalf("seed %d, rule %d, iterate %v: x+[%d][%d] = %g, want %g", seed, rule, iterate, p, f, got[p][f], want)
						}
					}
				}
				primal, dual := s.certificate()
				if math.Abs(sums.Primal-primal) > 1e-9*(1+primal) || math.Abs(sums.Dual-dual) > 1e-9*(1-dual) {
					t.Fatalf("seed %d: primal %.12g, dual %.12g; want %.12g, %.12g", seed, sums.Primal, sums.Dual, primal, dual)
				}
			}
		}
	}
}

// certificate is the internals' share of P at y and of D: all of 1/2 v'L^-1 v but the
// terminals' own S'/2 ||v'||^2.
func (s *netSystem) certificate() (primal, dual float64) {
	g, n := s.forest.Graph, len(s.x)
	for f := range s.width {
		for _, e := range g.Edges {
			d := s.y(int(e[0]), f) - s.y(int(e[1]), f)
			primal += g.Weight * d * d / 2
		}
		for p := range n {
			if g.Linked[p] {
				primal += g.Anchor * s.y(p, f) * s.y(p, f) / 2
			}
		}
		b := make([]float64, n+len(s.leafGroupOf))
		for t, group := range s.leafGroupOf {
			b[n+t] = g.LeafGroups[group].Pull * s.v[t][f]
			dual += g.LeafGroups[group].Pull * s.v[t][f] * s.v[t][f] / 2
		}
		for i, w := range eliminate(s.laplacian(), slices.Clone(b)) {
			dual -= w * b[i] / 2
		}
	}
	return primal, dual
}

// TestSystems: a factorisation, conjugate gradients and one after the other solve the same
// system, with curvature at no terminal, at all, and at some.
func TestSystems(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 9))
		nodes, anchor := 20+r.IntN(60), []float64{0, 0.01, 0.5}[seed%3]
		g := &Graph{Weight: 1, Anchor: anchor, Linked: make([]bool, nodes)}
		for p := range nodes {
			g.Linked[p] = true
			for q := range p {
				if r.IntN(nodes) < 3 {
					g.Edges = append(g.Edges, [2]int32{int32(q), int32(p)})
				}
			}
		}
		for range 10 + r.IntN(30) {
			group := LeafGroup{Terminals: float64(1 + r.IntN(4))}
			for p := range nodes {
				if r.IntN(nodes) < 2 {
					group.Nodes = append(group.Nodes, int32(p))
				}
			}
			if group.Pull = float64(len(group.Nodes)) + anchor; len(group.Nodes) > 0 {
				g.LeafGroups = append(g.LeafGroups, group)
			}
		}
		g.Prepare(nodes, nil)
		curvature, right := make([]float64, len(g.LeafGroups)), make([]float64, nodes)
		for i := range curvature {
			switch k := r.IntN(3); {
			case seed%5 == 0 || seed%5 > 1 && k == 0:
				curvature[i] = g.LeafGroups[i].Terminals
			case seed%5 > 1 && k == 1:
				curvature[i] = g.LeafGroups[i].Terminals * float64(1+r.IntN(15)) / 15
			}
		}
		for p := range right {
			right[p] = r.NormFloat64()
		}
		ways := map[string]func(s *equations, w []float64){
			"factorisation": func(s *equations, w []float64) { s.factorise(curvature, right, w) },
			"conjugate gradients": func(s *equations, w []float64) {
				if !s.iterate(curvature, right, w, conjugateSteps) {
					t.Errorf("seed %d: conjugate gradients fail", seed)
				}
			},
			"too few steps": func(s *equations, w []float64) {
				worth := g.steps
				g.steps = fewSteps
				s.solve(curvature, right, w)
				g.steps = worth
			},
			"what is chosen": func(s *equations, w []float64) { s.solve(curvature, right, w) },
		}
		for name, solve := range ways {
			w, back := make([]float64, nodes), make([]float64, nodes)
			solve(newEquations(g, nodes), w)
			g.mul(curvature, w, back)
			size := 1.0
			for _, v := range w {
				size = max(size, math.Abs(v))
			}
			for p, v := range back {
				if math.Abs(v-right[p]) > 1e-11*size*(1+g.degree[p]) {
					t.Fatalf("seed %d, anchor %g, %s: equation %d is %g, not %g", seed, anchor, name, p, v, right[p])
				}
			}
		}
	}
}

// TestGraphMeans: rules Mean and Jacobi on whole vectors.
func TestGraphMeans(t *testing.T) {
	for seed := range uint64(100) {
		s := randomNet(seed, 0.1)
		s.beta = 0
		whole := zeros(len(s.leafGroupOf), s.width)
		s.in = nil
		for n, group := range s.leafGroupOf {
			c := contribution.Contribution{Parent: int32(group)}
			for f := range s.width {
				whole[n][f] = s.mean(s.forest.Graph.LeafGroups[group], f) + s.v[n][f]
				c.Feature, c.Sum, c.Curvature = append(c.Feature, uint32(f)), append(c.Sum, whole[n][f]), append(c.Curvature, 0)
			}
			s.in = append(s.in, c)
		}
		l, n := s.laplacian(), len(s.x)
		for _, rule := range []Rule{Mean, Jacobi} {
			got, _ := s.run(rule, false)
			for p := range n {
				for f := range s.width {
					sum := 0.0
					for q := range n {
						if q != p {
							sum -= l[p][q] * float64(s.x[q][f])
						}
					}
					for k := range s.leafGroupOf {
						sum -= l[p][n+k] * whole[k][f]
					}
					want := sum / l[p][p]
					if rule == Jacobi {
						want = float64(s.x[p][f]) + 0.7*(want-float64(s.x[p][f]))
					} else if s.forest.Set[p] != 0 {
						want = float64(s.x[p][f])
					}
					if math.Abs(float64(got[p][f])-want) > 1e-5*(1+math.Abs(want)) {
						t.Fatalf("seed %d, rule %d: node %d feature %d: %g, want %g", seed, rule, p, f, got[p][f], want)
					}
				}
			}
		}
		// What prices whole vectors must find the same v.
		task := Task{Forest: s.forest, Hi: uint32(s.width), Rule: None, Certify: true, Whole: true}
		x := overrides(s.forest, s.x, 0, s.width)
		_, sums := task.Run(slices.Clone(s.in), x, x)
		if _, dual := s.certificate(); math.Abs(sums.Dual-dual) > 1e-9*(1-dual) {
			t.Fatalf("seed %d: dual %.12g of whole vectors, want %.12g", seed, sums.Dual, dual)
		}
	}
}

// TestMinimumDegree: a path and a star fill nothing in; an order is a permutation.
func TestMinimumDegree(t *testing.T) {
	star := [][]int32{{1, 2, 3, 4}, {0}, {0}, {0}, {0}}
	f := newFactor(star, nil)
	if f.dense || f.begin[5] != 4 {
		t.Errorf("a star's factor has %d entries below the diagonal", f.begin[5])
	}
	order := slices.Sorted(slices.Values(f.order))
	if !slices.Equal(order, []int32{0, 1, 2, 3, 4}) {
		t.Errorf("order %v", f.order)
	}
}

// TestSmoothCertificate: with G apart from v, P - D is half the gradient of P at y in the
// inverse Laplacian's metric, on trees and graphs; the step takes v alone.
func TestSmoothCertificate(t *testing.T) {
	for seed := range uint64(60) {
		s := randomNet(seed, 0.2)
		parents := int32(len(s.forest.Graph.LeafGroups))
		s.checkSmooth(t, seed, parents, func(in []contribution.Contribution) Sums {
			task := Task{Forest: s.forest, Hi: uint32(s.width), Rule: Support, Certify: true, Beta: s.beta, Degrees: true,
				Smooth: true}
			_, sums := task.Run(in, overrides(s.forest, s.x, 0, s.width), overrides(s.forest, s.prev, 0, s.width))
			return sums
		})
		d := randomSystem(seed, 7, 6)
		v, sums := d.run(Support, 0, d.width, true)
		task := Task{Forest: d.forest, Hi: uint32(d.width), Rule: Support, Certify: true, Beta: d.beta, Degrees: true,
			Smooth: true}
		var in []contribution.Contribution
		for _, c := range part(d.in, 0, task.Hi) {
			g := c
			g.Parent += int32(len(d.forest.Parent))
			c.Curvature = slices.Clone(c.Curvature)
			for k := range c.Curvature {
				c.Curvature[k] = contribution.Code(float32(c.Curvature[k]))
			}
			in = append(in, c, g)
		}
		w, smooth := task.Run(in, overrides(d.forest, d.x, 0, d.width), overrides(d.forest, d.prev, 0, d.width))
		for k, x := range v.Value { // the same step but for the unit's rounding
			if math.Abs(float64(x-w.Value[k])) > 1e-5*(1+math.Abs(float64(x))) {
				t.Fatalf("seed %d: value %d is %g, not %g", seed, k, w.Value[k], x)
			}
		}
		// With duals whose loss meets its conjugate at W, D is P - 1/2 |R|^2; the plain D has U alone.
		// Both are quadratics in (y, U): P - D = 1/2 e (e d - U)^2 / e = P_edges + D_plain' - d U.
		cross := 0.0
		y := d.y()
		for f := range d.width {
			u := make([]float64, len(d.x))
			for p := len(u) - 1; p >= 0; p-- {
				u[p] += d.v[p][f]
				up := 0.0
				if q := d.forest.Parent[p]; q >= 0 {
					u[q] += u[p]
					up = float64(y[q][f])
				}
				cross += u[p] * (float64(y[p][f]) - up)
			}
		}
		if want := sums.Dual + cross; math.Abs(smooth.Dual-want) > 1e-9*(1+math.Abs(want)+smooth.Primal) {
			t.Fatalf("seed %d: dual %g, want %g", seed, smooth.Dual, want)
		}
	}
}

// checkSmooth holds P - D of a graph against the dense gradient in the inverse of the
// system that the terminals are eliminated from.
func (s *netSystem) checkSmooth(t *testing.T, seed uint64, parents int32, run func([]contribution.Contribution) Sums) {
	t.Helper()
	var in []contribution.Contribution
	for _, c := range s.in {
		g := c
		g.Parent += parents
		in = append(in, c, g)
	}
	sums := run(in)
	want := 0.0
	l, n := s.laplacian(), len(s.x)
	for f := range s.width {
		// Terminals at w = m(y) + v have a gradient of zero against G = S' v: only the internals' is left.
		w := make([]float64, len(l))
		for p := range n {
			w[p] = s.y(p, f)
		}
		for k, group := range s.leafGroupOf {
			g, sum := s.forest.Graph.LeafGroups[group], 0.0
			for _, p := range g.Nodes {
				sum += s.y(int(p), f)
			}
			w[n+k] = sum/g.Pull + s.v[k][f]
		}
		r := make([]float64, len(l))
		for i := range l {
			for j := range l {
				r[i] += l[i][j] * w[j]
			}
		}
		for k, group := range s.leafGroupOf {
			r[n+k] -= s.forest.Graph.LeafGroups[group].Pull * s.v[k][f]
		}
		for i, x := range eliminate(s.laplacian(), slices.Clone(r)) {
			want += x * r[i] / 2
		}
	}
	if got := sums.Primal - sums.Dual; math.Abs(got-want) > 1e-9*(1+sums.Primal) {
		t.Fatalf("seed %d: P - D is %g, want %g", seed, got, want)
	}
}
