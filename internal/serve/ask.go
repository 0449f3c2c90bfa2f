package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"taxon/internal/explain"
	"taxon/internal/model"
)

// question is a call to predict or explain, by HTTP or gRPC, and its answer.
type question struct {
	rows       rows
	top, words *int // nil: what the call does by itself
	label      string

	predictions  []Prediction
	explanations []explanation
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

// ask answers a question once a core is free for it.
func (s *Server) ask(ctx context.Context, m *slot, q *question, answer func(*loaded, *question) error) error {
	switch n := q.rows.len(); {
	case n == 0:
		return refuse(http.StatusBadRequest, "no instances: give at least one")
	case n > s.o.MaxRows:
		return refuse(http.StatusBadRequest, "%d instances: at most %d at a time", n, s.o.MaxRows)
	case or(q.top, 1) < 1:
		return refuse(http.StatusBadRequest, "top %d: must be 1 or more", *q.top)
	case or(q.words, 0) < 0:
		return refuse(http.StatusBadRequest, "words %d: must be 0 or more", *q.words)
	}
	leave, err := s.admit(ctx)
	if err != nil {
		return err
	}
	defer leave()
	l := m.take()
	defer l.users.Done()
	s.figures.Answered(m.name, q.rows.len())
	return answer(l, q)
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
		info := modelInfo{Name: name, Classes: l.m.Terminals(), Features: len(l.m.Feature), Text: l.m.Text != nil, Scores: "margins", Report: &l.m.Manifest.Report}
		if l.m.HasProbabilities() {
			info.Scores = "probabilities"
		}
		visit(info)
		l.users.Done()
	}
}
