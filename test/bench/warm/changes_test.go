package main

import (
	"strings"
	"testing"
)

// TestChanges checks that the initial data differ by a tenth, and by nothing else.
func TestChanges(t *testing.T) {
	var data, tree []string
	for i := range 40 {
		label := string(rune('a' + i%20))
		data = append(data, label+" 1:1\n")
	}
	tree = append(tree, "R P\n")
	for i := range 20 {
		tree = append(tree, "P "+string(rune('a'+i))+"\n")
	}
	if got := fewerRows([]byte(strings.Join(data, ""))); strings.Count(string(got), "\n") != 36 {
		t.Errorf("rows: %q", got)
	}
	// of 20 labels the 10th and 20th, j and t, are gone, two documents each
	if got := string(fewerClasses([]byte(strings.Join(data, "")), every)); strings.Count(got, "\n") != 36 ||
		strings.Contains(got, "j 1") || strings.Contains(got, "t 1") {
		t.Errorf("classes: %q", got)
	}
	got := string(hungElsewhere([]byte(strings.Join(tree, ""))))
	if strings.Count(got, "\n") != 21 || strings.Count(got, "R ") != 3 || !strings.Contains(got, "R j\n") ||
		!strings.Contains(got, "R t\n") {
		t.Errorf("tree: %q", got)
	}
	// the 3rd, 6th, ... of 20 labels are gone
	if got := string(fewerClasses([]byte(strings.Join(data, "")), manyOf)); strings.Count(got, "\n") != 28 ||
		strings.Contains(got, "c 1") || strings.Contains(got, "f 1") {
		t.Errorf("classes: %q", got)
	}
	// M, N and O are the first internal nodes below a root that are not labels: O is gone
	if got := string(fewerLevels([]byte("R M\nM a\nR e\ne b\nR N\nN c\nR O\nO Q\nQ d\n"), map[string]int{"a": 1, "b": 2,
		"c": 3, "d": 4, "e": 5})); got != "R M\nM a\nR e\ne b\nR N\nN c\nR Q\nQ d\n" {
		t.Errorf("levels: %q", got)
	}
}
