package deploy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/util/teststorage"
)

// watched is a cluster of real processes with a Prometheus that scrapes them and whose clock runs
// faster.
type watched struct {
	t       *testing.T
	dir     string
	binary  string
	coord   string // address of the coordinator
	client  *http.Client
	bare    *http.Client      // without a client certificate
	targets map[string]string // instance -> address of its metrics
	running map[string]*exec.Cmd
	stopped map[string]string // addresses of stopped processes

	storage *teststorage.TestStorage
	engine  *promql.Engine
	rules   []rulefmt.Rule
	now     time.Time
	before  map[string][]labels.Labels // instance -> series of the last scrape
}

// scrapeEvery is Prometheus' interval between two scrapes.
const scrapeEvery = 30 * time.Second

func watch(t *testing.T) *watched {
	t.Helper()
	text, err := os.ReadFile(monitoring + "/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, errs := rulefmt.Parse(text, false, model.UTF8Validation, parser.NewParser(parser.Options{}),
		slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	w := &watched{t: t, dir: t.TempDir(), targets: map[string]string{}, stopped: map[string]string{},
		running: map[string]*exec.Cmd{}, before: map[string][]labels.Labels{},
		storage: teststorage.New(t), engine: promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery),
		rules: groups.Groups[0].Rules, now: time.Now()}
	t.Cleanup(func() { _ = w.storage.Close() })
	w.binary = filepath.Join(w.dir, "taxon")
	build := exec.Command("go", "build", "-o", w.binary, "./cmd/taxon")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, role := range []string{"coordinator", "store", "worker", "submit", "read-only"} {
		w.taxon("certs", "--dir", w.in("certs"), "--host", "127.0.0.1", "--role", role, "--name", role)
	}
	ca, err := os.ReadFile(w.in("certs/ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	cert, err := tls.LoadX509KeyPair(w.in("certs/read-only.crt"), w.in("certs/read-only.key"))
	if err != nil {
		t.Fatal(err)
	}
	w.client = &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool,
		Certificates: []tls.Certificate{cert}}}}
	w.bare = &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	return w
}

func (w *watched) in(name string) string { return filepath.Join(w.dir, name) }

func (w *watched) flags(role string) []string {
	return []string{"--tls-ca", w.in("certs/ca.crt"), "--tls-cert", w.in("certs/" + role + ".crt"), "--tls-key",
		w.in("certs/" + role + ".key")}
}

// profile is the flag by which a verb calls the cluster.
func (w *watched) profile() []string {
	w.t.Helper()
	path := w.in("certs/profile")
	text := "tls-ca: ca.crt\ntls-cert: submit.crt\ntls-key: submit.key\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return []string{"--profile", path}
}

// taxon runs a verb to its end.
func (w *watched) taxon(args ...string) {
	w.t.Helper()
	if out, err := exec.Command(w.binary, args...).CombinedOutput(); err != nil {
		w.t.Fatalf("%q: %v: %s", args, err, out)
	}
}

// submit submits a job.
func (w *watched) submit(args ...string) {
	w.t.Helper()
	w.taxon(slices.Concat([]string{"submit", "--coordinator", w.coord, "--quiet"}, w.profile(), args)...)
}

// start starts a process and waits until it is ready.
func (w *watched) start(role, name string, more ...string) {
	w.t.Helper()
	args := slices.Concat([]string{role, "--dir", w.in(name), "--metrics", "127.0.0.1:0"}, w.flags(role), more)
	if role != "coordinator" {
		args = append(args, "--coordinator", w.coord, "--name", name)
	}
	cmd := exec.Command(w.binary, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.running[name] = cmd
	w.t.Cleanup(func() { w.kill(name) })
	line, err := bufio.NewReader(out).ReadString('\n')
	found := regexp.MustCompile(`ready on ([^\s,]+),.*metrics on https://([^/]+)/`).FindStringSubmatch(line)
	if err != nil || found == nil {
		w.t.Fatalf("%s: %q, %v", name, line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	w.targets[name] = found[2]
	if role == "coordinator" {
		w.coord = found[1]
	}
}

// kill kills a process, as a power failure does.
func (w *watched) kill(name string) {
	if cmd := w.running[name]; cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		delete(w.running, name)
	}
}

// stop stops a process, which answers no calls until it is resumed.
func (w *watched) stop(name string) {
	w.signal(name, syscall.SIGSTOP)
	w.stopped[name], w.targets[name] = w.targets[name], "127.0.0.1:1"
}

func (w *watched) resume(name string) {
	w.targets[name] = w.stopped[name]
	w.signal(name, syscall.SIGCONT)
}

func (w *watched) signal(name string, s os.Signal) {
	w.t.Helper()
	if err := w.running[name].Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// forget removes a process that is gone for good from the scraped targets.
func (w *watched) forget(name string) {
	w.kill(name)
	delete(w.targets, name)
	w.now = w.now.Add(time.Millisecond)
	w.store(name, nil)
}

// figure reports whether the coordinator's metrics contain a line.
func (w *watched) figure(line string) bool {
	text, err := w.read("coordinator")
	return err == nil && strings.Contains(text, "\n"+line+"\n")
}

// until waits until the coordinator's metrics contain a line.
func (w *watched) until(line string) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); !w.figure(line); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			text, err := w.read("coordinator")
			w.t.Fatalf("no %s: %v\n%s", line, err, text)
		}
	}
}

func (w *watched) read(instance string) (string, error) {
	answer, err := w.client.Get("https://" + w.targets[instance] + "/metrics")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return string(text), err
}

// store stores the samples of a scrape. A series that has vanished is marked as stale, as
// Prometheus does.
func (w *watched) store(instance string, samples model.Vector) {
	w.t.Helper()
	app := w.storage.Appender(context.Background())
	var present []labels.Labels
	add := func(l labels.Labels, v float64) {
		if _, err := app.Append(0, l, w.now.UnixMilli(), v); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, s := range samples {
		b := labels.NewBuilder(labels.EmptyLabels())
		b.Set("instance", instance)
		for name, v := range s.Metric {
			b.Set(string(name), string(v))
		}
		l := b.Labels()
		present = append(present, l)
		add(l, float64(s.Value))
	}
	for _, old := range w.before[instance] {
		if !slices.ContainsFunc(present, func(l labels.Labels) bool { return labels.Equal(l, old) }) {
			add(old, math.Float64frombits(value.StaleNaN))
		}
	}
	w.before[instance] = present
	if err := app.Commit(); err != nil {
		w.t.Fatal(err)
	}
}

// scrape scrapes every process once, half a minute after the last scrape in Prometheus' time.
func (w *watched) scrape() {
	w.t.Helper()
	w.now = w.now.Add(scrapeEvery)
	for instance := range w.targets {
		var samples model.Vector
		if text, err := w.read(instance); err == nil {
			p := expfmt.NewTextParser(model.UTF8Validation)
			families, err := p.TextToMetricFamilies(strings.NewReader(text))
			if err != nil {
				w.t.Fatal(err)
			}
			for name, f := range families {
				if !strings.HasPrefix(name, "taxon_") {
					continue
				}
				v, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.TimeFromUnixNano(w.now.UnixNano())}, f)
				if err != nil {
					w.t.Fatal(err)
				}
				samples = append(samples, v...)
			}
		}
		w.store(instance, samples)
	}
}

// pass advances Prometheus' time.
func (w *watched) pass(d time.Duration) {
	w.t.Helper()
	for ; d > 0; d -= scrapeEvery {
		w.scrape()
	}
}

// firing returns the alerts that fire: those whose expression was true at each scrape during the
// rule's duration.
func (w *watched) firing() (out []string) {
	w.t.Helper()
	for _, r := range w.rules {
		fires := true
		for back := time.Duration(r.For); back >= 0 && fires; back -= scrapeEvery {
			q, err := w.engine.NewInstantQuery(context.Background(), w.storage, nil, r.Expr, w.now.Add(-back))
			if err != nil {
				w.t.Fatal(err)
			}
			v, err := q.Exec(context.Background()).Vector()
			if err != nil {
				w.t.Fatalf("%s: %v", r.Alert, err)
			}
			fires = len(v) > 0
			q.Close()
		}
		if fires {
			out = append(out, r.Alert)
		}
	}
	return out
}

// fire fails the test unless exactly these alerts fire.
func (w *watched) fire(when string, want ...string) {
	w.t.Helper()
	got := w.firing()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: %v fire, want %v", when, got, want)
	}
}

// TestAlertsOfARealCluster causes the conditions of the alerts in real processes. Prometheus' own
// engine evaluates the rules on the scraped samples, and no other alert may fire.
func TestAlertsOfARealCluster(t *testing.T) {
	w := watch(t)
	rows := strings.Repeat("a 1:1 2:0.5\nb 3:1 4:0.5\nc 5:1 6:0.5\n", 40)
	for _, name := range []string{"data/d.svm", "long.svm"} {
		if err := os.MkdirAll(filepath.Dir(w.in(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(w.in(name), []byte(rows), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.taxon("ingest", "--data", w.in("data/d.svm"), "--out", w.in("data/set"), "--quiet")
	w.start("coordinator", "coordinator", "--listen", "127.0.0.1:0", "--lease", "1s", "--data-root", w.in("data"),
		"--snapshots", w.in("snapshots"), "--snapshot-every", "1", "--snapshot-pause", "1ms")
	w.start("store", "store-0")
	w.start("store", "store-1")
	w.pass(5 * time.Minute)
	w.fire("an idle cluster")

	w.submit("--data", w.in("long.svm"), "--id", "first")
	w.until(`taxon_jobs{state="waiting"} 1`)
	w.pass(12 * time.Minute)
	w.fire("no worker", "TaxonNobodyWorks", "TaxonJobsWait")

	w.start("worker", "worker-0", "--slots", "1", "--data-root", w.in("data"))
	w.until(`taxon_jobs{state="done"} 1`)
	w.pass(5 * time.Minute)
	w.fire("the job is done")

	for n := range 4 {
		name := fmt.Sprintf("dying-%d", n)
		w.start("worker", name, "--slots", "1")
		w.forget(name)
		w.until(fmt.Sprintf("taxon_workers_lost_total %d", n+1))
		w.scrape()
	}
	w.fire("workers are killed", "TaxonWorkersKeepDying")
	w.pass(15 * time.Minute)
	w.fire("later")

	w.submit("--data", w.in("data/set"), "--in-place", "--id", "before")
	w.until(`taxon_jobs{state="done"} 2`)
	w.pass(time.Minute)
	w.forget("worker-0")
	w.start("worker", "worker-1", "--slots", "1", "--data-root", w.in("data"))
	w.scrape() // its counters are at 0
	w.stop("worker-1")
	w.submit("--data", w.in("data/set"), "--in-place", "--id", "spoilt", "--seed", "7")
	w.until(`taxon_jobs{state="waiting"} 1`)
	if err := os.RemoveAll(w.in("data/set")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.in("data/d.svm"), []byte("a 1:2\nb 2:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.taxon("ingest", "--data", w.in("data/d.svm"), "--out", w.in("data/set"), "--quiet")
	w.resume("worker-1")
	w.until(`taxon_jobs{state="failed"} 1`)
	w.pass(2 * time.Minute)
	w.fire("the first task and job fail", "TaxonJobsFail", "TaxonTasksKeepFailing")
	w.pass(20 * time.Minute)
	w.fire("later")

	for range 24 {
		for range 40 {
			if answer, err := w.bare.Get("https://" + w.targets["store-0"] + "/metrics"); err == nil {
				_ = answer.Body.Close()
			}
		}
		w.scrape()
	}
	w.fire("a stranger calls", "TaxonCallsRefused")
	w.pass(6 * time.Minute)

	// too large to be solved in seconds
	w.taxon("generate", "--like", "lwiki", "--scale", "0.001", "--out", w.in("generated"), "--quiet")
	w.submit("--data", w.in("generated/train.svm"), "--id", "stuck", "--max-sweeps", "1000000", "--gap", "1e-300")
	w.until(`taxon_jobs{state="running"} 1`)
	w.stop("worker-1")
	w.until(`taxon_jobs{state="waiting"} 1`)
	w.pass(80 * time.Minute)
	w.fire("a worker stands still for 80 minutes", "TaxonNobodyWorks", "TaxonJobsWait", "TaxonNoProgress",
		"TaxonSnapshotOld")
	w.taxon(slices.Concat([]string{"cancel", "stuck", "--coordinator", w.coord, "--quiet"}, w.profile())...)
	w.until(`taxon_jobs{state="cancelled"} 1`)
	w.forget("worker-1")

	w.kill("store-1")
	w.until("taxon_store_shards 1")
	w.pass(15 * time.Minute)
	w.fire("a store is killed", "TaxonStoreAway", "TaxonTooFewCopies")
	w.start("store", "store-1")
	w.until("taxon_store_shards 2")
	w.pass(2 * time.Minute)
	w.fire("it is back")

	w.kill("coordinator")
	w.pass(10 * time.Minute)
	w.fire("the coordinator has been dead for ten minutes", "TaxonCoordinatorAway")

	w.now = time.Now().Add(360 * 24 * time.Hour)
	w.pass(time.Minute)
	w.fire("certificates expire in days", "TaxonCertificateExpires", "TaxonCoordinatorAway")
}
