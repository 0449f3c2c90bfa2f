package form

import (
	"math"
	"slices"
)

// Predictive converts the score mu.x of a class with posterior N(mu, Psi), and its spread x' Psi x,
// into the score of the predictive distribution, in which w is integrated out approximately.
type Predictive func(score, spread float64) float64

// Laplace is the Predictive of models fitted by partial MAP (MacKay 1992): sigma(score / sqrt(1 +
// pi spread / 8)).
func Laplace(score, spread float64) float64 { return score / math.Sqrt(1+float64(math.Pi*spread)/8) }

// Variational is the Predictive of models fitted by variational inference ([NIPS] eq. 5, binary
// likelihood). The instance updates its class's posterior, labelled by the very probability p~ that
// results,
//
//	Psi~^-1 = Psi^-1 + 2 lambda x x',   mu~ = Psi~ (Psi^-1 mu + (p~ - 1/2) x),   xi^2 = x' Psi~ x + (mu~.x)^2
//
// with p~ = sigma(mu~.x), iterated from mu~ = mu. Only three numbers are involved, because
//
//	x' Psi~ x = s / (1 + 2 lambda s),   mu~.x = (mu.x + (p~ - 1/2) s) / (1 + 2 lambda s),   s = x' Psi x.
//
// Where the variance is large the label confirms itself, and the absolute score grows. The sign
// never changes.
func Variational(score, spread float64) float64 {
	z, rest := score, spread
	for range predictiveRounds {
		xi := math.Sqrt(rest + float64(z*z))
		tau := twoLambda(xi)
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

// predictiveRounds bounds the iteration, which converges slowly for large spreads and small scores.
const predictiveRounds = 2000

// Joint converts the scores mu_n.x of all classes, and their spreads x' Psi_n x, into the scores of
// the predictive distribution under the soft-max, in place ([NIPS] eq. 5). It iterates as
// Variational does, with Bouchard's bound,
//
//	c = p~_n - 1/2 + 2 lambda(xi_n) beta,   mu~_n.x = (mu_n.x + c s_n) / (1 + 2 lambda(xi_n) s_n)
//	xi_n^2 = x' Psi~_n x + (beta - mu~_n.x)^2,   p~ proportional to exp(mu~_n.x)
//	beta = (1/2 (|T|/2 - 1) + sum_n lambda(xi_n) mu~_n.x) / sum_n lambda(xi_n).
func Joint(score, spread []float64) {
	classes := len(score)
	if classes < 2 {
		return
	}
	mean, rest, tau := slices.Clone(score), slices.Clone(spread), make([]float64, classes)
	beta := 0.0
	for _, z := range score {
		beta += z / float64(classes)
	}
	for range predictiveRounds {
		above, below := float64(classes)/2-1, 0.0
		most := slices.Max(score)
		total := 0.0
		for n, z := range score {
			tau[n] = twoLambda(math.Sqrt(rest[n] + float64((beta-z)*(beta-z))))
			above += float64(tau[n] * z)
			below += tau[n]
			total += math.Exp(z - most)
		}
		beta = above / below
		change, size := 0.0, 0.0
		for n, z := range score {
			shrunk := 1 + float64(tau[n]*spread[n])
			rest[n] = spread[n] / shrunk
			c := math.Exp(z-most)/total - 0.5 + float64(tau[n]*beta)
			score[n] = (mean[n] + float64(c*spread[n])) / shrunk
			change, size = max(change, math.Abs(score[n]-z)), max(size, math.Abs(score[n]))
		}
		if change <= 1e-12*size {
			break
		}
	}
}

// twoLambda returns 2 lambda(xi) = tanh(xi/2) / (2 xi).
func twoLambda(xi float64) float64 {
	if xi > 1e-8 {
		return math.Tanh(xi/2) / (2 * xi)
	}
	return 0.25
}
