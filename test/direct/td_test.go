package direct

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	"taxon/internal/data/taxonomy"
	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
)

// tdOptions returns the options of a td job.
func tdOptions(change func(*taxonv1.Options)) *taxonv1.Options {
	o := methodtest.Options("td", "loss", "hinge", "c", 1, "bias", 1, "gap", 1e-3, "prune", "empty", "seed", 1)
	change(o)
	return o
}

var tdCases = []func(*taxonv1.Options){
	func(*taxonv1.Options) {},
	func(o *taxonv1.Options) { o.Set("loss", "squared-hinge"); o.Set("bias", 0) },
	func(o *taxonv1.Options) { o.Set("c", 10); o.Set("positive_weight", "3") },
	func(o *taxonv1.Options) {
		o.Set("c", 0.1)
		o.Set("positive_weight", "balanced")
		o.Set("prune", "none")
	},
	func(o *taxonv1.Options) { o.Set("gap", 1e-6) },
}

// TestTopDown compares the solutions of td's problems with a plain solver's, within the gap. The
// reported objective is that of the written weights, and tasks run by programs of three workers, in
// another order, or by more threads, give the same bits.
func TestTopDown(t *testing.T) {
	for n, change := range tdCases {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			j := jobs.Small(uint64(20+n), 150, 35)
			spec := j.Spec(tdOptions(change))
			r, st, nodes := trained(t, j, spec, 2)
			_, _, again := trained(t, j, spec, 1)
			direct, err := Programs(context.Background(), r.Job(), j.Set, r.Steps(), 3)
			if err != nil {
				t.Fatal(err)
			}
			if h := nodes.Hash(); h != direct.Hash() || h != again.Hash() {
				t.Errorf("weights of two threads %s, of one %s, of three programs %s", h, again.Hash(), direct.Hash())
			}
			checkTopDown(t, j, spec, st, nodes)
		})
	}
}

// checkTopDown compares a job's figures and weights with the twin's.
func checkTopDown(t *testing.T, j *jobs.Job, spec *taxonv1.JobSpec, st *taxonv1.JobStatus, nodes *jobs.Nodes) {
	t.Helper()
	var report struct {
		PerNode []struct {
			Node            string
			Objective, Dual float64
		} `json:"per_node"`
	}
	if err := json.Unmarshal(st.GetReport(), &report); err != nil {
		t.Fatal(err)
	}
	gap := methodtest.Number(spec.GetOptions(), "gap")
	c := st.GetCertificate()
	if st.GetStoppedBy() != "gap" || c.GetKind() != "gap" || c.GetGap() > gap ||
		math.Abs(c.GetGap()-(c.GetObjective()-c.GetDual())/c.GetObjective()) > 1e-12 {
		t.Errorf("stopped by %s with %v", st.GetStoppedBy(), c)
	}
	twin := newTwin(t, j, spec)
	var objective, dual float64
	at := 0
	for parent := -1; parent < twin.tree.Len(); parent++ {
		family := twin.children(int32(parent))
		if len(family) < 2 {
			continue
		}
		got := report.PerNode[at]
		at++
		if want := twin.name(parent); got.Node != want {
			t.Errorf("problem %d is of %q, want %q", at, got.Node, want)
		}
		var best, mine float64
		for _, child := range family {
			best += twin.solve(int32(parent), child)
			mine += twin.primal(int32(parent), child, twin.dense(nodes, child))
		}
		if math.Abs(mine-got.Objective) > 1e-9*best {
			t.Errorf("node %s: objective %.12g, that of its weights is %.12g", got.Node, got.Objective, mine)
		}
		if got.Objective < best*(1-1e-7) || got.Objective > best+gap*got.Objective+1e-7*best || got.Dual > best*(1+1e-7) {
			t.Errorf("node %s: objective %.9g, dual %.9g; the optimum is %.9g", got.Node, got.Objective, got.Dual, best)
		}
		objective, dual = objective+got.Objective, dual+got.Dual
	}
	if at != len(report.PerNode) || math.Abs(objective-c.GetObjective()) > 1e-9*objective ||
		math.Abs(dual-c.GetDual()) > 1e-9*objective {
		t.Errorf("%d of %d nodes add up to %v and %v, the job says %v", at, len(report.PerNode), objective, dual, c)
	}
}

// TestTopDownFlat checks that td without a structure is one-versus-rest, with bsvm's optimum.
func TestTopDownFlat(t *testing.T) {
	j := jobs.Small(31, 150, 35)
	j.Structure = nil
	o := tdOptions(func(*taxonv1.Options) {})
	r, st, nodes := trained(t, j, j.Spec(o), 2)
	checkTopDown(t, j, j.Spec(o), st, nodes)
	if tasks := len(r.Steps()[0]); tasks != 3 {
		t.Errorf("%d blocks of 35 classes", tasks)
	}
	o.Method = "bsvm"
	_, flat, _ := trained(t, j, j.Spec(o), 2)
	a, b := st.GetCertificate().GetObjective(), flat.GetCertificate().GetObjective()
	if math.Abs(a-b) > 1e-3*max(a, b) {
		t.Errorf("objective %v, that of bsvm is %v", a, b)
	}
}

// TestTopDownCaps checks that a cap on solves ends each block, and that the certificate is that of
// its weights.
func TestTopDownCaps(t *testing.T) {
	j := jobs.Small(33, 150, 35)
	o := tdOptions(func(o *taxonv1.Options) { o.Set("gap", 1e-7); o.Set("max_sweeps", 1) })
	_, st, _ := trained(t, j, j.Spec(o), 2)
	if c := st.GetCertificate(); st.GetStoppedBy() != "max_sweeps" || !(c.GetGap() > 1e-7 && c.GetGap() < 1) {
		t.Errorf("stopped by %s with %v", st.GetStoppedBy(), c)
	}
}

// TestTopDownRefuses checks the refusal of graphs, other losses, and structures without a choice.
func TestTopDownRefuses(t *testing.T) {
	j := jobs.Small(34, 50, 10)
	for _, c := range []struct {
		want   string
		change func(*taxonv1.JobSpec)
	}{
		{"‹dag=first-parent›", func(s *taxonv1.JobSpec) { s.Structure.Graph = true }},
		{"squared-hinge", func(s *taxonv1.JobSpec) { s.Options.Set("loss", "logistic") }},
		{"two children", func(s *taxonv1.JobSpec) {
			s.Structure, s.Data.Labels, s.Data.LabelInstances = nil, s.Data.Labels[:1], []uint32{5}
		}},
		{"‹C=0›: must be above 0", func(s *taxonv1.JobSpec) { s.Options.Set("c", 0) }},
	} {
		spec := j.Spec(tdOptions(func(*taxonv1.Options) {}))
		c.change(spec)
		if _, err := registry.Prepare(spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q, got %v", c.want, err)
		}
	}
}

// twin solves td's problems in the plain way: whole rows, float64, one dual after the other.
type twin struct {
	j    *jobs.Job
	o    *taxonv1.Options
	tree *taxonomy.Tree
	on   [][]bool // row -> the nodes at or above its labels
}

func newTwin(t *testing.T, j *jobs.Job, spec *taxonv1.JobSpec) *twin {
	t.Helper()
	tree, _, err := jobspec.Tree(spec, false)
	if err != nil {
		t.Fatal(err)
	}
	w := &twin{j, spec.GetOptions(), tree, nil}
	for i := range j.Set.Matrix.Rows {
		on := make([]bool, tree.Len())
		for n := range on {
			if l := tree.Label[n]; tree.Leaf[n] && slices.Contains(j.Set.LabelIndex[j.Set.LabelBegin[i]:j.Set.LabelBegin[i+1]],
				uint32(l)) {
				for p := int32(n); p >= 0; p = tree.Parent[p] {
					on[p] = true
				}
			}
		}
		w.on = append(w.on, on)
	}
	return w
}

func (w *twin) name(parent int) string {
	if parent < 0 || w.tree.Kind[parent] == taxonomy.Virtual {
		return "-"
	}
	return w.tree.Name[parent]
}

func (w *twin) children(parent int32) (out []int32) {
	for n, p := range w.tree.Parent {
		if p == parent {
			out = append(out, int32(n))
		}
	}
	return out
}

func (w *twin) dense(nodes *jobs.Nodes, n int32) []float64 {
	v := make([]float64, w.j.Set.Matrix.Cols+1)
	for k, c := range nodes.Columns[n] {
		v[c] = float64(nodes.Values[n][k])
	}
	return v
}

// row returns instance i with the bias last.
func (w *twin) row(i int) []float64 {
	v := make([]float64, w.j.Set.Matrix.Cols+1)
	index, value := w.j.Set.Matrix.Row(i)
	for k, c := range index {
		v[c] = float64(value[k])
	}
	v[len(v)-1] = methodtest.Number(w.o, "bias")
	return v
}

// rows returns the rows below a parent, with their sign and C for a child.
func (w *twin) rows(parent, child int32) (rows []int, y, c []float64) {
	positives := 0
	for i, on := range w.on {
		if below := slices.ContainsFunc(w.children(parent), func(n int32) bool { return on[n] }); !below {
			continue
		}
		rows, y = append(rows, i), append(y, -1)
		if on[child] {
			y[len(y)-1] = 1
			positives++
		}
	}
	for _, s := range y {
		weight := 1.0
		if s > 0 {
			weight = jobspec.PositiveWeight(method.PositiveWeight.Of(w.o), float64(positives), float64(len(rows)))
		}
		c = append(c, methodtest.Number(w.o, "c")*weight)
	}
	return rows, y, c
}

func product(a, b []float64) (s float64) {
	for k := range a {
		s += a[k] * b[k]
	}
	return s
}

func (w *twin) primal(parent, child int32, v []float64) float64 {
	rows, y, c := w.rows(parent, child)
	return w.primalOf(rows, y, c, v)
}

func (w *twin) primalOf(rows []int, y, c, v []float64) float64 {
	p := product(v, v) / 2
	for k, i := range rows {
		loss := max(1-y[k]*product(v, w.row(i)), 0)
		if w.o.Value("loss") == "squared-hinge" {
			loss *= loss
		}
		p += c[k] * loss
	}
	return p
}

// solve returns the optimum of a child's problem, by dual coordinate descent (Hsieh et al. 2008)
// until all gradients are negligible.
func (w *twin) solve(parent, child int32) float64 {
	rows, y, c := w.rows(parent, child)
	return w.primalOf(rows, y, c, w.solveRows(rows, y, c))
}

func (w *twin) solveRows(rows []int, y, c []float64) []float64 {
	x, a, v := make([][]float64, len(rows)), make([]float64, len(rows)), make([]float64, w.j.Set.Matrix.Cols+1)
	for k, i := range rows {
		x[k] = w.row(i)
	}
	for range 20000 {
		worst := 0.0
		for k := range rows {
			soft, bound := 0.0, c[k]
			if w.o.Value("loss") == "squared-hinge" {
				soft, bound = 1/(2*c[k]), math.Inf(1)
			}
			q := product(x[k], x[k]) + soft
			if q == 0 {
				continue
			}
			next := min(max(a[k]-(y[k]*product(v, x[k])-1+soft*a[k])/q, 0), bound)
			worst = max(worst, math.Abs(next-a[k])*q)
			for f := range v {
				v[f] += (next - a[k]) * y[k] * x[k][f]
			}
			a[k] = next
		}
		if worst < 1e-10 {
			break
		}
	}
	return v
}
