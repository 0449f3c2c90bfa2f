package secure

import (
	"slices"
	"strings"
	"testing"
)

// A host has a certificate a set of roles: their files must not replace each other.
func TestRequests(t *testing.T) {
	var got []string
	for _, base := range []Request{{}, {Roles: []Role{Store}}, {Roles: []Role{Store, Worker}}, {Roles: []Role{Store},
		Name: "mine"}} {
		for _, r := range Requests([]string{"node-1, 10.0.0.1", "node-2"}, base) {
			got = append(got, r.FileName()+" "+strings.Join(r.Hosts, "+")+" "+strings.Join(RoleNames(r.Roles), "+"))
		}
	}
	want := []string{
		"node-1 node-1+10.0.0.1 coordinator+store+worker", "node-2 node-2 coordinator+store+worker",
		"node-1-store node-1+10.0.0.1 store", "node-2-store node-2 store",
		"node-1-store-worker node-1+10.0.0.1 store+worker", "node-2-store-worker node-2 store+worker",
		"mine node-1+10.0.0.1 store", "mine node-2 store",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if r := Requests(nil, Request{Roles: []Role{Submit}}); len(r) != 1 || r[0].FileName() != "submit" ||
		r[0].Hosts != nil {
		t.Errorf("a mere caller: %+v", r)
	}
}

func TestParseRoles(t *testing.T) {
	if r, err := ParseRoles([]string{"submit", "store", "submit"}); err != nil || !slices.Equal(r, []Role{Submit, Store}) {
		t.Errorf("%v, %v", r, err)
	}
	for name, want := range map[string]string{"sumbit": "‹role=sumbit›: did you mean submit?",
		"x": `‹role›: unknown role "x"`} {
		if _, err := ParseRoles([]string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
