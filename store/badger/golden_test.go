package badger

import (
	"archive/zip"
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	bdg "github.com/dgraph-io/badger/v4"

	"taxon/store"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

const (
	goldenPath  = "testdata/badger-v1-id.zip" // as written today
	beforeIDs   = "testdata/badger-v1.zip"    // before shards had ids in their folders
	goldenShard = "golden-shard"
)

// goldenValues lie in the golden directory: empty, small, just inline, chunked.
func goldenValues() []store.Value {
	var out []store.Value
	for i, n := range []int{0, 5, chunkBytes, 2*chunkBytes + 3} {
		data := make([]byte, n)
		for j := range data {
			data[j] = byte(j >> 8) // compresses: the golden file stays small
		}
		k := store.Key{Job: "golden", Step: uint32(i), Task: 7, Attempt: 2, Name: "x/3"}
		out = append(out, store.Value{Key: k, Data: data})
	}
	return out
}

// TestGolden opens a directory that an older program wrote.
func TestGolden(t *testing.T) {
	if *rewrite {
		writeGolden(t)
	}
	for path, id := range map[string]string{goldenPath: goldenShard, beforeIDs: ""} {
		t.Run(filepath.Base(path), func(t *testing.T) { readGolden(t, path, id) })
	}
}

// readGolden opens a golden directory of a shard; id "": it has none yet.
func readGolden(t *testing.T, path, id string) {
	archive, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	dir := t.TempDir()
	if err := os.CopyFS(dir, archive); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, dir)
	defer s.Close()
	if s.ID() == "" || id != "" && s.ID() != id {
		t.Errorf("shard %q", s.ID())
	}
	for _, v := range goldenValues() {
		got, err := s.Get(t.Context(), []store.Key{v.Key})
		if err != nil || !bytes.Equal(got[0], v.Data) || got[0] == nil {
			t.Errorf("%s: %d bytes, %v", v.Key, len(got[0]), err)
		}
	}
	sameEntries(t, s)
}

// sameEntries checks that today's program writes the same entries as the golden
// directory has (Badger's own files may differ).
func sameEntries(t *testing.T, golden *Store) {
	now := mustOpen(t, t.TempDir())
	defer now.Close()
	if err := now.Put(t.Context(), goldenValues()); err != nil {
		t.Fatal(err)
	}
	a, b := entries(t, golden), entries(t, now)
	if len(a) != len(b) || len(a) != 1+4+3 {
		t.Fatalf("%d entries, %d now, must be 8", len(a), len(b))
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			t.Errorf("entry %q is not written any more: raise the format's version", k)
		} else if a[k] != b[k] && k[len(k)-1] == 0 && len(b[k]) == headBytes {
			t.Errorf("head %q has changed: raise the format's version", k)
		}
	}
}

func entries(t *testing.T, s *Store) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := s.db.View(func(txn *bdg.Txn) error {
		it := txn.NewIterator(bdg.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			v, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			out[string(it.Item().Key())] = string(v)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func writeGolden(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir, ID: goldenShard, Memory: minMemory})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), goldenValues()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		w, err := z.Create(filepath.Base(path))
		if err == nil {
			_, err = w.Write(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(goldenPath, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
