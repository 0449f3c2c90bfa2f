package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"taxon/internal/fs/vfs"
)

// writeRecords makes a journal of n records behind a snapshot and returns the file's bytes.
func writeRecords(t *testing.T, dir string, n int) []byte {
	t.Helper()
	j, _, _, err := Open(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Compact(func(cut func()) []byte { cut(); return []byte("the state") }); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := j.Sync(j.Append(fmt.Appendf(nil, "record %d", i))); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestJournalRoundTrip(t *testing.T) {
	dir := t.TempDir()
	writeRecords(t, dir, 3)
	j, snapshot, records, err := Open(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	if string(snapshot) != "the state" || len(records) != 3 || string(records[2]) != "record 2" {
		t.Fatalf("read %q and %q", snapshot, records)
	}
	j.Append([]byte("record 3"))
	if err := j.Close(); err != nil { // Close writes what was appended
		t.Fatal(err)
	}
	j, _, records, err = Open(vfs.OS, dir)
	if err != nil || len(records) != 4 {
		t.Fatalf("read %q, %v", records, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file cut anywhere yields the records that were whole, and can be written on.
func TestJournalTruncated(t *testing.T) {
	whole := writeRecords(t, t.TempDir(), 3)
	seen := map[int]bool{}
	for cut := range whole {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		j, _, records, err := Open(vfs.OS, dir)
		if err != nil {
			t.Fatalf("cut to %d bytes: %v", cut, err)
		}
		seen[len(records)] = true
		if err := j.Sync(j.Append([]byte("more"))); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		again, _, after, err := Open(vfs.OS, dir)
		if err != nil || len(after) != len(records)+1 || string(after[len(records)]) != "more" {
			t.Fatalf("cut to %d bytes, then written on: %q, %v", cut, after, err)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !seen[0] || !seen[1] || !seen[2] || seen[3] {
		t.Errorf("record counts met: %v", seen)
	}
}

// Zeros behind the last record are what a power cut leaves, not damage.
func TestJournalZeroTail(t *testing.T) {
	whole := writeRecords(t, t.TempDir(), 3)
	_, records, end, err := Decode(append(slices.Clone(whole), make([]byte, 100)...))
	if err != nil || len(records) != 3 || int(end) != len(whole) {
		t.Fatalf("%d records to byte %d, %v", len(records), end, err)
	}
}

// A file that was lengthened before its last bytes arrived ends in a part of an entry and
// zeros: the part was never acknowledged.
func TestJournalTornByZeros(t *testing.T) {
	whole := writeRecords(t, t.TempDir(), 2)
	_, _, one, err := Decode(writeRecords(t, t.TempDir(), 1))
	if err != nil {
		t.Fatal(err)
	}
	for cut := int(one); cut < len(whole); cut++ {
		for _, zeros := range []int{1, 5, 100} {
			data := append(slices.Clone(whole[:cut]), make([]byte, zeros)...)
			_, records, end, err := Decode(data)
			if err != nil || len(records) != 1 || end != one {
				t.Fatalf("%d bytes and %d zeros: %d records to byte %d, %v", cut, zeros, len(records), end, err)
			}
		}
	}
}

// A journal that was being made when the power went is an empty one; a long file of zeros
// was something once.
func TestJournalTornWhenMade(t *testing.T) {
	for cut := range len(magic) {
		for _, zeros := range []int{0, 1, 100, tornBytes - cut, 2 * tornBytes} {
			data := append([]byte(magic)[:cut:cut], make([]byte, zeros)...)
			_, records, whole, err := Decode(data)
			if zeros > tornBytes {
				if !errors.Is(err, ErrDamaged) {
					t.Errorf("%d bytes and %d zeros: %v", cut, zeros, err)
				}
			} else if err != nil || len(records) > 0 || whole != 0 {
				t.Errorf("%d bytes and %d zeros: %v", cut, zeros, err)
			}
		}
	}
}

// A flipped bit is never taken for a file that was cut short.
func TestJournalFlippedBit(t *testing.T) {
	whole := writeRecords(t, t.TempDir(), 3)
	for bit := range len(whole) * 8 {
		data := slices.Clone(whole)
		data[bit/8] ^= 1 << (bit % 8)
		_, records, _, err := Decode(data)
		if !errors.Is(err, ErrDamaged) {
			t.Fatalf("bit %d flipped: %d records, error %v", bit, len(records), err)
		}
	}
}

func TestJournalKeepsOrderAcrossGoroutines(t *testing.T) {
	dir := t.TempDir()
	j, _, _, err := Open(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 20 {
				if err := j.Sync(j.Append(fmt.Appendf(nil, "%d %d", g, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, _, records, err := Open(vfs.OS, dir)
	if err != nil || len(records) != 160 {
		t.Fatalf("%d records, %v", len(records), err)
	}
	defer j.Close()
	next := [8]int{}
	for _, r := range records {
		var g, i int
		if _, err := fmt.Sscan(string(r), &g, &i); err != nil || next[g] != i {
			t.Fatalf("record %q, want number %d", r, next[g])
		}
		next[g]++
	}
}

func TestJournalHasOneOwner(t *testing.T) {
	dir := t.TempDir()
	j, _, _, err := Open(vfs.OS, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := Open(vfs.OS, dir); err == nil {
		t.Error("a second owner was let in")
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, _, _, err = Open(vfs.OS, dir); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// After a failed write nothing is acknowledged any more.
func TestJournalFailsForGood(t *testing.T) {
	j, _, _, err := Open(vfs.OS, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	j.file.Close()
	defer j.Close()
	first := j.Append([]byte("lost"))
	if j.Sync(first) == nil || j.Sync(j.Append([]byte("lost too"))) == nil || j.Sync(first) == nil {
		t.Error("a record was acknowledged that can't be on disk")
	}
}

func FuzzDecode(f *testing.F) {
	var entries []byte
	entries = appendEntry(append(entries, magic...), kindSnapshot, []byte("state"))
	entries = appendEntry(entries, kindRecord, []byte("record"))
	f.Add(entries)
	f.Add(entries[:len(entries)-3])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		snapshot, records, whole, err := Decode(data)
		if err != nil {
			return
		}
		// What was read is what the whole part encodes.
		var again []byte
		if whole > 0 {
			again = append(again, magic...)
		}
		if snapshot != nil {
			again = appendEntry(again, kindSnapshot, snapshot)
		}
		for _, r := range records {
			again = appendEntry(again, kindRecord, r)
		}
		if !bytes.Equal(again, data[:whole]) {
			t.Fatalf("read %q and %q of %q", snapshot, records, data[:whole])
		}
	})
}
