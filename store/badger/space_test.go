package badger

import (
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"taxon/store"
)

// TestDroppedSpace: what is dropped step by step gives its space back while the shard
// is written to.
func TestDroppedSpace(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	defer s.Close()
	r := rand.NewChaCha8([32]byte{})
	var peak, written int64
	for step := range uint32(80) {
		var values []store.Value
		for i := range uint32(32) {
			data := make([]byte, 64<<10)
			_, _ = r.Read(data) // never fails
			written += int64(len(data))
			values = append(values, store.Value{Key: store.Key{Job: "j", Step: step, Task: i, Attempt: 1, Name: "v"},
				Data: data})
		}
		if err := s.Put(t.Context(), values); err != nil {
			t.Fatal(err)
		}
		if step > 8 {
			if _, err := s.Drop(t.Context(), store.DropSpec{Job: "j", Before: step - 8}); err != nil {
				t.Fatal(err)
			}
		}
		if step%8 == 0 {
			peak = max(peak, valueBytes(t, dir))
		}
	}
	t.Logf("values take %d MiB at most of %d MiB written, %d in the end", peak>>20, written>>20, valueBytes(t, dir)>>20)
	if peak > written/4 {
		t.Errorf("values take %d MiB of %d MiB written", peak>>20, written>>20)
	}
}

// valueBytes is the size of a shard's tables and segments; its logs are of a fixed size.
func valueBytes(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || ext != ".sst" && ext != ".seg" {
			return nil // it has just been compacted away
		}
		if in, err := d.Info(); err == nil {
			n += in.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
