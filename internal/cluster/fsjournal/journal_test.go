package fsjournal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"taxon/coordinator/journal"
)

var _ journal.Journal = (*Folder)(nil)

func open(t *testing.T, dir string) (*Folder, string) {
	t.Helper()
	j, snapshot, records, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return j, string(snapshot) + "|" + string(bytes.Join(records, []byte(",")))
}

func add(t *testing.T, j *Folder, records ...string) {
	t.Helper()
	for _, r := range records {
		n := j.Append([]byte(r))
		if err := j.Sync(n); err != nil {
			t.Fatal(err)
		}
	}
}

func compact(j *Folder, snapshot string) error {
	return j.Compact(func(cut func()) []byte { cut(); return []byte(snapshot) })
}

func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j, got := open(t, dir)
	if got != "|" || j.Epoch() != 1 {
		t.Fatalf("new: %q, epoch %d", got, j.Epoch())
	}
	add(t, j, "a", "b")
	j.Append([]byte("c"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, got = open(t, dir)
	if got != "|a,b,c" || j.Epoch() != 2 {
		t.Fatalf("after records: %q, epoch %d", got, j.Epoch())
	}
	add(t, j, "d")
	if err := compact(j, "S"); err != nil || j.Size() != 0 {
		t.Fatal(err, j.Size())
	}
	add(t, j, "e")
	if j, got = open(t, dir); got != "S|e" || j.Epoch() != 3 {
		t.Fatalf("after a snapshot: %q, epoch %d", got, j.Epoch())
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, "epoch-3")); len(entries) != 1 {
		t.Errorf("old generations stay: %v", entries)
	}
}

// TestFence: whoever had the journal before can neither write nor compact, and what it
// tries leaves nothing behind.
func TestFence(t *testing.T) {
	for name, act := range map[string]func(*Folder) error{
		"sync":    func(j *Folder) error { return j.Sync(j.Append([]byte("late"))) },
		"compact": func(j *Folder) error { return compact(j, "late") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			old, _ := open(t, dir)
			add(t, old, "a")
			fresh, _ := open(t, dir)
			if err := act(old); !errors.Is(err, ErrFenced) {
				t.Errorf("the old one: %v", err)
			}
			if err := old.Sync(old.Append([]byte("later"))); !errors.Is(err, ErrFenced) {
				t.Errorf("again: %v", err)
			}
			add(t, fresh, "b")
			if _, got := open(t, dir); got != "|a,b" {
				t.Errorf("got %q", got)
			}
			if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 1 {
				t.Errorf("left behind: %v", names)
			}
		})
	}
}

func TestDamage(t *testing.T) {
	damages := map[string]func(t *testing.T, dir string){
		"a file missing": func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "epoch-1/0/00000002")) },
		"a file cut": func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "epoch-1/0/00000002"), 20); err != nil {
				t.Fatal(err)
			}
		},
		"a file emptied": func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "epoch-1/0/00000003"), 0); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j, _ := open(t, dir)
			add(t, j, "one record", "another", "third")
			damage(t, dir)
			if _, _, _, err := Open(t.Context(), dir); !errors.Is(err, journal.ErrDamaged) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestUnfinishedGeneration: a snapshot that was never finished does not count.
func TestUnfinishedGeneration(t *testing.T) {
	dir := t.TempDir()
	j, _ := open(t, dir)
	add(t, j, "a")
	if err := os.Mkdir(filepath.Join(dir, "epoch-1/1"), 0o777); err != nil {
		t.Fatal(err)
	}
	j, got := open(t, dir)
	if got != "|a" {
		t.Errorf("got %q", got)
	}
	if err := compact(j, "S"); err != nil {
		t.Fatal(err)
	}
	if _, got := open(t, dir); got != "S|" {
		t.Errorf("got %q", got)
	}
}

// TestTogether: records of many callers share files and none is lost.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	j, _ := open(t, dir)
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for i := range 20 {
				if err := j.Sync(j.Append(fmt.Appendf(nil, "%d-%d", w, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	_, _, records, err := Open(t.Context(), dir)
	if err != nil || len(records) != 160 {
		t.Errorf("%d records, %v", len(records), err)
	}
}
