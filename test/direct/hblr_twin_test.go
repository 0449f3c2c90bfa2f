package direct

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"taxon/internal/data/taxonomy"
	"taxon/internal/jobspec"
	"taxon/internal/model/form"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
)

// hblrTwin is hierarchical Bayesian logistic regression by partial MAP, binary likelihood, from
// the textbook: dense vectors over the features that occur, one update after the other, the
// Gamma step as it stands in the paper with the 1/2 that it lacks.
type hblrTwin struct {
	variant  string
	tree     *taxonomy.Tree
	children taxonomy.Lists
	column   []int       // feature -> column of the data, the bias last
	x        [][]float64 // rows over the features that occur
	weight   []float64   // of rows
	label    [][]float64 // node -> row -> 1 or 0
	a        []float64   // node -> shape
	b        [][]float64 // node -> feature -> rate
	mu, psi  [][]float64 // node -> feature
	// node -> feature: E[alpha] that the node owns; M1, M3: all equal
	alpha [][]float64
}

func newHBLRTwin(t *testing.T, j *jobs.Job, spec *taxonv1.JobSpec) *hblrTwin {
	t.Helper()
	tree, _, err := jobspec.Tree(spec, true)
	if err != nil {
		t.Fatal(err)
	}
	o := spec.GetOptions()
	w := &hblrTwin{variant: o.GetMethod()[len("hblr-"):], tree: tree, children: tree.Children()}
	m := j.Set.Matrix
	squares := make([]float64, m.Cols+1)
	dense := make([][]float64, m.Rows)
	for i := range dense {
		dense[i] = make([]float64, m.Cols+1)
		index, value := m.Row(i)
		for k, f := range index {
			dense[i][f] = float64(value[k])
		}
		dense[i][m.Cols] = o.GetBias()
		w.weight = append(w.weight, 1)
		if j.Set.Weight != nil {
			w.weight[i] = j.Set.Weight[i]
		}
		for f, x := range dense[i] {
			squares[f] += w.weight[i] * x * x
		}
	}
	for f, s := range squares {
		if s > 0 {
			w.column = append(w.column, f)
		}
	}
	for _, row := range dense {
		var x []float64
		for _, f := range w.column {
			x = append(x, row[f])
		}
		w.x = append(w.x, x)
	}
	w.prior(j, w.scales(squares, o.Value("prior_inverse")), o)
	return w
}

// scales are the diagonal of the inverse of sum_x x x', or of its diagonal, by feature that occurs.
func (w *hblrTwin) scales(squares []float64, inverse string) (out []float64) {
	d := len(w.column)
	for i, f := range w.column {
		if inverse != "full" {
			out = append(out, 1/squares[f])
			continue
		}
		a, unit := make([][]float64, d), make([]float64, d)
		unit[i] = 1
		for k := range a {
			a[k] = make([]float64, d)
			for r, x := range w.x {
				for c := range x {
					a[k][c] += w.weight[r] * x[k] * x[c]
				}
			}
		}
		out = append(out, solveDense(a, unit)[i])
	}
	return out
}

// prior is [TKDD] 3.4.
func (w *hblrTwin) prior(j *jobs.Job, scale []float64, o *taxonv1.Options) {
	how := o.Value("prior_scale")
	n, d := w.tree.Len(), len(w.column)
	w.label, w.a, w.b = make([][]float64, n), make([]float64, n), make([][]float64, n)
	for k := n - 1; k >= 0; k-- {
		w.b[k] = make([]float64, d)
		if w.tree.Leaf[k] {
			w.label[k] = make([]float64, len(w.x))
			share, total := 0.0, 0.0
			for _, i := range j.Set.PosRows[j.Set.PosBegin[w.tree.Label[k]]:j.Set.PosBegin[w.tree.Label[k]+1]] {
				w.label[k][i] = 1
				share += w.weight[i]
			}
			for _, s := range w.weight {
				total += s
			}
			share /= total
			w.a[k] = 1
			for i, s := range scale {
				w.b[k][i] = s / (share * (1 - share))
			}
			if o.Value("prior") == "blr" {
				w.b[k] = w.fitted(k, o.Value("prior_inverse"))
			}
			continue
		}
		for _, c := range w.children.Of(int32(k)) {
			w.a[k] += w.a[c]
			for i, b := range w.b[c] {
				w.b[k][i] += b
			}
		}
	}
	if w.variant == "m2" {
		return
	}
	for _, b := range w.b {
		mean, times := 0.0, 0.0
		for i, x := range b {
			weight := 1.0
			if how == "df" {
				weight = 0
				for r, row := range w.x {
					if row[i] != 0 {
						weight += w.weight[r]
					}
				}
			}
			mean += x * weight
			times += weight
		}
		mean /= times
		if how == "median" {
			sorted := slices.Sorted(slices.Values(b))
			mean = (sorted[(d-1)/2] + sorted[d/2]) / 2
		}
		for i := range b {
			b[i] = mean
		}
	}
}

// fitted are a leaf's rates by --x prior=blr: the scales of its instances, each weighing p (1-p) by a
// logistic regression around 0 with precisions of 1.
func (w *hblrTwin) fitted(n int, inverse string) []float64 {
	d, nodes := len(w.column), w.tree.Len()
	alone := &hblrTwin{variant: "m3", tree: w.tree, column: w.column, x: w.x, weight: w.weight, label: w.label}
	alone.mu, alone.psi, alone.alpha = make([][]float64, nodes), make([][]float64, nodes), make([][]float64, nodes)
	for k := range nodes {
		alone.mu[k], alone.psi[k], alone.alpha[k] = make([]float64, d), make([]float64, d), slices.Repeat([]float64{1}, d)
	}
	alone.leaf(n)
	seen := &hblrTwin{column: w.column, x: w.x}
	squares := make([]float64, w.column[d-1]+1)
	for r, x := range w.x {
		z := 0.0
		for i := range x {
			z += alone.mu[n][i] * x[i]
		}
		p := 1 / (1 + math.Exp(-z))
		seen.weight = append(seen.weight, w.weight[r]*p*(1-p))
		for i, f := range w.column {
			squares[f] += seen.weight[r] * x[i] * x[i]
		}
	}
	return seen.scales(squares, inverse)
}

// start is mu = 0, tau = a, ups = b; or random from a seed above 0.
func (w *hblrTwin) start(seed uint64) {
	n, d := w.tree.Len(), len(w.column)
	r := rand.New(rand.NewPCG(seed, 99))
	w.mu, w.psi, w.alpha = make([][]float64, n), make([][]float64, n), make([][]float64, n)
	for k := range n {
		w.mu[k], w.psi[k], w.alpha[k] = make([]float64, d), make([]float64, d), make([]float64, d)
		for i := range d {
			w.alpha[k][i] = w.a[k] / w.b[k][i]
			if seed > 0 {
				w.mu[k][i] = r.NormFloat64()
			}
		}
		if seed > 0 {
			lift := math.Exp(2 * r.NormFloat64())
			for i := range d {
				w.alpha[k][i] *= lift
			}
		}
	}
}

// precision is A_n.
func (w *hblrTwin) precision(n, i int) float64 {
	p := w.tree.Parent[n]
	switch {
	case p < 0:
		return 1
	case w.variant == "m3":
		return w.alpha[n][i]
	}
	return w.alpha[p][i]
}

func (w *hblrTwin) above(n, i int) float64 {
	if p := w.tree.Parent[n]; p >= 0 {
		return w.mu[p][i]
	}
	return 0
}

// leaf is [TKDD] eq. 7: Newton's method with the whole Hessian, and the diagonal Laplace variance.
func (w *hblrTwin) leaf(n int) {
	d := len(w.column)
	for range 60 {
		g, h := make([]float64, d), make([][]float64, d)
		for i := range h {
			h[i] = make([]float64, d)
			h[i][i] = w.precision(n, i)
			g[i] = -w.precision(n, i) * (w.mu[n][i] - w.above(n, i))
			w.psi[n][i] = w.precision(n, i)
		}
		for r, x := range w.x {
			z := 0.0
			for i := range x {
				z += w.mu[n][i] * x[i]
			}
			p := 1 / (1 + math.Exp(-z))
			for i := range x {
				g[i] += w.weight[r] * (w.label[n][r] - p) * x[i]
				w.psi[n][i] += w.weight[r] * p * (1 - p) * x[i] * x[i]
			}
			addOuter(h, w.weight[r]*p*(1-p), x)
		}
		for i := range w.psi[n] {
			w.psi[n][i] = 1 / w.psi[n][i]
		}
		step, size, most := solveDense(h, g), 0.0, 0.0
		for i, s := range step {
			size, most = max(size, math.Abs(s)), max(most, math.Abs(w.mu[n][i]))
		}
		if size <= 1e-13*max(most, 1e-3) {
			return
		}
		from, before := slices.Clone(w.mu[n]), w.posterior(n)
		for scale := 1.0; scale > 1e-9; scale /= 2 {
			for i, s := range step {
				w.mu[n][i] = from[i] + scale*s
			}
			if w.posterior(n) <= before*(1+1e-14) {
				break
			}
		}
	}
}

// addOuter adds c x x'. Most entries of rows are 0.
func addOuter(h [][]float64, c float64, x []float64) {
	for i, xi := range x {
		if xi == 0 {
			continue
		}
		row := h[i][:len(x)]
		for k, xk := range x {
			row[k] += c * xi * xk
		}
	}
}

// posterior is a leaf's part of the objective.
func (w *hblrTwin) posterior(n int) (sum float64) {
	for i := range w.column {
		diff := w.mu[n][i] - w.above(n, i)
		sum += w.precision(n, i) * diff * diff / 2
	}
	for r, x := range w.x {
		z := 0.0
		for i := range x {
			z += w.mu[n][i] * x[i]
		}
		sum += w.weight[r] * (math.Log1p(math.Exp(-math.Abs(z))) + max(z, 0) - w.label[n][r]*z)
	}
	return sum
}

// solveDense is Gaussian elimination with pivots; it spoils a and b.
func solveDense(a [][]float64, b []float64) []float64 {
	n := len(b)
	for k := range n {
		best := k
		for i := k; i < n; i++ {
			if math.Abs(a[i][k]) > math.Abs(a[best][k]) {
				best = i
			}
		}
		a[k], a[best], b[k], b[best] = a[best], a[k], b[best], b[k]
		for i := k + 1; i < n; i++ {
			f := a[i][k] / a[k][k]
			if f == 0 {
				continue
			}
			row := a[i][k:n]
			for c, x := range a[k][k:n] {
				row[c] -= f * x
			}
			b[i] -= f * b[k]
		}
	}
	for k := n - 1; k >= 0; k-- {
		for c := k + 1; c < n; c++ {
			b[k] -= a[k][c] * b[c]
		}
		b[k] /= a[k][k]
	}
	return b
}

// internal is eq. 5 without a likelihood.
func (w *hblrTwin) internal(n int) {
	for i := range w.column {
		prec := w.precision(n, i)
		sum := prec * w.above(n, i)
		for _, c := range w.children.Of(int32(n)) {
			a := w.precision(int(c), i)
			prec += a
			sum += a * w.mu[c][i]
		}
		w.psi[n][i], w.mu[n][i] = 1/prec, sum/prec
	}
}

// gamma is eq. 6, corrected, and its forms for M1 and M3.
func (w *hblrTwin) gamma() (change float64) {
	d := len(w.column)
	term := func(n, c, i int) float64 {
		diff := w.mu[n][i] - w.mu[c][i]
		return w.psi[n][i] + w.psi[c][i] + diff*diff
	}
	set := func(n, i int, tau, ups float64) {
		change = max(change, math.Abs(tau/ups/w.alpha[n][i]-1))
		w.alpha[n][i] = tau / ups
	}
	for n, leaf := range w.tree.Leaf {
		p := int(w.tree.Parent[n])
		switch {
		case w.variant == "m3" && p >= 0:
			sum := 0.0
			for i := range d {
				sum += term(p, n, i)
			}
			for i := range d {
				set(n, i, w.a[n]+float64(d)/2, w.b[n][i]+sum/2)
			}
		case w.variant == "m3" || leaf:
		case w.variant == "m1":
			sum, children := 0.0, w.children.Of(int32(n))
			for _, c := range children {
				for i := range d {
					sum += term(n, int(c), i)
				}
			}
			for i := range d {
				set(n, i, w.a[n]+float64(d*len(children))/2, w.b[n][i]+sum/2)
			}
		default:
			for i := range d {
				sum, children := 0.0, w.children.Of(int32(n))
				for _, c := range children {
					sum += term(n, int(c), i)
				}
				set(n, i, w.a[n]+float64(len(children))/2, w.b[n][i]+sum/2)
			}
		}
	}
	return change
}

// solve runs all updates in turn until the precisions stand still. EM's rate r makes a change
// of c a distance of c/(1-r), so it goes on to where changes are rounding.
func (w *hblrTwin) solve() (rounds int) {
	still := 0
	for rounds = 0; rounds < 100_000 && still < 20; rounds++ {
		for n, leaf := range w.tree.Leaf {
			if leaf {
				w.leaf(n)
			}
		}
		for range 20 {
			for n := w.tree.Len() - 1; n >= 0; n-- {
				if !w.tree.Leaf[n] {
					w.internal(n)
				}
			}
		}
		if w.gamma() < 2e-12 {
			still++
		} else {
			still = 0
		}
	}
	return rounds
}

// objective is the negative log posterior of the means at the precisions, without constants.
func (w *hblrTwin) objective() (sum float64) {
	for n, leaf := range w.tree.Leaf {
		if leaf {
			sum += w.posterior(n)
			continue
		}
		for i := range w.column {
			diff := w.mu[n][i] - w.above(n, i)
			sum += w.precision(n, i) * diff * diff / 2
		}
	}
	return sum
}

// compare reports where weights written differ from the twin's, relative to the largest mean,
// and each precision and variance to itself.
func (w *hblrTwin) compare(nodes *jobs.Nodes, columns int, tolerance float64) (errs []string) {
	largest := 0.0
	for _, mu := range w.mu {
		for _, x := range mu {
			largest = max(largest, math.Abs(x))
		}
	}
	for n := range w.tree.Len() {
		at := map[int]float64{}
		for k, c := range nodes.Columns[n] {
			at[int(c)] = float64(nodes.Values[n][k])
		}
		check := func(what string, i int, got, want, scale float64) {
			if !(math.Abs(got-want) <= tolerance*scale) {
				errs = append(errs, fmt.Sprintf("node %d (%s), feature %d: %s %.12g, the twin's %.12g", n, w.tree.Name[n], i, what,
					got, want))
			}
		}
		precision := func(f int) float64 {
			c := form.PrecisionColumn(columns, f)
			return at[c] + at[c+1]
		}
		owns := !w.tree.Leaf[n]
		if w.variant == "m3" {
			owns = w.tree.Parent[n] >= 0
		}
		for i, f := range w.column {
			check("mean", i, at[f], w.mu[n][i], largest)
			if w.tree.Leaf[n] {
				check("variance", i, at[form.VarianceColumn(columns, f)], w.psi[n][i], w.psi[n][i])
			}
			if owns && w.variant == "m2" {
				check("precision", i, precision(f), w.alpha[n][i], w.alpha[n][i])
			}
		}
		if owns && w.variant != "m2" {
			check("precision", 0, precision(0), w.alpha[n][0], w.alpha[n][0])
		}
	}
	return errs
}
