package measure_test

import (
	"strings"
	"testing"

	"taxon/internal/model/labelset"
	"taxon/internal/model/measure"
)

// TestCutoffs: each measure says what cut-offs aim at; a name that is none has the default.
func TestCutoffs(t *testing.T) {
	for name, want := range map[string]labelset.Goal{"": labelset.MeanF1, "micro": labelset.MicroF1,
		"macro_f1": labelset.MacroF1, "macro": labelset.MacroF1, "p@5": labelset.MeanF1, "p@7": labelset.MeanF1,
		"mean_f1": labelset.MeanF1, "zero_one": labelset.MicroF1, "tree_loss": labelset.MicroF1, "none": labelset.MeanF1,
		"hier_f1": labelset.MicroF1, "l_H_unif": labelset.MicroF1, "log_loss": labelset.MeanF1} {
		if got := measure.CutoffsFor(name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
	for _, m := range measure.Measures(7) {
		if m.Cutoffs == "" {
			t.Errorf("%s does not say what cut-offs aim at", m.Key)
		}
	}
}

// TestCards: a card shows the value in the measure's unit, or what is left to 1.
func TestCards(t *testing.T) {
	for key, want := range map[string]string{"micro_f1": "12.3", "zero_one": "87.7", "tree_loss": "0.12",
		"brier": "0.123"} {
		m, _ := measure.Find(key)
		if got := m.Card.Of(m, 0.1234); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	for _, m := range measure.Measures() {
		if c := m.Card; c != nil && (c.Title == "" || !strings.HasSuffix(c.Text, ".")) {
			t.Errorf("%s: %+v", m.Key, c)
		}
	}
}
