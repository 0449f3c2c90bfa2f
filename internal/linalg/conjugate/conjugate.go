// Package conjugate solves symmetric positive definite systems A x = b by preconditioned conjugate gradients: M. R.
// Hestenes and E. Stiefel, Methods of conjugate gradients for solving linear systems, J. Res. NBS 49 (1952); with a
// preconditioner M, G. H. Golub and C. F. Van Loan, Matrix Computations, algorithm 11.5.1.
//
// Up to Lanes systems of equal size run in step, as they share the passes over the data that a product costs. Gradients
// has the recurrence, System the vectors: those may be float64 (Vectors), or tiles of float32 that assembly works on.
//
// One iteration of conjugate gradients stands apart: the joint step of hblr, whose vectors lie with many workers. There
// each product is a step of the job, and the driver (internal/methods/hblr/plan) has the recurrence.
package conjugate

import "math/bits"

// Lanes is the greatest number of systems that run in step.
const Lanes = 16

// Line holds a number of each lane.
type Line = [Lanes]float64

// System is what the iteration asks of a matrix and of the vectors x, the residual r = b - A x, z = M^-1 r, and the
// direction p.
type System interface {
	// Multiply turns the direction, p = z + Beta p, with p = z where Steps is 0, and adds p'Ap to Curvature. It may
	// drop lanes that have ended, by Keep.
	Multiply(*Gradients)
	// Advance goes along the direction, x += Alpha p and r -= Alpha A p, and adds r'z of the new residual to Next. Alpha
	// is 0 in lanes that have ended.
	Advance(*Gradients)
}

// Gradients is the state of the iteration by lane. A caller sets Running, Size and Enough, and its System the initial
// r and z.
type Gradients struct {
	// Running has the bits of the lanes that have not ended.
	Running uint32
	// Size is r'z, the squared size of the residual in the metric M^-1.
	Size Line
	// Enough is the Size at which a lane ends.
	Enough Line
	// Steps is the number of products so far.
	Steps int
	// Beta and Alpha are the factors of Multiply and of Advance.
	Beta, Alpha Line
	// Curvature and Next are their sums.
	Curvature, Next Line
}

// Solve iterates until all lanes have ended, or for a number of steps. A lane ends where its Size is at most Enough,
// and before a direction without curvature, or with more than a float64 holds, where A is not positive definite in
// these numbers. The lanes left in Running have not ended.
func (g *Gradients) Solve(s System, steps int) {
	g.Steps, g.Beta = 0, Line{}
	for m := g.Running; m != 0; m &= m - 1 {
		if l := bits.TrailingZeros32(m); !(g.Size[l] > g.Enough[l]) {
			g.Running &^= 1 << l
		}
	}
	for g.Running != 0 && g.Steps < steps {
		g.Curvature, g.Next, g.Alpha = Line{}, Line{}, Line{}
		s.Multiply(g)
		g.Steps++
		for m := g.Running; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			if g.Curvature[l] > 0 {
				g.Alpha[l] = g.Size[l] / g.Curvature[l]
			}
			if !(g.Alpha[l] > 0) {
				g.Running &^= 1 << l
			}
		}
		if g.Running == 0 {
			return
		}
		s.Advance(g)
		g.Beta = Line{}
		for m := g.Running; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			next := g.Next[l]
			if g.Beta[l] = next / g.Size[l]; !(next > g.Enough[l]) {
				g.Beta[l] = 0
				g.Running &^= 1 << l
			}
			g.Size[l] = next
		}
	}
}

// Converged reports whether a lane's Size is at most Enough.
func (g *Gradients) Converged(lane int) bool { return g.Size[lane] <= g.Enough[lane] }

// Keep renumbers the lanes: those that are listed become 0, 1, ... and run, and the others are dropped.
func (g *Gradients) Keep(lanes []int) {
	for to, from := range lanes {
		g.Size[to], g.Enough[to], g.Beta[to] = g.Size[from], g.Enough[from], g.Beta[from]
	}
	clear(g.Beta[len(lanes):])
	g.Running = 1<<len(lanes) - 1
}

// Vectors are a system's vectors in float64, entry by entry and then lane by lane. Q is A p. It may
// be Z, and without a preconditioner Z is R.
type Vectors struct{ X, R, Z, P, Q []float64 }

// Turn sets p = z + beta p.
func (v *Vectors) Turn(g *Gradients, lanes int) {
	p := v.P
	z := v.Z[:len(p)]
	switch {
	case g.Steps == 0:
		copy(p, z)
	case lanes == 1:
		beta := g.Beta[0]
		for i, x := range z {
			p[i] = x + float64(beta*p[i])
		}
	default:
		for at := 0; at < len(p); at += lanes {
			for l, beta := range g.Beta[:lanes] {
				p[at+l] = z[at+l] + float64(beta*p[at+l])
			}
		}
	}
}

// Bend adds p'q to Curvature.
func (v *Vectors) Bend(g *Gradients, lanes int) {
	p := v.P
	q := v.Q[:len(p)]
	if lanes == 1 {
		sum := g.Curvature[0]
		for i, x := range p {
			sum += float64(x * q[i])
		}
		g.Curvature[0] = sum
		return
	}
	for at := 0; at < len(p); at += lanes {
		for l := range lanes {
			g.Curvature[l] += float64(p[at+l] * q[at+l])
		}
	}
}

// Advance adds alpha p to x and subtracts alpha q from r.
func (v *Vectors) Advance(g *Gradients, lanes int) {
	p := v.P
	q, x, r := v.Q[:len(p)], v.X[:len(p)], v.R[:len(p)]
	if lanes == 1 {
		alpha := g.Alpha[0]
		for i, d := range p {
			x[i] += float64(alpha * d)
			r[i] -= float64(alpha * q[i])
		}
		return
	}
	for at := 0; at < len(p); at += lanes {
		for l, alpha := range g.Alpha[:lanes] {
			x[at+l] += float64(alpha * p[at+l])
			r[at+l] -= float64(alpha * q[at+l])
		}
	}
}
