package main

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// member is a process of a cluster that runs in the test's.
type member struct {
	out, err lockedBuffer
	stop     context.CancelFunc
	ended    chan int
}

// run starts a verb that goes on until it is stopped.
func run(t *testing.T, args ...string) *member {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{stop: cancel, ended: make(chan int, 1)}
	go func() { m.ended <- execute(ctx, args, strings.NewReader(""), &m.out, &m.err) }()
	var once sync.Once
	t.Cleanup(func() {
		once.Do(func() {
			cancel()
			<-m.ended
		})
	})
	return m
}

// ready waits for the line that says so, and gives what it matches.
func (m *member) ready(t *testing.T, pattern string) []string {
	t.Helper()
	return m.await(t, &m.out, pattern)
}

// logged waits for a line of the log, and gives what it matches.
func (m *member) logged(t *testing.T, pattern string) []string {
	t.Helper()
	return m.await(t, &m.err, pattern)
}

func (m *member) await(t *testing.T, from *lockedBuffer, pattern string) []string {
	t.Helper()
	p := regexp.MustCompile(pattern)
	for range 1000 {
		if found := p.FindStringSubmatch(from.String()); found != nil {
			return found
		}
		select {
		case code := <-m.ended:
			m.ended <- code
			t.Fatalf("ended with status %d: %s", code, m.err.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatalf("not ready: %s", m.err.String())
	return nil
}

// TestSecureCluster trains over TLS with a token for every role, and sees each kept out of
// what is not its own.
func TestSecureCluster(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	do := func(line ...string) (int, string, string) { return runWith(t, "", line...) }
	for _, line := range [][]string{
		{"certs", "--dir", in("certs"), "--host", "localhost,127.0.0.1", "--name", "node"},
		{"certs", "token", "--dir", in("certs")},
	} {
		if code, _, stderr := do(line...); code != 0 {
			t.Fatal(stderr)
		}
	}
	server := func(role string) []string {
		return []string{"--tls-ca", in("certs/ca.crt"), "--tls-cert", in("certs/node.crt"), "--tls-key", in("certs/node.key"),
			"--require-token", "--token-file", in("certs/" + role + ".tokens"), "--metrics", "127.0.0.1:0", "--log-format",
			"json"}
	}
	caller := func(role, coordinator string) []string {
		return []string{"--coordinator", coordinator, "--profile", writeText(t, "profile", "tls-ca: "+in("certs/ca.crt")+
			"\ntoken-file: "+in("certs/"+role+".token")+"\n")}
	}
	c := run(t, append([]string{"coordinator", "--dir", in("co"), "--listen", "127.0.0.1:0"}, server("coordinator")...)...)
	found := c.logged(t, `"msg":"ready".*"addr":"([^"]+)".*"metrics":"([^"]+)"`)
	addr, page := found[1], found[2]
	s := run(t, append([]string{"store", "--dir", in("st"), "--coordinator", addr}, server("store")...)...)
	s.logged(t, `"msg":"ready"`)
	w := run(t, append([]string{"worker", "--dir", in("w"), "--coordinator", addr, "--slots", "1"},
		server("worker")...)...)
	w.logged(t, `"msg":"ready"`)

	data, tree := in("data.svm"), in("tree.txt")
	var rows strings.Builder
	for i := range 60 {
		rows.WriteString([]string{"a 1:1 2:0.5\n", "b 3:1 4:0.5\n", "c 5:1 1:0.25\n"}[i%3])
	}
	if err := os.WriteFile(data, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tree, []byte("r x\nx a\nx b\nr c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := do(append([]string{"submit", "--data", data, "--hierarchy", tree, "--wait", "--json",
		"--quiet"}, caller("submit", addr)...)...)
	if code != 0 || !strings.Contains(stdout, "weights_sha256") {
		t.Fatalf("submit: exit status %d: %s %s", code, stdout, stderr)
	}
	code, stdout, stderr = do(append([]string{"jobs"}, caller("read-only", addr)...)...)
	if code != 0 || !strings.Contains(stdout, "done") {
		t.Errorf("jobs by role read-only: exit status %d: %s %s", code, stdout, stderr)
	}
	for role, want := range map[string]string{"read-only": "the token has role read-only",
		"worker": "the token has role worker", "store": "needs role submit or admin"} {
		code, _, stderr := do(append([]string{"submit", "--data", data, "--hierarchy", tree, "--quiet"},
			caller(role, addr)...)...)
		if code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("submit by role %s: exit status %d: %s", role, code, stderr)
		}
	}
	if code, _, stderr := do("jobs", "--coordinator", addr, "--profile", writeText(t, "profile",
		"tls-ca: "+in("certs/ca.crt")+"\n")); code == 0 || !strings.Contains(stderr, "token-file in --profile") {
		t.Errorf("jobs without a token: exit status %d: %s", code, stderr)
	}
	checkPage(t, page, in("certs/read-only.token"))
	all := c.err.String() + s.err.String() + w.err.String() + c.out.String()
	for _, role := range []string{"submit", "worker", "store", "coordinator", "read-only"} {
		token, err := os.ReadFile(in("certs/" + role + ".token"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(all, strings.TrimSpace(string(token))) {
			t.Errorf("the token of %s is in a log", role)
		}
	}
}

// checkPage reads the coordinator's figures.
func checkPage(t *testing.T, url, tokenFile string) {
	t.Helper()
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, given := range []string{"", "Bearer " + strings.TrimSpace(string(token))} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", given)
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if given == "" {
			if answer.StatusCode != http.StatusUnauthorized {
				t.Errorf("figures without a token: %d", answer.StatusCode)
			}
			continue
		}
		for _, line := range []string{`taxon_jobs{state="done"} 1`, "taxon_workers 1", "taxon_store_shards 1"} {
			if !strings.Contains(string(text), "\n"+line+"\n") {
				t.Errorf("no line %s", line)
			}
		}
		if strings.Contains(string(text), "\ntaxon_sweeps_total 0\n") || strings.Contains(string(text),
			"\ntaxon_task_bytes_total{direction=\"written\"} 0\n") {
			t.Errorf("the job is not counted:\n%s", text)
		}
	}
}

// TestDeniedProcessesEnd: a store or worker that will never be let in ends with what is
// wrong and what to do, instead of asking on; so does a store that nobody could call.
func TestDeniedProcessesEnd(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, line := range [][]string{
		{"certs", "--dir", in("ours"), "--host", "127.0.0.1", "--name", "node"},
		{"certs", "--dir", in("ours"), "--host", "node-1", "--name", "elsewhere"},
		{"certs", "--dir", in("ours"), "--role", "submit", "--name", "user"},
		{"certs", "--dir", in("theirs"), "--host", "127.0.0.1", "--name", "node"},
	} {
		if code, _, stderr := runWith(t, "", line...); code != 0 {
			t.Fatal(stderr)
		}
	}
	tls := func(authority, name string) []string {
		return []string{"--tls-ca", in("ours/ca.crt"), "--tls-cert", in(authority + "/" + name + ".crt"), "--tls-key",
			in(authority + "/" + name + ".key")}
	}
	addr := run(t, append([]string{"coordinator", "--dir", in("co"), "--listen", "127.0.0.1:0"},
		tls("ours", "node")...)...).ready(t, `ready on (\S+),`)[1]
	plain := run(t, "coordinator", "--dir", in("plain"), "--listen", "127.0.0.1:0").ready(t, `ready on (\S+),`)[1]
	store, worker := []string{"store", "--dir", in("s"), "--coordinator"}, []string{"worker", "--slots", "1", "--dir",
		in("w"), "--coordinator"}
	for _, c := range []struct {
		name string
		line []string
		want string
	}{
		{"a store whose certificate lacks its name", append(append(store, addr), tls("ours", "elsewhere")...),
			"elsewhere.crt is for node-1, not for 127.0.0.1: make one for that name"},
		{"a store that advertises another name", append(append(store, addr, "--advertise", "node-2:7071"),
			tls("ours", "node")...), "nobody could call it at node-2:7071"},
		{"a store without a certificate of its own", append(store, addr, "--tls-ca", in("ours/ca.crt")),
			"give --tls-cert and --tls-key"},
		{"a store of another authority", append(append(store, addr), tls("theirs", "node")...), "is issued by taxon CA"},
		{"a store that speaks no TLS", append(store, addr, "--insecure"), "no access to the coordinator at " + addr +
			": it speaks TLS: give --tls-ca"},
		{"a store that speaks TLS to one that does not", append(append(store, plain), tls("ours", "node")...),
			"does not speak TLS"},
		{"a worker without identity", append(worker, addr, "--tls-ca", in("ours/ca.crt")),
			"a certificate is needed: give --tls-cert"},
		{"a worker of another role", append(append(worker, addr), tls("ours", "user")...), "needs role worker or admin, " +
			"and the certificate user has role submit"},
		{"a worker of another authority", append(append(worker, addr), tls("theirs", "node")...),
			"takes certificates of another authority"},
		{"a worker that speaks no TLS", append(worker, addr), "no access to the coordinator at " + addr + ": it speaks TLS"},
		{"a verb that speaks no TLS", []string{"jobs", "--coordinator", addr},
			"no access to the coordinator at " + addr + ": it speaks TLS"},
	} {
		m := run(t, c.line...)
		code := <-m.ended
		m.ended <- code
		if said := m.err.String(); code != exitUsage || !strings.Contains(said, c.want) || m.out.String() != "" {
			t.Errorf("%s: exit status %d: %s%s, want %q", c.name, code, m.out.String(), said, c.want)
		}
	}
}

// TestRotationKeepsTheFleet: a coordinator that is started again with certificates of
// another authority loses no worker and no store that it knew: they say what is wrong, and
// go on when they have the new files, too.
func TestRotationKeepsTheFleet(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, authority := range []string{"old", "new"} {
		if code, _, stderr := runWith(t, "", "certs", "--dir", in(authority), "--role", "coordinator", "--role", "store",
			"--role", "worker", "--role", "submit", "--host", "127.0.0.1", "--name", "node"); code != 0 {
			t.Fatal(stderr)
		}
	}
	// install puts an authority's files where a process looks for them.
	install := func(authority, process string) []string {
		if err := os.MkdirAll(in(process), 0o700); err != nil {
			t.Fatal(err)
		}
		flags := []string{}
		for flag, name := range map[string]string{"--tls-ca": "ca.crt", "--tls-cert": "node.crt", "--tls-key": "node.key"} {
			data, err := os.ReadFile(filepath.Join(in(authority), name))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(in(process), name), data, 0o600); err != nil {
				t.Fatal(err)
			}
			flags = append(flags, flag, filepath.Join(in(process), name))
		}
		return flags
	}
	addr := freeAddr(t)
	coordinator := func(authority string) *member {
		m := run(t, append([]string{"coordinator", "--dir", in("co"), "--listen", addr, "--lease", "300ms"},
			install(authority, "c")...)...)
		m.ready(t, "ready on")
		return m
	}
	first := coordinator("old")
	w := run(t, append([]string{"worker", "--dir", in("wd"), "--slots", "1", "--coordinator", addr},
		install("old", "w")...)...)
	w.ready(t, "ready on")
	s := run(t, append([]string{"store", "--dir", in("sd"), "--coordinator", addr}, install("old", "s")...)...)
	s.ready(t, "ready on")
	first.stop()
	first.ended <- <-first.ended
	coordinator("new")
	for _, m := range []*member{w, s} {
		for end := time.Now().Add(20 * time.Second); !strings.Contains(m.err.String(),
			"no access to the coordinator"); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("it does not say that it is denied: %s", m.err.String())
			}
		}
	}
	install("new", "w")
	install("new", "s")
	if err := os.WriteFile(in("data.svm"), []byte(strings.Repeat("a 1:1 2:0.5\nb 3:1 4:0.5\n", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	install("new", "user")
	if err := os.WriteFile(in("user/profile"), []byte("coordinator: "+addr+"\ntls-ca: ca.crt\ntls-cert: node.crt\n"+
		"tls-key: node.key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runWith(t, "", "submit", "--data", in("data.svm"), "--wait", "--quiet", "--profile",
		in("user/profile")); code != 0 {
		t.Fatalf("the job does not run: exit status %d: %s", code, stderr)
	}
}
