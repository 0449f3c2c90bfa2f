package serve

import (
	_ "embed"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"taxon/internal/cluster/metrics"
	"taxon/internal/ui/option"
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

// list answers GET /v1/models.
func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	out := []modelInfo{}
	s.each(func(m modelInfo) { out = append(out, m) })
	answer(w, http.StatusOK, map[string]any{"models": out})
}

// call answers NAME:predict and NAME:explain.
func (s *Server) call(w http.ResponseWriter, r *http.Request) {
	name, what, _ := strings.Cut(r.PathValue("call"), ":")
	q := requests.Get().(*request)
	q.room = s.room
	defer q.release()
	out := &output{w: w, text: q.out[:0]}
	err := s.timed(name, what, func() error { return s.answerTo(r, name, what, q, out) })
	if q.out = out.text; err == nil {
		err = out.end()
	}
	switch code := codeOf(err); {
	case err == nil:
	case out.begun:
		panic(http.ErrAbortHandler) // a partial answer must not look complete
	case code == http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
		fallthrough
	default:
		answer(w, code, map[string]string{"error": option.Names(err.Error())})
	}
}

// answerTo reads the request and writes the answer to out.
func (s *Server) answerTo(r *http.Request, name, what string, q *request, out *output) error {
	m, err := s.find(name)
	if err == nil && what != "predict" && what != "explain" {
		err = refuse(http.StatusNotFound, "no call %q: POST to /v1/models/%s:predict or :explain", what, name)
	}
	if err == nil {
		err = s.enter()
	}
	if err == nil {
		err = q.read(r.Body, r.ContentLength, s.o.MaxBytes, s.o.MaxRows)
	}
	switch {
	case err != nil:
		return err
	case what == "explain":
		out.text = append(out.text, `{"explanations":[`...)
		return s.ask(r.Context(), m, &q.question, explaining, out.explanations)
	}
	out.text = append(out.text, `{"predictions":[`...)
	return s.ask(r.Context(), m, &q.question, predicting, out.predictions)
}

// answer writes v as JSON.
func answer(w http.ResponseWriter, code int, v any) {
	text, err := json.Marshal(v)
	if err != nil { // such as a number that is not finite
		code, text = http.StatusInternalServerError, []byte(`{"error":"the answer can't be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n')) // the caller may have left
}

// outputBytes is the size up to which an answer is buffered.
const outputBytes = 32 << 10

// output writes an answer in pieces. An answer of a single piece has a Content-Length.
type output struct {
	w http.ResponseWriter
	// text is not written yet.
	text []byte
	// begun reports that something was written.
	begun bool
	// rows counts the instances whose answer was started.
	rows int
}

// row starts the answer to the next instance.
func (o *output) row() {
	if o.rows++; o.rows > 1 {
		o.text = append(o.text, ',')
	}
}

// flush writes the text if it exceeds most bytes.
func (o *output) flush(most int) error {
	if len(o.text) < most {
		return nil
	}
	if !o.begun {
		o.w.Header().Set("Content-Type", "application/json")
	}
	o.begun = true
	_, err := o.w.Write(o.text)
	if o.text = o.text[:0]; err != nil {
		return refuse(statusGone, "the caller is gone")
	}
	return nil
}

// end completes the answer.
func (o *output) end() error {
	o.text = append(o.text, "]}\n"...)
	if !o.begun {
		o.w.Header().Set("Content-Length", strconv.Itoa(len(o.text)))
	}
	return o.flush(0)
}

// predictions writes the answers to predict.
func (o *output) predictions(l *loaded, a *answers) error {
	return a.each(func(wrong string, labels []label) error { return o.prediction(wrong, labels, l.named) })
}

// prediction writes the answer to an instance.
func (o *output) prediction(wrong string, labels []label, named func(label) Label) error {
	if o.row(); wrong != "" {
		o.text = append(quoted(append(o.text, `{"error":`...), wrong), '}')
		return o.flush(outputBytes)
	}
	o.text = append(o.text, `{"labels":[`...)
	for k, given := range labels {
		if k > 0 {
			o.text = append(o.text, ',')
		}
		l := named(given)
		o.text = quoted(append(o.text, `{"label":`...), l.Label)
		o.text = strconv.AppendFloat(append(o.text, `,"score":`...), l.Score, 'g', -1, 64)
		o.text = append(quoted(append(o.text, `,"path":`...), l.Path), '}')
		if err := o.flush(outputBytes); err != nil {
			return err
		}
	}
	o.text = append(o.text, "]}"...)
	return o.flush(outputBytes)
}

// explanations writes the answers to explain.
func (o *output) explanations(_ *loaded, a *answers) error {
	for _, e := range a.explained {
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		o.row()
		o.text = append(o.text, text...)
		if err := o.flush(outputBytes); err != nil {
			return err
		}
	}
	return nil
}

// quoted appends s as a JSON string. Invalid UTF-8 becomes U+FFFD.
func quoted(out []byte, s string) []byte {
	out, _ = jsontext.AppendQuote(out, s) // its error reports invalid UTF-8
	return out
}
