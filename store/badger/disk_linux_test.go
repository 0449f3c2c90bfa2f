package badger

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"taxon/store"
)

// mountSmall mounts a file system of 120 MiB, of which the shard leaves 64 free, and
// gives what makes it larger.
func mountSmall(t *testing.T) (dir string, grow func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=120m"); err != nil {
		t.Skipf("this system mounts no tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir, func() {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=240m"); err != nil {
			t.Fatal(err)
		}
	}
}

// fullDisk is the suite's bounded store.
func fullDisk(open func(*testing.T, string) *Store) func(t *testing.T) (store.Store, func()) {
	return func(t *testing.T) (store.Store, func()) {
		dir, grow := mountSmall(t)
		return open(t, filepath.Join(dir, "shard")), grow
	}
}

// TestForeignDiskFull: somebody else takes all space. The shard refuses to write, goes on
// reading, drops what needs no writing to be dropped, and is whole when there is room again,
// without a restart.
func TestForeignDiskFull(t *testing.T) {
	disk, _ := mountSmall(t)
	dir := filepath.Join(disk, "shard")
	s := mustOpen(t, dir)
	value := func(step uint32) store.Value {
		k := store.Key{Job: "j", Step: step, Attempt: 1, Name: "v"}
		return store.Value{Key: k, Data: []byte(strings.Repeat("data", 1000*int(step)))}
	}
	put := func(step uint32) error { return s.Put(t.Context(), []store.Value{value(step)}) }
	for step := uint32(1); step <= 5; step++ {
		if err := put(step); err != nil {
			t.Fatal(err)
		}
		if step == 1 {
			indexAll(t, s)
		}
	}
	filler := filepath.Join(disk, "filler")
	fill(t, filler)
	err := put(6)
	if !errors.Is(err, store.ErrFull) || strings.Contains(err.Error(), "\n") {
		t.Errorf("put: %v", err)
	}
	if _, err := s.Drop(t.Context(), store.DropSpec{Job: "j", Before: 2}); !errors.Is(err, store.ErrFull) {
		t.Errorf("drop: %v", err)
	}
	if err := s.Commit(t.Context(), "j", 2, nil); !errors.Is(err, store.ErrFull) {
		t.Errorf("commit: %v", err)
	}
	check := func(steps ...uint32) {
		t.Helper()
		for _, step := range steps {
			got, err := s.Get(t.Context(), []store.Key{value(step).Key})
			if err != nil || string(got[0]) != string(value(step).Data) {
				t.Errorf("step %d: %d bytes, %v", step, len(got[0]), err)
			}
		}
	}
	check(1, 2, 3, 4, 5)
	if n, err := s.Drop(t.Context(), store.DropSpec{Job: "j", Before: 3, Keep: []uint32{1}}); err != nil || n != 1 {
		t.Errorf("drop of a segment: %d, %v", n, err)
	}
	if err := put(6); !errors.Is(err, store.ErrFull) { // what was dropped is not enough
		t.Errorf("put: %v", err)
	}
	check(1, 3, 4, 5)
	if _, err := Open(Options{Dir: unread(t, disk), Memory: minMemory}); !errors.Is(err, store.ErrFull) {
		t.Errorf("open on the full disk: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := put(6); err != nil {
		t.Errorf("after there is room: %v", err)
	}
	if _, err := s.Drop(t.Context(), store.DropSpec{Job: "j", Before: 2}); err != nil {
		t.Error(err)
	}
	check(3, 4, 5, 6)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, dir)
	defer s.Close()
	check(3, 4, 5, 6)
}

// fill writes a file until nothing is free.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 20; size >= 512; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// unread makes a folder with a log that is to be read back.
func unread(t *testing.T, disk string) string {
	t.Helper()
	dir := filepath.Join(disk, "other")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "00001.mem"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(8<<20), f.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}
