package predict

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"taxon/internal/model"
	"taxon/internal/model/labelset"
	"taxon/internal/model/scoring"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// Cutoff is a rule that converts an instance's scores to labels.
type Cutoff struct {
	kind cutKind
	// value is the threshold of cutAbove.
	value float64
	// rank is the number of labels of cutRank. Zero means the model's.
	rank int
}

type cutKind uint8

const (
	cutDefault  cutKind = iota // argmax, or the model's rule for multi-label data
	cutArgmax                  // the best class
	cutAbove                   // all classes above a number
	cutInstance                // all above the instance's own threshold
	cutScut                    // all above the class's own threshold
	cutRank                    // the best k
)

// cutNames are the values without a number.
var cutNames = map[string]Cutoff{
	"argmax": {kind: cutArgmax}, "zero": {kind: cutAbove}, "instance": {kind: cutInstance}, "scut": {kind: cutScut},
	"rcut": {kind: cutRank},
}

const cutChoices = "argmax, instance, scut, rcut, rcut=K, top=K, zero or a number"

// ParseCutoff parses argmax, instance, scut, rcut, rcut=K, top=K, zero or a number. Its error lists
// the permitted values.
func ParseCutoff(s string) (Cutoff, error) {
	if c, ok := cutNames[s]; ok {
		return c, nil
	}
	name, number, ranked := strings.Cut(s, "=")
	if ranked && (name == "rcut" || name == "top") {
		k, err := strconv.Atoi(number)
		if err != nil || k < 1 || k > math.MaxInt32 {
			return Cutoff{}, fmt.Errorf("%s=K: K must be a whole number from 1 on", name)
		}
		return Cutoff{kind: cutRank, rank: k}, nil
	}
	if x, err := strconv.ParseFloat(s, 64); err == nil {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return Cutoff{}, fmt.Errorf("must be a finite number, or one of %s", cutChoices)
		}
		return Cutoff{kind: cutAbove, value: x}, nil
	}
	if name == "top" {
		return Cutoff{}, errors.New("give the number of labels: top=K")
	}
	if near := format.Nearest(name, []string{"argmax", "instance", "scut", "rcut", "top", "zero"}); near != "" {
		return Cutoff{}, fmt.Errorf("did you mean %s?", near)
	}
	return Cutoff{}, fmt.Errorf("must be %s", cutChoices)
}

// Rule applies a model's cut-off to its predictions. It belongs to one goroutine.
type Rule struct {
	kind    cutKind
	cutoffs *labelset.Cutoffs
	// Options are the options of the predictor.
	Options scoring.Options
	// rank is that of cutRank.
	rank int

	scores  []float64
	classes []int32
	places  []int
	set     []scoring.Scored
	// labels maps a node to its label id.
	labels []int32
}

// fitted reports whether the thresholds were fitted to scores of held-out instances.
func (r *Rule) fitted() bool { return r.kind == cutInstance || r.kind == cutScut }

// Predictive makes the rule use the scores of the predictive distribution. It returns an error if
// the model has none.
func (r *Rule) Predictive(verb string, m *model.Model) error {
	if r.fitted() {
		return option.Errorf("%s: ‹predictive› has scores that the fitted cut-offs of %s are not for: add ‹cutoff=top=K›, "+
			"or ‹cutoff=zero›", verb, m.Dir)
	}
	r.Options.Predictive = true
	return nil
}

// Rule returns the rule for a model. ranked is the number of best classes needed in addition.
func (c Cutoff) Rule(m *model.Model, ranked int) (*Rule, error) {
	r := &Rule{kind: c.kind, cutoffs: m.Cutoffs, labels: m.Tree.Label, Options: scoring.Options{Rule: scoring.Argmax,
		Top: max(ranked, 1)}}
	switch {
	case r.kind != cutDefault:
	case scoring.DefaultRule(m) == scoring.Own && r.cutoffs == nil:
		r.Options.Rule = scoring.Own
	case scoring.DefaultRule(m) == scoring.Argmax:
		r.kind = cutArgmax
	case r.cutoffs != nil && r.cutoffs.Rule == labelset.RuleScut:
		r.kind = cutScut
	case r.cutoffs != nil:
		r.kind = cutInstance
	default: // multi-label data, trained without a fit
		r.kind = cutAbove
	}
	if (r.fitted() || r.kind == cutRank && c.rank == 0) && r.cutoffs == nil {
		return nil, option.Errorf("%s has no fitted cut-offs: train with ‹cutoff=fit›, or use ‹cutoff=rcut=K› or a number",
			m.Dir)
	}
	switch r.kind {
	case cutAbove:
		r.Options.Rule, r.Options.Cutoff = scoring.Threshold, c.value
	case cutInstance, cutScut:
		r.Options.Top = max(ranked, r.cutoffs.Depth)
	case cutRank:
		if r.rank = c.rank; r.rank == 0 {
			r.rank = r.cutoffs.Rank
		}
		r.Options.Top = max(ranked, r.rank)
	}
	return r, nil
}

// Of returns the labels of row i, best first. The slice is valid until the next call.
func (r *Rule) Of(result *scoring.Result, i int) []scoring.Scored {
	if r.kind == cutRank {
		best := result.Best(i)
		return best[:min(r.rank, len(best))]
	}
	if r.kind != cutInstance && r.kind != cutScut {
		return result.Set(i)
	}
	best := result.Best(i)[:r.cutoffs.Depth]
	r.scores, r.classes = r.scores[:0], r.classes[:0]
	for _, s := range best {
		r.scores, r.classes = append(r.scores, s.Score), append(r.classes, r.labels[s.Node])
	}
	if r.kind == cutInstance {
		return best[:labelset.Above(r.scores, r.cutoffs.Threshold(r.scores))]
	}
	r.places = r.cutoffs.PerClass(r.places[:0], r.scores, r.classes)
	r.set = r.set[:0]
	for _, k := range r.places {
		r.set = append(r.set, best[k])
	}
	return r.set
}

// IsDefault reports whether the rule is the model's own.
func (c Cutoff) IsDefault() bool { return c.kind == cutDefault }

// Best returns the cut-off that keeps the k best classes.
func Best(k int) Cutoff { return Cutoff{kind: cutRank, rank: k} }
