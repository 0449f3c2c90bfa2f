package reducer

import "math"

// equations solves the internals' system of one feature after another. It is the scratch of
// one task; stiff may differ from feature to feature.
type equations struct {
	g *Graph
	n int // nodes; the fans' means follow as unknowns n, n+1, ...

	// LDL' by position in the factor's order.
	row              []int32
	value            []float64
	diag             []float64
	used             []int64
	y, x             []float64
	pattern, flagged []int32
	plain            bool // the factor at hand is that of stiff = nil

	// conjugate gradients
	p, r, z, ap []float64
}

func newEquations(g *Graph, n int) *equations {
	s := &equations{g: g, n: n}
	all := n + len(g.Fans)
	if g.order.dense {
		s.p, s.r, s.z, s.ap = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
		return s
	}
	fill := g.order.begin[all]
	s.row, s.value = make([]int32, fill), make([]float64, fill)
	s.diag, s.used = make([]float64, all), make([]int64, all)
	s.y, s.x = make([]float64, all), make([]float64, all)
	s.pattern, s.flagged = make([]int32, all), make([]int32, all)
	return s
}

// follow is M_g, the fan's terminals that are not stiff; stiff nil: all of them.
func (s *equations) follow(stiff []float64, fan int32) float64 {
	if stiff == nil {
		return s.g.Fans[fan].Terminals
	}
	return s.g.Fans[fan].Terminals - stiff[fan]
}

// mul sets out = A w over the nodes, the fans' means eliminated.
func (s *equations) mul(stiff []float64, w, out []float64) {
	g := s.g
	for p := range out {
		out[p] = float64((g.degree[p] + g.hold(int32(p))) * w[p])
	}
	for _, e := range g.Edges {
		a, b := e[0], e[1]
		out[a] -= float64(g.Weight * w[b])
		out[b] -= float64(g.Weight * w[a])
	}
	for i := range g.Fans {
		m := s.follow(stiff, int32(i))
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

// solve sets w to the solution of A w = right.
func (s *equations) solve(stiff, right, w []float64) {
	if s.g.order.dense {
		s.conjugate(stiff, right, w)
		return
	}
	if stiff != nil || !s.plain {
		s.factorise(stiff)
		s.plain = stiff == nil
	}
	s.substitute(right, w)
}

// entries calls visit for unknown i's diagonal and its off-diagonal entries.
func (s *equations) entries(stiff []float64, i int32, visit func(j int32, v float64)) (diagonal float64) {
	g := s.g
	if int(i) >= s.n {
		fan := i - int32(s.n)
		m := s.follow(stiff, fan)
		for _, p := range g.Fans[fan].Nodes {
			visit(p, -m)
		}
		if m == 0 {
			return 1 // nobody asks for this mean
		}
		return m * g.Fans[fan].Pull
	}
	for _, q := range g.near[i] {
		visit(q, -g.Weight)
	}
	for _, fan := range g.at[i] {
		visit(int32(s.n)+fan, -s.follow(stiff, fan))
	}
	return g.degree[i] + g.hold(i)
}

// factorise computes L and D row by row, each row by a sparse triangular solve over its
// pattern in the elimination tree (Davis 2005, ldl_numeric).
func (s *equations) factorise(stiff []float64) {
	f := s.g.order
	for k := range s.flagged {
		s.flagged[k] = -1
		s.used[k] = 0
	}
	for k, i := range f.order {
		top := len(s.pattern)
		s.y[k] = 0
		s.flagged[k] = int32(k)
		d := s.entries(stiff, i, func(m int32, v float64) {
			j := f.place[m]
			if int(j) >= k {
				return
			}
			s.y[j] += v
			depth := 0
			for ; s.flagged[j] != int32(k); j = f.parent[j] {
				s.pattern[depth] = j
				depth++
				s.flagged[j] = int32(k)
			}
			for depth > 0 {
				depth--
				top--
				s.pattern[top] = s.pattern[depth]
			}
		})
		for ; top < len(s.pattern); top++ {
			j := s.pattern[top]
			yj := s.y[j]
			s.y[j] = 0
			lo := f.begin[j]
			for e := lo; e < lo+s.used[j]; e++ {
				s.y[s.row[e]] -= float64(s.value[e] * yj)
			}
			l := yj / s.diag[j]
			d -= float64(l * yj)
			s.row[lo+s.used[j]], s.value[lo+s.used[j]] = int32(k), l
			s.used[j]++
		}
		s.diag[k] = d
	}
}

// substitute solves L D L' w = right; the means' right-hand sides are zero.
func (s *equations) substitute(right, w []float64) {
	f := s.g.order
	for k, i := range f.order {
		s.x[k] = 0
		if int(i) < s.n {
			s.x[k] = right[i]
		}
	}
	for j, xj := range s.x {
		if xj = s.x[j]; xj == 0 {
			continue
		}
		for e := f.begin[j]; e < f.begin[j+1]; e++ {
			s.x[s.row[e]] -= float64(s.value[e] * xj)
		}
	}
	for j := len(s.x) - 1; j >= 0; j-- {
		sum := s.x[j] / s.diag[j]
		for e := f.begin[j]; e < f.begin[j+1]; e++ {
			sum -= float64(s.value[e] * s.x[s.row[e]])
		}
		s.x[j] = sum
	}
	for k, i := range f.order {
		if int(i) < s.n {
			w[i] = s.x[k]
		}
	}
}

// Conjugate gradients stop at this share of the right-hand side, or after as many steps.
const (
	conjugateShare = 1e-13
	conjugateSteps = 2000
)

// conjugate is the conjugate gradient method with the diagonal as preconditioner, from zero.
func (s *equations) conjugate(stiff, right, w []float64) {
	clear(w)
	copy(s.r, right)
	rz, first := s.scale(stiff), 0.0
	copy(s.p, s.z)
	for k := 0; k < conjugateSteps && rz > conjugateShare*conjugateShare*first; k++ {
		if k == 0 {
			first = rz
		}
		s.mul(stiff, s.p, s.ap)
		pap := 0.0
		for i, p := range s.p {
			pap += float64(p * s.ap[i])
		}
		if !(pap > 0) || math.IsInf(pap, 0) {
			return
		}
		step := rz / pap
		for i, p := range s.p {
			w[i] += float64(step * p)
			s.r[i] -= float64(step * s.ap[i])
		}
		next := s.scale(stiff)
		turn := next / rz
		for i, z := range s.z {
			s.p[i] = z + float64(turn*s.p[i])
		}
		rz = next
	}
}

// scale sets z = r / diagonal and returns r.z.
func (s *equations) scale(stiff []float64) (rz float64) {
	g := s.g
	for i, r := range s.r {
		d := g.degree[i] + g.hold(int32(i))
		for _, fan := range g.at[i] {
			d -= s.follow(stiff, fan) / g.Fans[fan].Pull
		}
		s.z[i] = r / d
		rz += float64(r * s.z[i])
	}
	return rz
}
