package secure

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"taxon/internal/ui/format"
)

// Role is what a caller may do. A caller can have several.
type Role string

// The roles.
const (
	Submit      Role = "submit"      // users: jobs, their results, the cluster's state
	Worker      Role = "worker"      // leases tasks, reads and writes values
	Store       Role = "store"       // a shard: announces itself, repairs itself from its peers
	ReadOnly    Role = "read-only"   // lists, status, metrics
	Coordinator Role = "coordinator" // the coordinator as a caller of the stores
	Admin       Role = "admin"       // everything
)

// Roles lists all roles, as help texts show them.
var roles = []Role{Submit, Worker, Store, ReadOnly, Coordinator, Admin}

// Roles gives the names of all roles.
func Roles() []string { return RoleNames(roles) }

// ParseRole checks the name of a role.
func ParseRole(name string) (Role, error) {
	if r := Role(name); slices.Contains(roles, r) {
		return r, nil
	}
	return "", fmt.Errorf("unknown role %q: there are %s", name, strings.Join(Roles(), ", "))
}

// ParseRoles checks the values of --role and removes repeats.
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

// certificateRoles are the roles in a certificate, without unknown ones.
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
	Name  string // for errors: the token, or the certificate's name
	Roles []Role
	// Caller is short and lasts: the certificate's name, or "token:" and digits of its SHA-256.
	Caller string
}

// callerKey is the key of a call's Identity.Caller in its context.
type callerKey struct{}

// with is the context of a call that the identity makes.
func (id Identity) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, id.Caller)
}

// Caller names who makes the call of a handler's context, as Identity.Caller does. Empty: the
// server knows nobody, or the call came from within the process.
func Caller(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}

// May says whether the identity has one of the allowed roles. Admin may do everything.
func (id Identity) May(allowed []Role) bool {
	return slices.ContainsFunc(id.Roles, func(r Role) bool { return r == Admin || slices.Contains(allowed, r) })
}
