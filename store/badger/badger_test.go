package badger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bdg "github.com/dgraph-io/badger/v4"

	"taxon/store"
	"taxon/store/storetest"
)

func mustOpen(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(Options{Dir: dir, Memory: minMemory})
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
		Full:     fullDisk(),
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
	if _, err := Open(Options{Dir: t.TempDir(), Memory: 1}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("tiny memory: %v", err)
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

// TestLaterVersion: a shard that a later program wrote is refused, and says so.
func TestLaterVersion(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	err := s.db.Update(func(txn *bdg.Txn) error {
		return txn.Set([]byte(formatKey), binary.LittleEndian.AppendUint32(nil, formatVersion+1))
	})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "this program reads 1") {
		t.Errorf("a later version: %v", err)
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

// FuzzParseHead: whatever lies in the entry, the inline data decode or are refused.
func FuzzParseHead(f *testing.F) {
	c, err := newCodec()
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := c.close(); err != nil {
			f.Error(err)
		}
	})
	key := headKey(store.Key{Job: "j", Step: 1, Attempt: 1, Name: "v"})
	for _, data := range [][]byte{nil, []byte("abc"), make([]byte, 1000)} {
		encoding, stored := c.encode(0, data)
		f.Add(encodeHead(key, head{size: uint64(len(data))}, encoding, stored))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= headBytes { // get past the checksum
			binary.LittleEndian.PutUint32(b[18:], headSum(key, b[:18]))
		}
		h, encoding, inline, err := parseHead(key, b)
		if err == nil && h.chunks == 0 {
			var data []byte
			if data, err = c.decode([]byte("before"), encoding, inline); err == nil && !bytes.HasPrefix(data, []byte("before")) {
				t.Errorf("decode overwrites what it appends to: %q", data)
			}
		}
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			t.Error(err)
		}
	})
}

// BenchmarkPutGet moves 16 MiB of noise in values of one size, synced, and back.
func BenchmarkPutGet(b *testing.B) {
	for _, size := range []int{1 << 20, 16 << 10} {
		b.Run(fmt.Sprintf("value=%dKiB", size>>10), func(b *testing.B) {
			s, err := Open(Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			data := make([]byte, 16<<20)
			_, _ = rand.NewChaCha8([32]byte{}).Read(data) // never fails
			b.SetBytes(2 * int64(len(data)))
			step := uint32(0)
			for b.Loop() {
				step++
				var values []store.Value
				var keys []store.Key
				for i := 0; i < len(data); i += size {
					k := store.Key{Job: "bench", Step: step, Task: uint32(i), Attempt: 1, Name: "v/0"}
					keys, values = append(keys, k), append(values, store.Value{Key: k, Data: data[i : i+size]})
				}
				if err := s.Put(b.Context(), values); err != nil {
					b.Fatal(err)
				}
				if _, err := s.Get(b.Context(), keys); err != nil {
					b.Fatal(err)
				}
				if _, err := s.Drop(b.Context(), store.DropSpec{Job: "bench", Before: step}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
