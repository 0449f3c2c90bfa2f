package serve

import (
	_ "embed"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"taxon/internal/metrics"
)

//go:embed openapi.json
var openAPI []byte

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
	q := requests.Get().(*request)
	defer requests.Put(q)
	err := s.timed(name, what, func() error { return s.answerTo(r, name, what, q) })
	switch code := codeOf(err); {
	case err == nil && what == "predict":
		q.out = appendPredictions(q.out[:0], q.predictions)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(q.out)))
		_, _ = w.Write(q.out) // a caller that is gone wants no answer
	case err == nil:
		answer(w, code, map[string]any{"explanations": q.explanations})
	default:
		if code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		answer(w, code, map[string]string{"error": err.Error()})
	}
}

func (s *Server) answerTo(r *http.Request, name, what string, q *request) error {
	m, err := s.find(name)
	if err == nil && what != "predict" && what != "explain" {
		err = refuse(http.StatusNotFound, "no call %q: POST to /v1/models/%s:predict or :explain", what, name)
	}
	if err == nil {
		err = q.read(r.Body, s.o.MaxBytes)
	}
	switch {
	case err != nil:
		return err
	case what == "explain":
		return s.ask(r.Context(), m, &q.question, (*loaded).explain)
	}
	return s.ask(r.Context(), m, &q.question, (*loaded).predict)
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // a caller that is gone wants no answer
}
