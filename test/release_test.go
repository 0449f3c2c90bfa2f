package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReleaseRemovesNothingElse runs deploy/release.sh in a clone of the repository. A folder that
// holds anything but an earlier release is refused before anything is built, and is unchanged. The
// releases of the test have no platforms: they hold only the licences and the checksums, so that
// nothing is compiled.
func TestReleaseRemovesNothingElse(t *testing.T) {
	for _, tool := range []string{"bash", "git", "sha256sum"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not here", tool)
		}
	}
	top := t.TempDir()
	clone := filepath.Join(top, "clone")
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", "clone", "-q", "--depth", "1", "file://"+here, clone)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	script := read(t, "deploy/release.sh") // the current file, committed or not
	if err := os.WriteFile(filepath.Join(clone, "deploy/release.sh"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	release := func(from, dir string) (string, error) {
		t.Helper()
		cmd := exec.Command(filepath.Join(clone, "deploy/release.sh"), dir)
		cmd.Dir, cmd.Env = from, append(os.Environ(), "TARGETS= ")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	put := func(path string, names ...string) string {
		t.Helper()
		for _, name := range names {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(path, name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(path, name), []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	sums := func(path string, names ...string) string {
		t.Helper()
		var b strings.Builder
		for _, name := range names {
			b.WriteString(strings.Repeat("0", 64) + "  " + name + "\n")
		}
		put(path, names...)
		if err := os.WriteFile(filepath.Join(path, "SHA256SUMS"), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const archive, wheel = "taxon-0.0.9-linux-amd64.tar.gz", "taxon-0.0.9-py3-none-macosx_12_0_arm64.whl"
	link := put(filepath.Join(top, "link"))
	if err := os.MkdirAll(link, 0o755); err != nil {
		t.Fatal(err)
	}
	elsewhere := put(filepath.Join(top, "elsewhere"), "own.txt")
	if err := os.Symlink(elsewhere, filepath.Join(link, "LICENSES.txt")); err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{
		"the repository":                ".",
		"its folder":                    "..",
		"the system":                    "/",
		"a folder of the repository":    "deploy",
		"a file":                        "NOTICE",
		"other files":                   put(filepath.Join(top, "other"), "thesis.tex"),
		"a hidden file":                 put(filepath.Join(top, "hidden"), ".bashrc"),
		"a folder within":               put(filepath.Join(top, "deep"), "a/b/c"),
		"a release and more":            put(sums(filepath.Join(top, "more"), "LICENSES.txt", archive), "notes.txt"),
		"a release's names alone":       put(filepath.Join(top, "names"), "LICENSES.txt", archive),
		"an archive that is not listed": put(sums(filepath.Join(top, "unlisted"), "LICENSES.txt"), archive),
		"other checksums":               sums(filepath.Join(top, "sums"), "debian-13.iso"),
		"checksums of what is gone":     filepath.Join(top, "gone"),
		"a link":                        link,
	}
	sums(refused["checksums of what is gone"], "debian-13.iso")
	if err := os.Remove(filepath.Join(top, "gone", "debian-13.iso")); err != nil {
		t.Fatal(err)
	}
	before := listing(t, top)
	for what, dir := range refused {
		if out, err := release(clone, dir); err == nil || !strings.Contains(out, "name a new folder") {
			t.Errorf("%s (%s): not refused: %v: %s", what, dir, err, out)
		}
		if after := listing(t, top); !slices.Equal(after, before) {
			t.Fatalf("%s (%s): files have changed: %d are left of %d", what, dir, len(after), len(before))
		}
	}

	fine := map[string]string{
		"a new folder":       filepath.Join(top, "new", "folder"),
		"an empty folder":    filepath.Join(top, "empty"),
		"an earlier release": sums(filepath.Join(top, "earlier"), "LICENSES.txt", archive, wheel),
		"the same once more": filepath.Join(top, "new", "folder"),
	}
	if err := os.Mkdir(fine["an empty folder"], 0o755); err != nil {
		t.Fatal(err)
	}
	for what, dir := range fine {
		from, name := filepath.Split(dir) // relative to the caller, not to the script
		if err := os.MkdirAll(from, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := release(from, name); err != nil {
			t.Fatalf("%s: %v: %s", what, err, out)
		}
		if got := listing(t, dir); !slices.Equal(got, []string{"LICENSES.txt", "SHA256SUMS"}) {
			t.Errorf("%s: %v", what, got)
		}
		check := exec.Command("sha256sum", "-c", "--quiet", "SHA256SUMS")
		check.Dir = dir
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", what, err, out)
		}
	}

	// a failed build keeps the earlier release
	cmd = exec.Command(filepath.Join(clone, "deploy/release.sh"), fine["an empty folder"])
	cmd.Env = append(os.Environ(), "TARGETS=plan9/nothing")
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("plan9/nothing was built: %s", out)
	}
	if got := listing(t, fine["an empty folder"]); !slices.Equal(got, []string{"LICENSES.txt", "SHA256SUMS"}) {
		t.Errorf("a build that failed left %v", got)
	}
}

// listing lists the files below a folder, in order.
func listing(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
