package modelform

import "math"

// Predictive makes of the score mu.x of a class, whose posterior is N(mu, Psi), and of
// x' Psi x, the score of its predictive distribution: w integrated out, approximately.
type Predictive func(score, spread float64) float64

// Laplace is that of a model by partial MAP (MacKay 1992): sigma(score / sqrt(1 + pi spread / 8)).
func Laplace(score, spread float64) float64 { return score / math.Sqrt(1+float64(math.Pi*spread)/8) }

// Variational is that of a model by variational inference ([NIPS] eq. 5, binary likelihood): the
// instance updates its class's posterior, labelled by the probability p~ that comes out,
//
//	Psi~^-1 = Psi^-1 + 2 lambda x x',   mu~ = Psi~ (Psi^-1 mu + (p~ - 1/2) x),   xi^2 = x' Psi~ x + (mu~.x)^2
//
// and p~ = sigma(mu~.x), over and over from mu~ = mu on. Only three numbers take part, as
//
//	x' Psi~ x = s / (1 + 2 lambda s),   mu~.x = (mu.x + (p~ - 1/2) s) / (1 + 2 lambda s),   s = x' Psi x.
//
// Where the spread is large the label confirms itself, and scores grow; signs never change.
func Variational(score, spread float64) float64 {
	z, rest := score, spread
	for range predictiveRounds {
		xi := math.Sqrt(rest + float64(z*z))
		tau := 0.25 // 2 lambda(xi)
		if xi > 1e-8 {
			tau = math.Tanh(xi/2) / (2 * xi)
		}
		shrunk := 1 + float64(tau*spread)
		rest = spread / shrunk
		last := z
		z = (score + float64(math.Tanh(z/2)/2*spread)) / shrunk
		if math.Abs(z-last) <= 1e-13*math.Abs(z) {
			break
		}
	}
	return z
}

// predictiveRounds bounds the iteration, which is slow where spreads are large and scores small.
const predictiveRounds = 2000
