package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"

	"taxon/internal/cluster/secure"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/memory"
	"taxon/store/storetest"
	"taxon/worker"
	"taxon/worker/program"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// full is a process with every family of figures.
func full() (*Process, store.Shard, worker.Executor) {
	p := NewProcess("store", "v0")
	p.GRPC()
	p.Certificate(func() time.Time { return time.Unix(9, 0) })
	p.Room(func() (free, reserve uint64) { return 7, 8 })
	p.Cluster(func() ClusterState {
		return ClusterState{
			Jobs: map[string]int{"running": 2}, Tasks: map[string]int{"waiting": 3}, Workers: 4, Lost: 5,
			Running: []RunningJob{{Job: "a", Sweep: 6, Gap: 0.5, Progress: 7, Saved: 8}}, Ended: map[string]uint64{"failed": 0},
		}
	})
	return p, p.Shard(memory.New(memory.Options{})), p.Executor(toy{}, 2)
}

// toy fails as a task's number says.
type toy struct{}

func (toy) Run(_ context.Context, _ *taxonv1.JobResult, l *taxonv1.Lease) (*taxonv1.Sums, worker.Stats, error) {
	stats := worker.Stats{CPUSeconds: 0.5, BytesRead: 10, BytesWritten: 20}
	switch l.Task {
	case 1:
		return nil, stats, program.Deterministic(errors.New("bad"))
	case 2:
		return nil, stats, errors.New("away")
	}
	return &taxonv1.Sums{}, stats, nil
}

// page is what a scrape gives, with the headers given.
func page(t *testing.T, url string, header http.Header) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		r.Header = header
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func start(t *testing.T, p *Process, sec secure.Options, ready func() error) string {
	t.Helper()
	s, err := p.Serve(t.Context(), Options{Addr: "127.0.0.1:0"}, sec, ready)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.Addr
}

func TestFiguresCount(t *testing.T) {
	p, shard, run := full()
	ctx := t.Context()
	key := store.Key{Job: "a", Step: 1, Attempt: 1, Name: "x"}
	if err := shard.Put(ctx, []store.Value{{Key: key, Data: []byte("12345")}}); err != nil {
		t.Fatal(err)
	}
	missing := key
	missing.Task = 9
	if _, err := shard.Get(ctx, []store.Key{key, missing}); err != nil {
		t.Fatal(err)
	}
	if err := shard.Put(ctx, []store.Value{{Key: key, Data: []byte("other")}}); !errors.Is(err, store.ErrConflict) {
		t.Fatal(err)
	}
	for task := range uint32(3) {
		_, _, _ = run.Run(ctx, nil, &taxonv1.Lease{Task: task, Op: "emit_map"})
	}
	p.Refused(codes.Unauthenticated)
	_, text := page(t, start(t, p, secure.Options{}, nil)+"/metrics", nil)
	for _, line := range []string{
		"taxon_store_put_values_total 1", "taxon_store_put_bytes_total 5", "taxon_store_put_seconds_count 1",
		"taxon_store_get_values_total 1", "taxon_store_get_missing_total 1", "taxon_store_get_bytes_total 5",
		`taxon_store_errors_total{op="put"} 1`,
		`taxon_worker_tasks_total{result="done"} 1`,
		`taxon_worker_tasks_total{result="failed"} 1`,
		`taxon_worker_tasks_total{result="retry"} 1`,
		"taxon_worker_read_bytes_total 30", "taxon_worker_slots 2",
		`taxon_jobs{state="running"} 2`, "taxon_workers_lost_total 5", `taxon_job_sweep{job="a"} 6`,
		`taxon_grpc_refused_total{code="Unauthenticated"} 1`, `taxon_grpc_refused_total{code="ResourceExhausted"} 0`,
		`taxon_store_errors_total{op="drop"} 0`,
		`taxon_worker_tasks_total{result="stopped"} 0`, `taxon_jobs_ended_total{state="failed"} 0`,
		`taxon_job_snapshot_timestamp_seconds{job="a"} 8`,
		"taxon_certificate_expiry_timestamp_seconds 9",
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestShardIsAShard runs the suite that all shards pass through the measuring one.
func TestShardIsAShard(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		New: func(*testing.T) store.Store { return NewProcess("store", "v0").Shard(memory.New(memory.Options{})) },
		Corrupt: func(t *testing.T, s store.Store, k store.Key) {
			got, err := s.Get(t.Context(), []store.Key{k})
			if err != nil {
				t.Fatal(err)
			}
			got[0][len(got[0])/2] ^= 1 // the shard's own bytes
		},
		BigBytes: 1 << 20,
	})
}

func TestPageKeepsItsRules(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("read-only read-read-read-read-read\nworker work-work-work-work-work\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	p, _, _ := full()
	broken := errors.New("the journal is at /secret/place")
	url := start(t, p, secure.Options{TokenFile: tokens}, func() error { return broken })
	bearer := func(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
	for _, c := range []struct {
		path   string
		header http.Header
		want   int
	}{
		{"/metrics", nil, 401},
		{"/metrics", bearer("read-read-read-read-reae"), 401},
		{"/metrics", bearer("work-work-work-work-work"), 403},
		{"/metrics", bearer("read-read-read-read-read"), 200},
		{"/healthz", nil, 200},
		{"/readyz", nil, 503},
		{"/debug/pprof/", bearer("read-read-read-read-read"), 404},
		{"/", nil, 404},
	} {
		code, text := page(t, url+c.path, c.header)
		if code != c.want {
			t.Errorf("%s: %d, want %d", c.path, code, c.want)
		}
		if strings.Contains(text, "secret") {
			t.Errorf("%s tells strangers %q", c.path, text)
		}
	}
}

func TestNoAddressNoPage(t *testing.T) {
	p := NewProcess("worker", "v0")
	s, err := p.Serve(t.Context(), Options{}, secure.Options{}, nil)
	if s != nil || err != nil {
		t.Fatal(s, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := p.Serve(t.Context(), Options{Addr: "0.0.0.0:0"}, secure.Options{}, nil); err == nil {
		t.Error("a page beyond loopback without TLS")
	}
}

// TestEveryFigureIsDocumented compares a scrape with the operator's page.
func TestEveryFigureIsDocumented(t *testing.T) {
	p, _, run := full()
	_, _, _ = run.Run(t.Context(), nil, &taxonv1.Lease{})
	s := p.Serving()
	s.Took("m", "predict", 200, 0)
	s.Answered("m", 1)
	s.Loaded("m", true)
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "observability.md"))
	if err != nil {
		t.Fatal(err)
	}
	families := families(t, p)
	for _, name := range families {
		if !bytes.Contains(doc, []byte("`"+name)) {
			t.Errorf("docs/observability.md does not explain %s", name)
		}
	}
	for _, m := range regexp.MustCompile("`(taxon_\\w+)").FindAllStringSubmatch(string(doc), -1) {
		found := false
		for _, name := range families {
			found = found || name == m[1]
		}
		if !found {
			t.Errorf("docs/observability.md explains %s, which is not there", m[1])
		}
	}
}

// families are the names of all figures of ours, those without values yet too.
func families(t *testing.T, p *Process) []string {
	t.Helper()
	gathered, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{
		// Vectors without a series are not gathered.
		"taxon_grpc_handling_seconds": true, "taxon_grpc_streams_total": true, "taxon_grpc_refused_total": true,
		"taxon_store_errors_total": true, "taxon_worker_task_seconds": true, "taxon_worker_task_cpu_seconds_total": true,
	}
	for _, f := range gathered {
		if strings.HasPrefix(f.GetName(), "taxon_") {
			seen[f.GetName()] = true
		}
	}
	var names []string
	for name := range seen {
		names = append(names, name)
	}
	return names
}

func TestLogs(t *testing.T) {
	var out bytes.Buffer
	log, err := LogOptions{Format: "json", Level: "warn"}.Logger(&out)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("not shown")
	log.With("job", "j", "step", 1, "task", 2, "attempt", 3).Warn("task lost", "token", "abc123", "Authorization",
		"Bearer abc123")
	text := out.String()
	for _, want := range []string{`"msg":"task lost"`, `"job":"j","step":1,"task":2,"attempt":3`, `"token":"[redacted]"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: no %s", text, want)
		}
	}
	if strings.Contains(text, "abc123") || strings.Contains(text, "not shown") {
		t.Error(text)
	}
	for _, o := range []LogOptions{{Format: "xml"}, {Level: "loud"}} {
		if _, err := o.Logger(&out); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// What fails again and again is one line of the log, until it is another failure.
func TestWarnerRepeats(t *testing.T) {
	var out bytes.Buffer
	warn := Warner(slog.New(slog.NewTextHandler(&out, nil)), "failed")
	for range 5 {
		warn(errors.New("no answer"))
	}
	warn(errors.New("another"))
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}

// What libraries have to say is in the process's log, and nowhere else.
func TestLibrariesLogThere(t *testing.T) {
	var out bytes.Buffer
	l, err := LogOptions{Format: "json"}.Logger(&out)
	if err != nil {
		t.Fatal(err)
	}
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	Adopt(l)
	log.Printf("http: TLS handshake error from %s", "10.0.0.7:1")
	if _, err := fmt.Fprintln(grpcErrors{}, "ERROR: [transport] broken"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"level":"WARN","msg":"http: TLS handshake error from 10.0.0.7:1"`,
		`"level":"ERROR","msg":"grpc","error":"ERROR: [transport] broken"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
}
