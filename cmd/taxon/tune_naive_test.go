package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"taxon/internal/tune"
)

// TestColdOfSkipped: a point that no fold was tried of, as its path had ended before, is
// taken from what was trained from nothing for it.
func TestColdOfSkipped(t *testing.T) {
	o := &tuneOptions{}
	o.train.out = t.TempDir()
	n := &naive{search: &search{o: o}}
	g := &rung{base: tune.Point{C: 1000}, racers: []*racer{{skipped: true, results: make([]*foldResult, 3)}}}
	path := n.file(g.base, 1, ".cold.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(path, &coldResult{Point: g.base, Fold: 1, CPUSeconds: 7}); err != nil {
		t.Fatal(err)
	}
	if seconds, old, err := n.cold(context.Background(), &foldData{fold: 1}, g); err != nil || seconds != 7 || !old {
		t.Errorf("%v s, old %v, %v", seconds, old, err)
	}
}
