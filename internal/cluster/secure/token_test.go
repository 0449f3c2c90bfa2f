package secure

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
)

func TestTokenFiles(t *testing.T) {
	sum := sha256.Sum256([]byte(submitToken))
	hash := "sha256:" + hex.EncodeToString(sum[:])
	for _, c := range []struct {
		name, text string
		server     string // part of the error as a server's file; "": good
		client     string // as the file of a worker
	}{
		{"one of each", "worker " + workerToken + "\nsubmit " + hash + "\n", "", ""},
		{"comments and blanks", "# a\n\n  worker\t" + workerToken + "  # b\r\n", "", ""},
		{"bare", workerToken, "`role token`", ""},
		{"hash only", "worker " + hash, "", "only the hash"},
		{"another's", "submit " + submitToken + "\nstore " + otherToken, "", "no line for role worker"},
		{"renewed, old one first", "worker " + hash + "\nworker " + workerToken, "", ""},
		{"empty", "\n# nothing\n", "no token in it", "no token in it"},
		{"short", "worker secret1", ":1: the token has 7 characters", ":1: the token has 7 characters"},
		{"swapped", workerToken + " worker", ":1: the first word is no role", ":1: the first word is no role"},
		{"three words", "\nworker " + workerToken + " x", ":2: 3 words", ":2: 3 words"},
		{"bad hash", "worker sha256:12", "64 hexadecimal digits", "64 hexadecimal digits"},
		{"binary", "worker \x01\x02aaaaaaaaaaaaaaaaaaaaaa\xff", "printable", "printable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, "tokens", c.text)
			_, err := serverTokens(path, "")
			checkTokenError(t, "server", err, c.server, c.text)
			token, err := clientToken(path, Worker)
			checkTokenError(t, "client", err, c.client, c.text)
			if err == nil && token != workerToken {
				t.Errorf("the client's token is %q", token)
			}
		})
	}
}

// checkTokenError also sees to it that no word of the file but roles is in the error.
func checkTokenError(t *testing.T, who string, err error, want, text string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q", who, err, want)
	}
	if err == nil {
		return
	}
	for _, word := range strings.Fields(text) {
		if len(word) >= 7 && strings.Contains(err.Error(), word) {
			t.Errorf("%s: the error tells a token: %v", who, err)
		}
	}
}

func TestLooseSecretsAreRefused(t *testing.T) {
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o666: false} {
		path := write(t, "tokens", "worker "+workerToken)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := serverTokens(path, "")
		if (err == nil) != good || err != nil && (!strings.Contains(err.Error(), "chmod 600") ||
			!strings.Contains(err.Error(), path)) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	if _, err := (Options{TokenFile: t.TempDir()}).ServerOptions(DefaultPolicy()); err == nil ||
		!strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	if _, err := (Options{TokenFile: write(t, "big", strings.Repeat("# comment\n",
		maxFileBytes/10+1))}).DialOptions(); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a huge file: %v", err)
	}
}

// TestRenewedToken: after a renewal both tokens serve, after the next one the first does not.
func TestRenewedToken(t *testing.T) {
	dir := t.TempDir()
	var tokens []string
	for range 3 {
		if _, _, err := MakeTokens(dir, []Role{Submit, Coordinator}, true); err != nil {
			t.Fatal(err)
		}
		token, err := clientToken(dir+"/submit.token", "")
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	entries, err := serverTokens(dir+"/coordinator.tokens", "")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 1, 1} {
		if got := lookUp(entries, tokens[i]); len(got) != want {
			t.Errorf("token %d has roles %v", i, got)
		}
	}
	// The coordinator calls stores with its own line.
	if own, err := clientToken(dir+"/coordinator.tokens", Coordinator); err != nil || len(lookUp(entries, own)) != 1 {
		t.Errorf("the coordinator's own token: %v", err)
	}
}

// TestTokenRotationWhileServing: a server takes new tokens without a restart.
func TestTokenRotationWhileServing(t *testing.T) {
	path := write(t, "tokens", "submit "+submitToken)
	o := Options{TokenFile: path}
	g, err := o.newGuard(DefaultPolicy(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := writeFile(path, []byte("submit "+otherToken), 0o600); err != nil {
		t.Fatal(err)
	}
	if len(lookUp(g.tokens.get(), submitToken)) != 1 {
		t.Error("looks at the file at each call")
	}
	g.tokens.looked = time.Time{}
	if entries := g.tokens.get(); len(lookUp(entries, submitToken)) != 0 || len(lookUp(entries, otherToken)) != 1 {
		t.Error("the change is not noticed")
	}
}

// TestErrorsTellNoToken: what a refused caller and the server's watcher read.
func TestErrorsTellNoToken(t *testing.T) {
	var refused []Refusal
	o := Options{TokenFile: write(t, "tokens", "submit "+submitToken), Refused: func(r Refusal) {
		refused = append(refused,
			r)
	}}
	addr := serve(t, o)
	conn := dial(t, Options{TokenFile: write(t, "token", otherToken)}, addr)
	_, err := taxonv1.NewJobsClient(conn).Submit(callContext(t), &taxonv1.SubmitRequest{})
	want(t, "wrong token", err, codes.Unauthenticated)
	if strings.Contains(err.Error(), otherToken) || strings.Contains(err.Error(), submitToken) {
		t.Error(err)
	}
	if len(refused) != 1 || refused[0].Code != codes.Unauthenticated || refused[0].Call != "/taxon.v1.Jobs/Submit" ||
		refused[0].From != "127.0.0.1" ||
		strings.Contains(refused[0].Why, otherToken) {
		t.Errorf("told of %+v", refused)
	}
}

// What a known caller may not do is told with its name, what no service takes with its limit, and no
// list of roles has one twice.
func TestRefusalsTold(t *testing.T) {
	told := make(chan Refusal, 10)
	o := Options{TokenFile: write(t, "tokens", "submit "+submitToken), Refused: func(r Refusal) { told <- r }}
	jobs := taxonv1.NewJobsClient(dial(t, Options{TokenFile: write(t, "token", submitToken)}, serve(t, o)))
	_, err := jobs.Drain(callContext(t), &taxonv1.DrainRequest{})
	want(t, "drain", err, codes.PermissionDenied)
	if strings.Contains(err.Error(), "admin or admin") || !strings.Contains(err.Error(), "needs role admin,") {
		t.Error(err)
	}
	if r := <-told; r.Call != "/taxon.v1.Jobs/Drain" || r.By != tokenCaller(submitToken) ||
		r.Code != codes.PermissionDenied {
		t.Errorf("told of %+v", r)
	}
	g := &guard{refused: o.Refused}
	_, err = g.watchUnary(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/x"}, func(context.Context, any) (any,
		error) {
		return nil, status.Error(codes.ResourceExhausted, "too many jobs")
	})
	want(t, "limit", err, codes.ResourceExhausted)
	if r := <-told; r.Call != "/x" || r.Why != "too many jobs" {
		t.Errorf("told of %+v", r)
	}
}

func FuzzTokenFile(f *testing.F) {
	f.Add([]byte("worker " + workerToken + "\n# c\nsubmit sha256:00"))
	f.Add([]byte("\xff\x00 x y z"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTokens("tokens", data)
		if err != nil {
			if len(entries) > 0 || strings.Contains(err.Error(), "\n") {
				t.Errorf("%d entries, %v", len(entries), err)
			}
			return
		}
		for _, e := range entries {
			if e.plain != "" && len(lookUp(entries, e.plain)) == 0 {
				t.Error("a token that is not found")
			}
		}
	})
}
