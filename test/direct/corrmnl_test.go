package direct

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	taxonv1 "taxon/proto/taxon/v1"
)

func corrmnlOptions(t *testing.T, own map[string]string) *taxonv1.Options {
	t.Helper()
	o := methodtest.Options("corrmnl", "loss", "softmax", "bias", 1, "prune", "empty", "seed", 3)
	for key, value := range own {
		o.Set(key, value)
	}
	return o
}

// TestChains checks that chains run as separate tasks, that threads and programs do not change a
// bit, that another seed gives other draws, that caps end the chains, and that the report describes
// the result. internal/methods/corrmnl/solver checks that the draws are those of the posterior.
func TestChains(t *testing.T) {
	seen := map[string]bool{}
	for n, own := range []map[string]string{
		{"iterations": "40", "burn_in": "20"},
		{"iterations": "40", "burn_in": "20", "bias": "0"},
		{"iterations": "130", "burn_in": "31", "chains": "5", "keep_draws": "8", "leapfrog": "4"},
		{"iterations": "40", "burn_in": "20", "max_sweeps": "3"}, // in the middle of the burn-in
		{"iterations": "40", "burn_in": "20", "seed": "4"},
	} {
		j := treeJob(80, 90, 9)
		spec := j.Spec(corrmnlOptions(t, own))
		r, st, nodes := trained(t, j, spec, 2)
		_, _, again := trained(t, j, spec, 1)
		direct, err := Programs(context.Background(), r.Job(), j.Set, r.Steps(), 3)
		if err != nil {
			t.Fatal(err)
		}
		if h := nodes.Hash(); h != direct.Hash() || h != again.Hash() || seen[h] {
			t.Errorf("%v: weights of two threads %s, of one %s, of three programs %s", own, h, again.Hash(), direct.Hash())
		}
		seen[nodes.Hash()] = true
		var d struct {
			RHat    *float64 `json:"r_hat_max"`
			ESS     *float64 `json:"ess_min"`
			Samples int
			Draws   int
			Warning string
		}
		if err := json.Unmarshal(st.GetReport(), &d); err != nil {
			t.Fatal(err)
		}
		c := st.GetCertificate()
		if c.GetKind() != method.Stationarity || !c.GetPrimalOnly() || d.Warning == "" {
			t.Errorf("%v: %v, %+v", own, c, d)
		}
		want := map[int][2]int{2: {495, 10}, 3: {0, 4}}[n]
		if want[1] == 0 {
			want = [2]int{80, 80}
		}
		if d.Draws != want[0] || d.Samples != want[1] || (d.RHat == nil) != (n == 3) || d.RHat != nil && *d.RHat < 1 {
			t.Errorf("%v: %+v, want %v draws and samples", own, d, want)
		}
		if st.GetStoppedBy() != "max_sweeps" {
			t.Errorf("%v: stopped by %s", own, st.GetStoppedBy())
		}
	}
}

// TestChainsRefuse checks the refusal of several labels, graphs, a missing hierarchy, and no draws.
func TestChainsRefuse(t *testing.T) {
	j := treeJob(81, 50, 8)
	of := func(own map[string]string, change func(*taxonv1.JobSpec)) error {
		spec := j.Spec(corrmnlOptions(t, own))
		change(spec)
		_, err := registry.Prepare(spec)
		return err
	}
	for want, err := range map[string]error{
		"exactly one label":   of(nil, func(s *taxonv1.JobSpec) { s.Data.SeveralLabels = 3 }),
		"‹dag=first-parent›":  of(nil, func(s *taxonv1.JobSpec) { s.Structure.Graph = true }),
		"needs a hierarchy":   of(nil, func(s *taxonv1.JobSpec) { s.Structure = nil }),
		"leaves no draw":      of(map[string]string{"iterations": "100", "burn_in": "100"}, func(*taxonv1.JobSpec) {}),
		"‹chains=3›: must be": of(map[string]string{"chains": "3"}, func(*taxonv1.JobSpec) {}),
		"‹C› means nothing":   of(map[string]string{"c": "2"}, func(*taxonv1.JobSpec) {}),
		"‹gap› means nothing": of(map[string]string{"gap": "0.5"}, func(*taxonv1.JobSpec) {}),
		"nothing to train":    of(nil, func(s *taxonv1.JobSpec) { s.Data.Instances = 0 }),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
