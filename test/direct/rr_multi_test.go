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

// vectors returns the nodes' own vectors. A record has the columns at which a node differs from its
// parent.
func (w *treeTwin) vectors(nodes *jobs.Nodes) [][]float64 {
	out := make([][]float64, w.tree.Len())
	for n := range out {
		out[n] = make([]float64, len(w.x[0]))
		if a := w.tree.Parent[n]; a >= 0 {
			copy(out[n], out[a])
		}
		for k, f := range nodes.Columns[n] {
			out[n][f] = float64(nodes.Values[n][k])
		}
	}
	return out
}

// pulls returns 1/2 sum of ||w_n - w_parent||^2.
func (w *treeTwin) pulls(v [][]float64) (sum float64) {
	for n := range v {
		for f, x := range v[n] {
			if a := w.tree.Parent[n]; a >= 0 {
				x -= v[a][f]
			}
			sum += x * x / 2
		}
	}
	return sum
}

// figures returns P and, for the soft-max, D at the probabilities of v, by their definitions.
func (w *treeTwin) figures(name string, c float64, v [][]float64) (primal, dual float64) {
	primal = w.pulls(v)
	up := make([][]float64, len(v))
	for n := range up {
		up[n] = make([]float64, len(w.x[0]))
	}
	for i, x := range w.x {
		score, total, worst := w.scores(v, x), 0.0, 0.0
		for n, leaf := range w.tree.Leaf {
			if leaf {
				total += math.Exp(score[n])
			}
			if leaf && int32(n) != w.y[i] {
				worst = max(worst, 1+score[n]-score[w.y[i]])
			}
		}
		if name == "rr-msvm" {
			primal += c * worst
			continue
		}
		primal += c * (math.Log(total) - score[w.y[i]])
		for n, leaf := range w.tree.Leaf {
			if !leaf {
				continue
			}
			p := math.Exp(score[n]) / total
			dual -= c * p * math.Log(p)
			residual := -c * p
			if int32(n) == w.y[i] {
				residual += c
			}
			for a := int32(n); a >= 0; a = w.tree.Parent[a] {
				for f, x := range x {
					up[a][f] += residual * x
				}
			}
		}
	}
	for _, u := range up {
		dual -= product(u, u) / 2
	}
	return primal, dual
}

// TestRecursiveMultiClass checks that P and D of rr-msvm and rr-mlr are those of the written
// weights by their definitions, that the gap holds, and that threads and programs do not change a
// bit. internal/methods/msvm/solver checks rr-msvm's D. On a tree of one level the methods equal
// msvm and mlr.
func TestRecursiveMultiClass(t *testing.T) {
	for n, name := range []string{"rr-msvm", "rr-mlr", "rr-msvm", "rr-mlr"} {
		t.Run(fmt.Sprint(name, n), func(t *testing.T) {
			t.Parallel()
			j := treeJob(uint64(90+n), 150, 14)
			o := treeOptions(t, name, nil)
			o.Set("loss", map[string]string{"rr-msvm": "crammer-singer", "rr-mlr": "softmax"}[name])
			o.Set("c", []float64{1, 1, 30, 30}[n])
			o.Set("bias", []float64{1, 2, 0, 0}[n])
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
			c, twin := st.GetCertificate(), newTreeTwin(t, j, o)
			if st.GetStoppedBy() != "gap" || c.GetGap() > 1e-6 || c.GetKind() != "gap" {
				t.Errorf("stopped by %s with %v", st.GetStoppedBy(), c)
			}
			primal, dual := twin.figures(name, methodtest.Number(o, "c"), twin.vectors(nodes))
			if math.Abs(primal-c.GetObjective()) > 1e-6*primal {
				t.Errorf("reported %v; the weights' objective is %.12g", c, primal)
			}
			if name == "rr-mlr" && math.Abs(dual-c.GetDual()) > 1e-5*primal {
				t.Errorf("reported %v; the dual is %.12g", c, dual)
			}
		})
	}
	for tree, flat := range map[string]string{"rr-msvm": "msvm", "rr-mlr": "mlr"} {
		j := oneLabel(95, 200, 9)
		of := func(name string) float64 {
			o := methodtest.Options(name, "loss", map[string]string{"msvm": "crammer-singer", "mlr": "softmax"}[flat],
				"c", 3, "bias", 1, "gap", 1e-6, "prune", "empty")
			spec := j.Spec(o)
			if name == tree {
				spec.Structure = &taxonv1.Structure{Names: append([]string{"root"}, j.Set.Labels...)}
				for l := range j.Set.Labels {
					spec.Structure.Parents, spec.Structure.Children = append(spec.Structure.Parents, 0),
						append(spec.Structure.Children, uint32(l+1))
				}
			}
			_, st, _ := trained(t, j, spec, 1)
			return st.GetCertificate().GetObjective()
		}
		if a, b := of(tree), of(flat); math.Abs(a-b) > 2e-6*a {
			t.Errorf("%s on one level: %.9g, %s: %.9g", tree, a, flat, b)
		}
	}
}

// TestRecursiveMultiClassRefuses checks the refusal of several labels, and of structures that are
// not trees.
func TestRecursiveMultiClassRefuses(t *testing.T) {
	for name, loss := range map[string]string{"rr-msvm": "crammer-singer", "rr-mlr": "softmax"} {
		j := treeJob(1, 60, 8)
		o := treeOptions(t, name, nil)
		o.Set("loss", loss)
		for want, change := range map[string]func(*taxonv1.JobSpec){
			"needs a hierarchy": func(s *taxonv1.JobSpec) { s.Structure = nil },
			"needs a tree":      func(s *taxonv1.JobSpec) { s.Structure.Graph = true },
			"2 have several":    func(s *taxonv1.JobSpec) { s.Data.SeveralLabels = 2 },
		} {
			spec := j.Spec(o)
			change(spec)
			if _, err := registry.Prepare(spec); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: want %q, got %v", name, want, err)
			}
		}
	}
}
