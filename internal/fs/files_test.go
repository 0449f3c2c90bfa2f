package fs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteRenamePrivate(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	disk, done := Keep(t.Context(), dir)
	for _, text := range []string{"one", "two", ""} {
		if err := disk.WriteFile(a, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(a); err != nil || string(got) != text {
			t.Errorf("%q %v, want %q", got, err, text)
		}
	}
	if err := disk.WriteFile(filepath.Join(dir, "none", "x"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without its folder: %v", err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	if err := Rename(a, b); err != nil || Exists(a) || !Exists(b) {
		t.Error(err)
	}
	if err := os.Chmod(b, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Private(b); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(b); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if Private(a) == nil {
		t.Error("a file that is not there")
	}
}
