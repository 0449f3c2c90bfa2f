package vfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"taxon/internal/fs/vfs"
)

// TestLocked: a lock is seen by whoever does not hold it, and looking at it does not take it.
func TestLocked(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	if vfs.Locked(name) {
		t.Error("a missing file is locked")
	}
	f, err := vfs.LockFile(vfs.OS, name, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !vfs.Locked(name) {
			t.Error("the lock is not seen")
		}
	}
	if _, err := vfs.LockFile(vfs.OS, name, 0o600); err != vfs.ErrLocked {
		t.Errorf("locked twice: %v", err)
	}
	if err := f.Close(); err != nil || vfs.Locked(name) {
		t.Errorf("locked after the end (%v)", err)
	}
}

func TestScratchFile(t *testing.T) {
	dir := t.TempDir()
	f, drop, err := vfs.ScratchFile(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("some"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2)
	if _, err := f.ReadAt(b, 2); err != nil || string(b) != "me" {
		t.Errorf("%q, %v", b, err)
	}
	if err := drop(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
	if _, _, err := vfs.ScratchFile(filepath.Join(dir, "none"), "test"); !os.IsNotExist(err) {
		t.Errorf("in no folder: %v", err)
	}
}

func TestOutput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	for _, c := range []struct {
		flag int
		want string
	}{{os.O_APPEND, "x"}, {os.O_APPEND, "xx"}, {os.O_TRUNC, "x"}} {
		f, err := vfs.Output(name, c.flag)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("x"); err != nil {
			t.Fatal(err)
		}
		if got, err := vfs.ReadFile(vfs.OS, name); err != nil || string(got) != c.want || f.Close() != nil {
			t.Errorf("%q, want %q (%v)", got, c.want, err)
		}
	}
}
