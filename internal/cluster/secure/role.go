package secure

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"taxon/internal/ui/format"
)

// Role is a set of things that a caller may do. A caller can have several roles.
type Role string

// These are the roles.
const (
	// Submit is for users: jobs, their results, the state of the cluster.
	Submit Role = "submit"
	// Worker leases tasks, and reads and writes values.
	Worker Role = "worker"
	// Store is a shard, which registers itself and repairs itself from other shards.
	Store Role = "store"
	// ReadOnly may read lists, status and metrics.
	ReadOnly Role = "read-only"
	// Coordinator is the coordinator as a caller of the stores.
	Coordinator Role = "coordinator"
	// Admin may do everything.
	Admin Role = "admin"
)

// roles lists all roles in the order of help texts.
var roles = []Role{Submit, Worker, Store, ReadOnly, Coordinator, Admin}

// Roles returns the names of all roles.
func Roles() []string { return RoleNames(roles) }

// ParseRole returns the role of a name.
func ParseRole(name string) (Role, error) {
	if r := Role(name); slices.Contains(roles, r) {
		return r, nil
	}
	return "", fmt.Errorf("unknown role %q: there are %s", name, strings.Join(Roles(), ", "))
}

// ParseRoles returns the roles of names, without repetitions.
func ParseRoles(names []string) (out []Role, err error) {
	for _, name := range names {
		r, err := ParseRole(name)
		if err != nil {
			if near := format.Nearest(name, Roles()); near != "" {
				return nil, fmt.Errorf("‹role=%s›: did you mean %s?", format.QuoteIfNeeded(name), near)
			}
			return nil, fmt.Errorf("‹role›: %w", err)
		}
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	return out, nil
}

// roleURN is the prefix of a role in a certificate's URI.
const roleURN = "urn:taxon:role:"

// certificateRoles returns the roles in a certificate, without unknown ones.
func certificateRoles(cert *x509.Certificate) []Role {
	var out []Role
	for _, u := range cert.URIs {
		if name, ok := strings.CutPrefix(u.String(), roleURN); ok {
			if r, err := ParseRole(name); err == nil {
				out = append(out, r)
			}
		}
	}
	return out
}

// Identity says who makes a call.
type Identity struct {
	// Name is used in errors: the token, or the certificate's name.
	Name  string
	Roles []Role
	// Caller identifies the caller by a short text that never changes: the certificate's name, or
	// "token:" and digits of the token's SHA-256.
	Caller string
}

// callerKey is the key under which a call's context holds Identity.Caller.
type callerKey struct{}

// with returns a context that carries the identity of a call's caller.
func (id Identity) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, id.Caller)
}

// Caller returns the Identity.Caller of the call that a handler's context belongs to. It is empty
// if the server identifies nobody, or if the call is from within the process.
func Caller(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}

// May reports whether the identity has one of the allowed roles, or Admin.
func (id Identity) May(allowed []Role) bool {
	return slices.ContainsFunc(id.Roles, func(r Role) bool { return r == Admin || slices.Contains(allowed, r) })
}
