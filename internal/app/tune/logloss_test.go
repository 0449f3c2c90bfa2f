package tune

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"taxon/coordinator/method/registry"
	"taxon/internal/model/labelset"
	"taxon/internal/model/measure"
	"taxon/internal/model/scoring"
	"taxon/internal/ui/progress"
)

// TestLogLoss: a search for the least log-loss values a point as eval does a model trained on the
// other rows, and leaves out methods without probabilities.
func TestLogLoss(t *testing.T) {
	for _, several := range []bool{false, true} {
		o := climbing(t, "bsvm", "blr")
		o.Grid.Values = map[string][]string{"C": {"1"}, "bias": {"1"}, "positive-weight": {"1"}}
		o.Goal = "log_loss"
		if several {
			data, err := os.ReadFile(o.Train.Data[0])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(o.Train.Data[0], []byte(strings.ReplaceAll(string(data), "c1 ", "c1,c2 ")),
				0o666); err != nil {
				t.Fatal(err)
			}
		}
		s, err := open(t.Context(), validated(t, o), progress.Discard{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.search(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Points) != 1 || !r.Low || r.Options.Method != "blr" || r.Folds != 2 {
			t.Fatalf("%+v", r)
		}
		if at := slices.IndexFunc(r.Untried, func(u Untried) bool { return u.Method == "bsvm" }); at < 0 ||
			!strings.Contains(r.Untried[at].Why, "no probabilities") {
			t.Errorf("not tried: %+v", r.Untried)
		}
		if s, err = open(t.Context(), o, progress.Discard{}); err != nil { // the search has closed its data
			t.Fatal(err)
		}
		// The twin: predicted probabilities of models of the other rows, by eval's accumulator.
		acc, err := measure.NewAccumulator(measure.Options{Classes: s.whole.Set.Labels})
		if err != nil {
			t.Fatal(err)
		}
		for f := range 2 {
			twinLosses(t, o, r.Options, s, f, acc)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
		if want := acc.Result().Probability.LogLoss; math.Abs(r.Points[0].Value-want) > 1e-7 {
			// the twin numbers features anew, so sums round in another order
			t.Errorf("several labels %t: log-loss %g, eval has %g", several, r.Points[0].Value, want)
		}
	}
}

func twinLosses(t *testing.T, o *Options, p Point, s *search, fold int, acc *measure.Accumulator) {
	t.Helper()
	on := o.Train
	on.Job, on.Said, on.Cutoff, on.Store, on.Pause = o.trial(p, math.Inf(1)), registry.Values{}, "none", "memory", 10
	_, held := labelset.Split(s.folds.fold, fold)
	m := trainedWithout(t, &on, held)
	defer m.Close()
	predictHeld(t, m, s.whole.Set, held, scoring.Options{Rule: scoring.TopK, Top: m.Terminals()},
		func(i int, best []scoring.Scored) {
			var names, truth []string
			var probabilities []float64
			for _, b := range best {
				names, probabilities = append(names, m.Tree.Name[b.Node]), append(probabilities, 1/(1+math.Exp(-b.Score)))
			}
			for _, l := range s.whole.Set.LabelsOf(held[i]) {
				truth = append(truth, s.whole.Set.Labels[l])
			}
			acc.AddProbabilities(acc.IDs(nil, truth), acc.IDs(nil, names), probabilities)
		})
}
