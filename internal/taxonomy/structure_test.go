package taxonomy

import "testing"

func TestOfPaths(t *testing.T) {
	s, err := OfPaths([]string{"A > B > C", "D", "A > E", "A > B"}, " > ")
	if err != nil || edges(s) != "A>A > B A > B>A > B > C A>A > E" {
		t.Errorf("%q, %v", edges(s), err)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if _, err := OfPaths([]string{"a", "b/c"}, " > "); err == nil {
		t.Error("no label is a path, and nothing is said")
	}
}
