package direct

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
)

// oneLabel generates a job without a structure and with one label per row.
func oneLabel(seed uint64, rows, classes int) *jobs.Job {
	return jobs.Small(seed, rows, classes).FirstLabels()
}

func mlrOptions(change func(*taxonv1.Options)) *taxonv1.Options {
	o := methodtest.Options("mlr", "loss", "softmax", "c", 1, "bias", 1, "gap", 1e-10, "prune", "empty")
	change(o)
	return o
}

// TestSoftmaxBytes has several row shards and ranges. It checks that the weights are the same for
// any number of threads, and if three programs run the tasks without the runtime.
func TestSoftmaxBytes(t *testing.T) {
	j := oneLabel(3, 3000, 40)
	spec := j.Spec(mlrOptions(func(o *taxonv1.Options) { o.Set("gap", 1e-5) }))
	prepared, err := registry.Prepare(spec)
	if err != nil {
		t.Fatal(err)
	}
	if items := prepared.Plan.Items; items[0].Count < 2 || items[1].Count < 2 {
		t.Fatalf("%v: too few of each to show anything", prepared.Plan)
	}
	r, st, nodes := trained(t, j, spec, 3)
	_, _, again := trained(t, j, spec, 1)
	direct, err := Programs(context.Background(), r.Job(), j.Set, r.Steps(), 3)
	if err != nil {
		t.Fatal(err)
	}
	if h := nodes.Hash(); h != direct.Hash() || h != again.Hash() || st.GetStoppedBy() != "gap" {
		t.Errorf("weights of three threads %s, of one %s, of three programs %s; stopped by %s", h, again.Hash(),
			direct.Hash(), st.GetStoppedBy())
	}
	t.Logf("%d sweeps, %d steps", st.GetSweep(), len(r.Steps()))
}

// TestSoftmax compares the objective with that of plain gradient descent, to 1e-8. The reported
// objective is that of the written weights. The dual is at least C times the entropies minus half
// the squared norm of the gradient's loss part there, never decreases, and never exceeds the
// optimum.
func TestSoftmax(t *testing.T) {
	for n, change := range []func(*taxonv1.Options){
		func(*taxonv1.Options) {},
		func(o *taxonv1.Options) { o.Set("bias", 0) },
		func(o *taxonv1.Options) { o.Set("c", 10); o.Set("bias", 3) },
		func(o *taxonv1.Options) { o.Set("c", 0.01); o.Set("prune", "none") },
		func(o *taxonv1.Options) { o.Set("gap", 0.1) },
		func(o *taxonv1.Options) { o.Set("gap", 1e-15); o.Set("max_sweeps", 3) },
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			j := oneLabel(uint64(40+n), 60, 6)
			spec := j.Spec(mlrOptions(change))
			_, st, nodes := trained(t, j, spec, 2)
			o, c := spec.GetOptions(), st.GetCertificate()
			twin := newSoftmaxTwin(t, j, o)
			best, _ := twin.solve()
			mine, dual := twin.figures(twin.dense(nodes))
			gap, free := methodtest.Number(o, "gap"), methodtest.Number(o, "max_sweeps") == 0
			if want := map[bool]string{true: "gap", false: "max_sweeps"}[free]; st.GetStoppedBy() != want ||
				c.GetKind() != "gap" || want == "gap" && c.GetGap() > gap {
				t.Errorf("stopped by %s with %v", st.GetStoppedBy(), c)
			}
			if math.Abs(mine-c.GetObjective()) > 1e-8*mine || c.GetDual() < dual-1e-6*mine {
				t.Errorf("reported %v; the weights' objective is %.12g, their dual %.12g", c, mine, dual)
			}
			if math.Abs(c.GetGap()-(c.GetObjective()-c.GetDual())/c.GetObjective()) > 1e-13 {
				t.Errorf("the gap is not that of the figures: %v", c)
			}
			if c.GetObjective() < best*(1-1e-9) || c.GetObjective() > best+(gap+1e-8)*best && free ||
				c.GetDual() > best*(1+1e-9) {
				t.Errorf("%v, the optimum is %.12g", c, best)
			}
			last, least := math.Inf(1), math.Inf(-1)
			for _, row := range st.GetTrace() {
				c := row.GetCertificate()
				if c == nil || c.GetObjective() > last*(1+1e-13) || c.GetDual() < least || c.GetGap() < 0 ||
					c.GetDual() > best*(1+1e-9) {
					t.Errorf("sweep %d: %v after %g", row.GetSweep(), c, last)
				}
				last, least = c.GetObjective(), c.GetDual()
			}
			t.Logf("%d sweeps, %v", st.GetSweep(), c)
		})
	}
}

// TestSoftmaxRefuses checks the refusal of unsuitable data and options.
func TestSoftmaxRefuses(t *testing.T) {
	j := oneLabel(1, 60, 6)
	for want, change := range map[string]func(*taxonv1.Options){
		"‹loss=hinge›":                    func(o *taxonv1.Options) { o.Set("loss", "hinge") },
		"‹positive-weight› means nothing": func(o *taxonv1.Options) { o.Set("positive_weight", "2") },
		"‹C=0›: must be above 0":          func(o *taxonv1.Options) { o.Set("c", 0) },
		"‹bias=-1›":                       func(o *taxonv1.Options) { o.Set("bias", -1) },
	} {
		if _, err := registry.Prepare(j.Spec(mlrOptions(change))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	several := jobs.Small(1, 60, 6)
	if _, err := registry.Prepare(several.Spec(mlrOptions(func(*taxonv1.Options) {}))); err == nil ||
		!strings.Contains(err.Error(), "structure") {
		t.Error(err)
	}
	several.Structure = nil
	n := 0
	for i := range several.Set.Matrix.Rows {
		if several.Set.LabelBegin[i+1]-several.Set.LabelBegin[i] > 1 {
			n++
		}
	}
	if n == 0 {
		t.Fatal("no row has several labels")
	}
	spec := several.Spec(mlrOptions(func(*taxonv1.Options) {}))
	want := fmt.Sprintf("of 60, %d have several and 0 none", n)
	if _, err := registry.Prepare(spec); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v", want, err)
	}
	spec.Data.SeveralLabels = 0 // as in older descriptions, which did not have the field
	if err := failed(t, several, spec); !strings.Contains(err, want) {
		t.Errorf("%s: %s", want, err)
	}
}

// softmaxTwin solves 1/2 ||W||^2 + C sum_i -log softmax with dense vectors.
type softmaxTwin struct {
	c       float64
	x       [][]float64 // rows, the bias last
	y       []int
	classes int
}

func newSoftmaxTwin(t *testing.T, j *jobs.Job, o *taxonv1.Options) *softmaxTwin {
	t.Helper()
	p, err := registry.Prepare(j.Spec(o))
	if err != nil {
		t.Fatal(err)
	}
	w := &softmaxTwin{c: methodtest.Number(o, "c"), classes: p.Tree.Len()}
	classOf := map[uint32]int{}
	for n, l := range p.Tree.Label {
		classOf[uint32(l)] = n
	}
	for i := range j.Set.Matrix.Rows {
		row := make([]float64, j.Set.Matrix.Cols, j.Set.Matrix.Cols+1)
		index, value := j.Set.Matrix.Row(i)
		for k, f := range index {
			row[f] = float64(value[k])
		}
		if methodtest.Number(o, "bias") > 0 {
			row = append(row, methodtest.Number(o, "bias"))
		}
		w.x, w.y = append(w.x, row), append(w.y, classOf[j.Set.LabelIndex[i]])
	}
	return w
}

// dense returns the weights as rows of a matrix.
func (w *softmaxTwin) dense(nodes *jobs.Nodes) [][]float64 {
	out := make([][]float64, w.classes)
	for k := range out {
		out[k] = make([]float64, len(w.x[0]))
		for i, f := range nodes.Columns[k] {
			out[k][f] = float64(nodes.Values[k][i])
		}
	}
	return out
}

// pass returns the sum of the losses, the sum of the entropies, and V = C sum_i (e_y - p_i) x_i'.
func (w *softmaxTwin) pass(weights [][]float64) (losses, entropies float64, v [][]float64) {
	v = make([][]float64, w.classes)
	for k := range v {
		v[k] = make([]float64, len(w.x[0]))
	}
	for i, x := range w.x {
		p, sum := make([]float64, w.classes), 0.0
		for k := range p {
			for f, value := range x {
				p[k] += weights[k][f] * value
			}
			p[k] = math.Exp(p[k])
			sum += p[k]
		}
		losses -= math.Log(p[w.y[i]] / sum)
		for k := range p {
			p[k] /= sum
			entropies -= p[k] * math.Log(p[k])
			r := -p[k]
			if k == w.y[i] {
				r++
			}
			for f, value := range x {
				v[k][f] += w.c * r * value
			}
		}
	}
	return losses, entropies, v
}

func squared(m [][]float64) (sum float64) {
	for _, row := range m {
		for _, x := range row {
			sum += x * x
		}
	}
	return sum
}

// figures returns P(W), and D at the probabilities of W.
func (w *softmaxTwin) figures(weights [][]float64) (primal, dual float64) {
	losses, entropies, v := w.pass(weights)
	return squared(weights)/2 + w.c*losses, w.c*entropies - squared(v)/2
}

// solve runs gradient descent with steps of 1/L, L = 1 + C/2 sum_i ||x_i||^2, or longer ones as
// long as P decreases.
func (w *softmaxTwin) solve() (best float64, weights [][]float64) {
	weights = w.dense(&jobs.Nodes{Columns: make([][]uint32, w.classes), Values: make([][]float32, w.classes)})
	step := 1.0
	for range 200_000 {
		losses, _, v := w.pass(weights)
		best = squared(weights)/2 + w.c*losses
		gradient := 0.0
		next := make([][]float64, w.classes)
		for {
			gradient = 0
			for k := range next {
				next[k] = make([]float64, len(v[k]))
				for f := range next[k] {
					g := weights[k][f] - v[k][f]
					gradient += g * g
					next[k][f] = weights[k][f] - step*g
				}
			}
			if after, _, _ := w.pass(next); squared(next)/2+w.c*after <= best-step*gradient/4 || gradient < 1e-18*best {
				break
			}
			step /= 2
		}
		if gradient < 1e-12*best {
			break
		}
		weights, step = next, step*1.2
	}
	return best, weights
}
