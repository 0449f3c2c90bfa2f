package direct

import (
	"context"
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

// nestedRows returns the rows of a problem of h-svm, with their sign and C. There is a problem for
// every class of the structure, with the rows at or below its parent; that of a root has all rows.
func nestedRows(w *twin, child int32) (rows []int, y, c []float64) {
	parent := w.tree.Parent[child]
	for i, on := range w.on {
		if parent < 0 || w.tree.Kind[parent] == taxonomy.Virtual || on[parent] {
			rows, y, c = append(rows, i), append(y, -1), append(c, methodtest.Number(w.o, "c"))
			if on[child] {
				y[len(y)-1] = 1
			}
		}
	}
	return rows, y, c
}

// TestNested trains h-svm and h-rls ([JMLR] section 5) on a forest with labels at internal nodes
// and several labels. The sum of the problems is at the plain solver's optimum, the written weights
// have the reported objective, and threads and programs do not change a bit.
func TestNested(t *testing.T) {
	for n, o := range []*taxonv1.Options{
		methodtest.Options("h-svm", "loss", "hinge", "c", 1, "bias", 1, "gap", 1e-4, "prune", "empty", "seed", 1),
		methodtest.Options("h-svm", "loss", "squared-hinge", "c", 3, "gap", 1e-4, "prune", "none", "seed", 1, "bias", 0),
		methodtest.Options("h-rls", "loss", "square", "c", 1, "bias", 1, "gap", 1e-4, "prune", "empty"),
		methodtest.Options("h-rls", "loss", "square", "c", 0.3, "gap", 1e-4, "prune", "none", "bias", 0),
	} {
		j := jobs.Small(uint64(50+n), 120, 25)
		spec := j.Spec(o)
		r, st, nodes := trained(t, j, spec, 2)
		_, _, again := trained(t, j, spec, 1)
		direct, err := Programs(context.Background(), r.Job(), j.Set, r.Steps(), 3)
		if err != nil {
			t.Fatal(err)
		}
		if h := nodes.Hash(); h != direct.Hash() || h != again.Hash() {
			t.Errorf("%v: weights of two threads %s, of one %s, of three programs %s", o, h, again.Hash(), direct.Hash())
		}
		w := newTwin(t, j, spec)
		var mine, best float64
		for child := range int32(w.tree.Len()) {
			if w.tree.Kind[child] != taxonomy.Node {
				continue
			}
			rows, y, c := nestedRows(w, child)
			v := w.dense(nodes, child)
			if o.Method == "h-svm" {
				mine += w.primalOf(rows, y, c, v)
				best += w.primalOf(rows, y, c, w.solveRows(rows, y, c))
				continue
			}
			// the gradient of a ridge regression is 0 at the optimum
			gradient := slices.Clone(v)
			p := product(v, v) / 2
			for k, i := range rows {
				off := y[k] - product(v, w.row(i))
				p += c[k] * off * off / 2
				for f, x := range w.row(i) {
					gradient[f] -= c[k] * off * x
				}
			}
			if g := math.Sqrt(product(gradient, gradient)); g > 1e-4 {
				t.Errorf("%v: node %d has a gradient of %g", o, child, g)
			}
			mine, best = mine+p, best+p
		}
		c := st.GetCertificate()
		if st.GetStoppedBy() != "gap" || c.GetKind() != "gap" || c.GetGap() > 1e-4 ||
			math.Abs(mine-c.GetObjective()) > 1e-9*mine {
			t.Errorf("%v: stopped by %s with %v, the weights' objective is %.12g", o, st.GetStoppedBy(), c, mine)
		}
		if c.GetObjective() > best*(1+1e-4) || c.GetDual() > best*(1+1e-7) {
			t.Errorf("%v: objective %.9g, dual %.9g; the optimum is %.9g", o, c.GetObjective(), c.GetDual(), best)
		}
	}
}

// TestNestedRefuses checks the refusal of graphs.
func TestNestedRefuses(t *testing.T) {
	spec := jobs.Small(60, 50, 10).Spec(methodtest.Options("h-rls", "loss", "square", "c", 1, "gap", 1e-3,
		"prune", "empty", "bias", 0))
	spec.Structure.Graph = true
	if _, err := registry.Prepare(spec); err == nil || !strings.Contains(err.Error(), "h-rls descends from a root") {
		t.Error(err)
	}
}
