package solver

import (
	"math"

	hblr "taxon/internal/methods/hblr/solver"
)

// shift, precisions and balance draw in directions that leave the likelihood unchanged, without a
// pass over the data. Trajectories are slow in these: only the wide prior holds the chain.

// shift draws a normal number for each column of each node that has branches below. The number is
// added to the node's own coefficient (the root has none) and subtracted from the coefficients of
// its branches.
func (c *chain) shift() {
	at, columns := &c.st.Point, c.p.Columns()
	for p := -1; p < len(c.p.Parent); p++ {
		below := c.below[p+1]
		if len(below) == 0 {
			continue
		}
		for f := range columns {
			pull, precision := 0.0, 0.0
			if p >= 0 {
				precision = c.p.precision(at, p, f)
				pull = -float64(precision * at.Phi[p*columns+f])
			}
			for _, j := range below {
				a := c.p.precision(at, int(j), f)
				precision += a
				pull += float64(a * at.Phi[int(j)*columns+f])
			}
			by := pull/precision + c.r.normal()/math.Sqrt(precision)
			if p >= 0 {
				at.Phi[p*columns+f] += by
			}
			for _, j := range below {
				at.Phi[int(j)*columns+f] -= by
			}
		}
	}
}

// someFeatures is the number of features whose scales an iteration draws.
const someFeatures = 4

// scale draws u, and multiplies the coefficients phi of a group by e^u and their precision by
// e^-2u. The groups are each level, some features, and the bias. The prior of phi stays the same,
// so u has the log density likelihood(u) - e^-2u T - 2u. Where the data say little, drawing
// precisions given phi and phi given precisions hardly moves the chain, and this does. It returns
// the new log-likelihood.
func (c *chain) scale(likelihood float64, sums *Sums) float64 {
	at, p, features := &c.st.Point, c.p, c.p.Features()
	for l := range at.T {
		likelihood = c.scaled(likelihood, &at.T[l], func(j, f int) bool { return int(p.Level[j]) == l && f < features }, sums)
	}
	for range min(someFeatures, features) {
		k := c.r.IntN(features)
		likelihood = c.scaled(likelihood, &at.S[k], func(_, f int) bool { return f == k }, sums)
	}
	if p.Rows.Bias > 0 {
		likelihood = c.scaled(likelihood, &at.E, func(_, f int) bool { return f == features }, sums)
	}
	return likelihood
}

// scaled does a Metropolis step of scale for one precision and the coefficients for which of
// returns true. Its width is random, because the right one depends on the data.
func (c *chain) scaled(likelihood float64, precision *float64, of func(j, f int) bool, sums *Sums) float64 {
	u := c.r.normal() * [...]float64{0.03, 0.1, 0.3, 1}[c.r.IntN(4)]
	copy(c.last, c.st.Phi)
	up, down, columns := hblr.Exp(u), hblr.Exp(-2*u), c.p.Columns()
	for j := range c.p.Parent {
		for f := range columns {
			if of(j, f) {
				c.st.Phi[j*columns+f] *= up
			}
		}
	}
	then := c.value(c.st.Phi)
	sums.Values++
	if rise := then - likelihood + float64(*precision*(1-down)) - 2*u; hblr.Log(1-c.r.Float64()) < rise {
		*precision *= down
		return then
	}
	copy(c.st.Phi, c.last)
	return likelihood
}

// precisions draws each precision given everything else.
func (c *chain) precisions() {
	at, p, columns := &c.st.Point, c.p, c.p.Columns()
	shape, rate := ones(p.Levels), ones(p.Levels)
	for j, l := range p.Level {
		shape[l] += float64(p.Features()) / 2
		for f, s := range at.S {
			rate[l] += float64(s * at.Phi[j*columns+f] * at.Phi[j*columns+f] / 2)
		}
	}
	for l := range at.T {
		at.T[l] = c.r.gamma(shape[l], rate[l])
	}
	branches := 1 + float64(len(p.Parent))/2
	squares := ones(columns)
	for j, l := range p.Level {
		for f := range columns {
			t := 1.0
			if f < p.Features() {
				t = at.T[l]
			}
			squares[f] += float64(t * at.Phi[j*columns+f] * at.Phi[j*columns+f] / 2)
		}
	}
	for f := range at.S {
		at.S[f] = c.r.gamma(branches, squares[f])
	}
	if p.Rows.Bias > 0 {
		at.E = c.r.gamma(branches, squares[p.Features()])
	}
}

// balanceSteps is the number of Metropolis steps of balance.
const balanceSteps = 8

// balance draws u and replaces T by T e^u and S by S e^-u, whose products stay the same. The
// density is
//
//	exp(-e^u sum T - e^-u sum S + (levels - features) u)
//
// It makes balanceSteps Metropolis steps.
func (c *chain) balance() {
	at := &c.st.Point
	t, s, lean := 0.0, 0.0, float64(len(at.T)-len(at.S))
	for _, x := range at.T {
		t += x
	}
	for _, x := range at.S {
		s += x
	}
	log := func(u float64) float64 {
		e := hblr.Exp(u)
		return float64(lean*u) - float64(t*e) - s/e
	}
	u, now := 0.0, log(0)
	// The width is about the density's own, whose curvature is e^u T + e^-u S >= |lean| at the mode.
	width := 2.4 / math.Sqrt(1+math.Abs(lean))
	for range balanceSteps {
		v := u + float64(width*c.r.normal())
		if then := log(v); hblr.Log(1-c.r.Float64()) < then-now {
			u, now = v, then
		}
	}
	up := hblr.Exp(u)
	for l := range at.T {
		at.T[l] *= up
	}
	for f := range at.S {
		at.S[f] /= up
	}
}
