package serve

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"taxon/internal/dataset"
	"taxon/internal/explain"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/predict"
)

// loaded is a model in use. Its weights stay mapped until its last request is done.
type loaded struct {
	name string
	m    *model.Model
	p    *dataset.Projection
	path []string // node -> names from the root, joined

	users sync.WaitGroup

	mu    sync.Mutex
	rules map[int]*ready // by how many labels are asked for; 0: the model's cut-off
}

// ready has the scorers for one number of labels.
type ready struct {
	predictor *model.Predictor
	scorers   sync.Pool // of *scorer
}

// scorer is the memory of one request's scoring.
type scorer struct {
	rule   *predict.Rule
	scorer *model.Scorer
	batch  model.Batch
	result model.Result
	vector vector
	rows   []int // of the batch: their places in the request
}

// vector is an instance in the model's columns, and the memory for making it.
type vector struct {
	dataset.Vector
	given []feature
	row   dataset.Row
	json  jsontext.Decoder
	in    bytes.Buffer
}

// feature is a feature of an instance, numbered as in the training data.
type feature struct {
	index uint32
	value float64
}

// mostRules bounds the numbers of labels whose scorers are kept.
const mostRules = 64

// load opens a model and prepares what its first request would wait for.
func load(name, dir string) (*loaded, error) {
	m, err := model.Open(dir)
	if err != nil {
		return nil, err
	}
	l := &loaded{name: name, m: m, rules: map[int]*ready{}, path: predict.Paths(m)}
	if l.p, err = predict.ProjectionOf(m); err == nil {
		_, err = l.ready(0)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return l, nil
}

// retire closes the model when no request uses it any more.
func (l *loaded) retire() error {
	l.users.Wait()
	return l.m.Close()
}

// ready returns the scorers for this many labels.
func (l *loaded) ready(top int) (*ready, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.rules[top]; r != nil {
		return r, nil
	}
	rule, err := l.rule(top)
	if err != nil {
		return nil, err
	}
	r := &ready{}
	if r.predictor, err = l.m.NewPredictor(rule.Options); err != nil {
		return nil, err
	}
	r.scorers.New = func() any {
		rule, _ := l.rule(top) // it was made before
		return &scorer{rule: rule, scorer: r.predictor.NewScorer()}
	}
	if len(l.rules) >= mostRules {
		clear(l.rules)
	}
	l.rules[top] = r
	return r, nil
}

func (l *loaded) rule(top int) (*predict.Rule, error) {
	var c predict.Cutoff
	if top > 0 {
		c = predict.Best(top)
	}
	rule, err := c.Rule(l.m, 1)
	if err == nil {
		rule.Options.RowByRow = true
	}
	return rule, err
}

// predict answers for the instances of a request.
func (l *loaded) predict(q *question) error {
	r, err := l.ready(min(or(q.top, 0), l.m.Terminals()))
	if err != nil {
		return err
	}
	s := r.scorers.Get().(*scorer)
	defer r.scorers.Put(s)
	out := make([]Prediction, q.rows.len())
	q.predictions = out
	s.batch.Reset()
	s.rows = s.rows[:0]
	for i := range out {
		if err := q.rows.vector(l, i, &s.vector); err != nil {
			out[i].Error = err.Error()
			continue
		}
		s.batch.Add(s.vector.Index, s.vector.Value)
		s.rows = append(s.rows, i)
	}
	if len(s.rows) == 0 {
		return nil
	}
	if err := s.scorer.Predict(&s.batch, &s.result); err != nil {
		return err
	}
	for k, i := range s.rows {
		set := s.rule.Of(&s.result, k)
		out[i].Labels = make([]Label, len(set))
		for j, c := range set {
			out[i].Labels[j] = Label{l.m.Tree.Name[c.Node], s.result.Shown(k, c), l.path[c.Node]}
		}
	}
	return nil
}

// vector maps a text, if there is one, and v.given, if there are features, to the model's
// columns, and sorts them. The numbers of a table are columns already.
func (l *loaded) vector(text *string, features bool, v *vector) error {
	both := l.m.Data.Table.Both()
	switch {
	case text == nil && !features, text != nil && features && !both:
		return errors.New(`give either "text" or "features"`)
	case l.m.Text == nil && text != nil:
		return errors.New(`the model was trained on vectors: give "features"`)
	case l.m.Text != nil && !both && text == nil:
		return errors.New(`the model was trained on texts: give "text"`)
	}
	if v.row.Text = v.row.Text[:0]; text != nil {
		v.row.Text = append(v.row.Text, *text...)
	}
	first := uint32(1)
	if l.m.Data.ZeroBased {
		first = 0
	}
	slices.SortFunc(v.given, func(a, b feature) int { return cmp.Compare(a.index, b.index) })
	v.row.Index, v.row.Value = v.row.Index[:0], v.row.Value[:0]
	for i, f := range v.given {
		switch {
		case f.index < first || f.index >= math.MaxInt32+first:
			return fmt.Errorf("feature %d: must be a number as in the training data, which counts from %d", f.index, first)
		case i > 0 && f.index == v.given[i-1].index:
			return fmt.Errorf("feature %d stands twice", f.index)
		}
		f.index += 1 - first
		value := l.m.Data.Table.Standardise(f.index, f.value)
		if value-value != 0 {
			return fmt.Errorf("feature %d: its value is not finite in float32", v.given[i].index)
		}
		v.row.Index, v.row.Value = append(v.row.Index, f.index), append(v.row.Value, value)
	}
	l.p.Row(&v.row, &v.Vector)
	return nil
}

func (l *loaded) explain(q *question) error {
	q.explanations = make([]explanation, q.rows.len())
	o := explain.Options{Label: q.label, Top: min(or(q.top, 5), l.m.Terminals()), Words: or(q.words, 5)}
	var v vector
	for i := range q.explanations {
		err := q.rows.vector(l, i, &v)
		if err == nil {
			q.explanations[i].Explanation, err = o.Explain(l.m, v.Index, v.Value)
		}
		if err != nil {
			q.explanations[i].Error = err.Error()
		}
	}
	return nil
}

// stampOf says what is in a model's folder: names, sizes and times of its files, or why it can't be
// read. It changes with each of them.
func stampOf(dir string) string {
	files, err := fs.ReadDir(dir)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "%s: %d bytes, %d\n", f.Name(), f.Size(), f.ModTime().UnixNano())
	}
	return b.String()
}
