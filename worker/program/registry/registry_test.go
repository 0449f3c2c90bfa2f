package registry

import (
	"slices"
	"testing"

	"taxon/coordinator/method/registry"
	"taxon/worker/program"
)

// TestSameMethods: coordinator and worker know the same methods, and another one is told to be
// this worker's lack.
func TestSameMethods(t *testing.T) {
	for _, name := range registry.Names() {
		m, err := Lookup(name)
		if err != nil || m.Name() != name {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if program.Rooted(m) != registry.Rooted(name) {
			t.Errorf("%s: its program and the coordinator build different trees", name)
		}
	}
	for _, m := range methods {
		if !slices.Contains(registry.Names(), m.Name()) {
			t.Errorf("the coordinator does not know %s", m.Name())
		}
	}
	if _, err := Lookup("none"); !program.IsUnfit(err) {
		t.Error(err)
	}
}
