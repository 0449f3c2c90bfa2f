package hblr

import (
	"math"
	"slices"
)

// Gamma is E[alpha] anew, from its value alpha and the k terms of its sum: variance is the sum of
// the children's Psi_c, rest that of Psi_n + (mu_n - mu_c)^2. The paper's step (eq. 6, with the
// 1/2 that it lacks) is
//
//	(a + k/2) / (b + 1/2 (variance + rest))
//
// Psi_c is about 1/alpha where the data say little: then variance cancels k, and the step moves
// alpha by next to nothing. The same fixed point has (MacKay 1992)
//
//	(a + gamma/2) / (b + 1/2 rest),   gamma = k - alpha variance,   0 <= gamma <= k
//
// as alpha Psi_c <= 1: gamma counts the terms that the data determine.
func Gamma(a, b, k, alpha, variance, rest float64) float64 {
	return (a + max(k-float64(alpha*variance), 0)/2) / (b + rest/2)
}

// GammaEM is the paper's step: no variational bound ever falls by it.
func GammaEM(a, b, k, _, variance, rest float64) float64 {
	return (a + k/2) / (b + (variance+rest)/2)
}

const (
	slowest, quickest = 0.1, 50
	quicken           = 1.5
	farthest          = 1 // a factor of e
)

// Pace is how much of its step the logarithm of a precision makes, and that step. It grows while steps keep their
// sign and hardly shrink, as where a precision crosses from one state to another, and is halved when they turn.
func Pace(pace, step, before float64) (next, move float64) {
	switch {
	case step*before < 0:
		pace = max(pace/2, slowest)
	case math.Abs(step) > math.Abs(before)/2 && before != 0:
		pace = min(pace*quicken, quickest)
	}
	return pace, max(min(float64(pace*step), farthest), -farthest)
}

// Rule is Gamma or GammaEM.
type Rule func(a, b, k, alpha, variance, rest float64) float64

// Prior are the Gammas' priors ([TKDD] 3.4): of node n and feature i, shape Shape[n] and rate
// Weight[n] Scale[i]. With p_n the share of instances that have class n,
//
//	leaf      (1, 1/(p_n (1-p_n)) [I^-1]_ii),   I = sum_x x x'
//	internal  the sums over its children
//
// so that one scale by feature serves all nodes. M1 and M3 have one rate a node: the mean over
// the features, Weight[n] Mean.
//
// Leaves' priors from a fitted logistic regression (Fitted) have I = sum_x p(x) (1-p(x)) x x'. Then
// Weight[n] is the rate itself, the scale 1; of M2 the rates are Rate.
type Prior struct {
	Shape, Weight []float64
	Rate          []float64 // M2, fitted: of each internal node a row over the columns of a range
}

// rate is that of node n at column j of the columns that the scales are of.
func (t *Tree) rate(p Prior, n int32, scale []float64, j int) float64 {
	if p.Rate != nil {
		return p.Rate[int(t.Internal[n])*len(scale)+j]
	}
	return p.Weight[n] * scale[j]
}

// Fitted is the prior of leaves whose rates are known: of M1 and M3 rate, by node; of M2 the sums
// over each internal node's leaves, a row of columns each. Both are added up towards the root.
func (t *Tree) Fitted(p Prior, rate, rows []float64) Prior {
	columns := len(rows) / max(len(t.Nodes), 1)
	for n := len(t.Parent) - 1; n >= 0; n-- {
		up := t.Parent[n]
		if up < 0 {
			continue
		}
		if rows == nil {
			rate[up] += rate[n]
		} else if i := t.Internal[n]; i >= 0 {
			add(rows[int(t.Internal[up])*columns:][:columns], 1, rows[int(i)*columns:])
		}
	}
	return Prior{p.Shape, rate, rows}
}

// NewPrior is that of leaves which have so much of the instances' weight; each must have some,
// and not all.
func (t *Tree) NewPrior(positives []float64, total float64) Prior {
	p := Prior{Shape: make([]float64, len(t.Parent)), Weight: make([]float64, len(t.Parent))}
	for n := len(t.Parent) - 1; n >= 0; n-- {
		if t.Leaf[n] {
			share := positives[n] / total
			p.Shape[n], p.Weight[n] = 1, 1/float64(share*(1-share))
		}
		if up := t.Parent[n]; up >= 0 {
			p.Shape[up] += p.Shape[n]
			p.Weight[up] += p.Weight[n]
		}
	}
	return p
}

// Start is the prior's mean of node n's alpha, a/b, at a scale.
func (p Prior) Start(n int32, scale float64) float64 {
	return p.Shape[n] / float64(p.Weight[n]*scale)
}

// Below is what the Gamma step of M1 and M3 needs to know of each node: sums over the features.
type Below struct {
	Variance []float64 // sum_i Psi_n,i of a leaf
	Distance []float64 // ||mu_n - mu_parent||^2
}

// Update is the Gamma step of M1 and M3 for all nodes that own an alpha; d features occur and
// have a mean scale.
func (t *Tree) Update(rule Rule, v Variant, a Alpha, p Prior, b Below, d int, scale float64) Alpha {
	out, k := make(Alpha, len(a)), float64(d)
	variance := func(n int32) float64 {
		if t.Leaf[n] {
			return b.Variance[n]
		}
		return k * t.Variance(v, a, n, 0, 0)
	}
	for n := range a {
		n := int32(n)
		if !t.Owns(v, n) {
			continue
		}
		rate := p.Weight[n] * scale
		if v == M3 {
			out[n] = rule(p.Shape[n], rate, k, a[n], variance(n), variance(t.Parent[n])+b.Distance[n])
			continue
		}
		sum, rest := 0.0, 0.0
		for _, c := range t.Children[n] {
			sum += variance(c)
			rest += b.Distance[c]
		}
		terms := float64(len(t.Children[n]))
		out[n] = rule(p.Shape[n], rate, k*terms, a[n], sum, float64(terms*variance(n))+rest)
	}
	return out
}

// Settle repeats the paper's Gamma step with the means held, and of each leaf the number gamma of terms
// that the data determine: Psi_c goes by 1/A_c. The internals' variances follow from the precisions, and
// down a chain of them each precision goes by those above, so that one step a round takes hundreds of
// rounds. It is the paper's step and not Gamma, as there may be many fixed points where features are
// many: this one goes to that of the paper's updates. d/4 steps are enough, as the step's rate is 1 - gamma/d
// or so.
func (t *Tree) Settle(v Variant, a Alpha, p Prior, b Below, d int, scale float64) Alpha {
	start, at := a, Below{slices.Clone(b.Variance), b.Distance}
	for range minSteps + d/4 {
		next, change := t.Update(GammaEM, v, a, p, at, d, scale), 0.0
		for n, x := range next {
			if t.Owns(v, int32(n)) {
				change = max(change, math.Abs(x/a[n]-1))
			}
		}
		if a = next; change <= settled {
			break
		}
		for n, leaf := range t.Leaf {
			if o := t.owner(v, int32(n)); leaf && o >= 0 {
				at.Variance[n] = b.Variance[n] * (start[o] / a[o])
			}
		}
	}
	return a
}

const minSteps, settled = 100, 1e-14

// UpdateByFeature is the Gamma step of M2 at the columns of a range: scale are those of its
// columns. A feature that does not occur keeps alpha 1.
func (t *Tree) UpdateByFeature(rule Rule, a Alpha, p Prior, mu []float64, pull *Pull, scale []float64) Alpha {
	out, columns := make(Alpha, len(a)), len(scale)
	for i, n := range t.Nodes {
		terms, row := float64(len(t.Children[n])), i*columns
		for j, s := range scale {
			if s == 0 {
				out[row+j] = 1
				continue
			}
			sum, square := pull.Variance[row+j], pull.Square[row+j]
			for _, c := range t.Children[n] {
				if k := t.Internal[c]; k >= 0 {
					sum += t.Variance(M2, a, c, columns, j)
					diff := mu[row+j] - mu[int(k)*columns+j]
					square += float64(diff * diff)
				}
			}
			rest := square + float64(terms*t.Variance(M2, a, n, columns, j))
			out[row+j] = rule(p.Shape[n], t.rate(p, n, scale, j), terms, a[row+j], sum, rest)
		}
	}
	return out
}
