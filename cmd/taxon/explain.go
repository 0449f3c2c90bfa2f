package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/fs"
	"taxon/internal/model"
)

// explainOptions are the flags of explain.
type explainOptions struct {
	model string
	texts []string // the arguments
	rows  rowOptions
	row   int
	label string
	top   int
	words int
}

func newExplainCmd(a *app) *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:     "explain --model DIR (--text TEXT... | --data FILE --row N)",
		GroupID: groupModel,
		Short:   "why a model gives an instance its label",
		Long: "Takes the score of the predicted class apart: along its path in the hierarchy, from the root to the class, what each level adds, " +
			"and which words or features speak for and against it there. A class's weights are the sum of what each level changes, so the parts add up to the score; by top-down descent (td) each level is an edge with its margin, and the score is the smallest of them. " +
			"The runners-up stand below with their scores; --label explains another class instead. " +
			"With --text each argument is an instance of its own; with --json several of them make one list.",
		Example: "taxon explain --model wordnet --text 'the small dog barked'\n" +
			"taxon explain --model model --data test.svm.xz --row 17 --json",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.texts, o.rows.zeroSet = args, cmd.Flags().Changed("zero-based")
			return runExplain(cmd.Context(), a, o)
		},
	}
	flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
		f.StringVar(&o.model, "model", "", "the `DIR` of a model")
		f.Var(&textSwitch{&o.rows.text}, "text", "instances are texts: the arguments, or LABEL<TAB>text lines of --data")
		f.Lookup("text").NoOptDefVal = "true"
		f.StringVar(&o.rows.path, "data", "", "instances: a `FILE`, a folder made by ingest, or - for standard input")
		f.BoolVar(&o.rows.zeroBased, "zero-based", false, "feature indices count from 0 (default: as in the training data)")
		intFlag(f, &o.row, "row", 1, 1, math.MaxInt32, "explain the `N`th instance of --data; empty lines do not count")
		f.StringVar(&o.label, "label", "", "explain the class `NAME` instead of the predicted one")
	})
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		intFlag(f, &o.top, "top", 5, 1, 1<<20, "show the `K` best classes")
		intFlag(f, &o.words, "words", 5, 0, 1<<20, "show at most `N` words for and as many against at each level")
	})
	require(cmd, "model")
	return cmd
}

// explanation is `taxon explain --json`.
type explanation struct {
	Label string         `json:"label"` // that is explained
	Score float64        `json:"score"`
	Place int            `json:"place,omitempty"` // among all classes, from 1; left out beyond --top
	Path  []explainLevel `json:"path"`
	Best  []labelScore   `json:"best"` // the best classes with their scores
	Known int            `json:"known_features"`
}

type labelScore struct {
	Label string  `json:"label"`
	Score float64 `json:"score"`
}

// explainLevel is one node of the path.
type explainLevel struct {
	Kind    string        `json:"kind"`
	Name    string        `json:"name"`
	Score   float64       `json:"score"` // down to here
	Gain    float64       `json:"gain"`  // of this level
	Bias    float64       `json:"bias"`  // the part of gain that is the bias
	For     []explainTerm `json:"for"`
	Against []explainTerm `json:"against"`
}

type explainTerm struct {
	Feature uint32  `json:"feature"` // index in the input, from 1
	Word    string  `json:"word,omitempty"`
	Value   float32 `json:"value"`
	Gain    float64 `json:"gain"`
}

func (o *explainOptions) check() error {
	switch {
	case len(o.texts) > 0 && o.rows.path != "":
		return usagef("explain: --data and the text %q exclude each other", o.texts[0])
	case len(o.texts) > 0 && !o.rows.text:
		return usagef("explain: unexpected argument %q: %s", o.texts[0], textsAre)
	case len(o.texts) == 0 && o.rows.path == "":
		return usagef("explain: give an instance: --data FILE and --row N, or --text 'the small dog barked'")
	}
	for _, t := range o.texts {
		if strings.TrimSpace(t) == "" {
			return usagef("explain: a text is empty: %s", textsAre)
		}
	}
	return nil
}

// textsAre says how texts are given.
const textsAre = "texts are arguments beside the switch --text, as in --text 'the small dog barked'"

// textSwitch is --text, which took the text itself once.
type textSwitch struct{ on *bool }

func (t *textSwitch) String() string { return "false" }
func (t *textSwitch) Type() string   { return "bool" }
func (t *textSwitch) Set(s string) (err error) {
	if *t.on, err = strconv.ParseBool(s); err != nil {
		return &valueError{textsAre}
	}
	return nil
}

func runExplain(ctx context.Context, a *app, o explainOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	m, err := openModel(o.model)
	if err != nil {
		return err
	}
	defer m.Close()
	if len(o.texts) > 0 { // a line each
		if m.Text == nil {
			return usagef("explain: %s was trained on feature vectors: give --data FILE and --row N", m.Dir)
		}
		var lines strings.Builder
		for _, t := range o.texts {
			fmt.Fprintf(&lines, "\t%s\n", strings.Join(strings.Fields(t), " "))
		}
		from := *a
		from.stdin, o.rows.path = strings.NewReader(lines.String()), fs.Stdin
		a, o.row = &from, 1
	}
	o.rows.asTrained = !o.rows.text
	batches, err := a.instances(ctx, m, o, max(len(o.texts), 1))
	if err != nil {
		return err
	}
	var all []*explanation
	for i, b := range batches {
		e, err := explain(m, b, o)
		if err != nil {
			return err
		}
		if e.Known == 0 {
			a.ui.Warn("no feature of the instance is known to the model: its scores are those of the bias alone")
		}
		all = append(all, e)
		switch {
		case a.json:
			continue
		case i > 0:
			fmt.Fprintln(a.stdout)
		}
		e.print(a)
	}
	switch {
	case !a.json:
		return nil
	case len(all) == 1:
		return a.printJSON(all[0])
	}
	return a.printJSON(all)
}

// instances reads n instances from row o.row on, each into a batch of its own.
func (a *app) instances(ctx context.Context, m *model.Model, o explainOptions, n int) ([]*model.Batch, error) {
	rows, err := a.openRows(ctx, m, o.rows)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var b model.Batch
	var out []*model.Batch
	for seen := 0; ; {
		b.Reset()
		err := rows.fill(&b)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		for at := range b.Rows() {
			if seen++; seen >= o.row {
				one := new(model.Batch)
				one.Add(b.Column[b.Begin[at]:b.Begin[at+1]], b.Value[b.Begin[at]:b.Begin[at+1]])
				if out = append(out, one); len(out) == n {
					return out, nil
				}
			}
		}
		if err != nil {
			return nil, fs.Inputf(o.rows.path, 0, "has %s: no --row %d", counted(int64(seen), "instance", "instances"), o.row)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// explain scores the one row of b and takes the class asked for apart.
func explain(m *model.Model, b *model.Batch, o explainOptions) (*explanation, error) {
	p, err := m.NewPredictor(model.PredictOptions{Rule: model.TopK, Top: o.top})
	if err != nil {
		return nil, err
	}
	var r model.Result
	if err := p.NewScorer().Predict(b, &r); err != nil {
		return nil, err
	}
	node := r.Best(0)[0].Node
	if o.label != "" {
		if node, err = terminalOf(m, o.label); err != nil {
			return nil, err
		}
	}
	e := &explanation{Label: m.Tree.Name[node], Known: len(b.Column)}
	for i, s := range r.Best(0) {
		e.Best = append(e.Best, labelScore{m.Tree.Name[s.Node], s.Score})
		if s.Node == node {
			e.Place = i + 1
		}
	}
	for _, l := range m.Explain(node, b.Column, b.Value) {
		e.Path = append(e.Path, describeLevel(m, l, o.words))
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
	return 0, usagef("explain: --label %s: the model has no such class", quoteIfOdd(label))
}

// describeLevel names a level and keeps the strongest words on either side.
func describeLevel(m *model.Model, l model.Level, words int) explainLevel {
	d := explainLevel{Kind: m.NodeKind(int(l.Node)), Name: m.NodeName(int(l.Node)), Score: l.Score, Gain: l.Gain, Bias: l.Bias,
		For: []explainTerm{}, Against: []explainTerm{}}
	for _, term := range l.Terms {
		side := &d.For
		if term.Gain < 0 {
			side = &d.Against
		}
		if len(*side) == words {
			continue
		}
		x := explainTerm{Feature: m.Feature[term.Column], Value: term.Value, Gain: term.Gain}
		if m.Text != nil {
			x.Word = m.Text.Vocabulary[term.Column]
		}
		*side = append(*side, x)
	}
	return d
}

// print shows an explanation to a person.
func (e *explanation) print(a *app) {
	fmt.Fprintf(a.stdout, "%s  %+.3f\n", a.style.bold(e.Label), e.Score)
	depth := 0
	for _, l := range e.Path {
		name := l.Name
		switch l.Kind {
		case "virtual":
			name = "(above all)"
		case "spawned":
			name += " itself"
		}
		fmt.Fprintf(a.stdout, "%*s%s  %+.3f", 2+2*depth, "", name, l.Gain)
		if l.Bias != 0 {
			fmt.Fprintf(a.stdout, "  (bias %+.3f)", l.Bias)
		}
		fmt.Fprintln(a.stdout)
		printTerms(a, depth, "for    ", l.For)
		printTerms(a, depth, "against", l.Against)
		depth++
	}
	fmt.Fprintln(a.stdout, "best classes")
	for _, s := range e.Best {
		fmt.Fprintf(a.stdout, "  %+.3f  %s\n", s.Score, s.Label)
	}
}

func printTerms(a *app, depth int, side string, terms []explainTerm) {
	if len(terms) == 0 {
		return
	}
	var parts []string
	for _, t := range terms {
		name := t.Word
		if name == "" {
			name = fmt.Sprintf("feature %d", t.Feature)
		}
		parts = append(parts, fmt.Sprintf("%s %+.3f", name, t.Gain))
	}
	fmt.Fprintf(a.stdout, "%*s%s  %s\n", 6+2*depth, "", side, strings.Join(parts, ", "))
}
