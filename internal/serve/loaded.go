package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"taxon/internal/dataset"
	"taxon/internal/explain"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/predict"
)

// loaded is a model in use. Its weights stay mapped until the last request that took it is done.
type loaded struct {
	name  string
	m     *model.Model
	p     *dataset.Projection
	stamp string   // of the manifest that it was opened by
	path  []string // node -> names from the root, joined

	users sync.WaitGroup

	mu    sync.Mutex
	rules map[int]*ready // by how many labels are asked for; 0: the model's cut-off
}

// ready scores for one number of labels.
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
	vector dataset.Vector
}

// mostRules bounds the numbers of labels that are kept ready.
const mostRules = 64

// load opens a model and makes what its first request would wait for.
func load(name, dir, stamp string) (*loaded, error) {
	m, err := model.Open(dir)
	if err != nil {
		return nil, err
	}
	l := &loaded{name: name, m: m, stamp: stamp, rules: map[int]*ready{}, path: predict.Paths(m)}
	if l.p, err = predict.ProjectionOf(m); err == nil {
		_, err = l.ready(0)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return l, nil
}

// retire closes the model when nobody uses it any more.
func (l *loaded) retire() error {
	l.users.Wait()
	return l.m.Close()
}

// ready is what scores for so many labels.
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

// instance is one of a request: a text or features.
type instance struct {
	Text     *string            `json:"text"`
	Features map[string]float64 `json:"features"`
}

// Label is a class that an instance is given.
type Label struct {
	Label string  `json:"label"`
	Score float64 `json:"score"`
	Path  string  `json:"path"`
}

// Prediction answers for one instance: labels, or what is wrong with it.
type Prediction struct {
	Labels []Label `json:"labels,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// predict answers for the instances of a request.
func (l *loaded) predict(raw []json.RawMessage, top int) ([]Prediction, error) {
	r, err := l.ready(min(top, l.m.Terminals()))
	if err != nil {
		return nil, err
	}
	s := r.scorers.Get().(*scorer)
	defer r.scorers.Put(s)
	out := make([]Prediction, len(raw))
	s.batch.Reset()
	var rows []int
	for i, text := range raw {
		if err := l.vector(text, &s.vector); err != nil {
			out[i].Error = err.Error()
			continue
		}
		s.batch.Add(s.vector.Index, s.vector.Value)
		rows = append(rows, i)
	}
	if len(rows) == 0 {
		return out, nil
	}
	if err := s.scorer.Predict(&s.batch, &s.result); err != nil {
		return nil, err
	}
	for k, i := range rows {
		set := s.rule.Of(&s.result, k)
		out[i].Labels = make([]Label, len(set))
		for j, c := range set {
			out[i].Labels[j] = Label{l.m.Tree.Name[c.Node], s.result.Shown(k, c.Score), l.path[c.Node]}
		}
	}
	return out, nil
}

// vector maps an instance to the model's columns.
func (l *loaded) vector(raw json.RawMessage, v *dataset.Vector) error {
	var in instance
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("an instance is {\"text\": ...} or {\"features\": {\"7\": 0.5}}: %w", err)
	}
	text := l.m.Text != nil
	switch {
	case (in.Text == nil) == (in.Features == nil):
		return errors.New(`give either "text" or "features"`)
	case text && in.Text == nil:
		return errors.New(`the model was trained on texts: give "text"`)
	case !text && in.Text != nil:
		return errors.New(`the model was trained on vectors: give "features"`)
	case text:
		l.p.Row(&dataset.Row{Text: []byte(*in.Text)}, v)
		return nil
	}
	row := &dataset.Row{}
	shift := uint64(0)
	if l.m.Data.ZeroBased {
		shift = 1
	}
	type entry struct {
		index uint32
		value float32
	}
	entries := make([]entry, 0, len(in.Features))
	for name, value := range in.Features {
		n, err := strconv.ParseUint(name, 10, 32)
		if n += shift; err != nil || n == 0 || n > math.MaxInt32 {
			return fmt.Errorf("feature %q: must be a number as in the training data, which counts from %d", name, 1-shift)
		}
		x := float32(value)
		if math.IsInf(float64(x), 0) {
			return fmt.Errorf("feature %s: %g is not finite in float32", name, value)
		}
		entries = append(entries, entry{uint32(n), x})
	}
	slices.SortFunc(entries, func(a, b entry) int { return int(a.index) - int(b.index) })
	for i, e := range entries {
		if i > 0 && e.index == entries[i-1].index {
			return fmt.Errorf("feature %d stands twice", uint64(e.index)-shift)
		}
		row.Index, row.Value = append(row.Index, e.index), append(row.Value, e.value)
	}
	l.p.Row(row, v)
	return nil
}

// explanation is Prediction for :explain.
type explanation struct {
	*explain.Explanation
	Error string `json:"error,omitempty"`
}

func (l *loaded) explain(raw []json.RawMessage, label string, top, words int) ([]explanation, error) {
	out := make([]explanation, len(raw))
	var v dataset.Vector
	for i, text := range raw {
		err := l.vector(text, &v)
		if err == nil {
			o := explain.Options{Label: label, Top: min(top, l.m.Terminals()), Words: words}
			out[i].Explanation, err = o.Explain(l.m, v.Index, v.Value)
		}
		if err != nil {
			out[i].Error = err.Error()
		}
	}
	return out, nil
}

// stampOf is the checksum in a model's manifest; "": there is none to read.
func stampOf(ctx context.Context, dir string) string {
	b, err := fs.ReadFile(ctx, fs.Join(dir, "manifest.json"))
	if err != nil {
		return ""
	}
	var head struct {
		Checksum string `json:"checksum"`
	}
	if json.Unmarshal(b, &head) != nil {
		return ""
	}
	return head.Checksum
}
