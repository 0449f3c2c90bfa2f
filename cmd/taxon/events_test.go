package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"taxon/internal/cluster/secure"
	taxonv1 "taxon/proto/taxon/v1"
)

// logLine is a line of a log: its message, level, and attributes in their order.
type logLine struct {
	level, msg string
	keys       []string
	values     map[string]string
}

// parseJSONLog reads a log that must be lines of JSON and nothing else.
func parseJSONLog(t *testing.T, text string) (out []logLine) {
	t.Helper()
	for line := range strings.Lines(text) {
		d := json.NewDecoder(strings.NewReader(line))
		first, err := d.Token()
		if err != nil || first != json.Delim('{') {
			t.Fatalf("no JSON: %q", line)
		}
		l := logLine{values: map[string]string{}}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				t.Fatalf("%v: %q", err, line)
			}
			value, err := d.Token()
			if err != nil {
				t.Fatalf("%v: %q", err, line)
			}
			l.keys = append(l.keys, fmt.Sprint(key))
			if _, again := l.values[fmt.Sprint(key)]; again {
				t.Errorf("%v twice: %q", key, line)
			}
			l.values[fmt.Sprint(key)] = fmt.Sprint(value)
		}
		l.level, l.msg = l.values["level"], l.values["msg"]
		out = append(out, l)
	}
	return out
}

// sampleLines are those of the sample log in a page of the documentation.
func sampleLines(t *testing.T, page string) (out []logLine) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	pair := regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S+)`)
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "    time=") {
			continue
		}
		l := logLine{values: map[string]string{}}
		for _, p := range pair.FindAllStringSubmatch(line, -1) {
			l.keys = append(l.keys, p[1])
			l.values[p[1]] = strings.Trim(p[2], `"`)
		}
		l.level, l.msg = l.values["level"], l.values["msg"]
		out = append(out, l)
	}
	return out
}

// silentWorker joins as a worker, takes a task and is never heard again.
func silentWorker(t *testing.T, addr string, o secure.Options) {
	t.Helper()
	options, err := o.DialOptions()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(addr, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	tasks := taxonv1.NewTasksClient(conn)
	me, err := tasks.Register(t.Context(), &taxonv1.RegisterRequest{Name: "gpu-3", Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	for {
		r, err := tasks.Lease(t.Context(), &taxonv1.LeaseRequest{Worker: me.GetWorker()})
		if err != nil {
			t.Fatal(err)
		}
		if r.GetLease() != nil {
			return
		}
	}
}

// TestEventLog lives through an operator's day. What happened is in the coordinator's log, a line each,
// with who asked for it. All processes write lines of JSON and nothing else. The sample in the
// documentation has lines that were really written.
func TestEventLog(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"coordinator", "store", "worker", "submit"} {
		user := map[string]string{"submit": "alice"}[name]
		line := []string{"certs", "--dir", in("certs"), "--host", "127.0.0.1", "--role", name, "--name", name}
		if user != "" {
			line = []string{"certs", "--dir", in("certs"), "--role", name, "--name", user}
		}
		if code, _, stderr := runWith(t, "", line...); code != 0 {
			t.Fatal(stderr)
		}
	}
	security := func(name string) secure.Options {
		return secure.Options{CACert: in("certs/ca.crt"), Cert: in("certs/" + name + ".crt"), Key: in("certs/" + name +
			".key")}
	}
	flags := func(name string) []string {
		o := security(name)
		return []string{"--tls-ca", o.CACert, "--tls-cert", o.Cert, "--tls-key", o.Key}
	}
	profile := writeText(t, "profile", "tls-ca: "+in("certs/ca.crt")+"\ntls-cert: "+in("certs/alice.crt")+"\ntls-key: "+
		in("certs/alice.key")+"\n")
	process := func(role string, more ...string) *member {
		return run(t, slices.Concat([]string{role, "--dir", in(role), "--log-format", "json", "--metrics", "127.0.0.1:0"},
			flags(role), more)...)
	}
	c := process("coordinator", "--listen", "127.0.0.1:0", "--lease", "600ms", "--snapshots", in("snapshots"),
		"--snapshot-every", "1", "--snapshot-pause", "1ms")
	addr := c.logged(t, `"msg":"ready","process":"coordinator","name":"coordinator","addr":"([^"]+)"`)[1]
	s := process("store", "--coordinator", addr, "--name", "store-1")
	s.logged(t, `"msg":"ready"`)
	if err := os.WriteFile(in("data.svm"), []byte(strings.Repeat("a 1:1 2:0.5\nb 3:1 4:0.5\n", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(want int, args ...string) {
		t.Helper()
		code, stdout, stderr := runWith(t, "", append(args, "--coordinator", addr, "--quiet", "--profile", profile)...)
		if code != want {
			t.Fatalf("%q: exit status %d, want %d: %s%s", args, code, want, stdout, stderr)
		}
	}
	ask(0, "submit", "--data", in("data.svm"), "--id", "news", "--name", "nightly")
	for {
		_, text, _ := runWith(t, "", "status", "news", "--json", "--coordinator", addr, "--profile", profile)
		var st struct {
			State, Submitted, Method, Owner string
			Started                         string
			ETA                             *float64 `json:"eta_seconds"`
			Idle                            float64  `json:"idle_seconds"`
			Options                         map[string]any
		}
		if err := json.Unmarshal([]byte(text), &st); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if st.State != "waiting" || st.ETA != nil || st.Owner != "alice" || st.Method != "rr-svm" ||
			st.Options["method"] != "rr-svm" || len(st.Submitted) != 20 || len(st.Started) != 20 {
			t.Fatalf("status of a job that waits: %s", text)
		}
		if st.Idle > 0 {
			break
		}
	}
	silentWorker(t, addr, security("worker"))
	c.logged(t, `"msg":"lease lost"`)
	w := process("worker", "--coordinator", addr, "--slots", "1", "--name", "gpu-4")
	c.logged(t, `"msg":"job done"`)
	code, text, stderr := runWith(t, "", "status", "news", "--coordinator", addr, "--profile", profile)
	for _, want := range []string{"news (nightly)", "owner       alice", "submitted   20", "started     20",
		"ended       20", "method      rr-svm, gap 0.01, ", "bias-pull parent", "stopped by  gap", "sha256",
		"1 attempt repeated", "1 worker lost, 0 rollbacks", "waiting besides"} {
		if !strings.Contains(text, want) {
			t.Errorf("status: %d, no %q in %s%s", code, want, text, stderr)
		}
	}
	// Labels at random and a large C keep a training busy until somebody cancels it.
	var hard strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		hard.WriteString([]string{"a", "b"}[random.IntN(2)])
		for f := 1; f <= 30; f++ {
			fmt.Fprintf(&hard, " %d:%.3f", f, random.NormFloat64())
		}
		hard.WriteByte('\n')
	}
	if err := os.WriteFile(in("hard.svm"), []byte(hard.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	ask(0, "submit", "--data", in("hard.svm"), "--id", "trial", "--C", "1e6", "--max-sweeps", "100000", "--gap", "1e-300")
	c.logged(t, `"msg":"job started","process":"coordinator","name":"coordinator","job":"trial"`)
	for swept := false; !swept; { // the log has the sweep at which it was cancelled
		_, text, _ := runWith(t, "", "status", "trial", "--json", "--coordinator", addr, "--profile", profile)
		var st struct{ Sweep int }
		if err := json.Unmarshal([]byte(text), &st); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		swept = st.Sweep > 0
	}
	ask(0, "cancel", "trial")
	c.logged(t, `"msg":"job cancelled"`)
	ask(0, "cancel", "trial", "--discard", "--yes")
	ask(2, "drain", "gpu-4")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if answer, err := client.Get("http://" + addr); err == nil { // no TLS: the server's library has something to say
		_ = answer.Body.Close()
	}
	page := c.logged(t, `"metrics":"https://([^/"]+)`)[1]
	if answer, err := client.Get("http://" + page + "/metrics"); err == nil {
		_ = answer.Body.Close()
	}
	w.stop()
	c.logged(t, `"msg":"worker left"`)
	s.stop()
	c.logged(t, `"msg":"store left"`)
	c.stop()
	for _, m := range []*member{w, s, c} {
		code := <-m.ended
		m.ended <- code
		if code != 0 || m.out.String() != "" {
			t.Errorf("exit status %d, and on standard output: %s", code, m.out.String())
		}
		parseJSONLog(t, m.err.String())
	}
	events := parseJSONLog(t, c.err.String())
	for _, want := range []map[string]string{
		{"msg": "store joined", "store": "store-1", "by": "store"},
		{"msg": "job submitted", "job": "news", "job_name": "nightly", "by": "alice"},
		{"msg": "worker joined", "worker": "w1", "worker_name": "gpu-3", "by": "worker"},
		{"msg": "worker lost", "worker": "w1", "level": "WARN"},
		{"msg": "lease lost", "job": "news", "worker": "w1", "worker_name": "gpu-3", "step": "1", "attempt": "1"},
		{"msg": "job done", "job": "news"},
		{"msg": "job is to be cancelled", "job": "trial", "by": "alice"},
		{"msg": "job cancelled", "job": "trial"},
		{"msg": "values discarded", "job": "trial", "by": "alice"},
		{"msg": "call refused", "call": "/taxon.v1.Jobs/Drain", "code": "PermissionDenied", "by": "alice",
			"from": "127.0.0.1"},
		{"msg": "worker left", "worker_name": "gpu-4"},
		{"msg": "store left", "store": "store-1"},
		{"msg": "ended"},
	} {
		if !slices.ContainsFunc(events, func(l logLine) bool {
			for key, value := range want {
				if l.values[key] != value {
					return false
				}
			}
			return true
		}) {
			t.Errorf("no event %v in\n%s", want, c.err.String())
		}
	}
	sample := sampleLines(t, "../../docs/observability.md")
	if len(sample) < 8 {
		t.Fatalf("the sample has %d lines", len(sample))
	}
	for _, line := range sample {
		if !slices.ContainsFunc(events, func(l logLine) bool {
			return l.level == line.level && l.msg == line.msg && slices.Equal(l.keys, line.keys)
		}) {
			t.Errorf("docs/observability.md shows %s %q with %v, which no process writes", line.level, line.msg, line.keys)
		}
	}
}

// A process that logs JSON ends with an error in JSON too.
func TestEventLogOfAFailure(t *testing.T) {
	for _, line := range [][]string{
		{"coordinator", "--dir", "/dev/null/x"},
		{"coordinator", "--dir", t.TempDir(), "--lease", "1ns"},
		{"serve", filepath.Join(t.TempDir(), "nothing")},
	} {
		code, stdout, stderr := runWith(t, "", append(line, "--log-format", "json")...)
		if lines := parseJSONLog(t, stderr); code == 0 || stdout != "" || len(lines) != 1 || lines[0].level != "ERROR" ||
			lines[0].values["error"] == "" {
			t.Errorf("%q: exit status %d, %q, %q", line, code, stdout, stderr)
		}
	}
	if code, _, stderr := runWith(t, "", "coordinator", "--dir", "/dev/null/x"); code == 0 || !strings.HasPrefix(stderr,
		"taxon: ") {
		t.Errorf("text is not text: %d, %q", code, stderr)
	}
}
