package segment

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"taxon/store"
)

// TestBlank: a file that is written over holds what was written since, whatever a crash
// leaves of it, and nothing of before.
func TestBlank(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	old := []store.Checksummed{value(1, "a", 300), value(2, "b", 4000), value(3, "c", 50)}
	add(t, f, old...)
	size := f.Size()
	b, err := f.Blank()
	if err != nil || b == nil || b.Size != size {
		t.Fatalf("%+v, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(dir, Name(head.Number))); !os.IsNotExist(err) {
		t.Errorf("the dropped file is there: %v", err)
	}
	next := Head{Job: head.Job, Step: head.Step, Number: head.Number + 1}
	g, err := b.Create(dir, next)
	if err != nil {
		t.Fatal(err)
	}
	if got := entries(t, g, 0); len(got) != 0 {
		t.Errorf("values of before: %+v", got)
	}
	fresh := []store.Checksummed{value(7, "x", 200), value(8, "y", 100)}
	end := add(t, g, fresh...)
	if g.Size() != end {
		t.Errorf("size %d, written up to %d", g.Size(), end)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, Name(next.Number))
	whole, err := os.ReadFile(path)
	if err != nil || int64(len(whole)) != size {
		t.Fatalf("%d bytes, %v: the blocks are not those of before", len(whole), err)
	}
	for cut := int64(len(appendHead(nil, next))); cut <= end; cut++ {
		torn := slices.Clone(whole) // the new bytes from cut on did not arrive
		clear(torn[cut:end])
		in := t.TempDir()
		if err := os.WriteFile(filepath.Join(in, Name(next.Number)), torn, 0o600); err != nil {
			t.Fatal(err)
		}
		files, _, err := OpenAll(in)
		if err != nil || len(files) != 1 {
			t.Fatalf("cut at %d: %d files, %v", cut, len(files), err)
		}
		found := 0
		for _, e := range entries(t, files[0], 0) {
			if e.Damaged {
				continue
			}
			if e.Key != fresh[found].Key {
				t.Errorf("cut at %d: %v", cut, e.Key)
			}
			found++
		}
		if err := files[0].Close(); err != nil || (found == len(fresh)) != (cut == end) {
			t.Errorf("cut at %d: %d values, %v", cut, found, err)
		}
	}
}

// TestBlankIsRemoved: one that a crash leaves is no segment, and goes; so does a file of an
// earlier life, which nobody writes to.
func TestBlankIsRemoved(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	add(t, f, value(1, "a", 10))
	if _, err := f.Blank(); err != nil {
		t.Fatal(err)
	}
	files, highest, err := OpenAll(dir)
	if err != nil || len(files) != 0 || highest != 0 {
		t.Errorf("%d files, highest %d, %v", len(files), highest, err)
	}
	again, err := Create(dir, head)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if files, _, err = OpenAll(dir); err != nil || len(files) != 1 {
		t.Fatal(len(files), err)
	}
	if b, err := files[0].Blank(); err != nil || b != nil {
		t.Errorf("%v, %v", b, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
