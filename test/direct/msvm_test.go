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
)

func msvmOptions(change func(*taxonv1.Options)) *taxonv1.Options {
	o := methodtest.Options("msvm", "loss", "crammer-singer", "c", 1, "bias", 1, "gap", 1e-6, "prune", "empty",
		"seed", 3)
	change(o)
	return o
}

// TestMultiClass checks that the reported objective is that of the written weights, that the dual
// never decreases, and that tasks run by programs of three workers, or by more threads, give the
// same bits. internal/methods/msvm/solver checks the optimum itself.
func TestMultiClass(t *testing.T) {
	for n, change := range []func(*taxonv1.Options){
		func(*taxonv1.Options) {},
		func(o *taxonv1.Options) { o.Set("bias", 0) },
		func(o *taxonv1.Options) { o.Set("c", 10); o.Set("bias", 3) },
		func(o *taxonv1.Options) { o.Set("c", 0.01); o.Set("prune", "none") },
		func(o *taxonv1.Options) { o.Set("gap", 1e-6); o.Set("max_sweeps", 2) },
	} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			j := oneLabel(uint64(50+n), 300, 25)
			spec := j.Spec(msvmOptions(change))
			r, st, nodes := trained(t, j, spec, 2)
			_, _, again := trained(t, j, spec, 1)
			direct, err := Programs(context.Background(), r.Job(), j.Set, r.Steps(), 3)
			if err != nil {
				t.Fatal(err)
			}
			if h := nodes.Hash(); h != direct.Hash() || h != again.Hash() {
				t.Errorf("weights of two threads %s, of one %s, of three programs %s", h, again.Hash(), direct.Hash())
			}
			o, c := spec.GetOptions(), st.GetCertificate()
			free := methodtest.Number(o, "max_sweeps") == 0
			if want := map[bool]string{true: "gap", false: "max_sweeps"}[free]; st.GetStoppedBy() != want ||
				c.GetKind() != "gap" || want == "gap" && c.GetGap() > methodtest.Number(o, "gap") {
				t.Errorf("stopped by %s with %v", st.GetStoppedBy(), c)
			}
			twin := newSoftmaxTwin(t, j, o)
			if mine := twin.crammerSinger(twin.dense(nodes)); math.Abs(mine-c.GetObjective()) > 1e-9*mine {
				t.Errorf("reported %v; the weights' objective is %.12g", c, mine)
			}
			if math.Abs(c.GetGap()-(c.GetObjective()-c.GetDual())/c.GetObjective()) > 1e-13 {
				t.Errorf("the gap is not that of the figures: %v", c)
			}
			least := math.Inf(-1)
			for _, row := range st.GetTrace() {
				c := row.GetCertificate()
				if c == nil || c.GetDual() < least || c.GetGap() < 0 {
					t.Errorf("sweep %d: %v after %g", row.GetSweep(), c, least)
				}
				least = c.GetDual()
			}
			t.Logf("%d sweeps, %v", st.GetSweep(), c)
		})
	}
}

// crammerSinger returns the objective of weights with the multi-class hinge in place of the
// soft-max.
func (w *softmaxTwin) crammerSinger(weights [][]float64) float64 {
	losses := 0.0
	for i, x := range w.x {
		xi, own := 0.0, product(weights[w.y[i]], x)
		for k := range weights {
			if k != w.y[i] {
				xi = max(xi, 1+product(weights[k], x)-own)
			}
		}
		losses += xi
	}
	return squared(weights)/2 + w.c*losses
}

// TestMultiClassRefuses checks the refusal of unsuitable data and options.
func TestMultiClassRefuses(t *testing.T) {
	j := oneLabel(1, 60, 6)
	for want, change := range map[string]func(*taxonv1.Options){
		"‹loss=hinge›":                    func(o *taxonv1.Options) { o.Set("loss", "hinge") },
		"‹positive-weight› means nothing": func(o *taxonv1.Options) { o.Set("positive_weight", "2") },
	} {
		if _, err := registry.Prepare(j.Spec(msvmOptions(change))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	spec := j.Spec(msvmOptions(func(*taxonv1.Options) {}))
	spec.Data.SeveralLabels, spec.Data.FirstNotOne = 3, 17
	if _, err := registry.Prepare(spec); err == nil || !strings.Contains(err.Error(), "3 have several and 0 none; the "+
		"first is instance 17") {
		t.Error(err)
	}
}
