package main

import (
	"strings"
	"testing"
)

// TestChanges: what was before differs by a tenth, and by nothing else.
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
	// Of 20 labels the 10th and 20th, j and t, are gone, two documents each.
	if got := string(fewerClasses([]byte(strings.Join(data, "")))); strings.Count(got, "\n") != 36 || strings.Contains(got, "j 1") || strings.Contains(got, "t 1") {
		t.Errorf("classes: %q", got)
	}
	got := string(hungElsewhere([]byte(strings.Join(tree, ""))))
	if strings.Count(got, "\n") != 21 || strings.Count(got, "R ") != 3 || !strings.Contains(got, "R j\n") || !strings.Contains(got, "R t\n") {
		t.Errorf("tree: %q", got)
	}
}
