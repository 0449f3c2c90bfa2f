package mapper

import (
	"cmp"
	"math"
	"math/rand/v2"
	"testing"

	"taxon/internal/linalg/contribution"
	"taxon/internal/linalg/sparse"
)

// The curvature h/(1+h), h the row sums of the squared hinge's Hessian H at the rows with a dual,
// majorises the envelope's curvature I - (I+H)^-1, whatever the direction; values below zero
// count wholly.
func TestSquaredCurvatureMajorises(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for n, negative := range []bool{false, false, false, true} {
		p := generate(uint64(900+n), shape{rows: 40, cols: 12, lanes: 16})
		for _, val := range p.value {
			for j := range val {
				if val[j] = float32(math.Abs(float64(val[j]))); negative && j == 0 {
					val[j] = -val[j]
				}
			}
		}
		p.x = sparse.FromRows(p.cols, p.index, p.value)
		set := setting{loss: SquaredHinge, c: []float64{0.01, 0.3, 10, 1}[n], bias: 1, spread: float64(n % 2)}
		p.block.Weight = nil
		s, res := solved(t, p, set, Options{Epochs: 4, Curvature: true})
		for _, c := range res.Contributions {
			total := make([]float64, p.cols+1) // of all lanes
			hessians := [][][]float64{}
			for l, slot := range p.block.Slot {
				if slot == int(c.Parent) {
					h := hessian(p, s, l, duals(&res.State, len(p.index), l), set.bias)
					hessians = append(hessians, h)
					for f := range h {
						sum := 0.0
						for _, x := range h[f] {
							sum += x
						}
						total[f] += sum / (1 + sum)
					}
				}
			}
			units := make([]float64, p.cols+1)
			for k, f := range c.Feature {
				units[f] = contribution.Degree(c.Curvature[k])
				if want := total[f]; !negative && (units[f] < want-1e-6 || units[f] > want*1.126+1e-6) {
					t.Errorf("C = %g, slot %d, feature %d: curvature %g, the row sums give %g", set.c, int(c.Parent), f, units[f],
						want)
				}
			}
			for range 200 {
				z := make([]float64, p.cols+1)
				for f := range z {
					z[f] = r.NormFloat64()
				}
				bound, curve := 0.0, 0.0
				for f := range z {
					bound += units[f] * z[f] * z[f]
				}
				for _, h := range hessians {
					u := solveShifted(h, z)
					for f := range z {
						curve += z[f] * (z[f] - u[f])
					}
				}
				if curve > bound*(1+1e-6)+1e-9 {
					t.Fatalf("C = %g, slot %d: curvature %g along a direction, the bound is %g", set.c, int(c.Parent), curve, bound)
				}
			}
		}
	}
}

// hessian is 2 sum C_i x_i x_i' over the rows with a dual, bias last.
func hessian(p *problem, s *Problem, l int, a []float64, bias float32) [][]float64 {
	h := make([][]float64, p.cols+1)
	for f := range h {
		h[f] = make([]float64, p.cols+1)
	}
	positive := map[uint32]bool{}
	for _, i := range p.block.Positive[l] {
		positive[i] = true
	}
	for i := range a {
		if a[i] == 0 {
			continue
		}
		c := s.C
		if positive[uint32(i)] {
			c *= cmp.Or(s.PositiveWeight, 1)
		}
		c = s.weighted(uint32(i), c)
		x := p.dense(i, bias)
		for f := range x {
			for g := range x {
				h[f][g] += 2 * c * x[f] * x[g]
			}
		}
	}
	return h
}

// solveShifted solves (I + H) u = z by Gaussian elimination.
func solveShifted(h [][]float64, z []float64) []float64 {
	n := len(z)
	m := make([][]float64, n)
	for i := range m {
		m[i] = append(append([]float64(nil), h[i]...), z[i])
		m[i][i]++
	}
	for k := range n { // positive definite: no pivoting
		for i := k + 1; i < n; i++ {
			q := m[i][k] / m[k][k]
			for j := k; j <= n; j++ {
				m[i][j] -= q * m[k][j]
			}
		}
	}
	u := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		u[i] = m[i][n]
		for j := i + 1; j < n; j++ {
			u[i] -= m[i][j] * u[j]
		}
		u[i] /= m[i][i]
	}
	return u
}
