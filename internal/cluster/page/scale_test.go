package page

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"taxon/coordinator"
	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store/storerpc"
	"taxon/test/jobs"
)

// large is the page of a real coordinator with so many workers, and jobs of which half are cancelled.
func large(tb testing.TB, workers, many int) (*Page, *httptest.Server) {
	tb.Helper()
	s, err := coordinator.NewServer(coordinator.Config{Store: nowhere{}, Limits: machine.Limits{MaxRunning: 8, MaxQueued: many, KeepJobs: many, Lease: machine.Tick(time.Hour)}})
	if err != nil {
		tb.Fatal(err)
	}
	channel := storerpc.NewChannel()
	s.Register(channel)
	tasks, calls, ctx := taxonv1.NewTasksClient(channel), taxonv1.NewJobsClient(channel), context.Background()
	for i := range workers {
		if _, err := tasks.Register(ctx, &taxonv1.RegisterRequest{Name: fmt.Sprintf("node%03d.cluster.example", i), Slots: 8, MemoryBytes: 64 << 30, Version: "v1.2.3"}); err != nil {
			tb.Fatal(err)
		}
	}
	spec := jobs.Small(1, 40, 4).Spec(jobs.Defaults())
	for i := range many {
		id := fmt.Sprintf("job-%d", i+1)
		if _, err := calls.Submit(ctx, &taxonv1.SubmitRequest{Job: id, Name: fmt.Sprintf("wikipedia, C = %d", i), Spec: spec}); err != nil {
			tb.Fatal(err)
		}
		if i%2 == 1 {
			if _, err := calls.Cancel(ctx, &taxonv1.CancelRequest{Job: id}); err != nil {
				tb.Fatal(err)
			}
		}
	}
	mux := http.NewServeMux()
	p := New(calls)
	p.Extra().Routes(mux)
	web := httptest.NewServer(mux)
	tb.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return p, web
}

// nowhere is a store for jobs that write nothing.
type nowhere struct{}

func (nowhere) Commit(context.Context, string, uint32, []uint32) error { return nil }
func (nowhere) Drop(context.Context, string, []uint32, uint32) error   { return nil }

// With 500 workers and 1,000 jobs every list is whole, in a first event as well.
func TestLarge(t *testing.T) {
	_, web := large(t, 500, 1000)
	for path, want := range map[string]int{"jobs": 1000, "workers": 500, "stores": 0} {
		r, err := http.Get(web.URL + "/api/v1/" + path)
		must(t, err)
		text, err := io.ReadAll(r.Body)
		must(t, err)
		r.Body.Close()
		if n := strings.Count(string(text), `"state":`); n != want {
			t.Errorf("%s: %d, want %d", path, n, want)
		}
	}
	r, err := http.Get(web.URL + "/api/v1/events")
	must(t, err)
	defer r.Body.Close()
	in, counts := bufio.NewReader(r.Body), map[string]int{}
	for name := ""; len(counts) < 3; {
		line, err := in.ReadString('\n')
		must(t, err)
		if n, ok := strings.CutPrefix(line, "event: "); ok {
			name = strings.TrimSpace(n)
		} else if strings.HasPrefix(line, "data: ") {
			counts[name] = strings.Count(line, `"state":`)
		}
	}
	if counts["jobs"] != 1000 || counts["workers"] != 500 {
		t.Errorf("events: %v", counts)
	}
}

// BenchmarkLarge is what one look at such a cluster costs the coordinator, which all watchers of a
// second share, and what each watcher costs beside it.
func BenchmarkLarge(b *testing.B) {
	p, web := large(b, 500, 1000)
	for name, before := range map[string]func(){"look": func() { p.Use(p.calls) }, "watcher": func() {}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				before()
				w := httptest.NewRecorder()
				web.Config.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/jobs", nil))
				b.SetBytes(int64(w.Body.Len()))
			}
		})
	}
}
