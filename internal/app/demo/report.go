package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	"taxon/internal/model"
	"taxon/internal/model/measure"
	"taxon/internal/model/predict"
	"taxon/internal/model/scoring"
	"taxon/internal/ui/progress"
)

// Report is the result of the demo, as `taxon demo --json` prints it. Shares are fractions.
type Report struct {
	Licence  string `json:"licence"`
	Keep     string `json:"keep,omitempty"`
	Training int    `json:"training_documents"`
	Test     int    `json:"test_documents"`
	Classes  int    `json:"classes"`
	// Levels is the number of nodes on the longest path from the root.
	Levels int `json:"levels"`
	// Runs holds the run of bsvm and the run of rr-svm, in this order.
	Runs      []Trained `json:"runs"`
	BySize    []Size    `json:"by_size"`
	Agreement Agreement `json:"agreement"`
	// SignTest compares rr-svm with bsvm.
	SignTest *measure.SignTest `json:"sign_test"`
	Wilcoxon *measure.Wilcoxon `json:"wilcoxon"`
	Examples []Example         `json:"examples"`
	// structure is the demo's hierarchy.
	structure *taxonomy.Closure
	// documents are the test documents, in file order.
	documents []document
	// guesses are indexed by run and document.
	guesses [2][]guess
}

// Trained is one model, with the reports of its training and of its test.
type Trained struct {
	Method string         `json:"method"`
	Report *model.Report  `json:"report"`
	Eval   measure.Result `json:"eval"`
}

// Size compares macro-F1 over the classes with From to To training documents.
type Size struct {
	From int `json:"from"`
	// To is nil if the range has no upper end.
	To      *int    `json:"to"`
	Classes int     `json:"classes"`
	Flat    float64 `json:"bsvm"`
	Tree    float64 `json:"rr-svm"`
}

// Agreement counts test documents by the models that rank a true class first.
type Agreement struct {
	Both    int `json:"both"`
	Tree    int `json:"rr_svm_alone"`
	Flat    int `json:"bsvm_alone"`
	Neither int `json:"neither"`
}

// Example is a test document with the paths of its class and of the predictions.
type Example struct {
	Text  string   `json:"text"`
	Truth []string `json:"truth"`
	Flat  []string `json:"bsvm"`
	Tree  []string `json:"rr-svm"`
	// FlatRight and TreeRight report whether the first predicted class is a true one.
	FlatRight bool `json:"bsvm_right"`
	TreeRight bool `json:"rr_svm_right"`
}

// document is a test document.
type document struct {
	labels []string
	text   string
}

// guess is a model's prediction for one document, best class first.
type guess struct {
	// labels are the predicted classes.
	labels []string
	ranked []string
}

// has reports whether label is one of the document's classes.
func (d document) has(label string) bool { return slices.Contains(d.labels, label) }

// describe fills in the counts and reads the test documents and the hierarchy.
func (r *Report) describe(train, test, hierarchy []byte) error {
	s, _, err := taxonomy.Read(bytes.NewReader(hierarchy), hierarchyFile)
	if err != nil {
		return err
	}
	if r.structure, err = taxonomy.NewClosure(s); err != nil {
		return err
	}
	for _, n := range r.structure.Order() {
		r.Levels = max(r.Levels, int(r.structure.Depth(n))+1)
	}
	docs, err := readText(train, trainFile)
	if err != nil {
		return err
	}
	classes := map[string]bool{}
	for _, d := range docs {
		for _, l := range d.labels {
			classes[l] = true
		}
	}
	r.Training, r.Classes = len(docs), len(classes)
	r.documents, err = readText(test, testFile)
	r.Test = len(r.documents)
	return err
}

// readText parses documents in the text format. name is used in errors.
func readText(text []byte, name string) ([]document, error) {
	in := dataset.NewReader(bytes.NewReader(text), dataset.ReaderOptions{Name: name, Text: true})
	var docs []document
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		d := document{text: string(row.Text)}
		for _, l := range row.Labels {
			d.labels = append(d.labels, string(l))
		}
		docs = append(docs, d)
	}
}

// evaluate predicts the test documents with both models and compares the predictions.
func (r *Report) evaluate(ctx context.Context, dir string, threads int) error {
	options := measure.Options{Structure: r.structure, Ranked: true, BySize: true}
	for i := range r.Runs {
		m, err := model.Open(filepath.Join(dir, r.Runs[i].Method))
		if err != nil {
			return err
		}
		if i == 0 {
			options.Classes, options.Documents = m.Labels, m.Data.Documents()
			for _, n := range m.LabelCounts {
				options.TrainSizes = append(options.TrainSizes, int(n))
			}
		}
		r.guesses[i], err = predictTest(ctx, m, filepath.Join(dir, testFile), threads)
		if err = errors.Join(err, m.Close()); err != nil {
			return err
		}
	}
	c, err := measure.NewComparison(options)
	if err != nil {
		return err
	}
	output := func(g guess) measure.Output {
		return measure.Output{Predicted: c.IDs(nil, g.labels), Ranked: c.IDs(nil, g.ranked)}
	}
	for i, d := range r.documents {
		c.Add(c.IDs(nil, d.labels), output(r.guesses[1][i]), output(r.guesses[0][i]))
		r.Agreement.count(d.has(r.guesses[0][i].labels[0]), d.has(r.guesses[1][i].labels[0]))
	}
	tree := c.Result()
	flat := *tree.Other
	r.SignTest, r.Wilcoxon = tree.SignTest, tree.Wilcoxon
	tree.SignTest, tree.Wilcoxon, tree.Other = nil, nil, nil
	for i, s := range tree.BySize {
		r.BySize = append(r.BySize, Size{s.From, s.To, s.Classes, flat.BySize[i].MacroF1, s.MacroF1})
	}
	r.Runs[0].Eval, r.Runs[1].Eval = flat, tree
	r.Examples = r.examples()
	return nil
}

// count counts a document. flat and tree report which models are right.
func (a *Agreement) count(flat, tree bool) {
	switch {
	case flat && tree:
		a.Both++
	case tree:
		a.Tree++
	case flat:
		a.Flat++
	default:
		a.Neither++
	}
}

// predictTest predicts the test documents in their order.
func predictTest(ctx context.Context, m *model.Model, test string, threads int) ([]guess, error) {
	p, err := scoring.New(m, scoring.Options{Rule: scoring.DefaultRule(m), Top: measure.RankedPlaces})
	if err != nil {
		return nil, err
	}
	rows, err := predict.Open(ctx, m, predict.Input{Path: test, Text: true}, progress.Discard{})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names := func(best []scoring.Scored) []string {
		var s []string
		for _, b := range best {
			s = append(s, m.Tree.Name[b.Node])
		}
		return s
	}
	var guesses []guess
	err = predict.Score(ctx, "", p, rows, threads, progress.Discard{}, func(b *scoring.Batch, r *scoring.Result) error {
		for i := range b.Rows() {
			guesses = append(guesses, guess{names(r.Set(i)), names(r.Best(i))})
		}
		return nil
	})
	return guesses, err
}

// textWidth is the greatest length of an example's text, which is two lines of the terminal.
const textWidth = 140

// examples selects the documents to show. Two are documents that only rr-svm predicted correctly
// and for which the errors of bsvm are largest. One is a document that only bsvm predicted
// correctly and for which the error of rr-svm is largest. One is deep in the hierarchy and was
// predicted correctly by both. For the last one, both models were wrong and the advantage of rr-svm
// is largest. Among equals the first in the file is selected.
func (r *Report) examples() []Example {
	var out []Example
	take := func(flat, tree bool, rank func(outcome) int) {
		best, bestRank := -1, 0
		for i, d := range r.documents {
			c := r.judge(i)
			if len([]rune(d.text)) > textWidth || c.flat != flat || c.tree != tree || r.shows(out, d.labels[0]) {
				continue
			}
			if n := rank(c); best < 0 || n > bestRank {
				best, bestRank = i, n
			}
		}
		if best >= 0 {
			out = append(out, r.example(best))
		}
	}
	take(false, true, func(c outcome) int { return c.flatOff })
	take(false, true, func(c outcome) int { return c.flatOff })
	take(true, false, func(c outcome) int { return c.treeOff })
	take(true, true, func(c outcome) int { return c.depth })
	take(false, false, func(c outcome) int { return c.flatOff - c.treeOff })
	return out
}

// outcome compares both models on one document.
type outcome struct {
	// flat and tree report which models are right.
	flat, tree bool
	// flatOff and treeOff are the numbers of edges to the nearest true class.
	flatOff, treeOff int
	// depth is that of the first true class.
	depth int
}

// judge compares both models on document i.
func (r *Report) judge(i int) outcome {
	d := r.documents[i]
	flat, tree := r.guesses[0][i].labels[0], r.guesses[1][i].labels[0]
	return outcome{d.has(flat), d.has(tree), r.distance(d, flat), r.distance(d, tree), len(r.path(d.labels[0]))}
}

// shows reports whether an example of the class exists already. Each example has a different class.
func (r *Report) shows(examples []Example, label string) bool {
	return slices.ContainsFunc(examples, func(e Example) bool { return e.Truth[len(e.Truth)-1] == label })
}

// example returns document i as an example.
func (r *Report) example(i int) Example {
	d, c := r.documents[i], r.judge(i)
	return Example{
		Text: d.text, Truth: r.path(d.labels[0]),
		Flat: r.path(r.guesses[0][i].labels[0]), Tree: r.path(r.guesses[1][i].labels[0]),
		FlatRight: c.flat, TreeRight: c.tree,
	}
}

// distance counts the edges from a label to the nearest class of a document.
func (r *Report) distance(d document, label string) int {
	best := -1
	at, ok := r.structure.Node(label)
	for _, l := range d.labels {
		truth, known := r.structure.Node(l)
		if !ok || !known {
			continue
		}
		if n := r.structure.Distance(at, truth); best < 0 || n < best {
			best = n
		}
	}
	return best
}

// path lists the names from the root to a label.
func (r *Report) path(label string) []string {
	n, ok := r.structure.Node(label)
	if !ok {
		return []string{label}
	}
	var up []string
	for ; n >= 0; n = r.structure.First(n) {
		up = append(up, r.structure.Name(n))
	}
	slices.Reverse(up)
	return up
}
