package form

import (
	"math"
	"testing"
)

// TestPredictive: the variational form is the fixed point of the paper's vector equations, here
// with a posterior over three features and whole matrices; the sign is the score's, and without
// spread both are the score.
func TestPredictive(t *testing.T) {
	psi := [3]float64{0.3, 2, 0.05}
	for _, mu := range [][3]float64{{1, -0.4, 2}, {-0.2, 0.1, 0}, {0, 0, 0}, {6, 3, -1}} {
		x := [3]float64{0.7, -1.2, 3}
		u, s := 0.0, 0.0
		for i := range x {
			u += mu[i] * x[i]
			s += x[i] * x[i] * psi[i]
		}
		z := u
		rest := s
		for range 5000 {
			xi := math.Sqrt(rest + z*z)
			lambda := (1/(1+math.Exp(-xi)) - 0.5) / (2 * xi)
			p := 1 / (1 + math.Exp(-z))
			// Gauss-Jordan of [Psi^-1 + 2 lambda x x' | Psi^-1 mu + (p - 1/2) x, x].
			var a [3][5]float64
			for i := range 3 {
				for k := range 3 {
					a[i][k] = 2 * lambda * x[i] * x[k]
				}
				a[i][i] += 1 / psi[i]
				a[i][3], a[i][4] = mu[i]/psi[i]+(p-0.5)*x[i], x[i]
			}
			for k := range 3 {
				for i := range 3 {
					if by := a[i][k] / a[k][k]; i != k {
						for c := range 5 {
							a[i][c] -= by * a[k][c]
						}
					}
				}
			}
			z, rest = 0, 0
			for i := range 3 {
				z += x[i] * a[i][3] / a[i][i]
				rest += x[i] * a[i][4] / a[i][i]
			}
		}
		if got := Variational(u, s); math.Abs(got-z) > 1e-9*math.Max(1, math.Abs(z)) || got*u < 0 {
			t.Errorf("mean %v: %.12g, the equations give %.12g", mu, got, z)
		}
		if got, want := Laplace(u, s), u/math.Sqrt(1+math.Pi*s/8); math.Abs(got-want) > 1e-15 {
			t.Errorf("%g, want %g", got, want)
		}
	}
	if Variational(1.7, 0) != 1.7 || Laplace(1.7, 0) != 1.7 || Variational(0, 1e9) != 0 {
		t.Error("without spread the score stays, and a score of 0 too")
	}
}

// TestJoint: the soft-max's predictive distribution is the fixed point of [NIPS] eq. 5, here with
// whole posteriors of four classes over three features.
func TestJoint(t *testing.T) {
	x := [3]float64{0.7, -1.2, 3}
	mu := [4][3]float64{{1, -0.4, 2}, {-0.2, 0.1, 0}, {0, 0, 0}, {1, 3, -1}}
	psi := [4][3]float64{{0.3, 2, 0.05}, {1, 1, 1}, {0.01, 0.5, 0.2}, {0.4, 0.1, 0.3}}
	var score, spread, z, rest [4]float64
	beta := 0.0
	for n := range mu {
		for i, v := range x {
			score[n] += mu[n][i] * v
			spread[n] += psi[n][i] * v * v
		}
		beta += score[n] / 4
	}
	z, rest = score, spread
	for range 5000 {
		var lambda [4]float64
		above, below, total := (4./2-1)/2, 0.0, 0.0
		for n := range z {
			xi := math.Sqrt(rest[n] + (beta-z[n])*(beta-z[n]))
			lambda[n] = (1/(1+math.Exp(-xi)) - 0.5) / (2 * xi)
			above += lambda[n] * z[n]
			below += lambda[n]
			total += math.Exp(z[n])
		}
		beta = above / below
		p := [4]float64{}
		for n := range z {
			p[n] = math.Exp(z[n]) / total
		}
		for n := range z {
			// Gauss-Jordan of [Psi^-1 + 2 lambda x x' | Psi^-1 mu + (p - 1/2 + 2 lambda beta) x, x].
			var a [3][5]float64
			for i := range 3 {
				for k := range 3 {
					a[i][k] = 2 * lambda[n] * x[i] * x[k]
				}
				a[i][i] += 1 / psi[n][i]
				a[i][3], a[i][4] = mu[n][i]/psi[n][i]+(p[n]-0.5+2*lambda[n]*beta)*x[i], x[i]
			}
			for k := range 3 {
				for i := range 3 {
					if by := a[i][k] / a[k][k]; i != k {
						for c := range 5 {
							a[i][c] -= by * a[k][c]
						}
					}
				}
			}
			z[n], rest[n] = 0, 0
			for i := range 3 {
				z[n] += x[i] * a[i][3] / a[i][i]
				rest[n] += x[i] * a[i][4] / a[i][i]
			}
		}
	}
	got := score
	Joint(got[:], spread[:])
	for n := range got {
		if math.Abs(got[n]-z[n]) > 1e-9 {
			t.Errorf("class %d: %.12g, the equations give %.12g", n, got[n], z[n])
		}
	}
	same := score
	Joint(same[:], make([]float64, 4))
	if same != score {
		t.Errorf("without spread %v becomes %v", score, same)
	}
}
