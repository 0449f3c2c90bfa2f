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
	rows       rows
	top, words *int // nil: what the call does by itself
	label      string
}

// rows are the instances of a question.
type rows interface {
	len() int
	// vector maps instance i to the columns of l. Its error says what is wrong with the instance.
	vector(l *loaded, i int, v *vector) error
}

// Label is a class that an instance is given.
type Label struct {
	Label string  `json:"label"`
	Score float64 `json:"score"`
	Path  string  `json:"path"`
}

// Prediction is the answer for one instance: labels, or what is wrong with it.
type Prediction struct {
	Labels []Label `json:"labels,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// explanation is Prediction for :explain.
type explanation struct {
	*explain.Explanation
	Error string `json:"error,omitempty"`
}

// label is a node with the score that is shown.
type label = scoring.Scored

// answers are those for some instances of a question, which are scored together.
type answers struct {
	labels    []label  // of one instance after the other
	ends      []int    // of the instances' labels
	wrong     []string // what is wrong with each; "": nothing
	explained []explanation
}

func (a *answers) reset() {
	a.labels, a.ends, a.wrong, a.explained = a.labels[:0], a.ends[:0], a.wrong[:0], a.explained[:0]
}

// Bytes that an explanation takes for each of its classes, and for each of its terms, with their
// texts.
const (
	classBytes = 128
	termBytes  = 256
)

// bytes is about how much memory the answers take.
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

// each visits the predictions.
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

// kind is what a call asks for.
type kind struct {
	// step says how many instances are answered at a time.
	step func(*loaded, *question) (int, error)
	// answer answers for the instances from first to before last.
	answer func(l *loaded, q *question, first, last int, a *answers) error
}

var (
	predicting = kind{(*loaded).predictStep, (*loaded).predict}
	explaining = kind{(*loaded).explainStep, (*loaded).explain}
)

// modelInfo describes a model.
type modelInfo struct {
	Name     string        `json:"name"`
	Classes  int           `json:"classes"`
	Features int           `json:"features"`
	Text     bool          `json:"text"`
	Scores   string        `json:"scores"` // probabilities or margins
	Report   *model.Report `json:"report"`
}

// refusal is an error with its HTTP status.
type refusal struct {
	code int
	why  string
}

func (r refusal) Error() string { return r.why }

func refuse(code int, format string, args ...any) error {
	return refusal{code, fmt.Sprintf(format, args...)}
}

// codeOf is the HTTP status of an outcome.
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

// timed counts a call of a model, with the time that it takes.
func (s *Server) timed(name, what string, call func() error) error {
	began := time.Now()
	err := call()
	if s.models[name] == nil {
		name = "" // no caller makes up the values of a figure's label
	}
	if what != "predict" && what != "explain" {
		what = ""
	}
	s.figures.Took(name, what, codeOf(err), time.Since(began))
	return err
}

// find is the place of a model.
func (s *Server) find(name string) (*slot, error) {
	m := s.models[name]
	if m == nil {
		return nil, refuse(http.StatusNotFound, "no model %q: there are %s", name, strings.Join(s.names(), ", "))
	}
	return m, nil
}

// ask answers a question: for some instances at a time, each time once a core is free. It passes the
// answers to emit, which may wait for the caller as it holds no core.
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
	l := m.take()
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
	defer func() { s.room.give(held) }()
	for first := 0; first < n; first += step {
		if err := s.score(ctx, first > 0, func() error {
			a.reset()
			return l.reading(func() error { return k.answer(l, q, first, min(first+step, n), &a) })
		}); err != nil {
			return err
		}
		s.room.give(held)
		held = a.bytes()
		if err := s.room.take(held); err != nil {
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

func or(p *int, otherwise int) int {
	if p != nil {
		return *p
	}
	return otherwise
}

// each describes all models, by name.
func (s *Server) each(visit func(modelInfo)) {
	for _, name := range s.names() {
		l := s.models[name].take()
		info := modelInfo{Name: name, Classes: l.m.Terminals(), Features: len(l.m.Feature), Text: l.m.Text != nil,
			Scores: "margins", Report: &l.m.Manifest.Report}
		if l.m.HasProbabilities() {
			info.Scores = "probabilities"
		}
		visit(info)
		l.users.Done()
	}
}
