package direct

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/dear"
	"taxon/test/jobs"
)

// softmax sets the option for the soft-max likelihood.
func softmax(o *taxonv1.Options) { o.Set("likelihood", "softmax") }

// softmaxMAPTwin is hblrTwin with the soft-max likelihood: it computes the leaves' joint maximum by
// Newton's method on all of them at once, with the full Hessian.
type softmaxMAPTwin struct{ *hblrTwin }

// leaves returns the leaves of the tree in its order.
func (w *hblrTwin) leaves() (out []int) {
	for n, leaf := range w.tree.Leaf {
		if leaf {
			out = append(out, n)
		}
	}
	return out
}

// probabilities returns p_n(x), and the logarithm of the normaliser.
func (w softmaxMAPTwin) probabilities(row int) (p []float64, norm float64) {
	leaves := w.leaves()
	most := math.Inf(-1)
	for _, n := range leaves {
		z := 0.0
		for i, x := range w.x[row] {
			z += w.mu[n][i] * x
		}
		p, most = append(p, z), max(most, z)
	}
	for _, z := range p {
		norm += math.Exp(z - most)
	}
	norm = most + math.Log(norm)
	for k := range p {
		p[k] = math.Exp(p[k] - norm)
	}
	return p, norm
}

// joint returns the negative log posterior of the leaves, given the precisions.
func (w softmaxMAPTwin) joint() (sum float64) {
	leaves := w.leaves()
	for _, n := range leaves {
		for i := range w.column {
			diff := w.mu[n][i] - w.above(n, i)
			sum += w.precision(n, i) * diff * diff / 2
		}
	}
	for row := range w.x {
		_, norm := w.probabilities(row)
		for _, n := range leaves {
			z := 0.0
			for i, x := range w.x[row] {
				z += w.mu[n][i] * x
			}
			sum += w.weight[row] * w.label[n][row] * (norm - z)
		}
	}
	return sum
}

// priors adds the terms of the priors around the parents to the system of all means, node after
// node.
func (w *hblrTwin) priors(h [][]float64, g []float64) {
	d := len(w.column)
	for n, p := range w.tree.Parent {
		for i := range d {
			a, at := w.precision(n, i), n*d+i
			h[at][at] += a
			g[at] -= a * (w.mu[n][i] - w.above(n, i))
			if up := int(p)*d + i; p >= 0 {
				h[up][up] += a
				h[at][up] -= a
				h[up][at] -= a
				g[up] += a * (w.mu[n][i] - w.above(n, i))
			}
		}
	}
}

// solveMeans solves [TKDD] eq. 7 of the soft-max for the leaves and eq. 5 for the others, all at
// once, by Newton's method with the full Hessian. It also sets the variances.
func (w softmaxMAPTwin) solveMeans() {
	leaves, d := w.leaves(), len(w.column)
	size := len(w.mu) * d
	for range 100 {
		g, h := make([]float64, size), make([][]float64, size)
		for at := range h {
			h[at] = make([]float64, size)
		}
		w.priors(h, g)
		for _, n := range leaves {
			for i := range d {
				w.psi[n][i] = w.precision(n, i)
			}
		}
		for row, x := range w.x {
			p, _ := w.probabilities(row)
			for k, n := range leaves {
				for i, xi := range x {
					if xi == 0 {
						continue
					}
					g[n*d+i] += w.weight[row] * (w.label[n][row] - p[k]) * xi
					w.psi[n][i] += w.weight[row] * p[k] * (1 - p[k]) * xi * xi
					for l, m := range leaves {
						c := -p[k] * p[l]
						if k == l {
							c += p[k]
						}
						to, c := h[n*d+i][m*d:(m+1)*d], w.weight[row]*c*xi
						for f, xf := range x {
							to[f] += c * xf
						}
					}
				}
			}
		}
		for _, n := range leaves {
			for i := range d {
				w.psi[n][i] = 1 / w.psi[n][i]
			}
		}
		step, largest, most := solveDense(h, g), 0.0, 0.0
		for at, s := range step {
			largest, most = max(largest, math.Abs(s)), max(most, math.Abs(w.mu[at/d][at%d]))
		}
		if largest <= 1e-13*max(most, 1e-3) {
			break
		}
		before, from := w.objective(), make([][]float64, len(w.mu))
		for n := range w.mu {
			from[n] = slices.Clone(w.mu[n])
		}
		for scale := 1.0; scale > 1e-9; scale /= 2 {
			for at, s := range step {
				w.mu[at/d][at%d] = from[at/d][at%d] + scale*s
			}
			if w.objective() <= before*(1+1e-14) {
				break
			}
		}
	}
	for n, leaf := range w.tree.Leaf {
		if !leaf { // the mean is in its place
			w.internal(n)
		}
	}
}

// solve iterates until changes are rounding.
func (w softmaxMAPTwin) solve() (rounds int) {
	for still := 0; rounds < 100_000 && still < 20; rounds++ {
		w.solveMeans()
		if still++; w.gamma() > 2e-12 {
			still = 0
		}
	}
	return rounds
}

func (w softmaxMAPTwin) objective() float64 {
	sum := w.joint()
	for n, leaf := range w.tree.Leaf {
		for i := range w.column {
			if diff := w.mu[n][i] - w.above(n, i); !leaf {
				sum += w.precision(n, i) * diff * diff / 2
			}
		}
	}
	return sum
}

// softmaxJob returns case n with one label per row.
func softmaxJob(n int) (*jobs.Job, func(*taxonv1.Options)) {
	c := awkward[n]
	j := jobs.Awkward(uint64(n), c.rows, 6).FirstLabels()
	if n%3 == 1 {
		for i := range j.Set.Matrix.Rows {
			j.Set.Weight = append(j.Set.Weight, 0.5+float64(i%4))
		}
	}
	if j.Structure = nil; c.edges != nil {
		j.Structure = edges(c.edges...)
	}
	return j, func(o *taxonv1.Options) {
		if c.change != nil {
			c.change(o)
		}
		softmax(o)
		o.Set("bias", min(methodtest.Number(o, "bias"), 3)) // with larger ones the twin takes hours
	}
}

var variants = []string{"hblr-m1", "hblr-m2", "hblr-m3"}

// variantsOf returns the variants that are tried for case n: one, in turns, or with
// TAXON_TEST_EXACT=full all.
func variantsOf(n int) []string {
	if allCases() {
		return variants
	}
	return variants[n%3 : n%3+1]
}

func allCases() bool { return os.Getenv("TAXON_TEST_EXACT") == "full" }

// TestHBLRSoftmax compares the fixed point with the twin's, which starts elsewhere each time, to
// 1e-6. The leaves are at their joint maximum there.
func TestHBLRSoftmax(t *testing.T) {
	for n, c := range awkward {
		if strings.Contains(c.name, "parity") || testing.Short() && n > 2 {
			continue
		}
		for _, m := range variantsOf(n) {
			t.Run(m+" "+c.name, func(t *testing.T) {
				t.Parallel()
				j, change := softmaxJob(n)
				spec := j.Spec(hblrOptions(m, change))
				_, st, nodes := trained(t, j, spec, 2)
				twin := softmaxMAPTwin{newHBLRTwin(t, j, spec)}
				twin.start(uint64(n % 4))
				rounds := twin.solve()
				columns := j.Set.Matrix.Cols
				if methodtest.Number(spec.GetOptions(), "bias") > 0 {
					columns++
				}
				for k, err := range twin.compare(nodes, columns, 1e-6) {
					if k < 3 {
						t.Error(err)
					}
				}
				if got, want := st.GetCertificate().GetObjective(), twin.objective(); math.Abs(got-want) > 1e-8*want {
					t.Errorf("objective %.12g, the twin's %.12g", got, want)
				}
				if st.GetStoppedBy() != "stationary" {
					t.Errorf("stopped by %s, %s", st.GetStoppedBy(), st.GetReport())
				}
				t.Logf("%d sweeps, the twin's %d; %s", st.GetSweep(), rounds, st.GetReport())
			})
		}
	}
}

// TestHBLRSoftmaxLengths checks that instances thirty and a thousand times as long as others need
// no more sweeps, and that the fixed point is the twin's.
func TestHBLRSoftmaxLengths(t *testing.T) {
	for _, factor := range dear.Some([]float32{1000, 30}, 1) {
		for _, m := range []string{"hblr-m1", "hblr-m3"} {
			j, change := softmaxJob(0)
			for _, shard := range j.Set.Matrix.Shards {
				for row := 0; row+1 < len(shard.Begin); row += 5 {
					for k := shard.Begin[row]; k < shard.Begin[row+1]; k++ {
						shard.Value[k] *= factor
					}
				}
			}
			spec := j.Spec(hblrOptions(m, func(o *taxonv1.Options) {
				change(o)
				o.Set("tolerance", "1e-7")
			}))
			_, st, nodes := trained(t, j, spec, 2)
			if st.GetStoppedBy() != "stationary" || st.GetSweep() > 40 {
				t.Errorf("%s, %g times: stopped by %s after sweep %d", m, factor, st.GetStoppedBy(), st.GetSweep())
			}
			twin := softmaxMAPTwin{newHBLRTwin(t, j, spec)}
			twin.start(0)
			twin.solve()
			for k, err := range twin.compare(nodes, j.Set.Matrix.Cols+1, 1e-5) {
				if k < 3 {
					t.Errorf("%s, %g times: %v", m, factor, err)
				}
			}
		}
	}
}

// softmaxBoundTwin is boundTwin with Bouchard's bound.
type softmaxBoundTwin struct {
	*boundTwin
	beta []float64 // beta of each row
}

// setXi: xi^2 = x' Psi x + (beta - mu.x)^2.
func (b *softmaxBoundTwin) setXi(n int) {
	for row := range b.x {
		u, q := b.quadratic(n, row)
		b.xi[n][row] = math.Sqrt(q + (b.beta[row]-u)*(b.beta[row]-u))
	}
	b.notify("xi")
}

// setMean: (sum_x 2 lambda x x' + A) mu = sum_x (t - 1/2 + 2 lambda beta) x + A mu_parent.
func (b *softmaxBoundTwin) setMean(n int) {
	g := make([]float64, len(b.column))
	for i := range g {
		g[i] = b.precision(n, i) * b.above(n, i)
		for row, x := range b.x {
			g[i] += b.weight[row] * (b.label[n][row] - 0.5 + 2*lambda(b.xi[n][row])*b.beta[row]) * x[i]
		}
	}
	b.mu[n] = solveDense(b.information(n), g)
	b.notify("mu of a leaf")
}

// setBeta: beta = (1/2 (|T|/2 - 1) + sum_n lambda mu_n.x) / sum_n lambda.
func (b *softmaxBoundTwin) setBeta() {
	leaves := b.leaves()
	for row := range b.x {
		above, below := (float64(len(leaves))/2-1)/2, 0.0
		for _, n := range leaves {
			u, _ := b.quadratic(n, row)
			above += lambda(b.xi[n][row]) * u
			below += lambda(b.xi[n][row])
		}
		b.beta[row] = above / below
	}
	b.notify("beta")
}

func (b *softmaxBoundTwin) round(times int) float64 {
	for range times {
		for _, n := range b.leaves() {
			b.setXi(n)
			b.setCovariance(n)
			b.setMean(n)
		}
		for range 3 {
			b.setBeta()
			for _, n := range b.leaves() {
				b.setXi(n)
			}
		}
	}
	for n := b.tree.Len() - 1; n >= 0; n-- {
		if !b.tree.Leaf[n] {
			b.internal(n)
			b.notify("an internal node")
		}
	}
	defer b.notify("alpha")
	return b.gamma()
}

// setMeans sets the means of all nodes and beta to the optimum at the current xi, all at once: the
// bound is quadratic in them.
func (b *softmaxBoundTwin) setMeans() {
	d, nodes := len(b.column), len(b.mu)
	size := nodes*d + len(b.x)
	for n := range b.mu {
		clear(b.mu[n])
	}
	g, h := make([]float64, size), make([][]float64, size)
	for at := range h {
		h[at] = make([]float64, size)
	}
	b.priors(h, g)
	leaves := b.leaves()
	for row, x := range b.x {
		at, s := nodes*d+row, b.weight[row]
		g[at] = s * (float64(len(leaves))/2 - 1)
		for _, n := range leaves {
			c := 2 * s * lambda(b.xi[n][row])
			h[at][at] += c
			for i, xi := range x {
				g[n*d+i] += s * (b.label[n][row] - 0.5) * xi
				h[at][n*d+i] -= c * xi
				h[n*d+i][at] -= c * xi
				for k, xk := range x {
					h[n*d+i][n*d+k] += c * xi * xk
				}
			}
		}
	}
	best := solveDense(h, g)
	for n := range b.mu {
		copy(b.mu[n], best[n*d:])
	}
	copy(b.beta, best[nodes*d:])
	b.notify("all means and beta")
}

func (b *softmaxBoundTwin) solve() (rounds int) {
	for still := 0; rounds < 40_000 && still < 20; rounds++ {
		for range 3 {
			for _, n := range b.leaves() {
				b.setXi(n)
				b.setCovariance(n)
			}
			b.setMeans()
		}
		for n, leaf := range b.tree.Leaf {
			if !leaf {
				b.internal(n)
			}
		}
		if still++; b.gamma() > 1e-11 {
			still = 0
		}
	}
	return rounds
}

// bound is boundTwin's, with another term for the labels.
func (b *softmaxBoundTwin) bound() float64 {
	sum, leaves := b.boundTwin.bound(), b.leaves()
	for row := range b.x {
		bouchard := b.beta[row]
		for _, n := range leaves {
			u, q := b.quadratic(n, row)
			xi, f := b.xi[n][row], u-b.beta[row]
			sum -= b.weight[row] * (-math.Log1p(math.Exp(-xi)) + (b.label[n][row]-0.5)*u - xi/2 - lambda(xi)*(q+u*u-xi*xi))
			sum += b.weight[row] * b.label[n][row] * u
			bouchard += (f-xi)/2 + lambda(xi)*(q+f*f-xi*xi) + math.Log1p(math.Exp(xi))
		}
		sum -= b.weight[row] * bouchard
	}
	return sum
}

func newSoftmaxBoundTwin(t *testing.T, j *jobs.Job, spec *taxonv1.JobSpec, full bool, seed uint64) *softmaxBoundTwin {
	b := &softmaxBoundTwin{newBoundTwin(newHBLRTwin(t, j, spec), full, seed), make([]float64, j.Set.Matrix.Rows)}
	b.round(1)
	return b
}

// TestHBLRSoftmaxBound compares the variational fixed point with the twin's, to 1e-6. The bound
// must be complete, and must not decrease in any sweep.
func TestHBLRSoftmaxBound(t *testing.T) {
	for n, c := range awkward {
		if strings.Contains(c.name, "parity") || testing.Short() && n > 2 {
			continue
		}
		if !allCases() && n%3 > 0 {
			continue
		}
		for m, method := range variantsOf(n / 3) {
			covariance := []string{"diagonal", "full"}[(n+m)%2]
			t.Run(method+" "+covariance+" "+c.name, func(t *testing.T) {
				t.Parallel()
				j, change := softmaxJob(n)
				spec := j.Spec(bounded(method, covariance, change))
				_, st, nodes := trained(t, j, spec, 2)
				twin := newSoftmaxBoundTwin(t, j, spec, covariance == "full", uint64(n+m)%4)
				rounds := twin.solve()
				columns := j.Set.Matrix.Cols
				if methodtest.Number(spec.GetOptions(), "bias") > 0 {
					columns++
				}
				for k, err := range twin.compare(nodes, columns, 1e-6) {
					if k < 3 {
						t.Error(err)
					}
				}
				var report map[string]any
				if err := json.Unmarshal(st.GetReport(), &report); err != nil {
					t.Fatal(err)
				}
				if got, want := report["bound"].(float64), twin.bound(); math.Abs(got-want) > 1e-8*math.Abs(want) {
					t.Errorf("bound %.12g, the twin's %.12g", got, want)
				}
				if st.GetStoppedBy() != "stationary" {
					t.Errorf("stopped by %s, %s", st.GetStoppedBy(), st.GetReport())
				}
				rising(t, st)
				t.Logf("%d sweeps, the twin's %d; %s", st.GetSweep(), rounds, st.GetReport())
			})
		}
	}
}

// TestSoftmaxBoundTwin checks that no single update of any form lowers the twin's bound.
func TestSoftmaxBoundTwin(t *testing.T) {
	for n := range 3 {
		for m, method := range []string{"hblr-m1", "hblr-m2", "hblr-m3"} {
			for _, full := range []bool{false, true} {
				j, change := softmaxJob(n)
				twin := newSoftmaxBoundTwin(t, j, j.Spec(bounded(method, "diagonal", change)), full, uint64(n+m)%4)
				last, updates := twin.bound(), 0
				twin.after = func(update string) {
					now := twin.bound()
					if updates++; now < last-1e-12*math.Abs(last) {
						t.Errorf("%s %d, full: %t: by %s the bound falls from %.15g to %.15g", method, n, full, update, last, now)
					}
					last = now
				}
				for range 6 {
					twin.round(1)
				}
				if updates < 100 {
					t.Errorf("%d updates were looked at", updates)
				}
			}
		}
	}
}

// TestHBLRSoftmaxBytes has several blocks and ranges. It checks that the weights are the same for
// any number of threads, and if three programs run the tasks without the runtime.
func TestHBLRSoftmaxBytes(t *testing.T) {
	for _, inference := range []string{"map", "variational"} {
		for _, m := range []string{"hblr-m1", "hblr-m2", "hblr-m3"} {
			if inference == "variational" && m != "hblr-m2" && !allCases() {
				continue
			}
			t.Run(m+" "+inference, func(t *testing.T) {
				t.Parallel()
				j := oneLabel(5, 200, 40)
				spec := j.Spec(hblrOptions(m, func(o *taxonv1.Options) {
					softmax(o)
					o.Set("max_sweeps", 4)
					o.Set("tolerance", "1e-2")
					o.Set("inference", inference)
					o.Set("covariance", "diagonal")
					if inference == "map" {
						o.Set("covariance", "")
					}
				}))
				prepared, err := registry.Prepare(spec)
				if err != nil {
					t.Fatal(err)
				}
				if prepared.Plan.Items[0].Count < 2 {
					t.Fatalf("%v: too few blocks to show anything", prepared.Plan)
				}
				r, st, nodes := trained(t, j, spec, 3)
				_, _, again := trained(t, j, spec, 1)
				direct, err := Programs(context.Background(), r.Job(), j.Set, r.Steps(), 3)
				if err != nil {
					t.Fatal(err)
				}
				if h := nodes.Hash(); h != direct.Hash() || h != again.Hash() {
					t.Errorf("weights of three threads %s, of one %s, of three programs %s; stopped by %s", h, again.Hash(),
						direct.Hash(), st.GetStoppedBy())
				}
				if inference == "variational" {
					rising(t, st)
				}
				t.Logf("%d sweeps, %d steps", st.GetSweep(), len(r.Steps()))
			})
		}
	}
}

// TestHBLRSoftmaxRefuses checks that requests that the soft-max does not support give one clear
// line.
func TestHBLRSoftmaxRefuses(t *testing.T) {
	for want, change := range map[string]func(*jobs.Job, *taxonv1.Options){
		"exactly one label": func(*jobs.Job, *taxonv1.Options) {},
		"parity goes with likelihood binary": func(j *jobs.Job,
			o *taxonv1.Options) {
			*j = *j.FirstLabels()
			o.Set("schedule", "parity")
		},
		"must be one of binary, softmax": func(_ *jobs.Job, o *taxonv1.Options) { o.Set("likelihood", "probit") },
	} {
		j := jobs.Small(5, 60, 20)
		o := hblrOptions("hblr-m1", softmax)
		change(j, o)
		if _, err := registry.Prepare(j.Spec(o)); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want one line with %q", err, want)
		}
	}
}
