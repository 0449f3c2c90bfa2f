package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"taxon/internal/model"
	"taxon/internal/model/explain"
	"taxon/internal/model/scoring"
)

// question is a call to predict or explain, by HTTP or gRPC.
type question struct {
	rows rows
	// top and words are nil if the call leaves the number to the model.
	top, words *int
	label      string
}

// rows are the instances of a question.
type rows interface {
	len() int
	// vector maps instance i to the columns of l. Its error describes an invalid instance.
	vector(l *loaded, i int, v *vector) error
}

// Label is a predicted class of an instance.
type Label struct {
	Label string  `json:"label"`
	Score float64 `json:"score"`
	Path  string  `json:"path"`
}

// Prediction is the answer for one instance. It holds the labels or the error.
type Prediction struct {
	Labels []Label `json:"labels,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// explanation is the answer of explain for one instance. It holds the explanation or the error.
type explanation struct {
	*explain.Explanation
	Error string `json:"error,omitempty"`
}

// label is a node with the score to show.
type label = scoring.Scored

// answers holds the answers to some instances of a question, which are scored together.
type answers struct {
	// labels are those of all instances, one instance after the other.
	labels []label
	// ends are the ends of the instances' labels in labels.
	ends []int
	// wrong is the error of each instance. It is empty for valid ones.
	wrong     []string
	explained []explanation
}

// reset empties a and keeps its memory.
func (a *answers) reset() {
	a.labels, a.ends, a.wrong, a.explained = a.labels[:0], a.ends[:0], a.wrong[:0], a.explained[:0]
}

// These are the bytes of an explanation for each class and for each term, with their texts.
const (
	classBytes = 128
	termBytes  = 256
)

// bytes returns the approximate memory of the answers, in bytes.
func (a *answers) bytes() int64 {
	n := 16 * cap(a.labels)
	for _, e := range a.explained {
		if e.Explanation == nil {
			continue
		}
		n += classBytes * len(e.Best)
		for _, l := range e.Path {
			n += termBytes * (1 + len(l.For) + len(l.Against) + len(l.Shared) + len(l.Apart))
		}
	}
	return int64(n)
}

// each calls visit for each prediction.
func (a *answers) each(visit func(wrong string, labels []label) error) error {
	first := 0
	for i, end := range a.ends {
		if err := visit(a.wrong[i], a.labels[first:end]); err != nil {
			return err
		}
		first = end
	}
	return nil
}

// kind is a kind of call, which is predict or explain.
type kind struct {
	// step returns the number of instances that are answered at a time.
	step func(*loaded, *question) (int, error)
	// answer answers the instances from first to last-1.
	answer func(l *loaded, q *question, first, last int, a *answers) error
}

var (
	predicting = kind{(*loaded).predictStep, (*loaded).predict}
	explaining = kind{(*loaded).explainStep, (*loaded).explain}
)

// modelInfo describes a model.
type modelInfo struct {
	Name     string `json:"name"`
	Classes  int    `json:"classes"`
	Features int    `json:"features"`
	Text     bool   `json:"text"`
	// Scores is probabilities or margins.
	Scores string        `json:"scores"`
	Report *model.Report `json:"report"`
}

// refusal is an error with its HTTP status.
type refusal struct {
	code int
	why  string
}

func (r refusal) Error() string { return r.why }

// refuse returns a refusal.
func refuse(code int, format string, args ...any) error {
	return refusal{code, fmt.Sprintf(format, args...)}
}

// codeOf returns the HTTP status of an outcome.
func codeOf(err error) int {
	var f refusal
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &f):
		return f.code
	}
	return http.StatusInternalServerError
}

// timed counts a call of a model and measures its time.
func (s *Server) timed(name, what string, call func() error) error {
	began := time.Now()
	err := call()
	if s.models[name] == nil {
		name = "" // unknown names must not create label values
	}
	if what != "predict" && what != "explain" {
		what = ""
	}
	s.figures.Took(name, what, codeOf(err), time.Since(began))
	return err
}

// find returns the slot of a model.
func (s *Server) find(name string) (*slot, error) {
	m := s.models[name]
	if m == nil {
		return nil, refuse(http.StatusNotFound, "no model %q: there are %s", name, strings.Join(s.names(), ", "))
	}
	return m, nil
}

// ask answers a question, a few instances at a time. For each of these parts it waits for a free
// core. It passes the answers to emit, which holds no core and may therefore wait for the caller.
func (s *Server) ask(ctx context.Context, m *slot, q *question, k kind, emit func(*loaded, *answers) error) error {
	n := q.rows.len()
	switch {
	case n == 0:
		return refuse(http.StatusBadRequest, "no instances: give at least one")
	case n > s.o.MaxRows:
		return refuse(http.StatusBadRequest, "%d instances: at most %d at a time", n, s.o.MaxRows)
	case or(q.top, 1) < 1:
		return refuse(http.StatusBadRequest, "top %d: must be 1 or more", *q.top)
	case or(q.words, 0) < 0:
		return refuse(http.StatusBadRequest, "words %d: must be 0 or more", *q.words)
	}
	l := m.acquire()
	defer l.users.Done()
	step := 0
	if err := l.reading(func() (err error) {
		step, err = k.step(l, q)
		return err
	}); err != nil {
		return err
	}
	var a answers
	held := int64(0)
	defer func() { s.room.release(held) }()
	for first := 0; first < n; first += step {
		if err := s.score(ctx, first > 0, func() error {
			a.reset()
			return l.reading(func() error { return k.answer(l, q, first, min(first+step, n), &a) })
		}); err != nil {
			return err
		}
		s.room.release(held)
		held = a.bytes()
		if err := s.room.acquire(held); err != nil {
			held = 0
			return err
		}
		if err := emit(l, &a); err != nil {
			return err
		}
	}
	s.figures.Answered(m.name, n)
	return nil
}

// or returns *p. If p is nil, it returns otherwise.
func or(p *int, otherwise int) int {
	if p != nil {
		return *p
	}
	return otherwise
}

// each describes all models in the order of their names.
func (s *Server) each(visit func(modelInfo)) {
	for _, name := range s.names() {
		l := s.models[name].acquire()
		info := modelInfo{Name: name, Classes: l.m.Terminals(), Features: len(l.m.Feature), Text: l.m.Text != nil,
			Scores: "margins", Report: &l.m.Manifest.Report}
		if l.m.HasProbabilities() {
			info.Scores = "probabilities"
		}
		visit(info)
		l.users.Done()
	}
}
