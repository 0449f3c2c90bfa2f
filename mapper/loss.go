package mapper

import (
	"fmt"
	"math"
)

// Loss is the loss of an instance with margin z = y_in w.x_i. Its methods other than Bound are for
// the two hinges; the logistic loss's values and duals are logisticSolver's.
type Loss uint8

const (
	// Hinge is max(0, 1-z).
	Hinge Loss = iota
	// SquaredHinge is max(0, 1-z)^2.
	SquaredHinge
	// Logistic is log(1+exp(-z)).
	Logistic
)

// ParseLoss returns the loss with the name that options use.
func ParseLoss(name string) (Loss, error) {
	switch name {
	case "hinge":
		return Hinge, nil
	case "squared-hinge":
		return SquaredHinge, nil
	case "logistic":
		return Logistic, nil
	}
	return 0, fmt.Errorf("unknown loss %q (hinge, squared-hinge, logistic)", name)
}

// Value returns the loss at margin z.
func (l Loss) Value(z float64) float64 {
	u := 1 - z
	if u <= 0 {
		return 0
	}
	if l == SquaredHinge {
		return u * u
	}
	return u
}

// DualTerm returns the term of D(a) for a dual a. It is a for the hinge, and a - a^2/(4C) for the
// squared hinge.
func (l Loss) DualTerm(a, c float64) float64 {
	if l == SquaredHinge {
		return a - a*a/(4*c)
	}
	return a
}

// InnerGap returns an instance's share of the subproblem's duality gap, given its margin z and dual
// a: C loss(z) - a(1-z) (+ a^2/(4C)). It is not negative for any feasible a.
func (l Loss) InnerGap(z, a, c float64) float64 {
	// Unfused, because it decides when a lane ends.
	g := float64(c*l.Value(z)) - float64(a*(1-z))
	if l == SquaredHinge {
		g += a * a / (4 * c)
	}
	return g
}

// Bound returns the greatest float32 dual: C rounded down, so that no dual leaves the box [0, C]
// and D(a) stays a lower bound. The bound of the squared hinge is infinite.
func (l Loss) Bound(c float64) float32 {
	if l == SquaredHinge {
		return float32(math.Inf(1))
	}
	b := float32(c)
	if float64(b) > c {
		b = math.Nextafter32(b, 0)
	}
	return b
}

// kernelC returns C as the kernels take it. For the hinge it is Bound, so that duals stay in the
// box.
func (l Loss) kernelC(c float64) float64 {
	if l == Hinge {
		return float64(l.Bound(c))
	}
	return c
}

// relaxation divides ||x_i||^2 in the squared hinge's steps (successive over-relaxation). A step
// is (||x_i||^2 + 1/(2C)) / (||x_i||^2/relaxation + 1/(2C)) times as long as the one to the
// minimum along a dual. That is less than twice, so no step lowers D. A lane's steps do not
// depend on the C of others.
const relaxation = 1.35

// scale returns the number from which a kernel computes a step's length: 1/||x_i||^2, or with the
// squared hinge ||x_i||^2/relaxation.
func (l Loss) scale(norm float64) float32 {
	if l == SquaredHinge {
		return float32(norm / relaxation)
	}
	return 1 / float32(norm)
}

// ZeroRowDual returns the dual of an instance without any nonzero. Such an instance cannot move w,
// so its dual is at the optimum from the start, and its constant loss C counts in both P and D.
func (l Loss) ZeroRowDual(c float64) float64 {
	if l == SquaredHinge {
		return 2 * c
	}
	return c
}
