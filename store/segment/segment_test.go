package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/fs/vfs"
	"taxon/store"
)

var head = Head{Job: "job-1", Step: 7, Number: 0x1f}

// value makes one of n bytes.
func value(task uint32, name string, n int) store.Checksummed {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(uint32(i)*2654435761>>13) + byte(task)
	}
	return store.Sum(store.Value{Key: store.Key{Job: head.Job, Step: head.Step, Task: task, Attempt: 1, Name: name},
		Data: data})
}

func create(t testing.TB, dir string) *File {
	t.Helper()
	f, err := Create(vfs.OS, dir, head)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // again, for some
	return f
}

func add(t testing.TB, f *File, values ...store.Checksummed) (end int64) {
	t.Helper()
	var records []Record
	for _, v := range values {
		records = append(records, Record{Value: v, Deleted: v.Data == nil})
	}
	_, end, err := f.Append(records)
	if err == nil {
		err = f.Sync(end)
	}
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// entries scans a file; what is whole is checked to be there.
func entries(t testing.TB, f *File, from int64) (out []Entry) {
	t.Helper()
	err := f.Scan(context.Background(), from, func(e Entry) error {
		out = append(out, e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	f := create(t, dir)
	values := []store.Checksummed{value(1, "dual", 0), value(1, "v/0", 5), value(2, "dual", gatherBytes),
		value(2, "v/1", 3*scanBytes+1), value(3, "dual", 9)}
	middle := add(t, f, values[:2]...)
	end := add(t, f, values[2:]...)
	add(t, f, store.Checksummed{Key: values[0].Key})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(vfs.OS, filepath.Join(dir, Name(head.Number)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Head != head || f.Writable() || !f.Holds(end) {
		t.Errorf("%+v, writable %v", f.Head, f.Writable())
	}
	if _, _, err := f.Append(nil); !errors.Is(err, errReadOnly) {
		t.Errorf("append to a file of an earlier life: %v", err)
	}
	got := entries(t, f, 0)
	if len(got) != len(values)+1 || !got[len(values)].Deleted || got[len(values)].Key != values[0].Key {
		t.Fatalf("%+v", got)
	}
	for i, v := range values {
		e := got[i]
		data := make([]byte, e.Bytes)
		if err := f.ReadAt(data, e.Offset); err != nil || e.Key != v.Key || e.CRC32C != v.CRC32C || e.Deleted || e.Damaged ||
			!bytes.Equal(data, v.Data) {
			t.Errorf("value %d: %+v, %v", i, e, err)
		}
	}
	if rest := entries(t, f, middle); !slices.Equal(rest, got[2:]) {
		t.Errorf("from the middle: %+v", rest)
	}
	broken := errors.New("enough")
	if err := f.Scan(context.Background(), 0, func(Entry) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("scan ends with %v", err)
	}
}

// small writes a file of some hundred bytes and gives its bytes and values.
func small(t testing.TB) ([]byte, []store.Checksummed) {
	dir := t.TempDir()
	f := create(t, dir)
	values := []store.Checksummed{value(1, "dual", 20), value(1, "v/0", 33), value(2, "dual", 0), value(2, "v/0", 7)}
	add(t, f, values[:2]...)
	add(t, f, values[2:]...)
	b, err := os.ReadFile(filepath.Join(dir, Name(head.Number)))
	if err != nil {
		t.Fatal(err)
	}
	return b, values
}

// reopen opens a folder with one file of the bytes given. The result is nil if it was put aside.
func reopen(t testing.TB, b []byte) *File {
	t.Helper()
	disk := vfs.NewMem()
	if err := vfs.WriteNew(disk, Name(head.Number), b, 0o600); err != nil {
		t.Fatal(err)
	}
	files, highest, err := OpenAll(disk, "/")
	if err != nil || highest != head.Number || len(files) > 1 {
		t.Fatalf("%d files, highest %d, %v", len(files), highest, err)
	}
	if len(files) == 0 {
		return nil
	}
	return files[0]
}

// syncing is a file with another sync.
type syncing struct {
	vfs.File
	sync func() error
}

func (f syncing) SyncData() error { return f.sync() }

// check holds what a damaged file gives against what was written: each record is there as
// it was or known to be damaged, and behind a gap there is nothing.
func check(t testing.TB, what string, f *File, values []store.Checksummed) (whole, damaged int) {
	t.Helper()
	if f == nil {
		return 0, 0
	}
	defer f.Close()
	for i, e := range entries(t, f, 0) {
		if i == len(values) || e.Key != values[i].Key || e.CRC32C != values[i].CRC32C ||
			e.Bytes != uint64(len(values[i].Data)) {
			t.Fatalf("%s: record %d is %+v", what, i, e)
		}
		data := make([]byte, e.Bytes)
		if err := f.ReadAt(data, e.Offset); err != nil || bytes.Equal(data, values[i].Data) == e.Damaged {
			t.Fatalf("%s: record %d: damaged %v, %v", what, i, e.Damaged, err)
		}
		if e.Damaged {
			damaged++
		} else {
			whole++
		}
	}
	return whole, damaged
}

// TestTruncated cuts the file at every byte, and fills the rest with zeros, as file
// systems do after a loss of power: all records before the cut are there.
func TestTruncated(t *testing.T) {
	b, values := small(t)
	ends := []int{len(appendHead(nil, head))}
	for _, v := range values {
		ends = append(ends, ends[len(ends)-1]+recordBytes+len(v.Key.Name)+len(v.Data))
	}
	if ends[len(ends)-1] != len(b) {
		t.Fatalf("%d bytes, must be %v", len(b), ends)
	}
	for n := range b {
		want := 0
		for want < len(values) && ends[want+1] <= n {
			want++
		}
		if whole, damaged := check(t, fmt.Sprint("cut at ", n), reopen(t, b[:n]), values); whole != want || damaged != 0 {
			t.Errorf("cut at %d: %d records and %d damaged, must be %d", n, whole, damaged, want)
		}
		zeros := append(slices.Clone(b[:n]), make([]byte, len(b)-n)...)
		if whole, _ := check(t, fmt.Sprint("zeros from ", n), reopen(t, zeros), values); whole < want {
			t.Errorf("zeros from %d: %d records, must be %d", n, whole, want)
		}
	}
}

// TestFlipped flips every bit: what is given is right, or known to be damaged, or missing.
func TestFlipped(t *testing.T) {
	b, values := small(t)
	first := len(appendHead(nil, head))
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			whole, damaged := check(t, fmt.Sprintf("bit %d of byte %d", bit, i), reopen(t, b), values)
			if whole == len(values) || i < first && whole+damaged > 0 {
				t.Errorf("bit %d of byte %d: %d records, %d damaged", bit, i, whole, damaged)
			}
			b[i] ^= 1 << bit
		}
	}
}

// TestOtherFile: a record, or a whole file, under another number or step counts not.
func TestOtherFile(t *testing.T) {
	b, _ := small(t)
	dir := t.TempDir()
	path := filepath.Join(dir, Name(head.Number+1))
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	files, highest, err := OpenAll(vfs.OS, dir)
	if err != nil || len(files) != 0 || highest != head.Number+1 {
		t.Errorf("%d files, highest %d, %v", len(files), highest, err)
	}
	if _, err := os.Stat(path + damagedSuffix); err != nil {
		t.Errorf("the file is not put aside: %v", err)
	}
	if _, highest, err := OpenAll(vfs.OS, dir); err != nil || highest != head.Number+1 {
		t.Errorf("the number is free again: highest %d, %v", highest, err)
	}
	other := head
	other.Step++
	n := len(appendHead(nil, head))
	moved := append(appendHead(nil, other), b[n:]...)
	f := reopen(t, moved)
	defer f.Close()
	if got := entries(t, f, 0); len(got) != 0 {
		t.Errorf("records of another step: %+v", got)
	}
}

// TestFailedWrite: an append that fails leaves nothing, and the file goes on.
func TestFailedWrite(t *testing.T) {
	f := create(t, t.TempDir())
	add(t, f, value(1, "a", 10))
	sound := f.file
	readOnly, err := vfs.OS.Open(sound.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	f.file = readOnly
	if _, _, err := f.Append([]Record{{Value: value(2, "b", 10)}}); err == nil {
		t.Fatal("written to a file that is open for reading")
	}
	if f.Writable() { // cutting failed as well
		t.Error("the file is written to after it could not be cut")
	}
	f.file, f.err = sound, nil
	add(t, f, value(3, "c", 10))
	if got := entries(t, f, 0); len(got) != 2 || got[1].Key.Name != "c" {
		t.Errorf("%+v", got)
	}
}

// TestFailedSync: nothing is durable, and nothing more is appended.
func TestFailedSync(t *testing.T) {
	f := create(t, t.TempDir())
	end := add(t, f, value(1, "a", 10))
	f.file = syncing{f.file, func() error { return os.ErrDeadlineExceeded }}
	_, late, err := f.Append([]Record{{Value: value(2, "b", 10)}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.Sync(late); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("sync: %v", err)
		}
	}
	if err := f.Sync(end); err != nil {
		t.Errorf("sync of what is durable: %v", err)
	}
	if f.Writable() || f.Holds(late) || !f.Holds(end) {
		t.Error("a file that could not be synced goes on")
	}
	if _, _, err := f.Append(nil); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("append: %v", err)
	}
}

// TestSharedSync: writers at a time share syncs, and none returns before its bytes are synced.
func TestSharedSync(t *testing.T) {
	f := create(t, t.TempDir())
	var mu sync.Mutex
	var durable int64
	syncs := 0
	file := f.file
	f.file = syncing{file, func() error {
		info, err := file.Stat()
		mu.Lock()
		defer mu.Unlock()
		durable = max(durable, info.Size())
		syncs++
		return err
	}}
	const writers, rounds = 8, 20
	var group sync.WaitGroup
	for w := range uint32(writers) {
		group.Go(func() {
			for i := range rounds {
				_, end, err := f.Append([]Record{{Value: value(w, fmt.Sprint(i), 100)}})
				if err == nil {
					err = f.Sync(end)
				}
				mu.Lock()
				if err != nil || durable < end {
					t.Errorf("%v, %d of %d bytes are durable", err, durable, end)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if got := entries(t, f, 0); len(got) != writers*rounds {
		t.Errorf("%d records", len(got))
	}
	t.Logf("%d syncs for %d writes", syncs, writers*rounds)
}

// TestAnyRecords: whatever is appended in whatever batches is found again in order.
func TestAnyRecords(t *testing.T) {
	dir := t.TempDir()
	number := uint64(100)
	rapid.Check(t, func(r *rapid.T) {
		number++
		f, err := Create(vfs.OS, dir, Head{Job: head.Job, Step: head.Step, Number: number})
		if err != nil {
			r.Fatal(err)
		}
		defer f.Remove()
		var want []store.Checksummed
		for range rapid.IntRange(0, 5).Draw(r, "batches") {
			var batch []store.Checksummed
			for range rapid.IntRange(1, 4).Draw(r, "records") {
				n := rapid.SampledFrom([]int{0, 1, 100, gatherBytes - recordBytes - 1, gatherBytes, scanBytes - 13,
					scanBytes + 5}).Draw(r, "bytes")
				batch = append(batch, value(uint32(len(want)+len(batch)), "v/"+fmt.Sprint(n), n))
			}
			var records []Record
			for _, v := range batch {
				records = append(records, Record{Value: v})
			}
			if _, _, err := f.Append(records); err != nil {
				r.Fatal(err)
			}
			want = append(want, batch...)
		}
		at := 0
		err = f.Scan(context.Background(), 0, func(e Entry) error {
			if at == len(want) || e.Key != want[at].Key || e.CRC32C != want[at].CRC32C || e.Damaged {
				r.Fatalf("record %d is %+v", at, e)
			}
			at++
			return nil
		})
		if err != nil || at != len(want) {
			r.Fatalf("%d of %d records, %v", at, len(want), err)
		}
	})
}

// FuzzScan: whatever lies in a file, it is read to its end or up to what is no record.
func FuzzScan(f *testing.F) {
	b, _ := small(f)
	f.Add(b[len(appendHead(nil, head)):])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		file := reopen(t, append(appendHead(nil, head), b...))
		defer file.Close()
		for _, e := range entries(t, file, 0) {
			if err := e.Key.Validate(); err != nil || e.Offset+int64(e.Bytes) > file.Size() {
				t.Errorf("%+v: %v", e, err)
			}
		}
	})
}

// FuzzParse: heads are read as they were written, or refused.
func FuzzParse(f *testing.F) {
	f.Add(appendHead(nil, head))
	f.Add(appendRecord(nil, seedOf(head), Record{Value: value(1, "v/0", 3)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, n, err := parseHead(b); err == nil && !bytes.Equal(appendHead(nil, h), b[:n]) {
			t.Errorf("%x reads as %+v", b[:n], h)
		}
		if n := len(b); n >= recordBytes { // get past the checksum
			size := min(recordBytes+int(b[1]), n)
			sum := store.UpdateChecksum(seedOf(head), b[:size-4])
			b[size-4], b[size-3], b[size-2], b[size-1] = byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)
		}
		e, n, err := parseRecord(b, head, seedOf(head))
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Error(err)
			}
			return
		}
		v := store.Checksummed{Key: e.Key, CRC32C: e.CRC32C}
		again := appendRecord(nil, seedOf(head), Record{Value: v, Deleted: e.Deleted})
		if len(again) != n || !bytes.Equal(again[:10], b[:10]) || !bytes.Equal(again[18:n-4], b[18:n-4]) {
			t.Errorf("%x reads as %+v", b[:n], e)
		}
	})
}
