package badger

import (
	"archive/zip"
	"bytes"
	"errors"
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
	goldenPath  = "testdata/badger-v2.zip"
	goldenShard = "golden-shard"
)

// goldenValues lie in the golden directory.
func goldenValues() []store.Value {
	var out []store.Value
	for i, n := range []int{0, 5, 256 << 10, 512<<10 + 3} {
		data := make([]byte, n)
		for j := range data {
			data[j] = byte(j >> 8) // compresses: the golden file stays small
		}
		k := store.Key{Job: "golden", Step: uint32(i), Task: 7, Attempt: 2, Name: "x/3"}
		out = append(out, store.Value{Key: k, Data: data})
	}
	return out
}

// TestGolden opens the golden directory: it has the bytes that the program writes, and is read.
func TestGolden(t *testing.T) {
	if *rewrite {
		writeGolden(t)
	}
	archive, err := zip.OpenReader(goldenPath)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	dir := t.TempDir()
	if err := os.CopyFS(dir, archive); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, dir)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if s.ID() != goldenShard {
		t.Errorf("shard %q", s.ID())
	}
	for round := range 3 { // as it is, indexed, and opened again
		for _, v := range goldenValues() {
			got, err := s.Get(t.Context(), []store.Key{v.Key})
			if err != nil || !bytes.Equal(got[0], v.Data) || got[0] == nil {
				t.Errorf("round %d: %s: %d bytes, %v", round, v.Key, len(got[0]), err)
			}
		}
		if err := s.Put(t.Context(), goldenValues()); err != nil { // the same again
			t.Errorf("round %d: %v", round, err)
		}
		n := 0
		if err := s.List(t.Context(), "", func(store.Info) error { n++; return nil }); err != nil ||
			n != len(goldenValues()) {
			t.Errorf("round %d: %d values are listed, %v", round, n, err)
		}
		if round == 0 {
			sameFiles(t, s)
			indexAll(t, s)
			continue
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, dir)
	}
	n, err := s.Drop(t.Context(), store.DropSpec{Job: "golden", Before: 3})
	if err != nil || n != 3 {
		t.Errorf("drop: %d values, %v", n, err)
	}
	if n, err := s.Drop(t.Context(), store.DropSpec{Job: "golden", All: true}); err != nil || n != 1 ||
		len(entries(t, s)) != 1 {
		t.Errorf("drop of the job: %d values, %v, %d entries are left", n, err, len(entries(t, s)))
	}
}

// indexAll moves all heads to Badger.
func indexAll(t *testing.T, s *Store) {
	t.Helper()
	for _, st := range s.table.of("") {
		if err := s.index(st); err != nil {
			t.Fatal(err)
		}
	}
}

// putGolden writes the values: those of the first two steps have heads in Badger.
func putGolden(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Put(t.Context(), goldenValues()[:2]); err != nil {
		t.Fatal(err)
	}
	indexAll(t, s)
	if err := s.Put(t.Context(), goldenValues()[2:]); err != nil {
		t.Fatal(err)
	}
}

// sameFiles checks that today's program writes the same entries and segments as the
// golden directory has (Badger's own files may differ).
func sameFiles(t *testing.T, golden *Store) {
	now := mustOpen(t, t.TempDir())
	defer now.Close()
	putGolden(t, now)
	a, b := entries(t, golden), entries(t, now)
	if len(a) != len(b) || len(a) != 1+2*2 {
		t.Fatalf("%d entries, %d now, must be 5", len(a), len(b))
	}
	for k := range a {
		if a[k] != b[k] {
			t.Errorf("entry %q has changed: raise the format's version", k)
		}
	}
	files, err := os.ReadDir(now.segments())
	if err != nil || len(files) != 4 {
		t.Fatalf("%d segments, %v", len(files), err)
	}
	for _, f := range files {
		had, err := os.ReadFile(filepath.Join(golden.segments(), f.Name()))
		has, err2 := os.ReadFile(filepath.Join(now.segments(), f.Name()))
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(had, has) {
			t.Errorf("segment %s has changed (%v): raise the format's version", f.Name(), err)
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
	putGolden(t, s)
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
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		w, err := z.Create(filepath.ToSlash(name))
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
