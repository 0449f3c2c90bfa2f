package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"taxon/internal/cluster/secure"
)

// certs runs the verb and reads its report.
func certs(t *testing.T, into any, args ...string) {
	t.Helper()
	code, stdout, stderr := runWith(t, "", append([]string{"certs", "--json"}, args...)...)
	if code != 0 {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), into); err != nil {
		t.Fatal(err)
	}
}

func TestCertsAreKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	var first, second, third certsReport
	certs(t, &first, "--dir", dir, "--host", "node-1,127.0.0.1", "--host", "node-2", "--role", "store")
	certs(t, &second, "--dir", dir, "--host", "node-1,127.0.0.1", "--host", "node-2", "--role", "store")
	certs(t, &third, "--dir", dir, "--host", "node-1,127.0.0.2", "--host", "node-2", "--role", "store")
	if !first.Made || second.Made || len(first.Certificates) != 2 {
		t.Errorf("%+v, then %+v", first, second)
	}
	for i := range 2 {
		if !first.Certificates[i].Made || second.Certificates[i].Made || third.Certificates[i].Made != (i == 0) {
			t.Errorf("certificate %d: made %v, %v and, when the first host's address has changed, %v", i,
				first.Certificates[i].Made, second.Certificates[i].Made, third.Certificates[i].Made)
		}
	}
	if filepath.Base(first.Certificates[0].Cert) != "node-1-store.crt" {
		t.Error(first.Certificates[0].Cert)
	}
	if runtime.GOOS != "windows" {
		for _, name := range []string{"ca.key", "node-1-store.key", "node-2-store.key"} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
	}
}

// TestCertsServe: what the verbs make lets a caller in.
func TestCertsServe(t *testing.T) {
	dir := t.TempDir()
	var server, caller certsReport
	certs(t, &server, "--dir", dir, "--host", "localhost,127.0.0.1")
	certs(t, &caller, "--dir", dir, "--role", "submit", "--name", "alice")
	security := secure.Options{CACert: server.Authority, Cert: server.Certificates[0].Cert,
		Key: server.Certificates[0].Key}
	opts, err := security.ServerOptions(secure.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	l, err := security.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(opts...)
	secure.Register(s)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	defer func() { s.Stop(); <-done }()
	dial, err := secure.Options{CACert: caller.Authority, Cert: caller.Certificates[0].Cert,
		Key: caller.Certificates[0].Key}.DialOptions()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(l.Addr().String(), dial...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
}

func TestCertsMistakes(t *testing.T) {
	dir := t.TempDir()
	for line, want := range map[string]string{
		"certs":                                      "--dir is required",
		"certs --dir DIR --role workr":               "did you mean worker?",
		"certs --dir DIR --role boss":                "there are submit, worker",
		"certs --dir DIR --host a --host b --name c": "--name is for one certificate",
		"certs --dir DIR --name c":                   "give --host or --role",
		"certs --dir DIR --host a/b":                 "neither a DNS name nor an IP address",
		"certs --dir DIR --host a --name ../b":       "letters, digits",
		"certs --dir DIR --role submit --name ca":    "not ca",
		"certs --dir DIR --host a --days 0":          "must be from 1",
		"certs token --dir DIR --renew":              "say whose tokens",
		"certs token --dir DIR --role nobody":        "unknown role",
		"certs tokn --dir DIR":                       "tokn",
	} {
		args := strings.Fields(strings.ReplaceAll(line, "DIR", dir))
		code, _, stderr := runWith(t, "", args...)
		if code != 2 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit status %d, %q, want %q", line, code, stderr, want)
		}
	}
}

func TestCertsToken(t *testing.T) {
	dir := t.TempDir()
	var first, second tokensReport
	certs(t, &first, "token", "--dir", dir)
	certs(t, &second, "token", "--dir", dir)
	if len(first.Callers) != len(secure.Roles()) || !first.Callers[0].Made || second.Callers[0].Made {
		t.Errorf("%+v, then %+v", first, second)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	submit, store := read("submit.token"), read("store.token")
	servers := read("coordinator.tokens")
	if strings.Contains(servers, submit) || strings.Contains(servers, store) || strings.Count(servers,
		"sha256:") != len(secure.Roles())-1 {
		t.Errorf("the coordinator's file:\n%s", servers)
	}
	if !strings.Contains(read("store.tokens"), store) {
		t.Error("the store's file lacks its own token")
	}
	_, stdout, stderr := runWith(t, "", "certs", "token", "--dir", dir, "--role", "submit", "--renew")
	if read("submit.token") == submit {
		t.Error("not renewed")
	}
	if text := stdout + stderr; strings.Contains(text, submit) || strings.Contains(text, read("submit.token")) {
		t.Errorf("a token is shown: %s", text)
	}
	if n := strings.Count(read("coordinator.tokens"), "submit "); n != 2 {
		t.Errorf("%d tokens of role submit are accepted after a renewal, want 2", n)
	}
}
