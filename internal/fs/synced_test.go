//go:build linux

package fs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/internal/model/export"
	"taxon/internal/ui/progress"
)

// TestSyncedChild is the process that TestSynced traces: it trains, exports and ingests.
func TestSyncedChild(t *testing.T) {
	dir := os.Getenv("TAXON_TEST_SYNCED")
	if dir == "" {
		t.Skip("started by TestSynced alone")
	}
	if err := trainIn(dir, os.Getenv("TAXON_TEST_FORCE") != ""); err != nil {
		t.Fatal(err)
	}
	for out, format := range map[string]string{"text/parts/": "text", "npz/w.npz": "npz", "npz/parts/": "npz"} {
		o := export.Options{Model: filepath.Join(dir, "deep", "deeper", "m"), Format: format, What: export.Mean,
			Values: "float32", Out: filepath.Join(dir, "exported", os.Getenv("TAXON_TEST_FORCE")+"x", out)}
		if strings.HasSuffix(out, "/") {
			o.Out += "/"
		}
		if _, err := export.Run(t.Context(), o, progress.Discard{}); err != nil {
			t.Fatal(err)
		}
	}
	in := dataset.Options{Paths: []string{filepath.Join(dir, "data.svm")}, Out: filepath.Join(dir, "sets",
		os.Getenv("TAXON_TEST_FORCE")+"x"), FS: fs.Local{}}
	if _, err := dataset.Ingest(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// These patterns match calls in strace's output with the paths of open files.
var (
	traced     = regexp.MustCompile(`^(?:\d+ +)?(mkdirat|renameat2?|unlinkat|fsync|openat)\((.*)\)\s+= \d+`)
	tracedPath = regexp.MustCompile(`(?:<([^>]*)>)?, "([^"]*)"`)
	tracedFD   = regexp.MustCompile(`^\d+<([^>]*)>`)
)

// tracedCall is a call with the paths that it names.
type tracedCall struct {
	name  string
	paths []string
}

// trace runs a training under strace.
func trace(t *testing.T, dir, force string) (calls []tracedCall) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "-y", "-s", "4096", "-e", "trace=mkdirat,renameat,renameat2,unlinkat,fsync,openat",
		"-o", file, os.Args[0], "-test.run=^TestSyncedChild$")
	cmd.Env = append(os.Environ(), "TAXON_TEST_SYNCED="+dir, "TAXON_TEST_FORCE="+force)
	if out, err := cmd.CombinedOutput(); errors.Is(err, exec.ErrNotFound) || strings.Contains(string(out), "ptrace") {
		t.Skipf("no system calls can be traced here: %v", err)
	} else if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// process -> the call that another's interrupted in the trace
	pending := map[string]string{}
	for _, line := range strings.Split(string(text), "\n") {
		pid, rest, _ := strings.Cut(line, " ")
		if begun, ok := strings.CutSuffix(strings.TrimSpace(rest), " <unfinished ...>"); ok {
			pending[pid] = begun
			continue
		}
		if at := strings.Index(rest, " resumed>"); at >= 0 {
			line = pid + " " + pending[pid] + rest[at+len(" resumed>"):]
		}
		m := traced.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		c := tracedCall{name: m[1]}
		if c.name == "openat" && !strings.Contains(m[2], "O_CREAT") {
			continue
		}
		if fd := tracedFD.FindStringSubmatch(m[2]); c.name == "fsync" && fd != nil {
			c.paths = []string{fd[1]}
		}
		for _, p := range tracedPath.FindAllStringSubmatch(m[2], -1) {
			if !filepath.IsAbs(p[2]) {
				p[2] = filepath.Join(p[1], p[2])
			}
			c.paths = append(c.paths, p[2])
		}
		calls = append(calls, c)
	}
	return calls
}

// TestSynced checks that all files at the end of a training, an export or an ingest are durable:
// each file is synced, and after each created folder and each rename the parent folder is synced.
// With --force this happens before any file of the old model is removed.
func TestSynced(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data.svm"), []byte(killedData()), 0o666); err != nil {
		t.Fatal(err)
	}
	parent := filepath.Join(dir, "deep", "deeper")
	for _, force := range []string{"", "force"} {
		calls := trace(t, dir, force)
		seen, exchanged := 0, -1
		for i, c := range calls {
			made := ""
			switch {
			case c.name == "openat":
				final := strings.Replace(c.paths[0], ".part/", "/", 1) // the place where its folder is published
				if info, err := os.Lstat(final); err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(final, dir) {
					continue
				}
				seen++
				if !syncedWithin(calls[i:], c.paths[0]) {
					t.Errorf("%q: the file %s is not synced", force, final)
				}
			case c.name == "mkdirat":
				made = c.paths[0]
			case strings.HasPrefix(c.name, "rename") && len(c.paths) == 2:
				made = c.paths[1]
				if c.name == "renameat2" && made == filepath.Join(parent, "m") && force != "" {
					exchanged = i
				}
			case c.name == "unlinkat" && exchanged >= 0 && strings.HasPrefix(c.paths[0], filepath.Join(parent, "m.part")):
				if !syncedWithin(calls[exchanged:i], parent) {
					t.Errorf("%s goes before the exchange is synced", c.paths[0])
				}
				exchanged = -1
				seen++
			}
			if _, err := os.Lstat(made); made == "" || err != nil || !strings.HasPrefix(made, dir) {
				continue
			}
			seen++
			if !syncedWithin(calls[i:], filepath.Dir(made)) {
				t.Errorf("%q: %s is made by %s, and the folder above is not synced", force, made, c.name)
			}
		}
		if want := map[string]int{"": 15, "force": 15}[force]; seen < want {
			t.Errorf("%q: %d calls of %d were looked at, want %d", force, seen, len(calls), want)
		}
	}
}

func syncedWithin(calls []tracedCall, dir string) bool {
	for _, c := range calls {
		if c.name == "fsync" && len(c.paths) > 0 && c.paths[0] == dir {
			return true
		}
	}
	return false
}
