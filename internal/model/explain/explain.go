// Package explain implements the verb explain: it shows why a model assigns a label to an instance,
// by the contribution of each level of the path to the class's score, and by the features for and
// against it at each level.
//
// Errors that the user can correct are fs.InputErrors or carry an exit status. They name options as
// package option does.
package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/predict"
	"taxon/internal/model/scoring"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
)

// Options configure an explanation.
type Options struct {
	Model string
	// Texts are the instances. Either Texts or Data is set.
	Texts []string
	// Data has the instance, which is one of its rows.
	Data predict.Input
	// Row is the number of the instance in Data, starting at 1.
	Row int
	// Label is the class to explain. If it is empty, it is the predicted one.
	Label string
	// Top is the number of classes to list, at least 1.
	Top int
	// Words is the number of features to list for, and against, at each level.
	Words int
}

// Explanation is the explanation of one instance, as `taxon explain --json` prints it.
type Explanation struct {
	// Label is the class that is explained.
	Label string  `json:"label"`
	Score float64 `json:"score"`
	// Place is the rank of the class among all classes, starting at 1. It is omitted beyond Top.
	Place int     `json:"place,omitempty"`
	Path  []Level `json:"path"`
	// Best are the best classes with their scores.
	Best  []Score `json:"best"`
	Known int     `json:"known_features"`
}

// Score is a class with its score.
type Score struct {
	Label string  `json:"label"`
	Score float64 `json:"score"`
}

// Level is one node of the path.
type Level struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Score is the score from all levels so far.
	Score float64 `json:"score"`
	// Gain is the contribution of this level.
	Gain float64 `json:"gain"`
	// Bias is the part of Gain that is due to the bias.
	Bias    float64 `json:"bias"`
	For     []Term  `json:"for"`
	Against []Term  `json:"against"`

	// Precision is set for models that learn precisions. 1/Precision is the variance of weights,
	// for all features or by feature: of this node around its parent (OfItself), or of its children
	// around it. Among the instance's features, Shared are those whose precision is furthest above
	// its expectation under the prior, Apart those furthest below.
	Precision float64 `json:"precision,omitempty"`
	OfItself  bool    `json:"of_itself,omitempty"`
	Shared    []Trait `json:"shared,omitempty"`
	Apart     []Trait `json:"apart,omitempty"`
}

// Trait is the precision of one feature.
type Trait struct {
	// Feature is the index in the input, starting at 1. It is 0 for the bias.
	Feature   uint32  `json:"feature,omitempty"`
	Word      string  `json:"word,omitempty"`
	Precision float64 `json:"precision"`
	// Expected is the expectation under the prior.
	Expected float64 `json:"expected"`
}

// Term is the contribution of one feature.
type Term struct {
	// Feature is the index in the input, starting at 1.
	Feature uint32  `json:"feature"`
	Word    string  `json:"word,omitempty"`
	Value   float32 `json:"value"`
	Gain    float64 `json:"gain"`
}

// Check returns an error for options that contradict each other.
func (o *Options) Check() error {
	switch {
	case len(o.Texts) > 0 && o.Data.Path != "":
		return option.Errorf("explain: ‹data› and the text %q exclude each other", o.Texts[0])
	case len(o.Texts) > 0 && !o.Data.Text:
		return option.Errorf("explain: unexpected argument %q: %s", o.Texts[0], TextsAre)
	case len(o.Texts) == 0 && o.Data.Path == "":
		return option.Errorf("explain: give an instance: ‹data=FILE› and ‹row=N›, or ‹text='the small dog barked'›")
	}
	for _, t := range o.Texts {
		if strings.TrimSpace(t) == "" {
			return option.Errorf("explain: a text is empty: %s", TextsAre)
		}
	}
	return nil
}

// TextsAre explains how texts are given.
const TextsAre = "texts are arguments beside the switch ‹text›, as in ‹text='the small dog barked'›"

// Run explains the instances in their order.
func Run(ctx context.Context, o Options, ui progress.Reporter) ([]*Explanation, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	m, err := model.Open(o.Model)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if len(o.Texts) > 0 { // each is a line
		if m.Text == nil {
			return nil, option.Errorf("explain: %s was trained on feature vectors: give ‹data=FILE› and ‹row=N›", m.Dir)
		}
		var lines strings.Builder
		for _, t := range o.Texts {
			fmt.Fprintf(&lines, "\t%s\n", strings.Join(strings.Fields(t), " "))
		}
		o.Data.Files.In, o.Data.Path, o.Row = strings.NewReader(lines.String()), fs.Stdin, 1
	}
	o.Data.AsTrained = !o.Data.Text
	batches, err := o.instances(ctx, m, max(len(o.Texts), 1), ui)
	if err != nil {
		return nil, err
	}
	var all []*Explanation
	for _, b := range batches {
		e, err := o.Explain(m, b.Column, b.Value)
		if err != nil {
			return nil, err
		}
		if e.Known == 0 {
			ui.Warn("no feature of the instance is known to the model: its scores are those of the bias alone")
		}
		all = append(all, e)
	}
	return all, nil
}

// instances reads n instances from row o.Row on, each into its own batch.
func (o *Options) instances(ctx context.Context, m *model.Model, n int,
	ui progress.Reporter) ([]*scoring.Batch, error) {
	rows, err := predict.Open(ctx, m, o.Data, ui)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var b scoring.Batch
	var out []*scoring.Batch
	for seen := 0; ; {
		b.Reset()
		err := rows.Fill(&b)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		for at := range b.Rows() {
			if seen++; seen >= o.Row {
				one := new(scoring.Batch)
				one.Add(b.Column[b.Begin[at]:b.Begin[at+1]], b.Value[b.Begin[at]:b.Begin[at+1]])
				if out = append(out, one); len(out) == n {
					return out, nil
				}
			}
		}
		if err != nil {
			return nil, fs.Inputf(o.Data.Path, 0, "has %s: no ‹row=%d›", format.Counted(int64(seen), "instance", "instances"),
				o.Row)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// Explain scores a row in the model's columns, and explains the score of the requested class.
func (o *Options) Explain(m *model.Model, columns []uint32, values []float32) (*Explanation, error) {
	var b scoring.Batch
	b.Add(columns, values)
	p, err := scoring.New(m, scoring.Options{Rule: scoring.TopK, Top: o.Top})
	if err != nil {
		return nil, err
	}
	var r scoring.Result
	if err := p.NewScorer().Predict(&b, &r); err != nil {
		return nil, err
	}
	node := r.Best(0)[0].Node
	if o.Label != "" {
		if node, err = terminalOf(m, o.Label); err != nil {
			return nil, err
		}
	}
	e := &Explanation{Label: m.Tree.Name[node], Known: len(b.Column)}
	for i, s := range r.Best(0) {
		e.Best = append(e.Best, Score{m.Tree.Name[s.Node], s.Score})
		if s.Node == node {
			e.Place = i + 1
		}
	}
	for _, l := range scoring.Explain(m, node, b.Column, b.Value) {
		d := describeLevel(m, l, o.Words)
		d.precisions(m, l.Node, b.Column, o.Words)
		e.Path = append(e.Path, d)
		e.Score = l.Score
	}
	return e, nil
}

func terminalOf(m *model.Model, label string) (int32, error) {
	for n, name := range m.Tree.Name {
		if name == label && m.Tree.Leaf[n] {
			return int32(n), nil
		}
	}
	return 0, option.Errorf("explain: ‹label=%s›: the model has no such class", format.QuoteIfNeeded(label))
}

// precisions adds the learned precisions of node n, for an instance with these columns.
func (d *Level) precisions(m *model.Model, n int32, columns []uint32, words int) {
	if !scoring.HasMoments(m) {
		return
	}
	list := scoring.Precisions(m, int(n))
	if !scoring.ByFeature(m) {
		if len(list) > 0 {
			d.Precision, d.OfItself = list[0].Value, scoring.OfItself(m)
		}
		return
	}
	list = slices.DeleteFunc(list, func(p scoring.Moment) bool {
		return p.Column < len(m.Feature) && !slices.Contains(columns, uint32(p.Column))
	})
	var at []int
	for _, p := range list {
		at = append(at, p.Column)
	}
	var traits []Trait
	for i, x := range scoring.Expected(m, int(n), at) {
		t := Trait{Precision: list[i].Value, Expected: x.Value}
		if x.Column < len(m.Feature) {
			t.Feature, t.Word = m.Feature[x.Column], m.Word(x.Column)
		}
		traits = append(traits, t)
	}
	ratio := func(t Trait) float64 { return t.Precision / t.Expected }
	slices.SortStableFunc(traits, func(a, b Trait) int { return cmp.Compare(ratio(b), ratio(a)) })
	for _, t := range traits {
		if len(d.Shared) < words && ratio(t) > 1 {
			d.Shared = append(d.Shared, t)
		}
	}
	for _, t := range slices.Backward(traits) {
		if len(d.Apart) < words && ratio(t) <= 1 {
			d.Apart = append(d.Apart, t)
		}
	}
}

// describeLevel names a level, and keeps the features with the largest contributions on either
// side.
func describeLevel(m *model.Model, l scoring.Level, words int) Level {
	d := Level{Kind: m.NodeKind(int(l.Node)), Name: m.NodeName(int(l.Node)), Score: l.Score, Gain: l.Gain, Bias: l.Bias,
		For: []Term{}, Against: []Term{}}
	for _, term := range l.Terms {
		side := &d.For
		if term.Gain < 0 {
			side = &d.Against
		}
		if len(*side) == words {
			continue
		}
		*side = append(*side, Term{Feature: m.Feature[term.Column], Word: m.Word(int(term.Column)), Value: term.Value,
			Gain: term.Gain})
	}
	return d
}
