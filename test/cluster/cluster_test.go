package cluster

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"taxon/test/command"
)

var bench *Bench

func TestMain(m *testing.M) {
	b, dir, err := NewBench(600, 60)
	defer os.RemoveAll(dir)
	if err != nil {
		log.Print(err)
		os.Exit(1)
	}
	bench = b
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestSubmitToExport checks the whole workflow: a job on a cluster gives the bytes that train
// gives, as its digest, as a model, and as an export.
func TestSubmitToExport(t *testing.T) {
	t.Parallel()
	want := bench.Embedded(t, "1e-3")
	c := bench.Up(t, 2, 2)
	dir := t.TempDir()
	var done struct {
		Job, State string
		Report     struct {
			SHA string `json:"weights_sha256"`
		}
	}
	r := c.Taxon(t, append([]string{"submit", "--wait", "--json", "--out", filepath.Join(dir, "model")},
		bench.Job("1e-3")...)...)
	Decode(t, r.Stdout, &done)
	if done.State != "done" || done.Report.SHA != want {
		t.Errorf("submit --wait: %+v, want digest %s", done, want)
	}
	var info struct {
		Report struct {
			SHA string `json:"weights_sha256"`
		}
	}
	Decode(t, bench.Must(t, "", "info", filepath.Join(dir, "model"), "--json").Stdout, &info)
	if info.Report.SHA != want {
		t.Errorf("the model that came has digest %s, want %s", info.Report.SHA, want)
	}
	s := c.Status(t, done.Job)
	if s.Report == nil || s.Report.SHA != want || s.Error != "" || s.Gap == nil || *s.Gap > 1e-3 {
		t.Errorf("status %+v", s)
	}
	checkKeys(t, c.Taxon(t, "status", done.Job, "--json").Stdout)

	exported, text := filepath.Join(dir, "exported"), filepath.Join(dir, "w.txt")
	c.Taxon(t, "export", "--job", done.Job, "--format", "model", "--out", exported)
	Decode(t, bench.Must(t, "", "info", exported, "--json").Stdout, &info)
	if info.Report.SHA != want {
		t.Errorf("export --format model has digest %s, want %s", info.Report.SHA, want)
	}
	c.Taxon(t, "export", "--job", done.Job, "--out", text)
	c.Taxon(t, "export", "--job", done.Job, "--out", filepath.Join(dir, "parts")+"/")
	whole, err := os.ReadFile(text)
	if err != nil {
		t.Fatal(err)
	}
	if parts, n := joined(t, filepath.Join(dir, "parts")); parts != string(whole) || n != 2 {
		t.Errorf("%d parts with %d bytes, the file has %d", n, len(parts), len(whole))
	}

	// the same job again, by its id, and the same data again, which the cluster has already
	again := c.Taxon(t, append([]string{"submit", "--json", "--id", done.Job}, bench.Job("1e-3")...)...)
	if !strings.Contains(again.Stdout, done.Job) {
		t.Errorf("submitted again: %s", again.Stdout)
	}
	if other := c.Submit(t, "0.9"); other == done.Job {
		t.Error("two jobs have one id")
	} else {
		c.Await(t, other, nil)
	}
	if r := c.Taxon(t, "cancel", done.Job, "--discard", "--yes"); !strings.Contains(r.Stderr+r.Stdout,
		"its values are dropped") {
		t.Errorf("cancel --discard says %+v", r)
	}
	if r := c.Try(t, "export", "--job", done.Job, "--out", filepath.Join(dir, "gone")); r.Code != 2 ||
		!strings.Contains(r.Stderr, "discarded") {
		t.Errorf("export of a discarded job: status %d, %s", r.Code, r.Stderr)
	}
	var jobs []struct{ Job, State string }
	Decode(t, c.Taxon(t, "jobs", "--json").Stdout, &jobs)
	if len(jobs) != 2 || jobs[0].Job != done.Job || jobs[0].State != "discarded" {
		t.Errorf("jobs %v", jobs)
	}
	if logs := c.Taxon(t, "logs", done.Job, "--follow").Stdout; len(logs) == 0 {
		t.Error("the job has no log")
	}
	var workers []struct{ Name, State string }
	Decode(t, c.Taxon(t, "workers", "--json").Stdout, &workers)
	if len(workers) != 2 || workers[0].State != "up" {
		t.Errorf("workers %v", workers)
	}
}

// joined reads the parts of an export in order.
func joined(t *testing.T, dir string) (text string, n int) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "_SUCCESS")); err != nil {
		t.Error(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "part-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths { // sorted
		data, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		text += string(data)
	}
	return text, len(paths)
}

// statusKeys lists the documented keys of status --json.
var statusKeys = []string{"job", "state", "phase", "sweep", "gap", "tasks", "workers_lost", "recomputed", "duplicates",
	"replicas", "bytes_read", "bytes_written",
	"seconds", "rollbacks", "eta_seconds", "eta_low_seconds", "eta_high_seconds", "idle_seconds", "error", "report",
	"method", "options", "submitted", "started", "ended", "stopped_by", "weights_sha256"}

func checkKeys(t *testing.T, text string) {
	t.Helper()
	var status map[string]json.RawMessage
	Decode(t, text, &status)
	var tasks, report map[string]json.RawMessage
	Decode(t, string(status["tasks"]), &tasks)
	Decode(t, string(status["report"]), &report)
	for _, check := range []struct {
		what string
		got  map[string]json.RawMessage
		want []string
	}{
		{"status", status, statusKeys},
		{"tasks", tasks, []string{"done", "running", "waiting", "retried"}},
		{"report", report, command.ReportKeys()},
	} {
		for _, k := range check.want {
			if _, ok := check.got[k]; !ok {
				t.Errorf("%s lacks %s", check.what, k)
			}
		}
		for k := range check.got {
			if !slices.Contains(check.want, k) {
				t.Errorf("%s has %s, which the contract does not know", check.what, k)
			}
		}
	}
}

// TestClusterVerbs runs two clusters at the same time. up on a running cluster reports that;
// workers are added and removed in the middle of a job; a killed process restarts on its address;
// down and up resume the job.
func TestClusterVerbs(t *testing.T) {
	t.Parallel()
	want := bench.Embedded(t, "1e-4")
	c, other := bench.Up(t, 1, 1), bench.Up(t, 1, 1)
	if a, b := c.State(t).Coordinator, other.State(t).Coordinator; a == b {
		t.Errorf("two clusters at %s", a)
	}
	if r := bench.Run(t, "", "cluster", "up", "--dir", c.Dir); r.Code != 2 || !strings.Contains(r.Stderr, "runs in") {
		t.Errorf("up on a running cluster: status %d, %s", r.Code, r.Stderr)
	}
	job := c.Submit(t, "1e-4")
	for _, n := range []string{"4", "2"} {
		var s State
		Decode(t, c.Must(t, "", "cluster", "scale", "--dir", c.Dir, "--workers", n, "--json").Stdout, &s)
		if workers := len(s.Processes) - 2; n != string('0'+rune(workers)) {
			t.Errorf("scaled to %s: %d workers", n, workers)
		}
	}
	before := c.Process(t, "store-0")
	before.Signal(syscall.SIGKILL)
	killed := time.Now()
	for {
		now := c.Process(t, "store-0")
		if now.PID != before.PID && now.PID != 0 {
			if now.Addr != before.Addr || now.Restarts != 1 {
				t.Errorf("came back as %+v, was %+v", now, before)
			}
			break
		}
		if time.Since(killed) > 10*time.Second {
			t.Fatal("a killed store does not come back")
		}
	}
	c.Done(t, job, want, nil)

	c.Down(t)
	if r := bench.Run(t, "", "cluster", "status", "--dir", c.Dir); r.Code != 1 {
		t.Errorf("status of a cluster that is down: status %d, %s", r.Code, r.Stderr)
	}
	var s State
	Decode(t, bench.Must(t, "", "cluster", "up", "--json", "--quiet", "--dir", c.Dir, "--workers", "1").Stdout, &s)
	c.env = "TAXON_COORDINATOR=" + s.Coordinator
	if st := c.Status(t, job); st.State != "done" || st.Report == nil || st.Report.SHA != want {
		t.Errorf("after down and up: %+v", st)
	}
}

// TestUpAgain checks that a cluster that is started again has its earlier settings, except for
// those given anew.
func TestUpAgain(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	c := bench.Up(t, 1, 3, "--slots", "2", "--lease", "2s", "--data-root", root, "--snapshots",
		filepath.Join(root, "snaps"))
	wanted := func() string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(c.Dir, "cluster.json"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	before := wanted()
	c.Down(t)
	bench.Must(t, "", "cluster", "up", "--dir", c.Dir)
	if after := wanted(); after != before {
		t.Errorf("started again as\n%s\nit was\n%s", after, before)
	}
	c.Down(t)
	if r := bench.Run(t, "", "cluster", "up", "--dir", c.Dir, "--stores", "2"); r.Code != 2 || !strings.Contains(r.Stderr,
		"has 3") {
		t.Errorf("up with fewer stores: %+v", r)
	}
	bench.Must(t, "", "cluster", "up", "--dir", c.Dir, "--workers", "2")
	if s := c.State(t); len(s.Processes) != 1+3+2 {
		t.Errorf("started again with two workers: %+v", s)
	}
}

// TestForeignFolders checks that no process uses a folder that belongs to another.
func TestForeignFolders(t *testing.T) {
	t.Parallel()
	c := bench.Up(t, 0, 1)
	docs := t.TempDir()
	if err := os.WriteFile(filepath.Join(docs, "README.md"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	coordinator, store := filepath.Join(c.Dir, "coordinator"), filepath.Join(c.Dir, "store-0")
	for _, args := range [][]string{
		{"store", "--dir", coordinator, "--coordinator", "127.0.0.1:1"},
		{"store", "--dir", docs, "--coordinator", "127.0.0.1:1"},
		{"coordinator", "--dir", store, "--listen", "127.0.0.1:0"},
		{"coordinator", "--dir", docs, "--listen", "127.0.0.1:0"},
		{"worker", "--dir", store, "--coordinator", "127.0.0.1:1"},
		{"cluster", "up", "--dir", coordinator},
		{"cluster", "up", "--dir", docs},
	} {
		if r := bench.Run(t, "", args...); r.Code != 2 || !strings.Contains(r.Stderr, "--dir") || strings.Count(r.Stderr,
			"\n") != 1 {
			t.Errorf("%v: %+v", args, r)
		}
	}
	for dir, n := range map[string]int{docs: 1, store: 2} {
		if names, err := os.ReadDir(dir); err != nil || len(names) != n {
			t.Errorf("%s holds %v, %v", dir, names, err)
		}
	}
}

// TestKilledSupervisor checks that the processes of a killed supervisor keep running, and that up
// and down end them.
func TestKilledSupervisor(t *testing.T) {
	t.Parallel()
	c := bench.Up(t, 1, 1)
	data, err := os.ReadFile(filepath.Join(c.Dir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	var state struct{ Supervisor int }
	Decode(t, string(data), &state)
	kill := func() {
		if err := syscall.Kill(state.Supervisor, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for syscall.Kill(state.Supervisor, 0) == nil && !zombie(state.Supervisor) {
			time.Sleep(5 * time.Millisecond)
		}
	}
	kill()
	r := bench.Must(t, "", "cluster", "up", "--dir", c.Dir, "--workers", "1")
	if !strings.Contains(r.Stderr, "left behind") {
		t.Errorf("up after a killed supervisor: %s", r.Stderr)
	}
	if data, err = os.ReadFile(filepath.Join(c.Dir, "state.json")); err != nil {
		t.Fatal(err)
	}
	Decode(t, string(data), &state)
	kill()
	c.Down(t)
}

// zombie reports whether a process has ended but its parent has not waited for it.
func zombie(pid int) bool {
	data, err := os.ReadFile("/proc/" + itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(data), ") Z ")
}

func itoa(n int) string {
	b, _ := json.Marshal(n) // a number is always encoded
	return string(b)
}

// TestErrors checks that mistakes on the command line end with status 2 and one line with a remedy.
func TestErrors(t *testing.T) {
	t.Parallel()
	c := bench.Up(t, 1, 1)
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"status", "nosuch"}, 2, "nosuch"},
		{[]string{"cancel", "nosuch"}, 2, "nosuch"},
		{[]string{"logs", "nosuch"}, 2, "nosuch"},
		{[]string{"drain", "nosuch"}, 2, "nosuch"},
		{[]string{"status"}, 2, "JOB"},
		{[]string{"submit", "--data", bench.Data, "--id", "../x"}, 2, "--id"},
		{[]string{"submit", "--data", bench.Data, "--out", "m"}, 2, "--wait"},
		{[]string{"submit", "--data", bench.Data, "--in-place"}, 2, "ingest"},
		{[]string{"submit", "--data", bench.Data, "--replicas", "5", "--patience", "1ms"}, 2, "5 copies of each value need " +
			"as many store shards, 1 is up"},
		{[]string{"export", "--job", "nosuch", "--out", filepath.Join(t.TempDir(), "w")}, 2, "nosuch"},
		{[]string{"status", "j", "--coordinator", "127.0.0.1:1", "--patience", "1ms"}, 1, "does not answer: dial tcp " +
			"127.0.0.1:1: connect: connection refused: see whether it runs"},
		{[]string{"jobs", "--coordinator", "10.0.0.1:7"}, 2, "jobs: 10.0.0.1:7 lies beyond loopback: give tls-ca in " +
			"--profile"},
		{[]string{"submit", "--data", bench.Data, "--max-time", "10m"}, 2, "600"},
		{[]string{"worker", "--coordinator", "127.0.0.1:1", "--dir", t.TempDir(), "--name", strings.Repeat("x", 400)}, 2,
			"--name has 400 bytes"},
		{[]string{"worker", "--coordinator", "127.0.0.1:1", "--dir", t.TempDir(), "--memory", "3"}, 2, "bytes, write 4GiB"},
		{[]string{"worker", "--coordinator", "127.0.0.1:1", "--dir", t.TempDir(), "--cache", "12"}, 2, "bytes, write 4GiB"},
		{[]string{"store", "--coordinator", "127.0.0.1:1", "--dir", t.TempDir(), "--memory", "1"}, 2, "bytes, write 4GiB"},
		{[]string{"status", "j", "--coordinator", "nonsense"}, 2, "HOST:PORT"},
	} {
		r := c.Try(t, test.args...)
		if r.Code != test.code || !strings.Contains(r.Stderr, test.want) || strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("taxon %s: status %d, %q", strings.Join(test.args, " "), r.Code, r.Stderr)
		}
	}
}

// TestInPlace checks that data in place are read only below the roots, with links followed.
// Instance weights may lie there; data that do not are uploaded.
func TestInPlace(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	data, err := os.ReadFile(bench.Data)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range strings.Count(string(data), "\n") {
		fmt.Fprintln(&text, []float64{2, 0.5, 0}[i%3])
	}
	weights := filepath.Join(outside, "weights")
	if err := os.WriteFile(weights, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{root, outside} {
		bench.Must(t, "", "ingest", "--data", bench.Data, "--instance-weights", weights, "--out", filepath.Join(dir, "data"),
			"--quiet")
	}
	if err := os.Symlink(filepath.Join(outside, "data"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	want := bench.Embedded(t, "1e-2", "--instance-weights", weights)
	if plain := bench.Embedded(t, "1e-2"); plain == want {
		t.Error("the weights change nothing")
	}
	c := bench.Up(t, 1, 1, "--data-root", root)
	out := filepath.Join(outside, "model")
	r := c.Taxon(t, append([]string{"submit", "--wait", "--json", "--instance-weights", weights, "--out", out},
		bench.Job("1e-2")...)...)
	if !strings.Contains(r.Stdout, want) || !strings.Contains(r.Stdout, `"instance_weights"`) {
		t.Errorf("uploaded: %s", r.Stdout)
	}
	submit := func(dir string) Result {
		return c.Try(t, "submit", "--wait", "--json", "--in-place", "--data", dir, "--hierarchy", bench.Tree, "--quiet")
	}
	r = submit(filepath.Join(root, "data"))
	if r.Code != 0 || !strings.Contains(r.Stdout, want) {
		t.Errorf("in place: status %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	for _, dir := range []string{filepath.Join(outside, "data"), filepath.Join(root, "link")} {
		if r := submit(dir); r.Code != 2 || !strings.Contains(r.Stderr, "outside the data roots") {
			t.Errorf("%s: status %d, %s", dir, r.Code, r.Stderr)
		}
	}
}

// TestCancelResumeDrain checks that a cancelled job can be resumed and gives the same bytes, and
// that a drained worker ends.
func TestCancelResumeDrain(t *testing.T) {
	t.Parallel()
	want := bench.Embedded(t, "", Long(100)...)
	c := bench.Up(t, 2, 1)
	job := c.Submit(t, "", Long(100)...)
	c.Taxon(t, "drain", "worker-1")
	c.Taxon(t, "cancel", job)
	if s := c.Await(t, job, nil); s.State != "cancelled" {
		t.Fatalf("cancelled: %+v", s)
	}
	c.Taxon(t, "resume", job)
	c.Done(t, job, want, nil)
	var workers []struct{ Name, State string }
	Decode(t, c.Taxon(t, "workers", "--json").Stdout, &workers)
	if len(workers) != 1 || workers[0].Name != "worker-0" {
		t.Errorf("workers after the drain: %v", workers)
	}
}
