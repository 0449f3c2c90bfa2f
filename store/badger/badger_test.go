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
	"taxon/store/segment"
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

// mustOpenEager opens a shard that moves heads to Badger at once.
func mustOpenEager(t *testing.T, dir string) *Store {
	s := mustOpen(t, dir)
	s.waiting = 1
	return s
}

// TestConformance: with heads in memory, and with heads in Badger.
func TestConformance(t *testing.T) {
	for name, open := range map[string]func(*testing.T, string) *Store{"waiting": mustOpen, "indexed": mustOpenEager} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, storetest.Harness{
				New:      func(t *testing.T) store.Store { return open(t, t.TempDir()) },
				Corrupt:  corrupt,
				BigBytes: 9 << 20,
				Full:     fullDisk(open),
				Reopen: func(t *testing.T, s store.Store) store.Store {
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					return open(t, s.(*Store).dir)
				},
				Crash: func(t *testing.T, s store.Store) store.Store {
					dir := t.TempDir()
					copyShard(t, s.(*Store).dir, dir)
					return open(t, dir)
				},
			})
		})
	}
}

// placeOf finds where a value lies.
func placeOf(t *testing.T, s *Store, k store.Key) place {
	t.Helper()
	p, ok, err := s.find(k)
	if !ok || err != nil {
		t.Fatalf("%s: found %v, %v", k, ok, err)
	}
	return p
}

// corrupt flips a bit in the last byte of a value.
func corrupt(t *testing.T, s store.Store, k store.Key) {
	t.Helper()
	p := placeOf(t, s.(*Store), k)
	path := filepath.Join(s.(*Store).segments(), segment.Name(p.file.Number))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	_, err = f.ReadAt(b, p.end()-1)
	b[0] ^= 1
	if err == nil {
		_, err = f.WriteAt(b, p.end()-1)
	}
	if err := errors.Join(err, f.Close()); err != nil {
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
	if _, err := Open(Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), fmt.Sprint("this program reads ",
		formatVersion)) {
		t.Errorf("a later version: %v", err)
	}
}

func TestDamagedHeads(t *testing.T) {
	key := headKey(store.Key{Job: "j", Step: 1, Attempt: 1, Name: "v"})
	want := head{size: 3, crc32c: 7, segment: 9, offset: 1 << 40}
	b := encodeHead(key, want)
	if h, err := parseHead(key, b); err != nil || h != want {
		t.Fatalf("%+v, %v", h, err)
	}
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			if _, err := parseHead(key, b); !errors.Is(err, store.ErrCorrupt) {
				t.Errorf("bit %d of byte %d: %v", bit, i, err)
			}
			b[i] ^= 1 << bit
		}
		if _, err := parseHead(key, b[:i]); !errors.Is(err, store.ErrCorrupt) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
	other := append([]byte{'k'}, key[1:]...)
	if _, err := parseHead(other, b); !errors.Is(err, store.ErrCorrupt) {
		t.Errorf("under another key: %v", err)
	}
}

func FuzzParseEntryKey(f *testing.F) {
	k := headKey(store.Key{Job: "job", Step: 1, Task: 2, Attempt: 3, Name: "v/3"})
	f.Add(k)
	f.Add([]byte(formatKey))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := parseEntryKey(b)
		if err != nil {
			return
		}
		if again := headKey(k); string(again) != string(b) {
			t.Errorf("%q reads as %s, which is %q", b, k, again)
		}
	})
}

// FuzzParseHead: a head is read as it was written, or refused.
func FuzzParseHead(f *testing.F) {
	key := headKey(store.Key{Job: "j", Step: 1, Attempt: 1, Name: "v"})
	f.Add(encodeHead(key, head{size: 1000, segment: 3, offset: 99}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= headBytes { // get past the checksum
			binary.LittleEndian.PutUint32(b[headBytes-4:], headSum(key, b[:headBytes-4]))
		}
		h, err := parseHead(key, b)
		if err == nil && !bytes.Equal(encodeHead(key, h), b) {
			t.Errorf("%x reads as %+v", b, h)
		}
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			t.Error(err)
		}
	})
}

// FuzzParseMark: a mark is read as it was written, or not at all.
func FuzzParseMark(f *testing.F) {
	f.Add(mark{17, 4}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, ok := parseMark(b); ok && !bytes.Equal(m.encode(), b) {
			t.Errorf("%x reads as %+v", b, m)
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
