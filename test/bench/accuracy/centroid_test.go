package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// TestCentroid compares with results computed by hand: a's centroid is (2, 1)/sqrt 5, b's (0, 1),
// c's (1, 1)/sqrt 2. The rows (1, 0) and (0, 1) go to a and b; (1, 0.9) is nearest to c. Of the
// labels a, b, a two are right: micro F1 is 2/3, and F1 of the classes 2/3 (1 right, 1 missed), 1
// and 0.
func TestCentroid(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"train.svm.xz": "a 1:1 2:1\na 1:1\nb 2:2\nc 1:3 2:3\n",
		"test.svm.xz":  "a 1:1\nb 2:1\na 1:1 2:0.9\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	r, err := centroid(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(r.MicroF1-2./3) > 1e-12 || math.Abs(r.MacroF1-(2./3+1+0)/3) > 1e-12 || r.Ranking.P1 != r.MicroF1 ||
		r.Classes != 3 {
		t.Errorf("%+v", r)
	}
}

// TestStudies checks that every row with which others are compared precedes them, and that no two
// rows share a place.
func TestStudies(t *testing.T) {
	for _, s := range studies {
		seen := map[string]bool{}
		for _, m := range s.methods {
			if seen[m.name] || m.bar != "" && !seen[m.bar] {
				t.Errorf("%s: %s: seen %v, its bar %v", s.set, m.name, seen[m.name], seen[m.bar])
			}
			seen[m.name] = true
		}
		if len(seen) != 12 {
			t.Errorf("%s has %d methods", s.set, len(seen))
		}
	}
}
