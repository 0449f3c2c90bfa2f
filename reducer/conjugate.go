package reducer

import "math"

// conjugate is the scratch of the conjugate gradient method.
type conjugate struct {
	p, r, z, ap []float64
	inverse     []float64 // of the diagonal
}

func newConjugate(n int) *conjugate {
	c := &conjugate{}
	for _, v := range []*[]float64{&c.p, &c.r, &c.z, &c.ap, &c.inverse} {
		*v = make([]float64, n)
	}
	return c
}

// Conjugate gradients stop at this share of the right-hand side in the preconditioner's
// norm, or after as many steps.
const (
	conjugateShare = 1e-13
	conjugateSteps = 2000
)

// solve sets w to the solution of A(curvature) w = right, from what w is, the diagonal as
// preconditioner; not ok when the steps did not do.
func (s *conjugate) solve(g *Graph, curvature, right, w []float64, steps int) (ok bool) {
	s.prepare(g, curvature)
	copy(s.r, right)
	least := conjugateShare * conjugateShare * s.scale()
	g.mul(curvature, w, s.ap)
	for i, v := range s.ap {
		s.r[i] -= v
	}
	rz := s.scale()
	copy(s.p, s.z)
	for ; rz > least; steps-- {
		if steps == 0 {
			return false
		}
		g.mul(curvature, s.p, s.ap)
		pap := 0.0
		for i, p := range s.p {
			pap += float64(p * s.ap[i])
		}
		if !(pap > 0) || math.IsInf(pap, 0) {
			return false
		}
		step := rz / pap
		for i, p := range s.p {
			w[i] += float64(step * p)
			s.r[i] -= float64(step * s.ap[i])
		}
		next := s.scale()
		turn := next / rz
		for i, z := range s.z {
			s.p[i] = z + float64(turn*s.p[i])
		}
		rz = next
	}
	return true
}

// prepare inverts the diagonal.
func (s *conjugate) prepare(g *Graph, curvature []float64) {
	for i := range s.inverse {
		d := g.degree[i] + g.diagonalShift(int32(i))
		for _, group := range g.at[i] {
			d -= g.follow(curvature, group) / g.LeafGroups[group].Pull
		}
		s.inverse[i] = 1 / d
	}
}

// scale sets z = r / diagonal and returns r.z.
func (s *conjugate) scale() (rz float64) {
	for i, r := range s.r {
		s.z[i] = r * s.inverse[i]
		rz += float64(r * s.z[i])
	}
	return rz
}
