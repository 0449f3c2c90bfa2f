package fs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taxon/internal/fs/vfs"
)

// TestGlob checks that patterns match as with filepath.Glob, except that a folder that cannot be
// listed is an error with its name. (The superuser cannot list a link to itself either.)
func TestGlob(t *testing.T) {
	root, disk := t.TempDir(), On(vfs.OS)
	for _, name := range []string{"w1/part-0", "w1/part-1", "w3/part-0", "w3/q/part-9", "w4", "odd[x]/part-0"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(root, "w5")); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"w*/part-*", "w*/part-0", "w[13]/*", "*", "*/q/part-?", "none/*", "w?", "*/none",
		"odd\\[x]/*"} {
		want, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		if got, err := match(disk, filepath.Join(root, pattern), false); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q (%v)", pattern, got, want, err)
		}
	}
	for _, bad := range []string{"w[", "w[/part-*"} {
		if _, err := Expand(t.Context(), filepath.Join(root, bad)); !IsInput(err) || !strings.Contains(err.Error(),
			"not a pattern") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	closed := filepath.Join(root, "w2")
	if err := os.Symlink("w2", closed); err != nil {
		t.Fatal(err)
	}
	for _, open := range []func() error{
		func() error { _, err := Expand(t.Context(), filepath.Join(root, "w*/part-*")); return err },
		func() error { _, err := Open(t.Context(), Local{}, filepath.Join(root, "w*/part-*")); return err },
	} {
		if err := open(); !IsInput(err) || !strings.HasPrefix(err.Error(), closed+": ") {
			t.Errorf("got %v, want an error that names %s", err, closed)
		}
	}
	if os.Getuid() == 0 {
		return
	}
	if err := os.Remove(closed); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(closed, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := Expand(t.Context(), filepath.Join(root, "w*/part-*")); !IsInput(err) || !strings.HasPrefix(err.Error(),
		closed+": the folder may not be listed") {
		t.Errorf("no permission: %v", err)
	}
}
