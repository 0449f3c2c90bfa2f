package badger

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	bdg "github.com/dgraph-io/badger/v4"
	"go.uber.org/goleak"

	"taxon/store"
	"taxon/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func mustOpen(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(Options{Dir: dir, MemTableBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		New:      func(t *testing.T) store.Store { return mustOpen(t, t.TempDir()) },
		Corrupt:  corrupt,
		BigBytes: 9 << 20,
		Reopen: func(t *testing.T, s store.Store) store.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return mustOpen(t, s.(*Store).dir)
		},
		Crash: func(t *testing.T, s store.Store) store.Store {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(s.(*Store).dir)); err != nil {
				t.Fatal(err)
			}
			return mustOpen(t, dir)
		},
	})
}

// corrupt flips a bit in the last entry of a value.
func corrupt(t *testing.T, s store.Store, k store.Key) {
	t.Helper()
	b := s.(*Store)
	err := b.db.Update(func(txn *bdg.Txn) error {
		it := txn.NewIterator(bdg.IteratorOptions{Prefix: headKey(k)})
		var last *bdg.Item
		var key, value []byte
		var err error
		for it.Rewind(); it.Valid(); it.Next() {
			last = it.Item()
			key = last.KeyCopy(nil)
			if value, err = last.ValueCopy(nil); err != nil {
				break
			}
		}
		it.Close()
		if err != nil || last == nil {
			return errors.Join(err, errors.New("no entry to corrupt"))
		}
		value[len(value)-1] ^= 1
		return txn.Set(key, value)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSecondOpener(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	if _, err := Open(Options{Dir: dir}); !errors.Is(err, store.ErrLocked) {
		t.Errorf("second opener: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open(Options{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("no directory: %v", err)
	}
	if _, err := Open(Options{Dir: t.TempDir(), MemTableBytes: 1}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("tiny memory tables: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: file}); err == nil {
		t.Error("a file is taken for a directory")
	}
	other := t.TempDir()
	db, err := bdg.Open(bdg.DefaultOptions(other).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(txn *bdg.Txn) error { return txn.Set([]byte("a"), []byte("b")) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: other}); err == nil {
		t.Error("a database of something else is taken")
	}
}

func TestDamagedHeads(t *testing.T) {
	key := headKey(store.Key{Job: "j", Step: 1, Attempt: 1, Name: "v"})
	b := encodeHead(key, head{size: 3, crc32c: 7}, encodingRaw, []byte("abc"))
	if _, _, inline, err := parseHead(key, b); err != nil || string(inline) != "abc" {
		t.Fatalf("%q, %v", inline, err)
	}
	for i := range headBytes {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if _, _, _, err := parseHead(key, b); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("bit %d of byte %d: %v", bit, i, err)
			}
			b[i] ^= 1 << bit
		}
	}
	for n := range headBytes {
		if _, _, _, err := parseHead(key, b[:n]); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	key[0]++
	if _, _, _, err := parseHead(key, b); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("under another key: %v", err)
	}
}

func FuzzParseEntryKey(f *testing.F) {
	k := headKey(store.Key{Job: "job", Step: 1, Task: 2, Attempt: 3, Name: "v/3"})
	f.Add(k)
	f.Add(chunkKey(k, 7))
	f.Add([]byte(formatKey))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, chunk, err := parseEntryKey(b)
		if err != nil {
			return
		}
		again := headKey(k)
		if chunk > 0 {
			again = chunkKey(again, chunk)
		}
		if string(again) != string(b) {
			t.Errorf("%q reads as %s chunk %d, which is %q", b, k, chunk, again)
		}
	})
}
