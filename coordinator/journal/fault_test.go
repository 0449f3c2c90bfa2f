package journal

import (
	"fmt"
	"slices"
	"testing"

	"taxon/internal/fs/vfs"
	"taxon/internal/fs/vfs/vfstest"
)

// told is what a journal has acknowledged.
type told struct {
	records  int // records that are durable
	appended int // records that it was given
	// records that a snapshot stands for, of which the journal has said that it is durable
	compacted int
	taken     int // records that the last snapshot stands for, durable or not
}

// journalled writes records and snapshots until something fails.
func journalled(fs vfs.FS) (did told) {
	j, _, _, err := Open(fs, "/a/folder")
	if err != nil {
		return did
	}
	defer j.Close()
	for i := range 7 {
		number := j.Append(fmt.Appendf(nil, "record %d", i))
		did.appended++
		if i == 2 { // one call makes both durable
			continue
		}
		if j.Sync(number) != nil {
			return did
		}
		did.records = did.appended
		if i != 1 && i != 4 {
			continue
		}
		did.taken = did.appended
		if j.Compact(func(cut func()) []byte { cut(); return fmt.Append(nil, did.taken) }) != nil {
			return did
		}
		did.compacted = did.taken
	}
	return did
}

// TestJournalOnAnyDisk fails every call to the disk, and crashes after it: what was acknowledged is there,
// nothing is there that was not appended, and the journal can be written on.
func TestJournalOnAnyDisk(t *testing.T) {
	vfstest.Sweep(t, func(fs vfs.FS) error { return vfs.MkdirAll(fs, "/a", 0o777) }, journalled,
		func(fs vfs.FS, did told) error {
			j, snapshot, records, err := Open(fs, "/a/folder")
			if err != nil {
				return err
			}
			first := 0
			if snapshot != nil {
				if _, err := fmt.Sscan(string(snapshot), &first); err != nil || first != did.compacted && first != did.taken {
					return fmt.Errorf("snapshot %q, want one of %d or %d records", snapshot, did.compacted, did.taken)
				}
			}
			if n := first + len(records); n < did.records || n > did.appended {
				return fmt.Errorf("%d records from %d on, %d of %d were acknowledged", len(records), first, did.records,
					did.appended)
			}
			for i, r := range records {
				if string(r) != fmt.Sprint("record ", first+i) {
					return fmt.Errorf("record %d is %q", first+i, r)
				}
			}
			if err := j.Sync(j.Append([]byte("more"))); err != nil {
				return err
			}
			if err := j.Close(); err != nil {
				return err
			}
			j, _, after, err := Open(fs, "/a/folder")
			if err != nil {
				return err
			}
			if !slices.EqualFunc(after, append(records, []byte("more")),
				func(a, b []byte) bool { return string(a) == string(b) }) {
				return fmt.Errorf("%q, written on %q", records, after)
			}
			return j.Close()
		})
}
