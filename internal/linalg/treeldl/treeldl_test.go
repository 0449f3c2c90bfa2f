package treeldl

import (
	"math"
	"math/rand/v2"
	"testing"
)

// random returns a matrix over a random tree. If definite is set, it is diagonally dominant and
// thus positive definite.
func random(r *rand.Rand, nodes int, definite bool) *Matrix {
	parent := []int32{-1}
	for n := 1; n < nodes; n++ {
		parent = append(parent, int32(r.IntN(n)))
	}
	m := NewShape(parent).New()
	for n := 1; n < nodes; n++ {
		m.Diagonal[n] += 0.5 + r.Float64()
		a := parent[n]
		for k := m.Begin[n]; k < m.Begin[n+1]; k++ {
			m.Entry[k] = r.NormFloat64()
			if definite {
				m.Diagonal[n] += math.Abs(m.Entry[k])
				m.Diagonal[a] += math.Abs(m.Entry[k])
			}
			a = parent[a]
		}
	}
	return m
}

func (m *Matrix) times(v []float64) []float64 {
	out := make([]float64, len(v))
	for n := 1; n < len(v); n++ {
		out[n] += m.Diagonal[n] * v[n]
		a := m.Parent[n]
		for _, x := range m.Entry[m.Begin[n]:m.Begin[n+1]] {
			out[n] += x * v[a]
			out[a] += x * v[n]
			a = m.Parent[a]
		}
	}
	return out
}

// TestSolve checks that the matrix times the solution is the right-hand side.
func TestSolve(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		n := 2 + r.IntN(40)
		m := random(r, n, true)
		f := m.New()
		if low := m.Factor(f, 0, 1, n); low != 0 {
			t.Fatalf("%d pivots below zero", low)
		}
		want := make([]float64, n)
		for k := 1; k < n; k++ {
			want[k] = r.NormFloat64()
		}
		v := append([]float64{}, want[1:]...)
		f.Solve(v, 1, n)
		for k, x := range m.times(append([]float64{0}, v...)) {
			if math.Abs(x-want[k]) > 1e-9 {
				t.Fatalf("row %d: %g, want %g", k, x, want[k])
			}
		}
	}
}

// TestLeast compares the smallest eigenvalue with that of Jacobi's method.
func TestLeast(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for range 40 {
		n := 2 + r.IntN(12)
		m := random(r, n, r.IntN(2) == 0)
		if got, want := m.Least(), jacobi(m, n); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d nodes: %.15g, want %.15g", n-1, got, want)
		}
	}
}

// jacobi returns the smallest eigenvalue by rotations of the dense matrix.
func jacobi(m *Matrix, n int) float64 {
	a := make([][]float64, n-1)
	for k := range a {
		unit := make([]float64, n)
		unit[k+1] = 1
		a[k] = m.times(unit)[1:]
	}
	for range 60 {
		for p := range a {
			for q := range p {
				if a[p][q] == 0 {
					continue
				}
				theta := math.Atan2(2*a[p][q], a[q][q]-a[p][p]) / 2
				c, s := math.Cos(theta), math.Sin(theta)
				for k := range a {
					a[k][p], a[k][q] = c*a[k][p]-s*a[k][q], s*a[k][p]+c*a[k][q]
				}
				for k := range a {
					a[p][k], a[q][k] = c*a[p][k]-s*a[q][k], s*a[p][k]+c*a[q][k]
				}
			}
		}
	}
	least := math.Inf(1)
	for k := range a {
		least = min(least, a[k][k])
	}
	return least
}
