package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What can't be made is refused by flag and value; it was once taken for not given.
func TestGenerateRefusesZeros(t *testing.T) {
	for _, flag := range []string{"instances", "test-instances", "classes", "internals", "features", "depth", "nonzeros",
		"labels"} {
		out := filepath.Join(t.TempDir(), "out")
		code, _, stderr := runWith(t, "", "generate", "--scale", "0.0005", "--out", out, "--quiet", "--"+flag, "0")
		if code != 2 || !strings.Contains(stderr, "--"+flag+" 0") && !strings.Contains(stderr, `"0" for "--`+flag) {
			t.Errorf("--%s 0: exit %d, %q", flag, code, stderr)
		}
	}
}

// TestDepthIsKept reads the hierarchy that --depth bounds.
func TestDepthIsKept(t *testing.T) {
	for _, depth := range []int{1, 2, 3} {
		out := filepath.Join(t.TempDir(), "out")
		if code, _, stderr := runWith(t, "", "generate", "--scale", "0.0005", "--out", out, "--quiet", "--depth",
			strconv.Itoa(depth)); code != 0 {
			t.Fatal(stderr)
		}
		text, err := os.ReadFile(filepath.Join(out, "hierarchy.txt"))
		if err != nil {
			t.Fatal(err)
		}
		parent := map[string]string{}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			parent[f[1]] = f[0]
		}
		deepest := 0
		for n := range parent {
			d := 0
			for p, ok := parent[n]; ok; p, ok = parent[p] {
				d++
			}
			deepest = max(deepest, d)
		}
		if deepest != depth || len(parent) < 163 {
			t.Errorf("--depth %d: %d edges, %d nodes", depth, deepest, len(parent))
		}
	}
}

// TestGenerateThenInfo reads back what generate wrote.
func TestGenerateThenInfo(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := runWith(t, "", "generate", "--scale", "0.0005", "--out", out, "--quiet")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "163") {
		t.Fatalf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	code, stdout, _ = runWith(t, "", "info", filepath.Join(out, "train.svm"), "--hierarchy",
		filepath.Join(out, "hierarchy.txt"))
	if code != 0 || !strings.Contains(stdout, "163 leaves") {
		t.Errorf("exit status %d, stdout %q", code, stdout)
	}
	if code, _, stderr = runWith(t, "", "generate", "--scale", "0.0005", "--out", out); code != 2 ||
		!strings.Contains(stderr, "--force") {
		t.Errorf("a second time: exit status %d, stderr %q", code, stderr)
	}
}
