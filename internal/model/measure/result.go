package measure

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Result holds the figures, as fractions. What was not measured is nil, and not in the JSON
// document.
type Result struct {
	Instances int    `json:"instances"`
	Classes   int    `json:"classes"`   // size of the class set
	ClassSet  string `json:"class_set"` // its source: "training" or "data"

	MicroF1        float64 `json:"micro_f1"`
	MacroF1        float64 `json:"macro_f1"`
	MicroPrecision float64 `json:"micro_precision"`
	MicroRecall    float64 `json:"micro_recall"`
	ZeroOne        float64 `json:"zero_one"` // share of rows whose label set is not exactly right

	*Ranking     // nil without rankings
	*Hierarchy   // nil without a structure
	*Probability // nil without probabilities

	Reliability []Bin `json:"reliability,omitempty"` // the bins of ece; nil without probabilities

	Coverage []Covered `json:"coverage,omitempty"` // of predictions that back off; nil: not measured

	ByLevel []Level `json:"by_level,omitempty"`
	BySize  []Size  `json:"by_size,omitempty"`
	// in the order of the training data's labels, then of first appearance
	PerClass []Class    `json:"per_class,omitempty"`
	Mistakes []Mistaken `json:"-"` // with Options.Confusion

	SignTest *SignTest `json:"sign_test,omitempty"`
	Wilcoxon *Wilcoxon `json:"wilcoxon,omitempty"`
	Other    *Result   `json:"other,omitempty"`  // what was compared with
	Others   []Against `json:"others,omitempty"` // all comparisons, if there are several
}

// Against is one of several comparisons.
type Against struct {
	With     string    `json:"compare"` // as the user named it
	SignTest *SignTest `json:"sign_test"`
	Wilcoxon *Wilcoxon `json:"wilcoxon"`
	Other    *Result   `json:"other"`
}

// Covered describes predictions that back off in the hierarchy until their probability is high
// enough.
type Covered struct {
	MinProbability float64 `json:"min_probability"`
	Answered       float64 `json:"answered"` // share of rows with an answer
	Correct        float64 `json:"correct"`  // of these: share whose class is the answer or below it
	// share of rows whose best class reaches the probability by itself: the answers without a hierarchy
	Classes      float64 `json:"classes"`
	ClassCorrect float64 `json:"class_accuracy"` // of these: share whose class it is
}

// Class holds the measures of one class.
type Class struct {
	Label     string  `json:"label"`
	Instances int64   `json:"instances"` // with this label
	Predicted int64   `json:"predicted"` // predicted to have it
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// Mistaken counts the instances with one label that were given another, or the same.
type Mistaken struct {
	Truth, Predicted string // "": none
	Instances        int64
}

// Ranking holds the measures of ranked predictions.
type Ranking struct {
	P1    float64 `json:"p@1"`
	P3    float64 `json:"p@3"`
	P5    float64 `json:"p@5"`
	NDCG5 float64 `json:"ndcg@5"`

	Places []Place `json:"-"` // for Options.At; see Result.MarshalJSON
}

// Place holds the measures of rankings at a further number of places.
type Place struct {
	K       int
	P, NDCG float64
}

// MarshalJSON adds the measures at further numbers of places, p@k and ndcg@k, at the end.
func (r Result) MarshalJSON() ([]byte, error) {
	type plain Result
	out, err := json.Marshal(plain(r))
	if err != nil || r.Ranking == nil {
		return out, err
	}
	for _, p := range r.Places {
		for _, m := range placed(p.K) {
			if m.standing() {
				continue
			}
			v, _ := m.Of(&r)
			number, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			out = fmt.Appendf(out[:len(out)-1], ",%q:%s}", m.Key, number)
		}
	}
	return out, nil
}

// standing says whether a measure is one of every result with rankings, under the same key.
func (m *Measure) standing() bool {
	return slices.ContainsFunc(Measures(), func(of Measure) bool { return of.Key == m.Key })
}

// Hierarchy holds the measures that need a class structure. Losses are means over rows.
type Hierarchy struct {
	TreeLoss      float64 `json:"tree_loss"`
	SymDiff       float64 `json:"sym_diff"`
	HUnif         float64 `json:"l_H_unif"`
	HSibl         float64 `json:"l_H_sibl"`
	HSubtree      float64 `json:"l_H_subtree"`
	HtildeUnif    float64 `json:"l_Htilde_unif"`
	HtildeSibl    float64 `json:"l_Htilde_sibl"`
	HtildeSubtree float64 `json:"l_Htilde_subtree"`
	Precision     float64 `json:"hier_precision"`
	Recall        float64 `json:"hier_recall"`
	F1            float64 `json:"hier_f1"`
}

// Level holds the measures over the microlabels of one level.
type Level struct {
	Level     int     `json:"level"` // 1: the roots
	MacroF1   float64 `json:"macro_f1"`
	Classes   int     `json:"classes"` // microlabels that macro_f1 averages over
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// Size holds the measures over the classes with From to To training instances.
type Size struct {
	From    int     `json:"from"`
	To      *int    `json:"to"` // null: no upper end
	MacroF1 float64 `json:"macro_f1"`
	Classes int     `json:"classes"`
}

// tally counts the decisions about one class, or about several together.
type tally struct{ truePos, falsePos, falseNeg int64 }

func (t *tally) add(o tally) {
	t.truePos += o.truePos
	t.falsePos += o.falsePos
	t.falseNeg += o.falseNeg
}

func (t tally) precision() float64 { return share(t.truePos, t.truePos+t.falsePos) }
func (t tally) recall() float64    { return share(t.truePos, t.truePos+t.falseNeg) }

// f1 is 2 TP / (2 TP + FP + FN), the harmonic mean of precision and recall.
func (t tally) f1() float64 {
	return share(2*t.truePos, 2*t.truePos+t.falsePos+t.falseNeg)
}

// share is part/whole with 0/0 = 0.
func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// mean is sum/n with 0/0 = 0.
func mean(sum float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// Range is a range of class sizes as text: 6-10 or, without an upper end, 101+.
func Range(from int, to *int) string {
	if to == nil {
		return fmt.Sprintf("%d+", from)
	}
	return fmt.Sprintf("%d-%d", from, *to)
}
