package main

import (
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"taxon/internal/labelset"
	"taxon/internal/model"
)

// cutoff is a value of --cutoff: how the scores of an instance become its labels.
type cutoff struct {
	kind  cutKind
	value float64 // of cutAbove
	rank  int     // of cutRank; 0: the model's
}

type cutKind uint8

const (
	cutDefault  cutKind = iota // argmax, or what the model has for multi-label data
	cutArgmax                  // the best class
	cutAbove                   // all classes above a number
	cutInstance                // all above a threshold of the instance's own
	cutScut                    // all above a threshold of their own
	cutRank                    // the best so many
)

// cutNames are the values without a number.
var cutNames = map[string]cutoff{
	"argmax": {kind: cutArgmax}, "zero": {kind: cutAbove}, "instance": {kind: cutInstance}, "scut": {kind: cutScut}, "rcut": {kind: cutRank},
}

const cutChoices = "argmax, instance, scut, rcut, rcut=K, top=K, zero or a number"

// cutoffFlag defines --cutoff.
func cutoffFlag(f *pflag.FlagSet, c *cutoff) {
	f.Var(&cutoffValue{c: c}, "cutoff", "which classes an instance gets. argmax: the best. As fitted in the training, instance: all above a threshold of its own; scut: all above the class's threshold; rcut: as many of the best as for every other instance. "+
		"rcut=K or top=K: the K best. zero or a number `S`: all with a higher score (default: argmax, or instance for multi-label data)")
}

type cutoffValue struct {
	c    *cutoff
	text string
}

func (v *cutoffValue) String() string { return v.text }
func (v *cutoffValue) Type() string   { return "rule" }
func (v *cutoffValue) Set(s string) error {
	c, err := parseCutoff(s)
	if err == nil {
		*v.c, v.text = c, s
	}
	return err
}

func parseCutoff(s string) (cutoff, error) {
	if c, ok := cutNames[s]; ok {
		return c, nil
	}
	name, number, ranked := strings.Cut(s, "=")
	if ranked && (name == "rcut" || name == "top") {
		k, err := strconv.Atoi(number)
		if err != nil || k < 1 || k > math.MaxInt32 {
			return cutoff{}, valuef("%s=K: K must be a whole number from 1 on", name)
		}
		return cutoff{kind: cutRank, rank: k}, nil
	}
	if x, err := strconv.ParseFloat(s, 64); err == nil {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return cutoff{}, valuef("must be a finite number, or one of %s", cutChoices)
		}
		return cutoff{kind: cutAbove, value: x}, nil
	}
	if name == "top" {
		return cutoff{}, valuef("give the number of labels: top=K")
	}
	if near := nearest(name, []string{"argmax", "instance", "scut", "rcut", "top", "zero"}); near != "" {
		return cutoff{}, valuef("did you mean %s?", near)
	}
	return cutoff{}, valuef("must be %s", cutChoices)
}

// labelRule applies a cut-off of a model to its predictions. One goroutine uses it.
type labelRule struct {
	kind    cutKind
	cutoffs *labelset.Cutoffs
	options model.PredictOptions // for the predictor
	rank    int                  // of cutRank

	scores  []float64
	classes []int32
	places  []int
	set     []model.Scored
	labels  []int32 // node -> label id
}

// rule makes the rule for a model; ranked is how many best classes are wanted besides.
func (c cutoff) rule(m *model.Model, ranked int) (*labelRule, error) {
	r := &labelRule{kind: c.kind, cutoffs: m.Cutoffs, labels: m.Tree.Label, options: model.PredictOptions{Rule: model.Argmax, Top: max(ranked, 1)}}
	switch {
	case r.kind != cutDefault:
	case m.DefaultRule() == model.Argmax:
		r.kind = cutArgmax
	case r.cutoffs != nil:
		r.kind = cutInstance
	default: // of multi-label data, but trained without a fit
		r.kind = cutAbove
	}
	fitted := r.kind == cutInstance || r.kind == cutScut || r.kind == cutRank && c.rank == 0
	if fitted && r.cutoffs == nil {
		return nil, usagef("%s has no fitted cut-offs: train with --cutoff fit, or use --cutoff rcut=K or a number", m.Dir)
	}
	switch r.kind {
	case cutAbove:
		r.options.Rule, r.options.Cutoff = model.Threshold, c.value
	case cutInstance, cutScut:
		r.options.Top = max(ranked, r.cutoffs.Depth)
	case cutRank:
		if r.rank = c.rank; r.rank == 0 {
			r.rank = r.cutoffs.Rank
		}
		r.options.Top = max(ranked, r.rank)
	}
	return r, nil
}

// of gives the labels of row i, best first; valid until the next call.
func (r *labelRule) of(result *model.Result, i int) []model.Scored {
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
