package serve

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/model/explain"
	"taxon/internal/model/predict"
	"taxon/internal/model/scoring"
	"taxon/internal/ui/option"
)

// loaded is a model in use. Its weights stay mapped until its last request is done.
type loaded struct {
	name string
	m    *model.Model
	p    *dataset.Projection
	// path maps a node to its names from the root, joined.
	path []string

	users sync.WaitGroup

	// failed is the reason why the model's files can no longer be read. It is nil while they can.
	failed atomic.Pointer[string]

	mu sync.Mutex
	// rules is keyed by the number of ranked labels. Key 0 stands for the model's cut-off.
	rules map[int]*ready
}

// ready holds the scorers for one number of labels.
type ready struct {
	predictor *scoring.Predictor
	// scorers is a pool of *scorer.
	scorers sync.Pool
}

// scorer is the memory for scoring one request.
type scorer struct {
	rule   *predict.Rule
	scorer *scoring.Scorer
	batch  scoring.Batch
	result scoring.Result
	vector vector
}

// vector is an instance in the model's columns, with the memory for converting it.
type vector struct {
	dataset.Vector
	features []feature
	row      dataset.Row
	json     jsontext.Decoder
	in       bytes.Buffer
}

// feature is a feature of an instance, numbered as in the training data.
type feature struct {
	index uint32
	value float64
}

// load opens a model and prepares everything for which its first request would otherwise wait.
func load(name, dir string) (_ *loaded, err error) {
	defer fs.CatchFault(&err)()
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

// retire closes the model when its last request is done.
func (l *loaded) retire() error {
	l.users.Wait()
	return l.m.Close()
}

// reading calls do, which reads the model's mapped files. If a file can no longer be read, because
// it was truncated in place, this and all later calls return an error until the folder is opened
// again: partly initialised data remain in the model.
func (l *loaded) reading(do func() error) error {
	if why := l.failed.Load(); why != nil {
		return refuse(http.StatusServiceUnavailable, "%s", *why)
	}
	err := fs.Guarded(do)()
	if short := l.m.Whole(); short != nil { // the part past its end may have been read as zeros
		err = short
	}
	if errors.Is(err, fs.ErrFault) {
		why := err.Error()
		l.failed.Store(&why)
		return refuse(http.StatusServiceUnavailable, "%s", why)
	}
	return err
}

// ready returns the scorers that rank at least top labels. If top is 0, they rank as many labels as
// the model's cut-off needs.
func (l *loaded) ready(top int) (*ready, error) {
	if top > 0 {
		top = min(1<<bits.Len(uint(top-1)), l.m.Terminals())
	}
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
	if r.predictor, err = scoring.New(l.m, rule.Options); err != nil {
		return nil, err
	}
	r.scorers.New = func() any {
		rule, _ := l.rule(top) // it has succeeded before
		return &scorer{rule: rule, scorer: r.predictor.NewScorer()}
	}
	l.rules[top] = r
	return r, nil
}

// rule returns the prediction rule for a number of labels.
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

// most returns the number of labels that the request asks for. Zero means as many as the model's
// cut-off gives.
func (l *loaded) most(q *question) int { return min(or(q.top, 0), l.m.Terminals()) }

// pieceBytes is the approximate memory of the lists of instances that are scored together.
const pieceBytes = 256 << 10

// predictStep implements kind.step for predict.
func (l *loaded) predictStep(q *question) (int, error) {
	r, err := l.ready(l.most(q))
	if err != nil {
		return 0, err
	}
	return max(1, int(pieceBytes/r.predictor.RowBytes())), nil
}

// predict implements kind.answer for predict: labels with their scores.
func (l *loaded) predict(q *question, first, last int, a *answers) error {
	r, err := l.ready(l.most(q))
	if err != nil {
		return err
	}
	s := r.scorers.Get().(*scorer)
	s.batch.Reset()
	for i := first; i < last; i++ {
		wrong := ""
		if err := q.rows.vector(l, i, &s.vector); err != nil {
			wrong = option.Names(err.Error())
		} else {
			s.batch.Add(s.vector.Index, s.vector.Value)
		}
		a.wrong = append(a.wrong, wrong)
	}
	if s.batch.Rows() > 0 {
		if err := s.scorer.Predict(&s.batch, &s.result); err != nil {
			return err
		}
	}
	row := 0
	for _, wrong := range a.wrong {
		if wrong == "" {
			set := s.rule.Of(&s.result, row)
			if q.top != nil {
				set = set[:min(*q.top, len(set))]
			}
			for _, c := range set {
				a.labels = append(a.labels, label{Node: c.Node, Score: s.result.Shown(row, c)})
			}
			row++
		}
		a.ends = append(a.ends, len(a.labels))
	}
	if s.vector.bytes() <= keptBytes && 8*len(s.batch.Column) <= keptBytes && r.predictor.RowBytes() <= pieceBytes {
		r.scorers.Put(s)
	}
	return nil
}

// bytes returns the memory of the vector's buffers.
func (v *vector) bytes() int {
	return cap(v.row.Text) + 8*(cap(v.features)+cap(v.row.Index)+cap(v.Index))
}

// named returns a label as it is shown.
func (l *loaded) named(n label) Label { return Label{l.m.Tree.Name[n.Node], n.Score, l.path[n.Node]} }

// vector maps a text, if there is one, and v.features, if there are features, to the model's columns,
// and sorts them. The numbers of a table are columns already.
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
	slices.SortFunc(v.features, func(a, b feature) int { return cmp.Compare(a.index, b.index) })
	v.row.Index, v.row.Value = v.row.Index[:0], v.row.Value[:0]
	for i, f := range v.features {
		switch {
		case f.index < first || f.index >= math.MaxInt32+first:
			return fmt.Errorf("feature %d: must be a number as in the training data, which counts from %d", f.index, first)
		case i > 0 && f.index == v.features[i-1].index:
			return fmt.Errorf("feature %d occurs twice", f.index)
		}
		f.index += 1 - first
		value := l.m.Data.Table.Standardise(f.index, f.value)
		if value-value != 0 {
			return fmt.Errorf("feature %d: its value is not finite in float32", v.features[i].index)
		}
		v.row.Index, v.row.Value = append(v.row.Index, f.index), append(v.row.Value, value)
	}
	l.p.Row(&v.row, &v.Vector)
	return nil
}

// explainStep implements kind.step for explain.
func (l *loaded) explainStep(*question) (int, error) { return 1, nil }

// explain implements kind.answer for explain.
func (l *loaded) explain(q *question, first, last int, a *answers) error {
	o := explain.Options{Label: q.label, Top: min(or(q.top, 5), l.m.Terminals()), Words: or(q.words, 5)}
	var v vector
	for i := first; i < last; i++ {
		var e explanation
		err := q.rows.vector(l, i, &v)
		if err == nil {
			e.Explanation, err = o.Explain(l.m, v.Index, v.Value)
		}
		if err != nil {
			e.Error = option.Names(err.Error())
		}
		a.explained = append(a.explained, e)
	}
	return nil
}

// stampOf returns a description of the state of a model's folder that changes with every change of
// it: names, sizes and times of its files, or the error if it cannot be read.
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
