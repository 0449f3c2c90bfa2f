package sim

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shellBugs describes the bugs of the simulated shell and store, by their names in Options.Bug.
var shellBugs = map[string]string{
	"coordinator acknowledges before sync": "answers go out before the journal is durable",
	"store acknowledges without a sync":    "a shard acknowledges what a crash takes",
	"read without checksum":                "a shard gives out values that went bad on its disk",
}

// mutant is a bug of production code: a patch in the folder mutants, which only the build of
// TestMutants applies. A patch has a line that describes the bug, an empty line, and a unified diff
// of one hunk.
type mutant struct {
	name, what string
	file       string // slash path from the repository's root
	old, new   string // the hunk's lines before and after
}

// readMutants reads all patches.
func readMutants(t *testing.T) []mutant {
	t.Helper()
	paths, err := filepath.Glob("mutants/*.patch")
	if err != nil || len(paths) < 12 {
		t.Fatalf("%d mutants, %v", len(paths), err)
	}
	var out []mutant
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := mutant{name: strings.TrimSuffix(filepath.Base(path), ".patch")}
		for n, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
			file, head := strings.CutPrefix(line, "--- a/")
			switch {
			case n == 0:
				m.what = line
			case head:
				m.file = file
			case n < 5: // the empty line, the other name, the hunk's position
			case line[0] == '-':
				m.old += line[1:] + "\n"
			case line[0] == '+':
				m.new += line[1:] + "\n"
			default:
				m.old += line[1:] + "\n"
				m.new += line[1:] + "\n"
			}
		}
		out = append(out, m)
	}
	return out
}

// overlay writes a file for `go build -overlay` that applies the mutants.
func overlay(t *testing.T, mutants ...mutant) string {
	t.Helper()
	dir := t.TempDir()
	texts, replace := map[string]string{}, map[string]string{}
	for _, m := range mutants {
		source, err := filepath.Abs(filepath.Join("..", "..", filepath.FromSlash(m.file)))
		if err != nil {
			t.Fatal(err)
		}
		if texts[source] == "" {
			data, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			texts[source] = string(data)
		}
		if n := strings.Count(texts[source], m.old); n != 1 {
			t.Errorf("mutants/%s.patch: its old lines are %d times in %s, want once: write the patch anew\n%s",
				m.name, n, m.file, m.old)
		}
		texts[source] = strings.Replace(texts[source], m.old, m.new, 1)
		replace[source] = filepath.Join(dir, filepath.Base(source))
		if err := os.WriteFile(replace[source], []byte(texts[source]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMutantsApply checks that each patch applies to the current code and that the code compiles
// with all of them. TestMutants compiles each one separately, so it runs seldom.
func TestMutantsApply(t *testing.T) {
	mutants := readMutants(t)
	path := overlay(t, mutants...)
	var packages []string
	for _, m := range mutants {
		if dir := "taxon/" + filepath.ToSlash(filepath.Dir(m.file)); !slices.Contains(packages, dir) {
			packages = append(packages, dir)
		}
	}
	args := append([]string{"build", "-overlay", path}, packages...)
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

const (
	envMutants = "SIM_MUTANTS" // enables TestMutants
	envMutant  = "SIM_MUTANT"  // in the process of a mutant: the description of the bug
)

// TestMutants checks that the simulation finds each bug within 100 seeds. Each mutant has a test
// process of its own.
func TestMutants(t *testing.T) {
	if what := os.Getenv(envMutant); what != "" {
		findBug(t, "", what)
		return
	}
	if os.Getenv(envMutants) == "" {
		t.Skip("compiles each mutant: make sim-mutants")
	}
	for name, what := range shellBugs {
		t.Run(name, func(t *testing.T) { findBug(t, name, what) })
	}
	for _, m := range readMutants(t) {
		t.Run(m.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-overlay", overlay(t, m),
				"-run", "^TestMutants$", "taxon/test/sim")
			cmd.Env = append(os.Environ(), envMutant+"="+m.what)
			out, err := cmd.CombinedOutput()
			if t.Logf("%s", out); err != nil {
				t.Error(err)
			}
		})
	}
}

// findBug runs seeds until one shows the bug.
func findBug(t *testing.T, bug, what string) {
	const most = 100
	found := false
	run := func(seed uint64) []string {
		_, broken := play(seed, bug)
		return broken
	}
	inParallel(0, most, run, func(seed uint64, broken []string) bool {
		if found = len(broken) > 0; found {
			t.Logf("%s: found at seed %d: %.150s", what, seed, broken[0])
		}
		return !found
	})
	if !found {
		t.Errorf("%s: not found in %d seeds", what, most)
	}
}
