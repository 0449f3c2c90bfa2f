package taxonomy

import (
	"strings"
	"testing"
)

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
	// the length of a path's names grows with the square of its parts: both are bounded
	if _, err := OfPaths([]string{strings.Repeat("a/", 256) + "b"}, "/"); err == nil || !strings.Contains(err.Error(),
		"is a path of 257 parts: at most 256") {
		t.Errorf("257 parts: %v", err)
	}
	if s, err := OfPaths([]string{strings.Repeat("a/", 255) + "b"}, "/"); err != nil || len(s.Names) != 256 {
		t.Errorf("256 parts: %v", err)
	}
	if _, err := OfPaths([]string{strings.Repeat(strings.Repeat("x", 20000)+"/", 255) + "b"}, "/"); err == nil ||
		!strings.Contains(err.Error(), "take more than") {
		t.Errorf("a path of megabytes: %v", err)
	}
}
