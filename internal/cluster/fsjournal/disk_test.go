package fsjournal

import (
	"fmt"
	"strings"
	"testing"

	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/fs/vfs/vfstest"
)

// steps are what a journal is told, one letter a record. A dash begins a generation.
const steps = "ab-cd"

// journalled writes the steps that a journal in /j lacks, and returns the records that it holds for certain.
func journalled(disk vfs.FS) (did string) {
	on := fs.On(disk)
	j, snapshot, records, err := take(on, "/j")
	if err != nil {
		return ""
	}
	j.begin(on, func() error { return nil })
	defer j.Close()
	did = content(snapshot, records)
	for _, step := range steps {
		if step == '-' {
			if j.Compact(func(cut func()) []byte { cut(); return []byte(did) }) != nil {
				return did
			}
		} else if !strings.ContainsRune(did, step) {
			if j.Sync(j.Append([]byte(string(step)))) != nil {
				return did
			}
			did += string(step)
		}
	}
	return did
}

func content(snapshot []byte, records [][]byte) string {
	s := string(snapshot)
	for _, r := range records {
		s += string(r)
	}
	return s
}

// TestJournalOnAnyDisk fails every call to the disk while a journal is written, and crashes after it: the next
// owner finds all that was synced, in order, and goes on.
func TestJournalOnAnyDisk(t *testing.T) {
	all := strings.ReplaceAll(steps, "-", "")
	vfstest.Sweep(t, nil, journalled, func(disk vfs.FS, did string) error {
		_, snapshot, records, err := take(fs.On(disk), "/j")
		if err != nil {
			return err
		}
		if got := content(snapshot, records); !strings.HasPrefix(all, got) || !strings.HasPrefix(got, did) {
			return fmt.Errorf("synced %q, found %q", did, got)
		}
		if got := journalled(disk); got != all {
			return fmt.Errorf("gone on with to %q", got)
		}
		return nil
	})
}
