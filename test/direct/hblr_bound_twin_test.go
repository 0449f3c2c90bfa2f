package direct

import (
	"math"
	"slices"
)

// boundTwin is full variational inference from the textbook (methods.md, section 2), with the
// binary likelihood: one coordinate after the other, and the whole lower bound with all its
// constants.
type boundTwin struct {
	*hblrTwin
	full bool          // the leaves have full covariances
	cov  [][][]float64 // leaf -> Psi; the diagonal form has zeros elsewhere
	xi   [][]float64   // leaf -> row

	// after is called after each update. It may be nil.
	after func(update string)
}

func newBoundTwin(w *hblrTwin, full bool, seed uint64) *boundTwin {
	w.start(seed)
	b := &boundTwin{hblrTwin: w, full: full, cov: make([][][]float64, w.tree.Len()), xi: make([][]float64, w.tree.Len())}
	for n, leaf := range w.tree.Leaf {
		for i := range w.column {
			w.psi[n][i] = 0.5 + 0.1*float64(seed)
		}
		if leaf {
			b.xi[n] = make([]float64, len(w.x))
			for i := range b.xi[n] {
				b.xi[n][i] = float64(1 + seed)
			}
			b.setCovariance(n)
		}
	}
	return b
}

func lambda(xi float64) float64 {
	if xi < 1e-4 {
		return 1./8 - xi*xi/96
	}
	return (1/(1+math.Exp(-xi)) - 0.5) / (2 * xi)
}

// quadratic returns mu.x and x' Psi x of a leaf.
func (b *boundTwin) quadratic(n, row int) (u, q float64) {
	for i, x := range b.x[row] {
		if x == 0 {
			continue
		}
		u += b.mu[n][i] * x
		for k, c := range b.cov[n][i] {
			q += x * c * b.x[row][k]
		}
	}
	return u, q
}

func (b *boundTwin) notify(update string) {
	if b.after != nil {
		b.after(update)
	}
}

// setXi: xi^2 = x' Psi x + (mu.x)^2.
func (b *boundTwin) setXi(n int) {
	for row := range b.x {
		u, q := b.quadratic(n, row)
		b.xi[n][row] = math.Sqrt(q + u*u)
	}
	b.notify("xi")
}

// information is sum_x 2 lambda x x' + A.
func (b *boundTwin) information(n int) [][]float64 {
	d := len(b.column)
	h := make([][]float64, d)
	for i := range h {
		h[i] = make([]float64, d)
		h[i][i] = b.precision(n, i)
	}
	for row, x := range b.x {
		addOuter(h, 2*lambda(b.xi[n][row])*b.weight[row], x)
	}
	return h
}

// setCovariance: Psi^-1 = sum_x 2 lambda x x' + A, or its diagonal.
func (b *boundTwin) setCovariance(n int) {
	d, information := len(b.column), b.information(n)
	b.cov[n] = make([][]float64, d)
	for i := range d {
		b.cov[n][i] = make([]float64, d)
		if b.full {
			b.cov[n][i][i] = 1
			spoilt := make([][]float64, d)
			for k, row := range information {
				spoilt[k] = slices.Clone(row)
			}
			solveDense(spoilt, b.cov[n][i])
		} else {
			b.cov[n][i][i] = 1 / information[i][i]
		}
		b.psi[n][i] = b.cov[n][i][i]
	}
	b.notify("Psi of a leaf")
}

// setMean: (sum_x 2 lambda x x' + A) mu = sum_x (t - 1/2) x + A mu_parent.
func (b *boundTwin) setMean(n int) {
	d := len(b.column)
	g := make([]float64, d)
	for i := range g {
		g[i] = b.precision(n, i) * b.above(n, i)
		for row, x := range b.x {
			g[i] += b.weight[row] * (b.label[n][row] - 0.5) * x[i]
		}
	}
	b.mu[n] = solveDense(b.information(n), g)
	b.notify("mu of a leaf")
}

// round does every update once, except that it repeats those of leaves `times` times.
func (b *boundTwin) round(times int) (change float64) {
	for n, leaf := range b.tree.Leaf {
		for range times {
			if leaf {
				b.setXi(n)
				b.setCovariance(n)
				b.setMean(n)
			}
		}
	}
	for n := b.tree.Len() - 1; n >= 0; n-- {
		if !b.tree.Leaf[n] {
			b.internal(n)
			b.notify("an internal node")
		}
	}
	change = b.gamma()
	b.notify("alpha")
	return change
}

// solve iterates until changes are rounding.
func (b *boundTwin) solve() (rounds int) {
	for still := 0; rounds < 40_000 && still < 20; rounds++ {
		if still++; b.round(2) > 1e-11 {
			still = 0
		}
	}
	return rounds
}

// shape is tau of the alpha that node n owns.
func (b *boundTwin) shape(n int) float64 {
	d, children := float64(len(b.column)), float64(len(b.children.Of(int32(n))))
	switch b.variant {
	case "m1":
		return b.a[n] + d*children/2
	case "m2":
		return b.a[n] + children/2
	}
	return b.a[n] + d/2
}

// owner is the node whose alpha is the precision of n's prior; -1: it is 1.
func (b *boundTwin) owner(n int) int {
	if p := int(b.tree.Parent[n]); b.variant != "m3" || p < 0 {
		return p
	}
	return n
}

func digamma(x float64) (sum float64) {
	for ; x < 30; x++ {
		sum -= 1 / x
	}
	return sum + math.Log(x) - 1/(2*x) - 1/(12*x*x) + 1/(120*math.Pow(x, 4)) - 1/(252*math.Pow(x, 6))
}

func lgamma(x float64) float64 {
	y, _ := math.Lgamma(x)
	return y
}

// bound is E[log p(labels, w, alpha)] - E[log q], with Jaakkola and Jordan's bound of the labels.
func (b *boundTwin) bound() (sum float64) {
	log2pi := math.Log(2 * math.Pi)
	for n, leaf := range b.tree.Leaf {
		for row := 0; leaf && row < len(b.x); row++ {
			u, q := b.quadratic(n, row)
			xi := b.xi[n][row]
			sum += b.weight[row] * (-math.Log1p(math.Exp(-xi)) + (b.label[n][row]-0.5)*u - xi/2 - lambda(xi)*(q+u*u-xi*xi))
		}
		owner, parent := b.owner(n), int(b.tree.Parent[n])
		for i := range b.column {
			logA, spread := 0.0, b.psi[n][i]
			if owner >= 0 {
				logA = digamma(b.shape(owner)) - math.Log(b.shape(owner)/b.alpha[owner][i])
			}
			if parent >= 0 {
				spread += b.psi[parent][i]
			}
			diff := b.mu[n][i] - b.above(n, i)
			sum += (logA - log2pi - b.precision(n, i)*(spread+diff*diff)) / 2 // E[log p(w)]
			sum += (1 + log2pi) / 2                                           // and of the entropy:
			if !leaf || !b.full {
				sum += math.Log(b.psi[n][i]) / 2
			}
		}
		if leaf && b.full {
			sum += logDeterminant(b.cov[n]) / 2
		}
		alphas := len(b.column)
		if b.variant != "m2" {
			alphas = 1
		}
		owns := !leaf
		if b.variant == "m3" {
			owns = parent >= 0
		}
		for i := 0; owns && i < alphas; i++ {
			tau, rate := b.shape(n), b.b[n][i]
			ups := tau / b.alpha[n][i]
			logMean := digamma(tau) - math.Log(ups)
			sum += b.a[n]*math.Log(rate) - lgamma(b.a[n]) + (b.a[n]-1)*logMean - rate*b.alpha[n][i]
			sum += tau - math.Log(ups) + lgamma(tau) + (1-tau)*digamma(tau)
		}
	}
	return sum
}

// logDeterminant is that of a symmetric positive matrix, by Cholesky's factor.
func logDeterminant(a [][]float64) (sum float64) {
	l := make([][]float64, len(a))
	for i := range a {
		l[i] = make([]float64, len(a))
		for k := range i + 1 {
			x := a[i][k]
			for c := range k {
				x -= l[i][c] * l[k][c]
			}
			if l[i][k] = x / math.Max(l[k][k], 1e-300); i == k {
				l[i][i] = math.Sqrt(x)
				sum += 2 * math.Log(l[i][i])
			}
		}
	}
	return sum
}
