package solver

import (
	"math"
	"slices"
)

// Gamma returns the update of a precision E[alpha], whose present value is alpha, from the k terms
// of its sum. variance is the sum of the children's Psi_c, and rest the sum of
// Psi_n + (mu_n - mu_c)^2. The paper's step (eq. 6, with the 1/2 that it lacks) is
//
//	(a + k/2) / (b + 1/2 (variance + rest))
//
// Where the data say little, Psi_c is about 1/alpha. Then alpha variance is about k, and the step
// barely changes alpha. MacKay's step (1992) has the same fixed point:
//
//	(a + gamma/2) / (b + 1/2 rest),   gamma = k - alpha variance,   0 <= gamma <= k
//
// because alpha Psi_c <= 1. gamma counts the terms that the data determine.
func Gamma(a, b, k, alpha, variance, rest float64) float64 {
	return (a + max(k-float64(alpha*variance), 0)/2) / (b + rest/2)
}

// GammaEM returns the paper's step. It never lowers a variational bound.
func GammaEM(a, b, k, _, variance, rest float64) float64 {
	return (a + k/2) / (b + (variance+rest)/2)
}

const (
	// slowest and quickest bound Pace's factor. quicken is the factor by which it grows.
	slowest, quickest = 0.1, 50
	quicken           = 1.5
	// farthest is the longest step. It multiplies the precision by e.
	farthest = 1
)

// Pace returns the factor by which the step of a precision's logarithm is multiplied, and the
// product. step is the step of this round, and before the step of the previous one. The factor
// grows while steps keep their sign and hardly shrink, as when a precision has far to go. It is
// halved when the sign changes.
func Pace(pace, step, before float64) (next, move float64) {
	switch {
	case step*before < 0:
		pace = max(pace/2, slowest)
	case math.Abs(step) > math.Abs(before)/2 && before != 0:
		pace = min(pace*quicken, quickest)
	}
	return pace, max(min(float64(pace*step), farthest), -farthest)
}

const (
	// steepest and flattest bound Secant's slope.
	steepest, flattest = -8, -1
	// leastMove is the length of a move below which a residual changes by noise alone.
	leastMove = 1e-7
)

// Secant returns the slope of a residual over the last move, within bounds, and the next move: the
// residual divided by its slope. Where a precision's step overshoots, its residual falls by more
// than it moves. slope is the slope over the previous move. It is -1 at first. No step is longer
// than the residual.
func Secant(slope, residual, before, move float64) (next, step float64) {
	if math.Abs(move) > leastMove {
		slope = max(min((residual-before)/move, flattest), steepest)
	}
	return slope, -residual / slope
}

// Rule is the type of Gamma and GammaEM.
type Rule func(a, b, k, alpha, variance, rest float64) float64

// Prior holds the Gamma priors of the precisions ([TKDD] 3.4). For node n and feature i the shape is
// Shape[n] and the rate Weight[n] Scale[i]. With p_n the share of instances that have class n, they are
//
//	leaf      (1, 1/(p_n (1-p_n)) [I^-1]_ii),   I = sum_x x x'
//	internal  the sums over its children
//
// So all nodes share the scales of the features. M1 and M3 have one rate for a node, the mean over
// the features: Weight[n] Mean.
//
// With priors from fitted logistic regressions (Fitted), I = sum_x p(x) (1-p(x)) x x'. Then Weight[n]
// is the rate itself and the scale is 1. M2's rates are then in Rate.
type Prior struct {
	Shape, Weight []float64
	// Rate has, for M2 with fitted priors, a row over the columns of a range for each internal
	// node.
	Rate []float64
}

// rate returns the rate of node n at column j. scale has the scales of the columns.
func (t *Tree) rate(p Prior, n int32, scale []float64, j int) float64 {
	if p.Rate != nil {
		return p.Rate[int(t.Internal[n])*len(scale)+j]
	}
	return p.Weight[n] * scale[j]
}

// Fitted returns the prior that follows from the leaves' rates. M1 and M3 give them by node in rate.
// M2 gives, in rows, a row of columns for each internal node: the sum over its leaves. Both are added
// up towards the root.
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

// NewPrior returns the prior of a tree. positives is the weight of each leaf's instances, and total
// that of all instances. No leaf may have weight 0 or all of it.
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

// Start returns the mean a/b of the prior of node n's alpha, at a scale.
func (p Prior) Start(n int32, scale float64) float64 {
	return p.Shape[n] / float64(p.Weight[n]*scale)
}

// Below holds, for each node, the sums over the features that the Gamma step of M1 and M3 needs.
type Below struct {
	// Variance is sum_i Psi_n,i of a leaf.
	Variance []float64
	// Distance is ||mu_n - mu_parent||^2.
	Distance []float64
}

// Update does the Gamma step of M1 and M3 for all nodes that own an alpha, and returns the new
// precisions. d is the number of features that occur, and scale their mean scale.
func (t *Tree) Update(rule Rule, v Variant, a Alpha, p Prior, b Below, d int, scale float64) Alpha {
	out, k := make(Alpha, len(a)), float64(d)
	// An internal node's is computed once, because all of its children need it.
	variance := slices.Clone(b.Variance)
	for _, n := range t.Nodes {
		variance[n] = k * t.Variance(v, a, n, 0, 0)
	}
	for n := range a {
		n := int32(n)
		if !t.Owns(v, n) {
			continue
		}
		rate := p.Weight[n] * scale
		if v == M3 {
			out[n] = rule(p.Shape[n], rate, k, a[n], variance[n], variance[t.Parent[n]]+b.Distance[n])
			continue
		}
		sum, rest := 0.0, 0.0
		for _, c := range t.Children[n] {
			sum += variance[c]
			rest += b.Distance[c]
		}
		terms := float64(len(t.Children[n]))
		out[n] = rule(p.Shape[n], rate, k*terms, a[n], sum, float64(terms*variance[n])+rest)
	}
	return out
}

// Settle repeats the paper's Gamma step, with the means fixed. It also fixes, for each leaf, the number
// gamma of terms that the data determine, so that Psi_c is proportional to 1/A_c. Along a chain of
// internal nodes each precision depends on those above it. With one step a round that takes hundreds of
// rounds. Settle takes the paper's step, not Gamma: with many features there may be many fixed points,
// and the paper's step leads to that of the paper's updates. A step shrinks the distance by a factor of
// about 1 - gamma/d, so d/4 steps are enough.
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

// minSteps + d/4 bounds the steps of Settle, and settled is the relative change at which it ends.
const minSteps, settled = 100, 1e-14

// UpdateByFeature does the Gamma step of M2 at the columns of a range, and returns the new
// precisions. scale has the scales of these columns. A feature that does not occur keeps alpha 1.
func (t *Tree) UpdateByFeature(rule Rule, a Alpha, p Prior, mu []float64, contribution *Contribution,
	scale []float64) Alpha {
	out, columns := make(Alpha, len(a)), len(scale)
	for i, n := range t.Nodes {
		terms, row := float64(len(t.Children[n])), i*columns
		for j, s := range scale {
			if s == 0 {
				out[row+j] = 1
				continue
			}
			sum, square := contribution.Variance[row+j], contribution.Square[row+j]
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
