package direct

import (
	"context"
	"strings"
	"testing"

	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
)

// TestPaths checks that H-M3 on a forest with labels at internal nodes and several labels reaches
// its gap by sweeps, with another optimum for each loss, and that threads and programs do not
// change a bit. internal/methods/hm3/solver compares the optimum with other solvers.
func TestPaths(t *testing.T) {
	j := jobs.Small(70, 80, 14)
	seen := map[float64]bool{}
	for _, loss := range []string{"delta", "unif", "sibl", "subtree"} {
		o := methodtest.Options("hm3", "loss", "margin", "c", 1, "bias", 1, "gap", 1e-3, "prune", "empty", "seed", 1)
		o.Set("label_loss", loss)
		r, st, nodes := trained(t, j, j.Spec(o), 2)
		direct, err := Programs(context.Background(), r.Job(), j.Set, r.Steps(), 3)
		if err != nil {
			t.Fatal(err)
		}
		if nodes.Hash() != direct.Hash() {
			t.Errorf("%s: weights %s, of three programs %s", loss, nodes.Hash(), direct.Hash())
		}
		c := st.GetCertificate()
		if st.GetStoppedBy() != "gap" || c.GetKind() != "gap" || c.GetGap() > 1e-3 || !(c.GetDual() > 0) ||
			seen[c.GetDual()] {
			t.Errorf("%s: stopped by %s with %v", loss, st.GetStoppedBy(), c)
		}
		seen[c.GetDual()] = true
	}
}

// TestPathsRefuses checks the refusal of graphs, and of a structure without an edge.
func TestPathsRefuses(t *testing.T) {
	j := jobs.Small(71, 50, 10)
	o := methodtest.Options("hm3", "loss", "margin", "c", 1, "gap", 1e-3, "prune", "empty", "bias", 0)
	graph, one := j.Spec(o), j.Spec(o)
	graph.Structure.Graph = true
	one.Structure, one.Data.Labels, one.Data.LabelInstances = nil, one.Data.Labels[:1], []uint32{5}
	for want, spec := range map[string]*taxonv1.JobSpec{"‹dag=first-parent›": graph, "this structure has none": one} {
		if _, err := registry.Prepare(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
