package measure

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Result holds the measures, as fractions. A measure that was not computed is nil, and absent in
// JSON.
type Result struct {
	Instances int `json:"instances"`
	// Classes is the size of the class set.
	Classes int `json:"classes"`
	// ClassSet is the source of the class set, "training" or "data".
	ClassSet string `json:"class_set"`

	MicroF1        float64 `json:"micro_f1"`
	MacroF1        float64 `json:"macro_f1"`
	MicroPrecision float64 `json:"micro_precision"`
	MicroRecall    float64 `json:"micro_recall"`
	// ZeroOne is the share of rows whose label set is not exactly right.
	ZeroOne float64 `json:"zero_one"`

	// Ranking is nil without rankings.
	*Ranking
	// PropensityScored is nil without rankings or without the numbers of training documents.
	*PropensityScored
	// Hierarchy is nil without a structure.
	*Hierarchy
	// Probability is nil without probabilities.
	*Probability

	// Reliability holds the bins of the ECE. It is nil without probabilities.
	Reliability []Bin `json:"reliability,omitempty"`

	// Coverage describes predictions that back off. It is nil if not measured.
	Coverage []Covered `json:"coverage,omitempty"`

	ByLevel []Level `json:"by_level,omitempty"`
	BySize  []Size  `json:"by_size,omitempty"`
	// PerClass is in the order of the training data's labels, then of first appearance.
	PerClass []Class `json:"per_class,omitempty"`
	// Mistakes is set with Options.Confusion.
	Mistakes []Mistaken `json:"-"`

	SignTest *SignTest `json:"sign_test,omitempty"`
	Wilcoxon *Wilcoxon `json:"wilcoxon,omitempty"`
	// Other is the result of the model compared with.
	Other *Result `json:"other,omitempty"`
	// Others holds all comparisons, if there are several.
	Others []Against `json:"others,omitempty"`
}

// Against is one of several comparisons.
type Against struct {
	// With is the model compared with, as the user named it.
	With     string    `json:"compare"`
	SignTest *SignTest `json:"sign_test"`
	Wilcoxon *Wilcoxon `json:"wilcoxon"`
	Other    *Result   `json:"other"`
}

// Covered describes predictions that back off in the hierarchy until their probability is high
// enough.
type Covered struct {
	MinProbability float64 `json:"min_probability"`
	// Answered is the share of rows with an answer.
	Answered float64 `json:"answered"`
	// Correct is the share of answered rows whose class is the answer or below it.
	Correct float64 `json:"correct"`
	// Classes is the share of rows whose best class alone reaches the probability: the answers that
	// there would be without a hierarchy.
	Classes float64 `json:"classes"`
	// ClassCorrect is the share of these rows for which that class is right.
	ClassCorrect float64 `json:"class_accuracy"`
}

// Class holds the measures of one class.
type Class struct {
	Label string `json:"label"`
	// Instances is the number of instances with this label.
	Instances int64 `json:"instances"`
	// Predicted is the number of instances predicted to have it.
	Predicted int64   `json:"predicted"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// Mistaken counts the instances with one label that were predicted to have another, or the same.
type Mistaken struct {
	// Truth and Predicted are labels. Empty strings stand for none.
	Truth, Predicted string
	Instances        int64
}

// Ranking holds the measures of ranked predictions.
type Ranking struct {
	P1    float64 `json:"p@1"`
	P3    float64 `json:"p@3"`
	P5    float64 `json:"p@5"`
	NDCG5 float64 `json:"ndcg@5"`

	// Places holds the measures for Options.At; see Result.MarshalJSON.
	Places []Place `json:"-"`
}

// Place holds the measures of rankings at a further number of places.
type Place struct {
	K       int
	P, NDCG float64
	// PSP and PSNDCG are 0 if Result.PropensityScored is nil.
	PSP, PSNDCG float64
}

// MarshalJSON adds the measures at further numbers of places, such as p@k, at the end.
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
			v, ok := m.Of(&r)
			if !ok {
				continue
			}
			number, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			out = fmt.Appendf(out[:len(out)-1], ",%q:%s}", m.Key, number)
		}
	}
	return out, nil
}

// standing reports whether a measure is in every result with rankings, under the same key.
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
	// Level is 1 for the roots.
	Level   int     `json:"level"`
	MacroF1 float64 `json:"macro_f1"`
	// Classes is the number of microlabels that MacroF1 averages over.
	Classes   int     `json:"classes"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// Size holds the measures over the classes with From to To training documents.
type Size struct {
	From int `json:"from"`
	// To is nil if the range has no upper end.
	To      *int    `json:"to"`
	MacroF1 float64 `json:"macro_f1"`
	Classes int     `json:"classes"`
}

// tally counts the decisions on one class, or on several together.
type tally struct{ truePos, falsePos, falseNeg int64 }

func (t *tally) add(o tally) {
	t.truePos += o.truePos
	t.falsePos += o.falsePos
	t.falseNeg += o.falseNeg
}

func (t tally) precision() float64 { return share(t.truePos, t.truePos+t.falsePos) }
func (t tally) recall() float64    { return share(t.truePos, t.truePos+t.falseNeg) }

// f1 returns 2 TP / (2 TP + FP + FN), the harmonic mean of precision and recall.
func (t tally) f1() float64 {
	return share(2*t.truePos, 2*t.truePos+t.falsePos+t.falseNeg)
}

// share returns part/whole, where 0/0 is 0.
func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// mean returns sum/n, where 0/0 is 0.
func mean(sum float64, n int) float64 {
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// Range returns a range of class sizes as text: 6-10, a single size or, without an upper end, 101+.
func Range(from int, to *int) string {
	switch {
	case to == nil:
		return fmt.Sprintf("%d+", from)
	case *to == from:
		return strconv.Itoa(from)
	}
	return fmt.Sprintf("%d-%d", from, *to)
}
