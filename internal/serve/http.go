package serve

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"taxon/internal/metrics"
	"taxon/internal/model"
)

//go:embed openapi.json
var openAPI []byte

// request is the body of a call.
type request struct {
	Instances []json.RawMessage `json:"instances"`
	Top       *int              `json:"top"`
	Label     string            `json:"label"` // of :explain
	Words     *int              `json:"words"` // of :explain
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

// handler routes the calls.
func (s *Server) handler(p *metrics.Process) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", p.Handler())
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }
	mux.HandleFunc("GET /healthz", ok)
	mux.HandleFunc("GET /readyz", ok) // models are open before anything listens
	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI)
	})
	mux.HandleFunc("GET /v1/models", s.list)
	mux.HandleFunc("POST /v1/models/{call}", s.call)
	return mux
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

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	out := []modelInfo{}
	for _, name := range s.names() {
		l := s.models[name].take()
		info := modelInfo{Name: name, Classes: l.m.Terminals(), Features: len(l.m.Feature), Text: l.m.Text != nil, Scores: "margins", Report: &l.m.Manifest.Report}
		if l.m.HasProbabilities() {
			info.Scores = "probabilities"
		}
		out = append(out, info)
		l.users.Done()
	}
	answer(w, http.StatusOK, map[string]any{"models": out})
}

// call is NAME:predict or NAME:explain.
func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	name, what, _ := strings.Cut(r.PathValue("call"), ":")
	out, err := s.answerTo(r, name, what)
	code := http.StatusOK
	if err != nil {
		code = http.StatusInternalServerError
		var f refusal
		if errors.As(err, &f) {
			code = f.code
		}
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		out = map[string]string{"error": err.Error()}
	}
	answer(w, code, out)
	if s.models[name] == nil {
		name = "" // no caller makes up the values of a figure's label
	}
	if what != "predict" && what != "explain" {
		what = ""
	}
	s.figures.Took(name, what, code, time.Since(began))
}

func (s *Server) answerTo(r *http.Request, name, what string) (any, error) {
	m := s.models[name]
	switch {
	case m == nil:
		return nil, refuse(http.StatusNotFound, "no model %q: there are %s", name, strings.Join(s.names(), ", "))
	case what != "predict" && what != "explain":
		return nil, refuse(http.StatusNotFound, "no call %q: POST to /v1/models/%s:predict or :explain", what, name)
	}
	in, err := s.read(r)
	if err != nil {
		return nil, err
	}
	leave, err := s.admit(r.Context())
	if err != nil {
		return nil, refusal{http.StatusTooManyRequests, err.Error()}
	}
	defer leave()
	l := m.take()
	defer l.users.Done()
	s.figures.Answered(name, len(in.Instances))
	if what == "explain" {
		out, err := l.explain(in.Instances, in.Label, or(in.Top, 5), or(in.Words, 5))
		return map[string]any{"explanations": out}, err
	}
	out, err := l.predict(in.Instances, or(in.Top, 0))
	return map[string]any{"predictions": out}, err
}

func or(p *int, otherwise int) int {
	if p != nil {
		return *p
	}
	return otherwise
}

// read reads and checks a body.
func (s *Server) read(r *http.Request) (*request, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, s.o.MaxBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes: send fewer instances at a time", s.o.MaxBytes)
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "the body did not arrive whole")
	}
	in := new(request)
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	err = d.Decode(in)
	if err == nil && d.More() {
		err = errors.New("there is text behind the object")
	}
	switch {
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "the body must be {\"instances\": [...], \"top\": 5}: %v", err)
	case len(in.Instances) == 0:
		return nil, refuse(http.StatusBadRequest, "no instances: the body must be {\"instances\": [...]}")
	case len(in.Instances) > s.o.MaxRows:
		return nil, refuse(http.StatusBadRequest, "%d instances: at most %d at a time", len(in.Instances), s.o.MaxRows)
	case in.Top != nil && *in.Top < 1:
		return nil, refuse(http.StatusBadRequest, "top %d: must be 1 or more", *in.Top)
	case in.Words != nil && *in.Words < 0:
		return nil, refuse(http.StatusBadRequest, "words %d: must be 0 or more", *in.Words)
	}
	return in, nil
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a caller that is gone wants no answer
}
