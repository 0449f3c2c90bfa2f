package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"runtime"

	"taxon/internal/dataset"
	"taxon/internal/eval"
	"taxon/internal/model"
	"taxon/internal/taxonomy"
)

// demoReport is `taxon demo --json`. Shares are fractions.
type demoReport struct {
	Licence   string            `json:"licence"`
	Keep      string            `json:"keep,omitempty"`
	Training  int               `json:"training_documents"`
	Test      int               `json:"test_documents"`
	Classes   int               `json:"classes"`
	Levels    int               `json:"levels"` // nodes on the longest path from the root
	Runs      []demoTrained     `json:"runs"`   // bsvm, rr-svm
	BySize    []demoSize        `json:"by_size"`
	Agreement demoAgreement     `json:"agreement"`
	SignTest  *eval.SignTest    `json:"sign_test"` // rr-svm first
	Wilcoxon  *eval.Wilcoxon    `json:"wilcoxon"`
	Examples  []demoExample     `json:"examples"`
	structure *taxonomy.Closure // of the demo's hierarchy
	documents []demoDocument    // for the test, in file order
	guesses   [2][]demoGuess    // by run and document
}

// demoTrained is one model: how its training went, how it did on the test.
type demoTrained struct {
	Method string        `json:"method"`
	Report *model.Report `json:"report"`
	Eval   eval.Result   `json:"eval"`
}

// demoSize compares macro-F1 over the classes of From to To training documents.
type demoSize struct {
	From    int     `json:"from"`
	To      *int    `json:"to"` // null: no upper end
	Classes int     `json:"classes"`
	Flat    float64 `json:"bsvm"`
	Tree    float64 `json:"rr-svm"`
}

// demoAgreement counts test documents by who put a true class first.
type demoAgreement struct {
	Both    int `json:"both"`
	Tree    int `json:"rr_svm_alone"`
	Flat    int `json:"bsvm_alone"`
	Neither int `json:"neither"`
}

// demoExample is a test document with the paths of its class and of the predictions.
type demoExample struct {
	Text  string   `json:"text"`
	Truth []string `json:"truth"`
	Flat  []string `json:"bsvm"`
	Tree  []string `json:"rr-svm"`
	// FlatRight and TreeRight say whether the first class was a true one.
	FlatRight bool `json:"bsvm_right"`
	TreeRight bool `json:"rr_svm_right"`
}

type demoDocument struct {
	labels []string
	text   string
}

// demoGuess is what a model says about one document, best first.
type demoGuess struct {
	labels []string // predicted
	ranked []string
}

func (d demoDocument) has(label string) bool {
	for _, l := range d.labels {
		if l == label {
			return true
		}
	}
	return false
}

// describe fills in the counts and reads the test documents and the hierarchy.
func (r *demoReport) describe(train, test, hierarchy []byte) error {
	s, _, err := taxonomy.Read(bytes.NewReader(hierarchy), demoHierarchyFile)
	if err != nil {
		return err
	}
	if r.structure, err = taxonomy.NewClosure(s); err != nil {
		return err
	}
	for _, n := range r.structure.Order() {
		r.Levels = max(r.Levels, int(r.structure.Depth(n))+1)
	}
	docs, err := readDemoText(train, demoTrainFile)
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
	r.documents, err = readDemoText(test, demoTestFile)
	r.Test = len(r.documents)
	return err
}

func readDemoText(text []byte, name string) ([]demoDocument, error) {
	in := dataset.NewReader(bytes.NewReader(text), dataset.ReaderOptions{Name: name, Text: true})
	var docs []demoDocument
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		d := demoDocument{text: string(row.Text)}
		for _, l := range row.Labels {
			d.labels = append(d.labels, string(l))
		}
		docs = append(docs, d)
	}
}

// demoRanks is how many classes are ranked: P@5 and nDCG@5 need five.
const demoRanks = 5

// evaluate lets both models predict the test documents and compares them.
func (r *demoReport) evaluate(ctx context.Context, dir string, test []byte, threads int) error {
	options := eval.Options{Structure: r.structure, Ranked: true, BySize: true}
	for i := range r.Runs {
		m, err := model.Open(filepath.Join(dir, r.Runs[i].Method))
		if err != nil {
			return err
		}
		if i == 0 {
			options.Classes = m.Labels
			for _, n := range m.LabelCounts {
				options.TrainSizes = append(options.TrainSizes, int(n))
			}
		}
		r.guesses[i], err = demoPredict(ctx, m, test, threads)
		if err = errors.Join(err, m.Close()); err != nil {
			return err
		}
	}
	c, err := eval.NewComparison(options)
	if err != nil {
		return err
	}
	output := func(g demoGuess) eval.Output {
		return eval.Output{Predicted: c.IDs(nil, g.labels), Ranked: c.IDs(nil, g.ranked)}
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
		r.BySize = append(r.BySize, demoSize{s.From, s.To, s.Classes, flat.BySize[i].MacroF1, s.MacroF1})
	}
	r.Runs[0].Eval, r.Runs[1].Eval = flat, tree
	r.Examples = r.examples()
	return nil
}

func (a *demoAgreement) count(flat, tree bool) {
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

// demoPredict predicts the test documents in their order.
func demoPredict(ctx context.Context, m *model.Model, test []byte, threads int) ([]demoGuess, error) {
	if m.Text == nil {
		return nil, errors.New("the demo's model has no vocabulary")
	}
	project, err := dataset.NewProjection(m.Feature, m.Text.Vocabulary, m.Text.IDF)
	if err != nil {
		return nil, err
	}
	p, err := m.NewPredictor(model.PredictOptions{Rule: m.DefaultRule(), Top: demoRanks})
	if err != nil {
		return nil, err
	}
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	in := dataset.NewReader(bytes.NewReader(test), dataset.ReaderOptions{Name: demoTestFile, Text: true})
	var v dataset.Vector
	var guesses []demoGuess
	names := func(best []model.Scored) []string {
		var s []string
		for _, b := range best {
			s = append(s, m.Tree.Name[b.Node])
		}
		return s
	}
	err = p.Stream(ctx, threads, func(b *model.Batch) error {
		for !b.Full() {
			row, err := in.Read()
			if err != nil {
				return err
			}
			project.Row(row, &v)
			b.Add(v.Index, v.Value)
		}
		return nil
	}, func(b *model.Batch, res *model.Result) error {
		for i := range b.Rows() {
			guesses = append(guesses, demoGuess{names(res.Set(i)), names(res.Best(i))})
		}
		return nil
	})
	return guesses, err
}

// demoTextWidth is the longest text an example may have: two lines of the terminal.
const demoTextWidth = 140

// examples chooses documents to show: two that rr-svm alone got right, those where bsvm
// went farthest astray; one that bsvm alone got right, where rr-svm went farthest; one
// deep one that both got right; and one that both got wrong, where rr-svm came closer
// most. Ties go to the first in the file.
func (r *demoReport) examples() []demoExample {
	var out []demoExample
	take := func(flat, tree bool, rank func(demoCase) int) {
		best, bestRank := -1, 0
		for i, d := range r.documents {
			c := r.judge(i)
			if len([]rune(d.text)) > demoTextWidth || c.flat != flat || c.tree != tree || r.shows(out, d.labels[0]) {
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
	take(false, true, func(c demoCase) int { return c.flatOff })
	take(false, true, func(c demoCase) int { return c.flatOff })
	take(true, false, func(c demoCase) int { return c.treeOff })
	take(true, true, func(c demoCase) int { return c.depth })
	take(false, false, func(c demoCase) int { return c.flatOff - c.treeOff })
	return out
}

// demoCase is how the two did on one document.
type demoCase struct {
	flat, tree       bool // right
	flatOff, treeOff int  // steps to the nearest true class
	depth            int  // of the first true class
}

func (r *demoReport) judge(i int) demoCase {
	d := r.documents[i]
	flat, tree := r.guesses[0][i].labels[0], r.guesses[1][i].labels[0]
	return demoCase{d.has(flat), d.has(tree), r.distance(d, flat), r.distance(d, tree), len(r.path(d.labels[0]))}
}

// shows tells whether an example has the class already, so that each shows another.
func (r *demoReport) shows(examples []demoExample, label string) bool {
	for _, e := range examples {
		if e.Truth[len(e.Truth)-1] == label {
			return true
		}
	}
	return false
}

func (r *demoReport) example(i int) demoExample {
	d, c := r.documents[i], r.judge(i)
	return demoExample{
		Text: d.text, Truth: r.path(d.labels[0]),
		Flat: r.path(r.guesses[0][i].labels[0]), Tree: r.path(r.guesses[1][i].labels[0]),
		FlatRight: c.flat, TreeRight: c.tree,
	}
}

// distance counts the edges from a label to the nearest of a document's classes.
func (r *demoReport) distance(d demoDocument, label string) int {
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
func (r *demoReport) path(label string) []string {
	n, ok := r.structure.Node(label)
	if !ok {
		return []string{label}
	}
	var up []string
	for ; n >= 0; n = r.structure.First(n) {
		up = append(up, r.structure.Name(n))
	}
	for i, j := 0, len(up)-1; i < j; i, j = i+1, j-1 {
		up[i], up[j] = up[j], up[i]
	}
	return up
}
