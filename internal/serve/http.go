package serve

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"taxon/internal/metrics"
)

//go:embed openapi.json
var openAPI []byte

// request is the body of a call.
type request struct {
	Instances jsonRows `json:"instances"`
	Top       *int     `json:"top"`
	Label     string   `json:"label"` // of :explain
	Words     *int     `json:"words"` // of :explain
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

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	out := []modelInfo{}
	s.each(func(m modelInfo) { out = append(out, m) })
	answer(w, http.StatusOK, map[string]any{"models": out})
}

// call is NAME:predict or NAME:explain.
func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	name, what, _ := strings.Cut(r.PathValue("call"), ":")
	var out any
	err := s.timed(name, what, func() (err error) {
		out, err = s.answerTo(r, name, what)
		return err
	})
	code := codeOf(err)
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	if err != nil {
		out = map[string]string{"error": err.Error()}
	}
	answer(w, code, out)
}

func (s *Server) answerTo(r *http.Request, name, what string) (any, error) {
	m, err := s.find(name)
	if err == nil && what != "predict" && what != "explain" {
		err = refuse(http.StatusNotFound, "no call %q: POST to /v1/models/%s:predict or :explain", what, name)
	}
	if err != nil {
		return nil, err
	}
	in, err := s.read(r)
	if err != nil {
		return nil, err
	}
	q := question{rows: in.Instances, top: in.Top, words: in.Words, label: in.Label}
	if what == "explain" {
		err := s.ask(r.Context(), m, &q, (*loaded).explain)
		return map[string]any{"explanations": q.explanations}, err
	}
	err = s.ask(r.Context(), m, &q, (*loaded).predict)
	return map[string]any{"predictions": q.predictions}, err
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

// jsonRows are instances as they stand in a body.
type jsonRows []json.RawMessage

func (r jsonRows) len() int { return len(r) }

// instance is one of a request: a text or features.
type instance struct {
	Text     *string            `json:"text"`
	Features map[string]float64 `json:"features"`
}

func (r jsonRows) vector(l *loaded, i int, v *vector) error {
	var in instance
	d := json.NewDecoder(strings.NewReader(string(r[i])))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("an instance is {\"text\": ...} or {\"features\": {\"7\": 0.5}}: %w", err)
	}
	switch {
	case (in.Text == nil) == (in.Features == nil):
		return errors.New(`give either "text" or "features"`)
	case in.Text != nil:
		return l.text(*in.Text, v)
	}
	v.given = v.given[:0]
	for name, value := range in.Features {
		n, err := strconv.ParseUint(name, 10, 32)
		if err != nil {
			return fmt.Errorf("feature %q: must be a number as in the training data", name)
		}
		v.given = append(v.given, feature{uint32(n), float32(value)})
	}
	return l.features(v)
}
