package page

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/coordinator/method/methodtest"
	"taxon/internal/cluster/metrics"
	"taxon/internal/cluster/secure"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/browser"
)

// cluster stands in for a coordinator: the page is what is tried here. test/cluster has real ones.
type cluster struct {
	taxonv1.JobsClient
	mu    sync.Mutex
	state taxonv1.JobState
	calls []string
}

func (c *cluster) did(what string) (*taxonv1.JobStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, what)
	c.state = taxonv1.JobState_JOB_STATE_CANCELLED
	return &taxonv1.JobStatus{Job: "job-1", State: c.state}, nil
}

func (c *cluster) ListJobs(context.Context, *taxonv1.ListJobsRequest,
	...grpc.CallOption) (*taxonv1.ListJobsResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &taxonv1.ListJobsResult{Jobs: []*taxonv1.JobInfo{{Job: "job-1", State: c.state, Phase: "solve", Sweep: 3,
		Certificate: &taxonv1.Certificate{Gap: 0.25}},
		{Job: "job-2", Name: "<b>bold</b>", State: taxonv1.JobState_JOB_STATE_FAILED, Error: "it failed"}}}, nil
}

func (c *cluster) Workers(context.Context, *taxonv1.WorkersRequest,
	...grpc.CallOption) (*taxonv1.WorkersResult, error) {
	return &taxonv1.WorkersResult{Workers: []*taxonv1.WorkerInfo{{Worker: "w-0", Name: "node6",
		State: taxonv1.MemberState_MEMBER_STATE_LOST},
		{Worker: "w-1", Name: "node7", Slots: 4, Running: 2}}}, nil
}

func (c *cluster) Stores(context.Context, *taxonv1.StoresRequest, ...grpc.CallOption) (*taxonv1.StoresResult, error) {
	return &taxonv1.StoresResult{Shards: []*taxonv1.Shard{{Id: "shard-9", Addr: "host:1"}}}, nil
}

func (c *cluster) Timeline(context.Context, *taxonv1.TimelineRequest,
	...grpc.CallOption) (*taxonv1.TimelineResult, error) {
	now := time.Now().UnixMilli()
	return &taxonv1.TimelineResult{NowUnixMs: now, Workers: []*taxonv1.WorkerTimeline{{Worker: "w-1",
		Spans: []*taxonv1.Span{
			{Job: "job-1", Sweep: 2, Phase: "solve", Step: 5, Task: 7, Tasks: 3, BegunUnixMs: now - 9000, EndedUnixMs: now - 5000,
				Result: "lost"},
			{Job: "job-1", Sweep: 3, Phase: "reduce", Step: 6, Tasks: 1, BegunUnixMs: now - 4000}}}}}, nil
}

func (c *cluster) Status(_ context.Context, r *taxonv1.StatusRequest,
	_ ...grpc.CallOption) (*taxonv1.JobStatus, error) {
	if r.GetJob() != "job-1" {
		return nil, status.Error(codes.NotFound, "no such job")
	}
	return &taxonv1.JobStatus{Job: "job-1", State: taxonv1.JobState_JOB_STATE_RUNNING, Sweep: 3,
		Tasks: &taxonv1.TaskCounts{Done: 5}, Options: methodtest.Options("bsvm", "gap", 0.01, "bias", 0),
		Trace: []*taxonv1.SweepRecord{{Sweep: 1, Certificate: &taxonv1.Certificate{Objective: 9, Dual: 1, Gap: 0.9}},
			{Sweep: 3, Certificate: &taxonv1.Certificate{Objective: 8, Dual: 6, Gap: 0.25}}}}, nil
}

func (c *cluster) Cancel(_ context.Context, r *taxonv1.CancelRequest,
	_ ...grpc.CallOption) (*taxonv1.JobStatus, error) {
	return c.did("cancel " + r.GetJob())
}

func (c *cluster) Resume(_ context.Context, r *taxonv1.ResumeRequest,
	_ ...grpc.CallOption) (*taxonv1.JobStatus, error) {
	return c.did("resume " + r.GetJob())
}

func (c *cluster) Logs(context.Context, *taxonv1.LogsRequest,
	...grpc.CallOption) (grpc.ServerStreamingClient[taxonv1.LogLines], error) {
	return &lines{}, nil
}

type lines struct {
	grpc.ClientStream
	sent bool
}

func (l *lines) Recv() (*taxonv1.LogLines, error) {
	if l.sent {
		return nil, io.EOF
	}
	l.sent = true
	return &taxonv1.LogLines{Lines: []*taxonv1.LogLine{{Number: 1, Level: "info", Text: "a worker was lost"}}}, nil
}

func shown(t *testing.T) (*cluster, *httptest.Server) {
	t.Helper()
	c := &cluster{state: taxonv1.JobState_JOB_STATE_RUNNING}
	mux := http.NewServeMux()
	New(c).Extra().Routes(mux)
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	return c, web
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestEndpoints(t *testing.T) {
	c, web := shown(t)
	get := func(path string) (int, string, http.Header) {
		r, err := http.Get(web.URL + path)
		must(t, err)
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		must(t, err)
		return r.StatusCode, string(b), r.Header
	}
	for path, want := range map[string]string{"/api/v1/jobs": `"gap":0.25`, "/api/v1/workers": `"name":"node7"`,
		"/api/v1/stores": `"store":"shard-9"`, "/api/v1/timeline": `"task":7,"tasks":3`,
		"/api/v1/jobs/job-1": `"text":"a worker was lost"`} {
		if code, body, _ := get(path); code != http.StatusOK || !json.Valid([]byte(body)) || !strings.Contains(body, want) {
			t.Errorf("%s: %d, %s; want %s", path, code, body, want)
		}
	}
	if code, body, _ := get("/api/v1/jobs/job-7"); code != http.StatusNotFound || !strings.Contains(body, "no such job") {
		t.Errorf("a job that is not there: %d, %s", code, body)
	}
	if _, body, head := get("/"); !strings.Contains(body, "<title>taxon") ||
		!strings.Contains(head.Get("Content-Security-Policy"), "script-src 'self'") {
		t.Errorf("the page: %v", head)
	}
	post := func(path, header string) int {
		r, err := http.NewRequest(http.MethodPost, web.URL+path, nil)
		must(t, err)
		if header != "" {
			r.Header.Set(header, "1")
		}
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
	if code := post("/api/v1/jobs/job-1:cancel", ""); code != http.StatusForbidden || len(c.calls) > 0 {
		t.Errorf("another site's page may cancel: %d, %v", code, c.calls)
	}
	if a, b, x := post("/api/v1/jobs/job-1:cancel", "X-Taxon"), post("/api/v1/jobs/job-1:resume", "X-Taxon"),
		post("/api/v1/jobs/job-1:burn", "X-Taxon"); a != 200 || b != 200 || x != 404 ||
		strings.Join(c.calls, ",") != "cancel job-1,resume job-1" {
		t.Errorf("%d %d %d, %v", a, b, x, c.calls)
	}
}

// Everyone gets the page, which says nothing by itself; who may read gets the data, and who may submit cancels.
func TestWhoMay(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	must(t, os.WriteFile(tokens, []byte("read-only read-read-read-read-read\nworker work-work-work-work-work\nsubmit "+
		"send-send-send-send-send\n"), 0o600))
	c := &cluster{state: taxonv1.JobState_JOB_STATE_RUNNING}
	shown, err := metrics.NewProcess("coordinator", "v0").Serve(t.Context(), metrics.Options{Addr: "127.0.0.1:0"},
		secure.Options{TokenFile: tokens}, nil, New(c).Extra())
	must(t, err)
	defer func() { must(t, shown.Close()) }()
	const read, cancel = "/api/v1/timeline", "/api/v1/jobs/job-1:cancel"
	for _, r := range []struct {
		token, method, path string
		want                int
	}{
		{"", http.MethodGet, "/", 200}, {"", http.MethodGet, "/page.js", 200}, {"", http.MethodGet, read, 401},
		{"work-work-work-work-work", http.MethodGet, read, 403},
		{"read-read-read-read-read", http.MethodGet, read, 200}, {"read-read-read-read-read", http.MethodGet, "/api/v1/jobs",
			200},
		{"read-read-read-read-read", http.MethodPost, cancel, 403}, {"", http.MethodPost, cancel, 401},
		{"send-send-send-send-send", http.MethodPost, cancel, 200},
	} {
		q, err := http.NewRequest(r.method, "http://"+shown.Addr+r.path, nil)
		must(t, err)
		q.Header.Set("X-Taxon", "1")
		if r.token != "" {
			q.Header.Set("Authorization", "Bearer "+r.token)
		}
		answer, err := http.DefaultClient.Do(q)
		must(t, err)
		answer.Body.Close()
		if answer.StatusCode != r.want {
			t.Errorf("%s %s by %q: %d, want %d", r.method, r.path, r.token, answer.StatusCode, r.want)
		}
	}
	if len(c.calls) != 1 {
		t.Errorf("%v", c.calls)
	}
}

// A watcher hears of each part at once, and of what changes.
func TestEvents(t *testing.T) {
	c, web := shown(t)
	r, err := http.Get(web.URL + "/api/v1/events")
	must(t, err)
	defer r.Body.Close()
	seen := map[string]int{}
	in := bufio.NewScanner(r.Body)
	for in.Scan() {
		name, ok := strings.CutPrefix(in.Text(), "event: ")
		if !ok {
			continue
		}
		if seen[name]++; len(seen) == 3 && seen["jobs"] == 1 {
			_, _ = c.did("cancel")
		}
		if seen["jobs"] == 2 {
			break
		}
	}
	if seen["workers"] != 1 || seen["stores"] != 1 {
		t.Errorf("%v: what has not changed is sent again", seen)
	}
}

// A browser shows it, a job is cancelled by its button, and nothing is complained of.
func TestInBrowser(t *testing.T) {
	chromium := browser.Path(t)
	c, _ := shown(t)
	// A page beside it would be kept out by the policy, so a copy of the script clicks by itself.
	mux := http.NewServeMux()
	inner := http.NewServeMux()
	New(c).Extra().Routes(inner)
	mux.HandleFunc("/page.js", func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r)
		_, _ = io.WriteString(w, `
document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: "slow.css" }));
setTimeout(() => document.querySelector("#jobs tbody th a").click(), 1500);
setTimeout(() => document.querySelector("#workers tbody th button").click(), 1500);
setTimeout(() => document.querySelector("#jobs tbody td:last-child button").click(), 2500);
setTimeout(() => document.title = document.querySelector("#jobs tbody td:last-child button").textContent, 3000);
setTimeout(() => document.querySelector("#jobs tbody td:last-child button").click(), 3500);`)
	})
	mux.HandleFunc("/slow.css", func(w http.ResponseWriter, r *http.Request) {
		// the browser waits for it before it shows what there is
		select {
		case <-time.After(4500 * time.Millisecond):
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "text/css")
	})
	mux.Handle("/", inner)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-Modified-Since")
		mux.ServeHTTP(plain{w}, r)
	}))
	defer web.Close()
	// go test -artifacts keeps the picture.
	out, err := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
		"--timeout=30000", "--dump-dom", "--window-size=1300,1500",
		"--screenshot="+filepath.Join(t.ArtifactDir(), "page.png"), web.URL).CombinedOutput()
	must(t, err)
	page := string(out)
	for _, want := range []string{">live<", "node7", "shard-9", "&lt;b&gt;bold", "it failed", "a worker was lost",
		"<polyline", `class="k-bad"`, `class="k-runs"`, "job-1 reduce", "3 lost or failed", "7 and 2 more",
		"<title>really cancel?</title>", `href="#job=job-1"`, "1 that left or were lost", "A store does not answer: shard-9",
		"A job has failed: job-2", `class="goal"`, "goal 0.0100", ">0.1</text>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) != 1 || c.calls[0] != "cancel job-1" {
		t.Errorf("the button did %v", c.calls)
	}
	if complaint := regexp.MustCompile(`(?m)^.*CONSOLE.*$`).FindString(page); complaint != "" {
		t.Errorf("the browser complains: %s", complaint)
	}
}

// On a telephone nothing that matters is beside the screen, and a job's address shows the job.
func TestNarrowInBrowser(t *testing.T) {
	chromium := browser.Path(t)
	c, _ := shown(t)
	inner := http.NewServeMux()
	New(c).Extra().Routes(inner)
	mux := http.NewServeMux()
	mux.HandleFunc("/page.js", func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r)
		_, _ = io.WriteString(w, `
setTimeout(() => { document.title = [document.documentElement, ...document.querySelectorAll(".wide")].map(e => e.scrollWidth - e.clientWidth).join(" ") + " " + innerWidth; }, 2500);`)
	})
	mux.Handle("/", inner)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-Modified-Since")
		mux.ServeHTTP(plain{w}, r)
	}))
	defer web.Close()
	out, err := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
		"--virtual-time-budget=4000", "--dump-dom", "--window-size=420,1800",
		"--screenshot="+filepath.Join(t.ArtifactDir(), "narrow.png"), web.URL+"/#job=job-1").CombinedOutput()
	must(t, err)
	title := regexp.MustCompile(`<title>(.*)</title>`).FindStringSubmatch(string(out))
	if title == nil || !regexp.MustCompile(`^(0 )+(420|500)$`).MatchString(title[1]) {
		// Chromium's windows are 500 wide at least
		t.Errorf("beside the screen, and its width: %v", title)
	}
	if !strings.Contains(string(out), "a worker was lost") {
		t.Error("the job that the address names is not shown")
	}
}

// plain forgets how long a file is, as more is written behind it.
type plain struct{ http.ResponseWriter }

func (p plain) WriteHeader(code int) {
	p.Header().Del("Content-Length")
	p.ResponseWriter.WriteHeader(code)
}

func (p plain) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// On loopback, where nobody needs an identity, neither a name that was made to resolve to this machine nor
// another site's page reads or cancels anything.
func TestReboundName(t *testing.T) {
	c := &cluster{state: taxonv1.JobState_JOB_STATE_RUNNING}
	shown, err := metrics.NewProcess("coordinator", "v0").Serve(t.Context(), metrics.Options{Addr: "127.0.0.1:0"},
		secure.Options{}, nil, New(c).Extra())
	must(t, err)
	defer func() { must(t, shown.Close()) }()
	for _, r := range []struct {
		method, path, host, origin string
		want                       int
	}{
		{http.MethodGet, "/api/v1/jobs", "evil.example:9464", "", 403},
		{http.MethodGet, "/metrics", "evil.example", "", 403},
		{http.MethodPost, "/api/v1/jobs/job-1:cancel", "evil.example", "http://evil.example", 403},
		{http.MethodPost, "/api/v1/jobs/job-1:cancel", shown.Addr, "http://evil.example", 403},
		{http.MethodGet, "/healthz", "evil.example", "", 200},
		{http.MethodGet, "/api/v1/jobs", "localhost", "", 200},
		{http.MethodPost, "/api/v1/jobs/job-1:cancel", shown.Addr, "http://" + shown.Addr, 200},
	} {
		q, err := http.NewRequest(r.method, "http://"+shown.Addr+r.path, nil)
		must(t, err)
		q.Host = r.host
		q.Header.Set("X-Taxon", "1")
		if r.origin != "" {
			q.Header.Set("Origin", r.origin)
		}
		answer, err := http.DefaultClient.Do(q)
		must(t, err)
		answer.Body.Close()
		if answer.StatusCode != r.want {
			t.Errorf("%s %s for %s from %q: %d, want %d", r.method, r.path, r.host, r.origin, answer.StatusCode, r.want)
		}
	}
	if len(c.calls) != 1 {
		t.Errorf("%v", c.calls)
	}
}
