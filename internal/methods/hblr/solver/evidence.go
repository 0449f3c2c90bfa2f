package solver

import "math"

// digamma returns the derivative of log Gamma at x > 0. From 12 on it is the asymptotic series, and
// below digamma(x) = digamma(x+1) - 1/x.
func digamma(x float64) float64 {
	sum := 0.0
	for ; x < 12; x++ {
		sum -= 1 / x
	}
	q := 1 / float64(x*x)
	series := 0.0
	for _, c := range []float64{-1. / 12, 691. / 32760, -1. / 132, 1. / 240, -1. / 252, 1. / 120, -1. / 12} {
		series = c + float64(q*series)
	}
	return sum + math.Log(x) - 0.5/x + float64(q*series)
}

// logMean returns E[log alpha] for a Gamma distribution with this shape and mean.
func logMean(shape, mean float64) float64 { return digamma(shape) - math.Log(shape) + math.Log(mean) }

// relative returns E[log q(alpha) - log p(alpha)], the divergence of q, a Gamma with this shape and
// mean, from the prior Gamma(a, rate b).
func relative(shape, mean, a, b float64) float64 {
	rate := shape / mean
	lq, _ := math.Lgamma(shape)
	lp, _ := math.Lgamma(a)
	return float64((shape-a)*digamma(shape)) - lq + lp + float64(a*math.Log(rate/b)) + float64(shape*(b-rate)/rate)
}

// Negative returns the precisions' part of the negative lower bound. The other parts are Penalty
// and the leaves' shares (Bounded.Negative). log 2 pi cancels between priors and entropies. Psi_p
// is the parent's variance, and E is over alpha:
//
//	sum over nodes with a parent  1/2 A_n Psi_p - 1/2 E[log A_n]
//	sum over internals            1/2 A_n Psi_n - 1/2 log Psi_n - 1/2
//	sum over alphas               E[log q(alpha) - log p(alpha)]
//
// For M2 scale has the scales of the columns of a range, each of one feature. For M1 and M3 it is
// one scale, for d features.
func (t *Tree) Negative(v Variant, a Alpha, p Prior, scale []float64, d int) (sum float64) {
	k := float64(d)
	for j, s := range scale {
		if s == 0 {
			continue
		}
		for n := range t.Parent {
			n := int32(n)
			prec := t.Precision(v, a, n, len(scale)).At(j)
			if up := t.Parent[n]; up >= 0 {
				o := t.owner(v, n)
				sum += k / 2 * (float64(prec*t.Variance(v, a, up, len(scale), j)) - logMean(t.shape(v, p, o, k), prec))
			}
			if !t.Leaf[n] {
				variance := t.Variance(v, a, n, len(scale), j)
				sum += k / 2 * (float64(prec*variance) - math.Log(variance) - 1)
			}
			if t.Owns(v, n) {
				mean := t.alpha(v, a, n, len(scale), j)
				sum += relative(t.shape(v, p, n, k), mean, p.Shape[n], t.rate(p, n, scale, j))
			}
		}
	}
	return sum
}

// shape returns the shape of the posterior of node n's alpha. An alpha of M1 or M3 belongs to k
// features.
func (t *Tree) shape(v Variant, p Prior, n int32, k float64) float64 {
	if v != M3 {
		k *= float64(len(t.Children[n]))
	}
	return p.Shape[n] + k/2
}

// alpha returns the precision that node n owns, at column j.
func (t *Tree) alpha(v Variant, a Alpha, n int32, columns, j int) float64 {
	if v == M2 {
		return a[int(t.Internal[n])*columns+j]
	}
	return a[n]
}
