// Package page shows a cluster in a browser, on the address of the coordinator's metrics: jobs
// with their curves, workers, stores, logs. Callers with the right to it can cancel and resume.
// The page takes its data from JSON endpoints, which programs may use too
// (docs/observability.md). Live data are server-sent events.
package page

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/cluster/jobs"
	"taxon/internal/cluster/metrics"
	"taxon/internal/cluster/secure"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

//go:embed static
var static embed.FS

// every is the time between two messages to watchers.
const every = time.Second

// mostLines is the number of lines of a log that are shown.
const mostLines = 200

// mostSpans bounds the spans of the workers' past. Each takes some 100 bytes.
const mostSpans = 4000

// Page answers browsers.
type Page struct {
	mu    sync.Mutex
	calls taxonv1.JobsClient
	trace func(*taxonv1.JobStatus) any
	shown *state
	at    time.Time // of shown
	past  []byte    // the timeline as JSON
	then  time.Time // of past
}

// state is the part of the cluster's state that an event sends to a browser.
type state struct {
	Jobs    []jobs.Line
	Workers []jobs.Worker
	Stores  []Store

	texts map[string][]byte // the lists as JSON, made once for all watchers
}

// Store is a shard, a part of what `taxon stores --json` says.
type Store struct {
	Store    string   `json:"store"`
	Addr     string   `json:"addr"`
	State    string   `json:"state"`
	Values   uint64   `json:"values"`
	Bytes    uint64   `json:"bytes"`
	Free     uint64   `json:"free_bytes"`
	Reserve  uint64   `json:"reserve_bytes"`
	Capacity uint64   `json:"capacity_bytes"`
	Jobs     []string `json:"jobs"`    // that have values on it, at most 100
	Version  string   `json:"version"` // of its taxon
}

// Job is a job with its curves.
type Job struct {
	jobs.Status
	Trace any            `json:"trace"` // as trace.jsonl, a list
	Log   []jobs.LogLine `json:"log"`   // the last lines
}

// Timeline is what the workers are running and ran last.
type Timeline struct {
	Now     int64        `json:"now"` // as Begun
	Workers []WorkerPast `json:"workers"`
}

// WorkerPast is a worker in a Timeline.
type WorkerPast struct {
	Worker string `json:"worker"`
	Spans  []Span `json:"spans"` // oldest first
}

// Span is the time of a task on a worker, or of several tasks that it took together.
type Span struct {
	Job   string `json:"job"`
	Sweep uint32 `json:"sweep"`
	Phase string `json:"phase"`
	Step  uint32 `json:"step"`
	// Task is the number of the first task.
	Task  uint32 `json:"task"`
	Tasks uint32 `json:"tasks"`
	// Begun is when the task began, in milliseconds since 1970.
	Begun int64 `json:"begun"`
	// Ended is when the task ended, in milliseconds since 1970. It is 0 while the task runs.
	Ended int64 `json:"ended"`
	// Result is done, lost, failed, returned, revoked, missing or away. It is empty while the task
	// runs.
	Result string `json:"result"`
}

// New returns the page of a coordinator. With a nil client, Use names one later.
func New(jobs taxonv1.JobsClient) *Page { return &Page{calls: jobs} }

// Use makes the page show another coordinator's jobs. With a nil client it refuses calls until the
// next Use, and watchers keep what they have seen. trace returns the rows of a job's curves. A nil
// trace takes them from the job's status.
func (p *Page) Use(jobs taxonv1.JobsClient, trace func(*taxonv1.JobStatus) any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.trace, p.at, p.then = jobs, trace, time.Time{}, time.Time{}
}

// jobs returns the calls of the coordinator that is shown.
func (p *Page) jobs() (calls taxonv1.JobsClient, trace func(*taxonv1.JobStatus) any, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == nil {
		return nil, nil, errIdle
	}
	if trace = p.trace; trace == nil {
		trace = func(st *taxonv1.JobStatus) any { return jobs.TraceOf(st) }
	}
	return p.calls, trace, nil
}

var errIdle = status.Error(codes.Unavailable, "nothing is trained at the moment: the training has "+
	"not begun, or is over")

// Extra returns the page's paths and who may call them.
func (p *Page) Extra() metrics.Extra {
	read, write := []secure.Role{secure.Submit, secure.ReadOnly}, []secure.Role{secure.Submit}
	anyone := []secure.Role{secure.Anyone} // the page itself says nothing; its data need a role
	return metrics.Extra{
		Routes: func(mux *http.ServeMux) {
			files, _ := fs.Sub(static, "static") // it is in the binary
			for _, name := range []string{"/{$}", "/page.js", "/page.css"} {
				mux.Handle("GET "+name, guarded(http.FileServerFS(files)))
			}
			mux.HandleFunc("GET /api/v1/jobs", p.show("jobs"))
			mux.HandleFunc("GET /api/v1/workers", p.show("workers"))
			mux.HandleFunc("GET /api/v1/stores", p.show("stores"))
			mux.HandleFunc("GET /api/v1/timeline", p.timeline)
			mux.HandleFunc("GET /api/v1/jobs/{job}", p.job)
			mux.HandleFunc("POST /api/v1/jobs/{call}", p.act)
			mux.HandleFunc("GET /api/v1/events", p.events)
		},
		Policy: secure.Policy{"/": anyone, "/page.js": anyone, "/page.css": anyone, "/api/v1/jobs": read,
			"/api/v1/jobs/": read, "POST /api/v1/jobs/": write,
			"/api/v1/workers": read, "/api/v1/stores": read, "/api/v1/timeline": read, "/api/v1/events": read},
	}
}

// guarded forbids the page to load anything from elsewhere, and others to frame it.
func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src " +
				"data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		} {
			w.Header().Set(name, value)
		}
		h.ServeHTTP(w, r)
	})
}

// now returns the cluster's state. All watchers share one call, which is repeated after a while.
func (p *Page) now(ctx context.Context) (*state, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < every/2 {
		return p.shown, nil
	}
	if p.calls == nil {
		return nil, errIdle
	}
	all, err := p.calls.ListJobs(ctx, &taxonv1.ListJobsRequest{})
	if err != nil {
		return nil, err
	}
	workers, err := p.calls.Workers(ctx, &taxonv1.WorkersRequest{})
	if err != nil {
		return nil, err
	}
	stores, err := p.calls.Stores(ctx, &taxonv1.StoresRequest{})
	if err != nil {
		return nil, err
	}
	s := state{Jobs: []jobs.Line{}, Workers: []jobs.Worker{}, Stores: []Store{}}
	for _, j := range all.GetJobs() {
		line := jobs.LineOf(j)
		line.Error = option.Names(line.Error)
		s.Jobs = append(s.Jobs, line)
	}
	for _, w := range workers.GetWorkers() {
		s.Workers = append(s.Workers, jobs.WorkerOf(w))
	}
	for _, k := range stores.GetShards() {
		s.Stores = append(s.Stores, Store{Store: k.GetId(), Addr: k.GetAddr(), State: jobs.MemberState(k.GetState()),
			Values: k.GetValues(), Bytes: k.GetBytes(),
			Free: k.GetFree(), Reserve: k.GetReserve(), Capacity: k.GetCapacity(), Jobs: append([]string{}, k.GetJobs()...),
			Version: k.GetVersion()})
	}
	s.texts = map[string][]byte{}
	for name, part := range map[string]any{"jobs": s.Jobs, "workers": s.Workers, "stores": s.Stores} {
		s.texts[name], _ = json.Marshal(part) // plain values
	}
	p.shown, p.at = &s, time.Now()
	return p.shown, nil
}

func (p *Page) show(part string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s, err := p.now(r.Context())
		if err != nil {
			refuse(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = fmt.Fprintf(w, "{%q: %s}\n", part, s.texts[part]) // a browser that is gone wants no answer
	}
}

// timeline answers with the last spans of each worker. All watchers share one call.
func (p *Page) timeline(w http.ResponseWriter, r *http.Request) {
	text, err := p.spans(r.Context())
	if err != nil {
		refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(text) // a browser that is gone wants no answer
}

func (p *Page) spans(ctx context.Context) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.then) < every/2 {
		return p.past, nil
	}
	if p.calls == nil {
		return nil, errIdle
	}
	all, err := p.calls.Timeline(ctx, &taxonv1.TimelineRequest{Most: mostSpans})
	if err != nil {
		return nil, err
	}
	out := Timeline{Now: all.GetNowUnixMs(), Workers: []WorkerPast{}}
	for _, worker := range all.GetWorkers() {
		line := WorkerPast{Worker: worker.GetWorker()}
		for _, s := range worker.GetSpans() {
			line.Spans = append(line.Spans, Span{Job: s.GetJob(), Sweep: s.GetSweep(), Phase: s.GetPhase(), Step: s.GetStep(),
				Task: s.GetTask(), Tasks: s.GetTasks(),
				Begun: s.GetBegunUnixMs(), Ended: s.GetEndedUnixMs(), Result: s.GetResult()})
		}
		out.Workers = append(out.Workers, line)
	}
	if p.past, err = json.Marshal(out); err == nil {
		p.then = time.Now()
	}
	return p.past, err
}

func (p *Page) job(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("job")
	calls, trace, err := p.jobs()
	if err != nil {
		refuse(w, err)
		return
	}
	st, err := calls.Status(r.Context(), &taxonv1.StatusRequest{Job: name})
	if err != nil {
		refuse(w, err)
		return
	}
	out := Job{Status: statusOf(st), Trace: trace(st), Log: []jobs.LogLine{}}
	stream, err := calls.Logs(r.Context(), &taxonv1.LogsRequest{Job: name})
	for err == nil {
		var lines *taxonv1.LogLines
		if lines, err = stream.Recv(); err == nil {
			for _, l := range lines.GetLines() {
				l.Text = option.Names(l.Text)
				out.Log = append(out.Log, jobs.LogLineOf(l))
			}
			out.Log = out.Log[max(0, len(out.Log)-mostLines):]
		}
	}
	if !errors.Is(err, io.EOF) {
		refuse(w, err)
		return
	}
	answer(w, out)
}

// act cancels or resumes: JOB:cancel, JOB:resume. A browser sends the header only from this page.
func (p *Page) act(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Taxon") == "" {
		http.Error(w, `{"error": "give the header X-Taxon: 1, which no other site's page can send"}`, http.StatusForbidden)
		return
	}
	if !secure.SameOrigin(r) {
		http.Error(w, `{"error": "this comes from another site's page: use the page of this address"}`, http.StatusForbidden)
		return
	}
	name, what, _ := strings.Cut(r.PathValue("call"), ":")
	calls, _, err := p.jobs()
	if err != nil {
		refuse(w, err)
		return
	}
	var st *taxonv1.JobStatus
	switch what {
	case "cancel":
		st, err = calls.Cancel(r.Context(), &taxonv1.CancelRequest{Job: name})
	case "resume":
		st, err = calls.Resume(r.Context(), &taxonv1.ResumeRequest{Job: name})
	default:
		err = status.Errorf(codes.NotFound, "no call %q: POST to /api/v1/jobs/%s:cancel or :resume", what, name)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, statusOf(st))
}

// events sends the parts that have changed, until the browser leaves.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // it may stay for days
	tick := time.NewTicker(every)
	defer tick.Stop()
	sent := map[string][]byte{}
	for quiet := 0; ; quiet++ {
		s, err := p.now(r.Context())
		if err == nil {
			for name, text := range s.texts {
				if bytes.Equal(text, sent[name]) {
					continue
				}
				sent[name], quiet = text, 0
				if _, err := fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, text); err != nil {
					return
				}
			}
		}
		if quiet%15 == 14 { // a proxy between must not take it for dead
			if _, err := io.WriteString(w, ": still there\n\n"); err != nil {
				return
			}
		}
		if control.Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// statusOf is a status as a document, with options by their names.
func statusOf(st *taxonv1.JobStatus) jobs.Status {
	d := jobs.StatusOf(st)
	d.Error = option.Names(d.Error)
	return d
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // a browser that is gone wants no answer
}

// refuse answers with the error of a call.
func refuse(w http.ResponseWriter, err error) {
	code := map[codes.Code]int{codes.NotFound: http.StatusNotFound, codes.InvalidArgument: http.StatusBadRequest,
		codes.FailedPrecondition: http.StatusConflict,
		codes.Unavailable:        http.StatusServiceUnavailable}[status.Code(err)]
	if code == 0 {
		code = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": option.Names(status.Convert(err).Message())})
}
