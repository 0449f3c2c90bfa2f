package measure

import (
	"encoding/json"
	"testing"
)

// TestMeasuresAreTheDocument: each figure of eval --json has its line for people, under the
// same key, with the same value; shares are told in percent.
func TestMeasuresAreTheDocument(t *testing.T) {
	r := &Result{Instances: 7, Classes: 3, ClassSet: "data", MicroF1: .11, MacroF1: .12, MicroPrecision: .13,
		MicroRecall: .14, ZeroOne: .15,
		Ranking:          &Ranking{.21, .22, .23, .24, []Place{{10, .25, .26, .28, .29}, {3, .22, .27, .32, .30}}},
		PropensityScored: &PropensityScored{.31, .32, .33, .34}, Hierarchy: &Hierarchy{3.1, 3.2, 3.3,
			3.4, 3.5, 3.6, 3.7, 3.8, .35, .36, .37}, Probability: &Probability{4.1, 4.2, 4.3}}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	document := map[string]any{}
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"instances", "classes", "class_set"} {
		delete(document, key)
	}
	for _, m := range Measures(10, 3) {
		v, ok := m.Of(r)
		if want := document[m.Key]; !ok || want != v {
			t.Errorf("%s: %v, in the document %v", m.Key, v, want)
		}
		delete(document, m.Key)
		if m.Percent != (v < 1) { // of the values above
			t.Errorf("%s: percent %v", m.Key, m.Percent)
		}
		if _, ok := m.Of(&Result{}); ok == (m.Ranked || m.Hierarchical || m.Probable) {
			t.Errorf("%s of a result without rankings and structure: %v", m.Key, ok)
		}
	}
	if len(document) > 0 {
		t.Errorf("without a line for people: %v", document)
	}
}
