package scan

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"taxon/internal/cluster/secure"
)

// quick is enough time for a call that is refused.
const quick = 5 * time.Second

// tokens creates a server's file, and a caller's file for each role.
func tokens(t *testing.T) (server string, callers map[secure.Role]string) {
	t.Helper()
	dir := t.TempDir()
	var roles []secure.Role
	for _, name := range secure.Roles() {
		roles = append(roles, secure.Role(name))
	}
	files, _, err := secure.MakeTokens(dir, roles, false)
	if err != nil {
		t.Fatal(err)
	}
	callers = map[secure.Role]string{}
	for _, f := range files {
		callers[f.Role] = f.Path
	}
	return filepath.Join(dir, "coordinator.tokens"), callers
}

// TestStrangers checks that, with tokens required, callers without one get no answer from any
// method, registered or not.
func TestStrangers(t *testing.T) {
	server, _ := tokens(t)
	s := start(t, secure.Options{TokenFile: server, RequireToken: true})
	wrong := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(wrong, []byte("not-the-right-token-at-all"), 0o600); err != nil {
		t.Fatal(err)
	}
	methods := append(slices.Clone(s.methods), method{full: "/taxon.v1.Jobs/Nothing"}, method{full: "/x.Y/Z"},
		method{full: "/"})
	for who, o := range map[string]secure.Options{"without token": {}, "with a wrong token": {TokenFile: wrong}} {
		conn := dial(t, o, s.addr)
		open := 0
		for _, m := range methods {
			if strings.HasPrefix(m.full, "/grpc.health.v1.Health/") {
				open++
				if m.full != "/grpc.health.v1.Health/Watch" { // it never ends
					if got := call(t, conn, m, quick, nil); got == codes.Unauthenticated {
						t.Errorf("%s: %s is closed to probes", who, m.full)
					}
				}
				continue
			}
			if got := call(t, conn, m, quick, nil); got != codes.Unauthenticated {
				t.Errorf("%s: %s answers %v", who, m.full, got)
			}
		}
		if open != 3 {
			t.Errorf("%d methods of health", open)
		}
	}
}

// TestRolesOverTheWire checks that each role is refused exactly the methods that the policy does
// not grant.
func TestRolesOverTheWire(t *testing.T) {
	server, callers := tokens(t)
	s := start(t, secure.Options{TokenFile: server})
	policy := secure.DefaultPolicy()
	for role, file := range callers {
		conn := dial(t, secure.Options{TokenFile: file}, s.addr)
		for _, m := range s.methods {
			if strings.HasSuffix(m.full, "/Lease") || strings.HasSuffix(m.full, "/Watch") {
				continue // these wait
			}
			may := (secure.Identity{Roles: []secure.Role{role}}).May(policy[m.full]) || slices.Contains(policy[m.full],
				secure.Anyone)
			if got := call(t, conn, m, quick, nil); (got == codes.PermissionDenied) == may || got == codes.Unauthenticated {
				t.Errorf("%s calls %s: %v, may: %v", role, m.full, got, may)
			}
		}
	}
}
