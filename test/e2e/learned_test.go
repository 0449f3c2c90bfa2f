package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestLearnedHierarchy checks that a training on a hierarchy that it learns has the bytes of one on
// the tree that `taxon tree` writes, for any number of threads, also if it is interrupted or killed
// and resumed. The model contains the tree.
func TestLearnedHierarchy(t *testing.T) {
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree.txt")
	run := func(args ...string) result {
		t.Helper()
		r := taxon(t, args...)
		if r.code != 0 {
			t.Fatalf("taxon %v: exit status %d: %s", args, r.code, r.stderr)
		}
		return r
	}
	run("tree", "--data", data, "--families", "9", "--seed", "4", "--out", tree, "--threads", "1")
	on := func(out, hierarchy string, more ...string) []string {
		return append([]string{"train", "--data", data, "--hierarchy", hierarchy, "--out", out, "--gap", "1e-5", "--seed",
			"4", "--json", "--quiet"}, more...)
	}
	given := filepath.Join(dir, "given")
	want := trained(t, run(on(given, tree)...))
	out := filepath.Join(dir, "learned")
	for _, signal := range []os.Signal{os.Interrupt, syscall.SIGKILL} {
		p := start(t, on(out, "learned", append([]string{"--families", "9", "--threads", "2"}, often...)...)...)
		p.appears(out + ".train/checkpoint")
		if err := p.cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		p.wait()
		refused(t, taxon(t, on(out, "learned", "--families", "8")...), 2, out, "--force")
	}
	if got := trained(t, run(on(out, "learned", "--families", "9")...)); got != want {
		t.Errorf("learned, interrupted and gone on: %+v, on the tree %+v", got, want)
	}
	for _, part := range []string{"structure", "labels"} {
		a, errA := os.ReadFile(filepath.Join(given, part))
		b, errB := os.ReadFile(filepath.Join(out, part))
		if string(a) != string(b) || (errA == nil) != (errB == nil) {
			t.Errorf("the models differ in %s", part)
		}
	}
	refused(t, taxon(t, on(filepath.Join(dir, "x"), tree, "--families", "3")...), 2, "--families 3", "--hierarchy")
	refused(t, taxon(t, on(filepath.Join(dir, "x"), "learned", "--method", "bsvm")...), 2, "bsvm")
	refused(t, taxon(t, "tree", "--data", data, "--families", "1000000", "--out", tree), 2, "--families 1000000",
		"classes")
}
