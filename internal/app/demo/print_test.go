package demo

import "testing"

func TestPathLine(t *testing.T) {
	path := []string{"entity", "object", "whole", "artifact", "vehicle", "car"}
	for width, want := range map[int]string{
		80: "entity > object > whole > artifact > vehicle > car",
		40: "entity > ... > artifact > vehicle > car",
		22: "entity > ... > car",
		10: "entity > …",
	} {
		if got := pathLine(path, width); got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}
