package cluster

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"taxon/test/browser"
)

// probe is a script that runs after the page's own. It reports what the page shows, and clicks the
// elements that it is sent.
const probe = `
setInterval(async () => {
  const column = (id, k) => [...$(id).tBodies[0].rows].map(r => r.cells[k].firstChild?.textContent ?? "");
  const r = await fetch("probe", { method: "POST", body: JSON.stringify({ state: $("state").textContent, jobs: column("jobs", 1), names: column("jobs", 0), stores: column("stores", 1), workers: column("workers", 1),
    curves: $("charts").querySelectorAll("polyline").length, lines: $("workers").querySelectorAll("path.k-done").length }) });
  const press = await r.text();
  if (press) { const b = document.querySelector(press); b.focus(); b.click(); }
}, 100);`

// seen is the content that the page shows.
type seen struct {
	State                        string
	Jobs, Names, Stores, Workers []string
	Curves, Lines                int // Lines counts workers that have run tasks
}

func (s seen) count(list []string, what string) (n int) {
	for _, v := range list {
		if v == what {
			n++
		}
	}
	return n
}

// TestPageJourney checks the page while three jobs run. One is cancelled by its button, a store
// fails and returns, the coordinator is killed and returns. The page shows all of that without
// being reloaded.
func TestPageJourney(t *testing.T) {
	t.Parallel()
	chromium := browser.Path(t)
	want := bench.Embedded(t, "", Long(400)...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	c := bench.Up(t, 2, 2, "--lease", "1s", "--metrics", addr)
	var jobs []string
	for range 3 {
		jobs = append(jobs, c.Submit(t, "", Long(400)...))
	}

	// the browser calls a proxy of the test, which adds the probe
	var loads atomic.Int32
	told, press := make(chan seen), make(chan string, 1)
	to := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	to.FlushInterval = -1
	to.ErrorLog = log.New(io.Discard, "", 0) // the coordinator is killed on purpose
	to.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	to.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Path == "/page.js" {
			r.Body = io.NopCloser(io.MultiReader(r.Body, strings.NewReader(probe)))
			r.ContentLength = -1
			r.Header.Del("Content-Length")
		}
		return nil
	}
	ended := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/probe":
			var s seen
			if json.NewDecoder(r.Body).Decode(&s) != nil {
				return
			}
			select {
			case told <- s:
			case <-ended:
			}
			select {
			case what := <-press:
				_, _ = io.WriteString(w, what)
			default:
			}
			return
		case "/":
			loads.Add(1)
		}
		to.ServeHTTP(w, r)
	}))
	defer web.Close()
	defer close(ended)
	var complaints bytes.Buffer
	cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
		"--remote-debugging-port=0", "--user-data-dir="+browser.Profile(t), web.URL)
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until := func(what string, shows func(s seen) bool) {
		t.Helper()
		late := time.After(c.Deadline)
		var s seen
		for {
			select {
			case s = <-told:
				if shows(s) {
					return
				}
			case <-late:
				t.Fatalf("the page does not show %s: %+v", what, s)
			}
		}
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it ends by the signal
		for _, line := range regexp.MustCompile(`(?m)^.*CONSOLE.*$`).FindAllString(complaints.String(), -1) {
			if !strings.Contains(line, "Failed to load resource") { // while the coordinator was unreachable
				t.Errorf("the browser complains: %s", line)
			}
		}
	}()

	until("three jobs that run", func(s seen) bool {
		return s.count(s.Jobs, "running") == 3 && s.count(s.Stores, "up") == 2 && s.count(s.Workers, "up") == 2 &&
			s.State == "live"
	})
	press <- `#jobs tbody th a`
	until("the curves of a job, and what each worker ran", func(s seen) bool { return s.Curves > 0 && s.Lines == 2 })
	press <- `#jobs button[aria-label="cancel ` + jobs[1] + `"]`
	until("that it asks", func(seen) bool { return true })
	press <- `#jobs button[aria-label="really cancel? ` + jobs[1] + `"]` // the second click
	until("a job that is cancelled", func(s seen) bool {
		at := slices.Index(s.Names, jobs[1])
		return at >= 0 && s.Jobs[at] == "cancelled"
	})
	store := slices.DeleteFunc(c.State(t).Processes, func(p Process) bool { return p.Role != "store" })[0]
	store.Signal(syscall.SIGSTOP)
	until("a store that is down while jobs run", func(s seen) bool {
		return s.count(s.Stores, "down") == 1 && s.count(s.Jobs, "running")+s.count(s.Jobs, "waiting") == 2
	})
	store.Signal(syscall.SIGKILL)
	until("the store that is back", func(s seen) bool { return s.count(s.Stores, "up") == 2 })
	coordinator := slices.DeleteFunc(c.State(t).Processes, func(p Process) bool { return p.Role != "coordinator" })[0]
	coordinator.Signal(syscall.SIGKILL)
	until("that the coordinator is away", func(s seen) bool { return strings.Contains(s.State, "does not answer") })
	until("that it is back", func(s seen) bool { return s.State == "live" && len(s.Jobs) == 3 })
	until("the jobs that are done", func(s seen) bool { return s.count(s.Jobs, "done") == 2 })
	c.Done(t, jobs[0], want, nil)
	c.Done(t, jobs[2], want, nil)
	if n := loads.Load(); n != 1 {
		t.Errorf("the page was loaded %d times", n)
	}
}
