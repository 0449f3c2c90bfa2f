package direct

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	"taxon/internal/data/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
)

// treeJob returns a job with single labels at leaves and internal nodes of a forest.
func treeJob(seed uint64, rows, classes int) *jobs.Job {
	j := jobs.Small(seed, rows, classes)
	one := j.FirstLabels()
	one.Structure = j.Structure
	return one
}

func treeOptions(t *testing.T, name string, own map[string]string) *taxonv1.Options {
	t.Helper()
	o := methodtest.Options(name, "loss", "hinge", "c", 200, "bias", 1, "gap", 1e-6, "prune", "empty", "seed", 3)
	if name == "hiermult" || name == "flatmult" {
		o.Set("loss", "crammer-singer")
	}
	for key, value := range own {
		o.Set(key, value)
	}
	return o
}

// treeTwin computes the objectives of the tree's methods from their definitions.
type treeTwin struct {
	tree *taxonomy.Tree
	x    [][]float64
	y    []int32 // leaf
	c    []float64
}

func newTreeTwin(t *testing.T, j *jobs.Job, o *taxonv1.Options) *treeTwin {
	t.Helper()
	p, err := registry.Prepare(j.Spec(o))
	if err != nil {
		t.Fatal(err)
	}
	w := &treeTwin{tree: p.Tree}
	for i := range j.Set.Matrix.Rows {
		row := make([]float64, j.Set.Matrix.Cols+1)
		index, value := j.Set.Matrix.Row(i)
		for k, f := range index {
			row[f] = float64(value[k])
		}
		row[len(row)-1] = methodtest.Number(o, "bias")
		for n, l := range p.Tree.Label {
			if p.Tree.Leaf[n] && l == int32(j.Set.LabelIndex[i]) {
				w.y = append(w.y, int32(n))
			}
		}
		w.x = append(w.x, row)
	}
	for range w.x {
		w.c = append(w.c, methodtest.Number(o, "c")/float64(len(w.x)))
	}
	return w
}

// path returns the path to n without the root.
func (w *treeTwin) path(n int32) (out []int32) {
	for ; w.tree.Parent[n] >= 0; n = w.tree.Parent[n] {
		out = append(out, n)
	}
	return out
}

// siblings calls visit with each margin (w_i - w_j).x of instance k.
func (w *treeTwin) siblings(score []float64, k int, visit func(parent int32, margin float64)) {
	for _, i := range w.path(w.y[k]) {
		for j, p := range w.tree.Parent {
			if p == w.tree.Parent[i] && int32(j) != i {
				visit(p, score[i]-score[j])
			}
		}
	}
}

func (w *treeTwin) scores(v [][]float64, x []float64) []float64 {
	out := make([]float64, len(v))
	for n := range v {
		out[n] = product(v[n], x)
	}
	return out
}

// objective returns P as methods.md defines it. alpha is that of ot, as used.
func (w *treeTwin) objective(name string, margin bool, alpha float64, v [][]float64) (sum float64) {
	below := make([]float64, len(v)) // nodes of each subtree
	for n := len(v) - 1; n > 0; n-- {
		below[n]++
		below[w.tree.Parent[n]] += below[n]
	}
	for n := 1; n < len(v); n++ {
		up := w.path(w.tree.Parent[n])
		switch name {
		case "ot":
			sum += below[n] * product(v[n], v[n]) / 2
			for _, a := range up {
				sum += alpha * math.Abs(product(v[n], v[a]))
			}
		case "transfer":
			sum += product(v[n], v[n]) / 2
			if len(up) > 0 {
				for f := range v[n] {
					d := v[n][f] - v[up[0]][f]
					sum += d * d / 2
				}
			}
		default:
			sum += product(v[n], v[n]) / 2
		}
	}
	perNode := map[int32][2]float64{} // sum of losses, number of instances
	for k, x := range w.x {
		score, xi := w.scores(v, x), 0.0
		switch name {
		case "hsvm":
			total := func(path []int32) (z float64) {
				for _, n := range path {
					z += score[n]
				}
				return z
			}
			own := w.path(w.y[k])
			for r, leaf := range w.tree.Leaf {
				if other := w.path(int32(r)); leaf && int32(r) != w.y[k] {
					shared := 0
					for _, n := range other {
						if slices.Contains(own, n) {
							shared++
						}
					}
					delta := float64(len(own)+len(other)-2*shared) / 2
					if margin {
						xi = max(xi, delta-total(own)+total(other))
					} else {
						xi = max(xi, delta*(1-total(own)+total(other)))
					}
				}
			}
		case "hiermult":
			worst := map[int32]float64{}
			w.siblings(score, k, func(p int32, m float64) { worst[p] = max(worst[p], 1-m) })
			for p, x := range worst {
				perNode[p] = [2]float64{perNode[p][0] + x, perNode[p][1] + 1}
			}
		default:
			w.siblings(score, k, func(_ int32, m float64) { xi = max(xi, 1-m) })
		}
		sum += w.c[k] * xi
	}
	for _, l := range perNode {
		sum += w.c[0] * float64(len(w.x)) * l[0] / l[1]
	}
	return sum
}

// TestTreeMachines checks that the reported objective is that of the written weights (except for
// rounding, if rounding keeps a node above its gap), that the gap holds, and that tasks run by
// programs of three workers, or by more threads, give the same bits. internal/methods/msvm/solver
// checks that D bounds P; for hiermult, this test checks that the figures per node add up.
func TestTreeMachines(t *testing.T) {
	for n, c := range []struct {
		name string
		own  map[string]string
	}{
		{"hsvm", nil}, {"hsvm", map[string]string{"rescale": "margin"}}, {"hiermult", nil}, {"transfer", nil}, {"ot", nil},
		{"ot", map[string]string{"alpha": "0.3"}},
	} {
		t.Run(fmt.Sprint(c.name, c.own), func(t *testing.T) {
			t.Parallel()
			j := treeJob(uint64(70+n), 160, 16)
			o := treeOptions(t, c.name, c.own)
			o.Set("prune", []string{"empty", "none"}[n%2])
			spec := j.Spec(o)
			r, st, nodes := trained(t, j, spec, 2)
			_, _, again := trained(t, j, spec, 1)
			direct, err := Programs(context.Background(), r.Job(), j.Set, r.Steps(), 3)
			if err != nil {
				t.Fatal(err)
			}
			if h := nodes.Hash(); h != direct.Hash() || h != again.Hash() {
				t.Errorf("weights of two threads %s, of one %s, of three programs %s", h, again.Hash(), direct.Hash())
			}
			cert := st.GetCertificate()
			if st.GetStoppedBy() != "gap" || cert.GetGap() > 1e-6 || cert.GetKind() != "gap" {
				t.Errorf("stopped by %s with %v", st.GetStoppedBy(), cert)
			}
			var report struct {
				AlphaUsed float64 `json:"alpha_used"`
				LambdaMin float64 `json:"lambda_min"`
				PerNode   []struct {
					Node            string
					Objective, Dual float64
				} `json:"per_node"`
			}
			if own := st.GetReport(); len(own) > 0 {
				if err := json.Unmarshal([]byte(own), &report); err != nil {
					t.Fatal(err)
				}
			}
			twin := newTreeTwin(t, j, o)
			dense := make([][]float64, twin.tree.Len())
			for k := range dense {
				dense[k] = make([]float64, len(twin.x[0]))
				for i, f := range nodes.Columns[k] {
					dense[k][f] = float64(nodes.Values[k][i])
				}
			}
			if mine := twin.objective(c.name, c.own["rescale"] == "margin", report.AlphaUsed,
				dense); math.Abs(mine-cert.GetObjective()) > 1e-7*mine {
				t.Errorf("reported %v; the weights' objective is %.12g", cert, mine)
			}
			switch c.name {
			case "ot":
				if !(report.LambdaMin > 1e-6) || !(report.AlphaUsed > 0) {
					t.Errorf("%+v", report)
				}
			case "hiermult":
				objective, dual := 0.0, 0.0
				for _, p := range report.PerNode {
					objective += p.Objective
					dual += p.Dual
					if p.Objective < p.Dual*(1-1e-12) || p.Node == "" {
						t.Errorf("%+v", p)
					}
				}
				if len(report.PerNode) < 3 || math.Abs(objective-cert.GetObjective()) > 1e-12*objective ||
					math.Abs(dual-cert.GetDual()) > 1e-12*objective {
					t.Errorf("%+v: %g, %g of %v", report.PerNode, objective, dual, cert)
				}
			}
		})
	}
}

// TestTreeMachinesRefuse checks the refusal of structures that are not trees, or leave no choice.
func TestTreeMachinesRefuse(t *testing.T) {
	for _, name := range []string{"hsvm", "hiermult", "transfer", "ot"} {
		j := treeJob(1, 60, 8)
		o := treeOptions(t, name, nil)
		spec := j.Spec(o)
		spec.Structure = nil
		if _, err := registry.Prepare(spec); err == nil || !strings.Contains(err.Error(), "needs a hierarchy") {
			t.Error(name, err)
		}
		spec = j.Spec(o)
		spec.Structure.Graph = true
		if _, err := registry.Prepare(spec); err == nil || !strings.Contains(err.Error(), "needs a tree") {
			t.Error(name, err)
		}
		spec = j.Spec(o)
		spec.Data.SeveralLabels = 2
		if _, err := registry.Prepare(spec); err == nil || !strings.Contains(err.Error(), "2 have several") {
			t.Error(name, err)
		}
	}
}
