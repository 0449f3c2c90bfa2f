package page

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"taxon/coordinator"
	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store/storerpc"
	"taxon/test/browser"
	"taxon/test/jobs"
)

// large is the page of a real coordinator with so many workers, and jobs of which half are cancelled.
func large(tb testing.TB, workers, many int) (*Page, *httptest.Server) {
	tb.Helper()
	s, err := coordinator.NewServer(coordinator.Config{Store: nowhere{}, Limits: machine.Limits{MaxRunning: 8,
		MaxQueued: many, KeepJobs: many, Lease: machine.Tick(time.Hour)}})
	if err != nil {
		tb.Fatal(err)
	}
	channel := storerpc.NewChannel()
	s.Register(channel)
	tasks, calls, ctx := taxonv1.NewTasksClient(channel), taxonv1.NewJobsClient(channel), context.Background()
	for i := range workers {
		if _, err := tasks.Register(ctx, &taxonv1.RegisterRequest{Name: fmt.Sprintf("node%03d.cluster.example", i), Slots: 8,
			MemoryBytes: 64 << 30, Version: "v1.2.3"}); err != nil {
			tb.Fatal(err)
		}
	}
	spec := jobs.Small(1, 40, 4).Spec(jobs.Defaults())
	for i := range many {
		id := fmt.Sprintf("job-%d", i+1)
		if _, err := calls.Submit(ctx, &taxonv1.SubmitRequest{Job: id, Name: fmt.Sprintf("wikipedia, C = %d", i),
			Spec: spec}); err != nil {
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

// busy is a cluster whose workers have run tasks all the time, 16 each that are remembered.
type busy struct{ taxonv1.JobsClient }

func (b busy) Timeline(ctx context.Context, r *taxonv1.TimelineRequest,
	_ ...grpc.CallOption) (*taxonv1.TimelineResult, error) {
	list, err := b.Workers(ctx, &taxonv1.WorkersRequest{})
	if err != nil {
		return nil, err
	}
	out := &taxonv1.TimelineResult{NowUnixMs: time.Now().UnixMilli()}
	each := int64(int(r.GetMost()) / len(list.GetWorkers()))
	for k, w := range list.GetWorkers() {
		line := &taxonv1.WorkerTimeline{Worker: w.GetWorker()}
		for i := range each {
			s := &taxonv1.Span{Job: fmt.Sprintf("job-%d", 1+i%4), Sweep: uint32(i), Phase: "solve", Step: uint32(i),
				Task: uint32(k), Tasks: 1, BegunUnixMs: out.NowUnixMs - 5000*(each-i) + int64(k), Result: "done"}
			if i < each-1 {
				s.EndedUnixMs = s.BegunUnixMs + 4000
			}
			line.Spans = append(line.Spans, s)
		}
		out.Workers = append(out.Workers, line)
	}
	return out, nil
}

// scaleProbe times what the page's own script does, and scrolls through it.
const scaleProbe = `
{ const took = { draw: [], timeline: [] }, timed = (f, list) => (...a) => { const t = performance.now(), r = f(...a); document.body.offsetHeight; list.push(performance.now() - t); return r; };
draw = timed(draw, took.draw); drawTimeline = timed(drawTimeline, took.timeline);
const sleep = ms => new Promise(go => setTimeout(go, ms)), frame = () => new Promise(requestAnimationFrame), most = list => Math.max(0, ...list);
(async () => {
  while ($("jobs").tBodies[0].rows.length < 500 || $("workers").tBodies[0].rows.length < 500 || $("workers").querySelectorAll("path").length < 500) await sleep(20);
  const loaded = performance.now();
  took.draw.length = took.timeline.length = 0;
  for (let k = 0; k < 5; k++) { await fetch("change", { method: "POST" }); await sleep(1200); }
  const frames = [], box = $("workers").closest(".wide");
  for (let k = 0, last = performance.now(); k < 60; k++) { box.scrollTop += box.scrollHeight / 60; scrollBy(0, 20); await frame(); frames.push(performance.now() - last); last = performance.now(); }
  await fetch("probe", { method: "POST", body: JSON.stringify({ loaded, updates: took.draw.length, update: most(took.draw), timeline: most(took.timeline), frame: frames.sort((a, b) => a - b)[30], worst: most(frames),
    end: box.scrollTop + box.clientHeight >= box.scrollHeight - 2, heap: performance.memory.usedJSHeapSize, elements: document.querySelectorAll("*").length, cancelled: [...$("jobs").tBodies[0].rows].filter(r => r.cells[1].textContent == "cancelled").length }) });
})(); }`

// The page of such a cluster in a browser: it loads, changes as jobs end, and scrolls. What that
// takes is logged (go test -v -run LargeInBrowser).
func TestLargeInBrowser(t *testing.T) {
	chromium := browser.Path(t)
	p, _ := large(t, 500, 1000)
	calls := p.calls
	p.Use(busy{calls}, nil)
	mux := http.NewServeMux()
	p.Extra().Routes(mux)
	told, next := make(chan []byte, 1), 1
	outer := http.NewServeMux()
	outer.Handle("/", mux)
	outer.HandleFunc("/page.js", func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-Modified-Since")
		mux.ServeHTTP(plain{w}, r)
		_, _ = io.WriteString(w, scaleProbe)
	})
	outer.HandleFunc("/change", func(w http.ResponseWriter, r *http.Request) { // of 20 jobs
		for range 20 {
			if _, err := calls.Cancel(r.Context(), &taxonv1.CancelRequest{Job: fmt.Sprintf("job-%d", next)}); err != nil {
				t.Error(err)
			}
			next += 2
		}
	})
	outer.HandleFunc("/probe", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		told <- text
	})
	web := httptest.NewServer(outer)
	defer web.Close()
	cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
		"--enable-precise-memory-info", "--user-data-dir="+browser.Profile(t), web.URL)
	must(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // by the signal
	}()
	select {
	case text := <-told:
		var s struct {
			Updates, Cancelled, Elements int
			End                          bool
		}
		must(t, json.Unmarshal(text, &s))
		t.Logf("milliseconds and bytes: %s", text)
		// Of 500 rows 400 are of the jobs that go on: 500 before, less the 100 that were cancelled.
		if s.Updates < 4 || !s.End || s.Cancelled != 100 {
			t.Errorf("%+v", s)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the page was not complete")
	}
}

// BenchmarkLarge is what one look at such a cluster costs the coordinator, which all watchers of a
// second share, and what each watcher costs beside it.
func BenchmarkLarge(b *testing.B) {
	p, web := large(b, 500, 1000)
	for name, before := range map[string]func(){"look": func() { p.Use(p.calls, nil) }, "watcher": func() {}} {
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
