package badger

import (
	"testing"

	"taxon/store"
)

// TestAny: a shard knows whether it holds a value, wherever the value's head is.
func TestAny(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	defer s.Close()
	any := func(s *Store, want bool) {
		t.Helper()
		if got, err := s.Any(t.Context()); err != nil || got != want {
			t.Errorf("any %v, %v, must be %v", got, err, want)
		}
	}
	any(s, false)
	mustPut(t, s, someValue(1, 1, 1, 9))
	any(s, true)
	any(crashed(t, s, nil), true)
	indexAll(t, s)
	any(s, true)
	any(crashed(t, s, nil), true)
	if _, err := s.Drop(t.Context(), store.DropSpec{Job: "j", All: true}); err != nil {
		t.Fatal(err)
	}
	any(s, false)
	closed := mustOpen(t, t.TempDir())
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := closed.Any(t.Context()); err == nil {
		t.Error("a shard that is closed knows what it holds")
	}
}
