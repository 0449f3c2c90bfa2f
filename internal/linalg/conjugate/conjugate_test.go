package conjugate_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"taxon/internal/linalg/conjugate"
)

// dense are systems of n equations with matrices a[lane], and the diagonal as preconditioner.
type dense struct {
	conjugate.Gradients
	conjugate.Vectors
	a [][]float64
	n int
	// kept has the lane that each present one was, once Multiply has dropped some.
	kept []int
	drop bool
}

func newDense(a, b [][]float64, share float64) *dense {
	n, lanes := len(b[0]), len(a)
	s := &dense{a: a, n: n}
	for _, v := range []*[]float64{&s.X, &s.R, &s.Z, &s.P, &s.Q} {
		*v = make([]float64, n*lanes)
	}
	for l := range lanes {
		for f := range n {
			s.R[f*lanes+l] = b[l][f]
		}
	}
	s.divide(&s.Size)
	for l := range lanes {
		s.Enough[l] = share * share * s.Size[l]
	}
	s.Running = 1<<lanes - 1
	return s
}

func (s *dense) divide(sum *conjugate.Line) {
	lanes := len(s.a)
	for i, r := range s.R {
		s.Z[i] = r / s.a[i%lanes][i/lanes*(s.n+1)]
		sum[i%lanes] += r * s.Z[i]
	}
}

func (s *dense) Multiply(g *conjugate.Gradients) {
	if s.drop && g.Running&1 == 0 && s.kept == nil { // lane 0 has ended
		lanes := len(s.a)
		for l := 1; l < lanes; l++ {
			s.kept = append(s.kept, l)
		}
		g.Keep(s.kept)
		s.a = s.a[1:]
		for _, v := range []*[]float64{&s.X, &s.R, &s.Z, &s.P, &s.Q} {
			var out []float64
			for i, x := range *v {
				if i%lanes > 0 {
					out = append(out, x)
				}
			}
			*v = out
		}
	}
	lanes := len(s.a)
	s.Turn(g, lanes)
	clear(s.Q)
	for l, a := range s.a {
		for i := range s.n {
			for j := range s.n {
				s.Q[i*lanes+l] += a[i*s.n+j] * s.P[j*lanes+l]
			}
		}
	}
	s.Bend(g, lanes)
}

func (s *dense) Advance(g *conjugate.Gradients) {
	s.Vectors.Advance(g, len(s.a))
	s.divide(&g.Next)
}

// random is a positive definite matrix B B' + d I, and a vector.
func random(r *rand.Rand, n int, d float64) (a, b []float64) {
	half := make([]float64, n*n)
	for i := range half {
		half[i] = r.NormFloat64()
	}
	a = make([]float64, n*n)
	for i := range n {
		b = append(b, r.NormFloat64())
		for j := range n {
			for k := range n {
				a[i*n+j] += half[i*n+k] * half[j*n+k]
			}
		}
		a[i*n+i] += d
	}
	return a, b
}

// TestSolve: each lane of any number has the solution, in at most n steps but for rounding, and the
// same numbers as alone.
func TestSolve(t *testing.T) {
	const n = 12
	r := rand.New(rand.NewPCG(1, 2))
	for lanes := 1; lanes <= conjugate.Lanes; lanes++ {
		var a, b [][]float64
		for l := range lanes {
			m, v := random(r, n, float64(1+l*l))
			a, b = append(a, m), append(b, v)
		}
		s := newDense(a, b, 1e-12)
		s.Solve(s, 3*n)
		if s.Running != 0 || s.Steps > 2*n {
			t.Fatalf("%d lanes: %x run after %d steps", lanes, s.Running, s.Steps)
		}
		for l := range lanes {
			one := newDense(a[l:l+1], b[l:l+1], 1e-12)
			one.Solve(one, 3*n)
			for i := range n {
				sum := -b[l][i]
				for j := range n {
					sum += a[l][i*n+j] * s.X[j*lanes+l]
				}
				if math.Abs(sum) > 1e-9 || s.X[i*lanes+l] != one.X[i] {
					t.Errorf("lane %d of %d: residual %g in row %d; %g, alone %g", l, lanes, sum, i, s.X[i*lanes+l], one.X[i])
				}
			}
			if !s.Converged(l) {
				t.Errorf("lane %d of %d has not converged", l, lanes)
			}
		}
	}
}

// TestKeep: a system that drops its ended lane has the same solutions of the others.
func TestKeep(t *testing.T) {
	const n = 10
	r := rand.New(rand.NewPCG(3, 4))
	easy, b0 := make([]float64, n*n), make([]float64, n)
	for i := range n {
		easy[i*n+i], b0[i] = float64(i+1), 1
	}
	a1, b1 := random(r, n, 0.1)
	a2, b2 := random(r, n, 1)
	a, b := [][]float64{easy, a1, a2}, [][]float64{b0, b1, b2}
	whole, narrowed := newDense(a, b, 1e-10), newDense(a, b, 1e-10)
	narrowed.drop = true
	whole.Solve(whole, 5*n)
	narrowed.Solve(narrowed, 5*n)
	if !slices.Equal(narrowed.kept, []int{1, 2}) || whole.Steps != narrowed.Steps || narrowed.Running != 0 {
		t.Fatalf("kept %v, %d and %d steps", narrowed.kept, whole.Steps, narrowed.Steps)
	}
	for i := range n {
		if whole.X[3*i+1] != narrowed.X[2*i] || whole.X[3*i+2] != narrowed.X[2*i+1] {
			t.Errorf("row %d: %v, narrowed %v", i, whole.X[3*i+1:3*i+3], narrowed.X[2*i:2*i+2])
		}
	}
}

// TestEnds: a lane with nothing to solve takes no step; one without curvature, or with more than
// float64 holds, ends without a move, and does not hold up the others; steps are bounded.
func TestEnds(t *testing.T) {
	solve := func(steps int, diagonal ...float64) *dense {
		var a, b [][]float64
		for _, d := range diagonal {
			a, b = append(a, []float64{1, 0, 0, d}), append(b, []float64{0, 1})
		}
		s := newDense(a, b, 1e-6)
		for l := range diagonal {
			s.Size[l] = 1
			s.Enough[l] = 1e-12
		}
		for i := range s.Z {
			s.Z[i] = s.R[i]
		}
		s.Solve(s, steps)
		return s
	}
	if s := solve(5, 4, -1, math.Inf(1), 0); s.Steps != 1 || s.Running != 0 || s.X[4] != 0.25 || s.X[5] != 0 ||
		s.X[7] != 0 || !s.Converged(0) || s.Converged(1) || s.Converged(2) || s.Converged(3) {
		t.Errorf("%d steps, x %v", s.Steps, s.X)
	}
	if s := solve(0, 4); s.Steps != 0 || s.Running != 1 || s.Converged(0) {
		t.Errorf("%d steps of none, running %x", s.Steps, s.Running)
	}
	s := newDense([][]float64{{1}}, [][]float64{{0}}, 1)
	if s.Solve(s, 5); s.Steps != 0 || s.Running != 0 || !s.Converged(0) {
		t.Errorf("%d steps to solve nothing", s.Steps)
	}
}
