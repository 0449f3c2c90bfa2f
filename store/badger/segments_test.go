package badger

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"taxon/store"
	"taxon/store/segment"
)

func someValue(step, task, attempt uint32, n int) store.Value {
	k := store.Key{Job: "j", Step: step, Task: task, Attempt: attempt, Name: "v/0"}
	return store.Value{Key: k, Data: bytes.Repeat(fmt.Appendf(nil, "%d.%d.%d;", step, task, attempt), n)}
}

func mustPut(t *testing.T, s *Store, values ...store.Value) {
	t.Helper()
	if err := s.Put(t.Context(), values); err != nil {
		t.Fatal(err)
	}
}

func mustHave(t *testing.T, s *Store, values ...store.Value) {
	t.Helper()
	for _, v := range values {
		got, err := s.Get(t.Context(), []store.Key{v.Key})
		if err != nil || !bytes.Equal(got[0], v.Data) {
			t.Errorf("%s: %d bytes, %v", v.Key, len(got[0]), err)
		}
	}
}

func mustMiss(t *testing.T, s *Store, values ...store.Value) {
	t.Helper()
	for _, v := range values {
		if got, err := s.Get(t.Context(), []store.Key{v.Key}); err != nil || got[0] != nil {
			t.Errorf("%s: %d bytes, %v", v.Key, len(got[0]), err)
		}
	}
}

// crashed copies the folder of a shard that is open, and opens the copy.
func crashed(t *testing.T, s *Store, change func(dir string)) *Store {
	t.Helper()
	dir := t.TempDir()
	copyShard(t, s.dir, dir)
	if change != nil {
		change(dir)
	}
	out := mustOpen(t, dir)
	t.Cleanup(func() {
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
	return out
}

// segmentFiles lists the segments of a shard's folder, by number.
func segmentFiles(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, segment.Folder, "*.seg"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestTornEnd: whatever a crash leaves of the last write, all before it is there, the step
// goes on in another file, and that is found as well.
func TestTornEnd(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	defer s.Close()
	first, last := someValue(1, 1, 1, 50), someValue(1, 2, 1, 30)
	mustPut(t, s, first)
	before, err := os.Stat(segmentFiles(t, s.dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, last)
	after, err := os.Stat(segmentFiles(t, s.dir)[0])
	if err != nil {
		t.Fatal(err)
	}
	for size := before.Size(); size < after.Size(); size += 47 {
		c := crashed(t, s, func(dir string) {
			if err := os.Truncate(segmentFiles(t, dir)[0], size); err != nil {
				t.Fatal(err)
			}
		})
		mustHave(t, c, first)
		mustMiss(t, c, last)
		mustPut(t, c, last)
		if n := len(segmentFiles(t, c.dir)); n != 2 {
			t.Errorf("cut to %d: %d segments", size, n)
		}
		mustHave(t, crashed(t, c, nil), first, last)
	}
}

// TestCommitAndCrash: what a commit deletes stays deleted, what is written behind it stays.
func TestCommitAndCrash(t *testing.T) {
	for _, indexed := range []bool{false, true} {
		s := mustOpen(t, t.TempDir())
		defer s.Close()
		good, stale := someValue(1, 1, 2, 9), someValue(1, 1, 1, 9)
		mustPut(t, s, good, stale)
		if indexed {
			indexAll(t, s)
		}
		if err := s.Commit(t.Context(), "j", 1, []uint32{0, 2}); err != nil {
			t.Fatal(err)
		}
		c := crashed(t, s, nil)
		mustHave(t, c, good)
		mustMiss(t, c, stale)
		mustPut(t, c, stale) // late
		d := crashed(t, c, nil)
		mustHave(t, d, good, stale)
		indexAll(t, d)
		mustHave(t, d, good, stale)
		if err := d.Commit(t.Context(), "j", 1, nil); err != nil {
			t.Fatal(err)
		}
		mustMiss(t, crashed(t, d, nil), good, stale)
	}
}

// TestCrashWithinDrop: the step is there as it was, or gone.
func TestCrashWithinDrop(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	defer s.Close()
	indexed, waiting, kept := someValue(1, 1, 1, 9), someValue(1, 2, 1, 9), someValue(2, 1, 1, 9)
	mustPut(t, s, indexed)
	indexAll(t, s)
	mustPut(t, s, waiting, kept)
	files := segmentFiles(t, s.dir)
	gone := crashed(t, s, nil)
	what := store.DropSpec{Job: "j", Before: 2}
	old, err := gone.droppable(t.Context(), what)
	if err != nil || old.values != 2 || len(old.entries) != 2 {
		t.Fatalf("%+v, %v", old, err)
	}
	if err := gone.dropEntries(old, false); err != nil {
		t.Fatal(err)
	}
	half := crashed(t, gone, nil)
	mustHave(t, half, indexed, waiting, kept)
	if n, err := half.Drop(t.Context(), what); err != nil || n != 2 {
		t.Errorf("drop: %d, %v", n, err)
	}
	mustMiss(t, crashed(t, half, nil), indexed, waiting)

	// The other way round, as if somebody had removed the file: heads without data are none.
	c := crashed(t, s, func(dir string) {
		if err := os.Remove(filepath.Join(dir, segment.Folder, filepath.Base(files[0]))); err != nil {
			t.Fatal(err)
		}
	})
	mustMiss(t, c, indexed, waiting)
	mustHave(t, c, kept)
	n := 0
	if err := c.List(t.Context(), "", func(store.Info) error { n++; return nil }); err != nil || n != 1 {
		t.Errorf("%d values are listed, %v", n, err)
	}
	mustPut(t, c, indexed, waiting)
	mustHave(t, crashed(t, c, nil), indexed, waiting, kept)
}

// TestBrokenSegment: after a write that failed the step goes on in a new file, and nothing
// that was acknowledged is missing.
func TestBrokenSegment(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	first, second := someValue(1, 1, 1, 9), someValue(1, 2, 1, 9)
	mustPut(t, s, first)
	if err := s.table.find("j", 1).files[0].Close(); err != nil { // writing fails from now on
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), []store.Value{second}); err == nil {
		t.Error("written to a closed file")
	}
	mustPut(t, s, second)
	mustHave(t, s, second)
	mustHave(t, crashed(t, s, nil), first, second)
	if err := s.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("close: %v", err)
	}
}

// TestWaitingIsBounded: heads go to Badger when too many wait, or those of too many bytes,
// the oldest step's first.
func TestWaitingIsBounded(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	defer s.Close()
	s.waiting, s.waitingBytes = 10, 4000
	var all []store.Value
	for step := range uint32(6) {
		for task := range uint32(5) {
			all = append(all, someValue(step, task, 1, 1))
			mustPut(t, s, all[len(all)-1])
			if n := s.table.waiting.Load(); n > s.waiting {
				t.Fatalf("%d heads wait", n)
			}
		}
	}
	mustHave(t, s, all...)
	if _, inMemory, stored := s.look(all[0].Key); inMemory || !stored {
		t.Error("the first step's heads wait")
	}
	if _, inMemory, _ := s.look(all[len(all)-1].Key); !inMemory {
		t.Error("the last step's heads do not wait")
	}
	large := someValue(9, 9, 1, 4000)
	mustPut(t, s, large)
	if n := s.table.bytes.Load(); n > s.waitingBytes {
		t.Errorf("%d bytes wait", n)
	}
	c := crashed(t, s, nil)
	mustHave(t, c, append(all, large)...)
	if got, want := c.table.waiting.Load(), s.table.waiting.Load(); got != want {
		t.Errorf("%d heads wait after a crash, %d before", got, want)
	}
}

// TestSpares: steps go on in the files of dropped ones, with their own values alone, also
// behind a crash; a job that goes takes the files with it, and so does a full disk.
func TestSpares(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	defer s.Close()
	spare := func() int {
		paths, err := filepath.Glob(filepath.Join(s.dir, segment.Folder, "*.blank"))
		if err != nil {
			t.Fatal(err)
		}
		return len(paths)
	}
	for step := range uint32(9) {
		mustPut(t, s, someValue(step, 1, 1, 900-100*int(step)), someValue(step, 2, 1, 50))
		if step < 2 {
			continue
		}
		if _, err := s.Drop(t.Context(), store.DropSpec{Job: "j", Before: step - 1}); err != nil {
			t.Fatal(err)
		}
		if spare() != 1 {
			t.Errorf("step %d: %d files are kept", step, spare())
		}
		mustMiss(t, s, someValue(step-2, 1, 1, 0), someValue(step-2, 2, 1, 0))
		for _, at := range []*Store{s, crashed(t, s, nil)} {
			for of := step - 1; of <= step; of++ {
				mustHave(t, at, someValue(of, 1, 1, 900-100*int(of)), someValue(of, 2, 1, 50))
			}
		}
	}
	free := s.free
	s.free = func(dir string) (uint64, error) {
		if spare() > 0 {
			return 0, nil
		}
		return free(dir)
	}
	mustPut(t, s, someValue(9, 1, 1, 9))
	s.free = free
	if spare() != 0 {
		t.Error("files are kept where there is no room")
	}
	if _, err := s.Drop(t.Context(), store.DropSpec{Job: "j", Before: 9}); err != nil || spare() != 2 {
		t.Errorf("%d files are kept, %v", spare(), err)
	}
	if _, err := s.Drop(t.Context(), store.DropSpec{Job: "j", All: true}); err != nil || spare() != 0 {
		t.Errorf("%d files are kept of a job that is gone, %v", spare(), err)
	}
}

// TestSparesGoWithTheJob: also where it is dropped as the coordinator does, step by step.
func TestSparesGoWithTheJob(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	defer s.Close()
	mustPut(t, s, someValue(1, 1, 1, 9), someValue(2, 1, 1, 9))
	if _, err := s.Drop(t.Context(), store.DropSpec{Job: "j", Before: 1<<32 - 1}); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(s.segments()); err != nil || len(left) != 0 {
		t.Errorf("%v stays, %v", left, err)
	}
}

// TestCommitTrims: a small step that was written over a large one's file gives the rest back.
func TestCommitTrims(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	defer s.Close()
	mustPut(t, s, someValue(1, 1, 1, 5<<20), someValue(2, 1, 1, 9))
	if _, err := s.Drop(t.Context(), store.DropSpec{Job: "j", Before: 2}); err != nil {
		t.Fatal(err)
	}
	small, late := someValue(3, 1, 1, 99), someValue(3, 1, 2, 99)
	size := func() (n int64) {
		for _, path := range segmentFiles(t, s.dir) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			n += info.Size()
		}
		return n
	}
	mustPut(t, s, small)
	if n := size(); n < 5<<20 {
		t.Fatalf("%d bytes: the file was not written over", n)
	}
	if err := s.Commit(t.Context(), "j", 3, []uint32{0, 1}); err != nil {
		t.Fatal(err)
	}
	if n := size(); n > 4096 {
		t.Errorf("%d bytes stay of a step of 99", n)
	}
	mustPut(t, s, late)
	mustHave(t, s, small, late)
	mustHave(t, crashed(t, s, nil), small, late)
}
