package secure

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server without identities answers under the names that mean it, and under no other, as a name that a
// web page has made resolve to this machine. Probes say nothing, and are for everybody. With identities
// the caller has one, which no such page has.
func TestHosts(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	policy := Policy{"/data": {ReadOnly}, "POST /data": {Submit}, "/healthz": {Anyone}}
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret") })
	ask := func(o Options, method, path, host string) int {
		t.Helper()
		server, err := o.HTTPServer("node7.example:9100", ok, policy)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(method, path, nil)
		r.Host = host
		w := httptest.NewRecorder()
		server.Handler.ServeHTTP(w, r)
		return w.Code
	}
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:9100": 200, "localhost.:1": 200, "page.localhost:9100": 200, "127.0.0.1:9100": 200,
		"[::1]:9100": 200, "10.0.0.7:9100": 200,
		"node7.example:9100": 200, "node7.example": 200, own: 200, "proxy.example": 200,
		"evil.example": 403, "evil.example:9100": 403, "127.0.0.1.evil.example": 403, "localhost.evil.example": 403,
		"node7.example.evil": 403, "": 403,
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if code := ask(Options{Hosts: []string{"proxy.example"}}, method, "/data", host); code != want {
				t.Errorf("%s for host %q: %d, want %d", method, host, code, want)
			}
		}
		if code := ask(Options{}, http.MethodGet, "/healthz", host); code != http.StatusOK {
			t.Errorf("a probe for host %q: %d", host, code)
		}
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("read-only "+strings.Repeat("0123456789abcdef", 2)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := ask(Options{TokenFile: tokens}, http.MethodGet, "/data", "proxy.example"); code != http.StatusUnauthorized {
		t.Errorf("with identities: %d", code)
	}
}

// What changes something comes from the server's own page or from a program.
func TestSameOrigin(t *testing.T) {
	for _, c := range []struct {
		host string
		from []string
		want bool
	}{
		{"localhost:1", nil, true},
		{"localhost:1", []string{"http://localhost:1"}, true},
		{"node7", []string{"https://NODE7"}, true},
		{"localhost:1", []string{"http://localhost:2"}, false},
		{"localhost:1", []string{"http://evil.example"}, false},
		{"localhost:1", []string{"null"}, false},
		{"localhost:1", []string{""}, false},
		{"localhost:1", []string{"http://localhost:1", "http://evil.example"}, false},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Host, r.Header["Origin"] = c.host, c.from
		if got := SameOrigin(r); got != c.want {
			t.Errorf("%s from %q: %v", c.host, c.from, got)
		}
	}
}

// A call for admins alone names the role once.
func TestRoleErrorNamesEachRoleOnce(t *testing.T) {
	for _, allowed := range [][]Role{{Admin}, {Submit, Admin}, {Submit}} {
		if text := roleError("Drain", Identity{Name: "the token", Roles: []Role{ReadOnly}},
			allowed).Error(); strings.Count(text, string(Admin)) != 1 {
			t.Error(text)
		}
	}
}
