package secure

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	taxonv1 "taxon/proto/taxon/v1"
)

// methodsOfTaxon lists the full names of all methods of all services in proto/.
func methodsOfTaxon(t *testing.T) []string {
	t.Helper()
	var out []string
	protoregistry.GlobalFiles.RangeFilesByPackage(protoreflect.FullName("taxon.v1"),
		func(f protoreflect.FileDescriptor) bool {
			for i := range f.Services().Len() {
				s := f.Services().Get(i)
				for j := range s.Methods().Len() {
					out = append(out, "/"+string(s.FullName())+"/"+string(s.Methods().Get(j).Name()))
				}
			}
			return true
		})
	if len(out) < 15 {
		t.Fatalf("found only %v", out)
	}
	return out
}

// TestEveryMethodHasAPolicy fails for a new RPC until someone has said who may call it.
func TestEveryMethodHasAPolicy(t *testing.T) {
	p := DefaultPolicy()
	exists := map[string]bool{}
	for _, m := range methodsOfTaxon(t) {
		exists[m] = true
		switch roles := p[m]; {
		case len(roles) == 0:
			t.Errorf("%s: say in internal/cluster/secure/policy.go which roles may call it", m)
		case open(roles):
			t.Errorf("%s: open to strangers", m)
		}
	}
	for m := range p {
		if strings.HasPrefix(m, "/taxon.") && !exists[m] {
			t.Errorf("%s: the policy names a method that does not exist", m)
		}
	}
}

// TestStrangersReachHealthOnly: of everything a server registers, health alone is open.
func TestStrangersReachHealthOnly(t *testing.T) {
	for m, roles := range DefaultPolicy() {
		if open(roles) != strings.HasPrefix(m, "/grpc.health.v1.Health/") {
			t.Errorf("%s: open %v", m, open(roles))
		}
	}
}

func TestCheckNamesWhatIsMissing(t *testing.T) {
	s := grpc.NewServer()
	taxonv1.RegisterStoreServer(s, taxonv1.UnimplementedStoreServer{})
	Register(s)
	p := DefaultPolicy()
	if err := p.Check(s); err != nil {
		t.Error(err)
	}
	delete(p, "/taxon.v1.Store/Drop")
	if err := p.Check(s); err == nil || !strings.Contains(err.Error(), "[/taxon.v1.Store/Drop]") {
		t.Error(err)
	}
}

// TestRolesAreNarrow keeps the separation that the documentation promises.
func TestRolesAreNarrow(t *testing.T) {
	p := DefaultPolicy()
	for _, c := range []struct {
		role   Role
		method string
		may    bool
	}{
		{ReadOnly, "/taxon.v1.Jobs/Status", true},
		{ReadOnly, "/taxon.v1.Jobs/Submit", false},
		{ReadOnly, "/taxon.v1.Store/Get", false},
		{Submit, "/taxon.v1.Jobs/Submit", true},
		{Submit, "/taxon.v1.Tasks/Lease", false},
		{Submit, "/taxon.v1.Store/Drop", false},
		{Worker, "/taxon.v1.Tasks/Lease", true},
		{Worker, "/taxon.v1.Store/Put", true},
		{Worker, "/taxon.v1.Jobs/Cancel", false},
		{Worker, "/taxon.v1.Store/Commit", false},
		{Worker, "/taxon.v1.Members/JoinStore", false},
		{Store, "/taxon.v1.Members/JoinStore", true},
		{Store, "/taxon.v1.Jobs/Submit", false},
		{Coordinator, "/taxon.v1.Store/Commit", true},
		{Coordinator, "/taxon.v1.Jobs/Submit", false},
		{Admin, "/taxon.v1.Jobs/Drain", true},
		{Admin, "/not/there", true},
	} {
		if got := (Identity{Roles: []Role{c.role}}).May(p[c.method]); got != c.may {
			t.Errorf("%s may call %s: %v, want %v", c.role, c.method, got, c.may)
		}
	}
}
