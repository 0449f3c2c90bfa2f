package train

import (
	"math"
	"strings"
	"testing"

	"taxon/internal/model"
	"taxon/internal/model/scoring"
)

// A calibration changes no weight; a finished model gets one, and another kind, without training again; the bytes are
// the same for any number of threads. A margin has no probability without.
func TestCalibrate(t *testing.T) {
	o := noisy(t, "r a\nr b\na c0\na c1\na c2\nb c3\nb c4\nb c5\n")
	plain, err := Run(t.Context(), o, &heard{})
	if err != nil || plain.Calibration != nil {
		t.Fatal(plain, err)
	}
	sums := map[string]string{}
	for _, kind := range []string{"temperature", "isotonic", "levels"} {
		o.Calibrate = kind
		for _, threads := range []int{1, 3} {
			if o.Threads = threads; threads == 3 {
				o.Force = true
			}
			ui := &heard{}
			r, err := Run(t.Context(), o, ui)
			if threads == 1 && !strings.Contains(strings.Join(ui.notes, "\n"), "a calibration ("+kind+") was added") {
				t.Errorf("%s: nothing said: %q", kind, ui.notes)
			}
			if err != nil || r.WeightsSHA256 != plain.WeightsSHA256 || r.Calibration == nil || r.Calibration.Kind != kind ||
				(threads == 1 && r.Seconds != plain.Seconds && kind == "temperature") {
				t.Fatalf("%s: %+v, %v; without: %+v", kind, r, err, plain)
			}
			m, err := model.Open(o.Out)
			if err != nil {
				t.Fatal(err)
			}
			if !m.HasProbabilities() || m.Calibration.HeldOut.Instances != 300 || !m.Calibration.Joint ||
				m.Calibration.HeldOut.LogLoss > 1.8 {
				// ln 6 = 1.79
				t.Errorf("%s: %+v", kind, m.Calibration)
			}
			if got := probabilitySum(t, m); math.Abs(got-1) > 1e-12 {
				t.Errorf("%s: the probabilities of a row sum to %g", kind, got)
			}
			for _, f := range m.Manifest.Files {
				if f.Name != "calibration.json" {
					continue
				}
				if want := sums[kind]; want != "" && want != f.SHA256 {
					t.Errorf("%s: other bytes with %d threads", kind, threads)
				}
				sums[kind] = f.SHA256
			}
			m.Close()
			o.Force = false
		}
	}
	if len(sums) != 3 {
		t.Error(sums)
	}
	o.Hierarchy, o.Out = "", t.TempDir()
	if _, err := Run(t.Context(), o, &heard{}); err == nil || !strings.Contains(err.Error(), "needs a hierarchy") {
		t.Errorf("levels without a hierarchy: %v", err)
	}
}

// probabilitySum is the sum of the probabilities of all classes for one row.
func probabilitySum(t *testing.T, m *model.Model) (sum float64) {
	p, err := scoring.New(m, scoring.Options{Rule: scoring.TopK, Top: m.Terminals()})
	if err != nil {
		t.Fatal(err)
	}
	var b scoring.Batch
	var r scoring.Result
	b.Add([]uint32{0, 1}, []float32{1, 2})
	if err := p.NewScorer().Predict(&b, &r); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Best(0) {
		sum += r.Shown(0, s)
	}
	return sum
}
