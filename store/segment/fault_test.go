package segment

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"taxon/internal/fs/vfs"
	"taxon/internal/fs/vfs/vfstest"
	"taxon/store"
)

// kept is what files have acknowledged.
type kept struct {
	given   map[store.Key]uint32 // checksums of all values that were appended
	durable map[store.Key]bool   // values that must be there
	dropped map[store.Key]bool   // values that must not come back
}

// stored writes two segments, the second one in the blocks of a dropped one, until something fails. The
// first is dropped at the end.
func stored(fs vfs.FS) kept {
	did := kept{map[store.Key]uint32{}, map[store.Key]bool{}, map[store.Key]bool{}}
	put := func(f *File, sizes ...int) bool {
		var records []Record
		for _, n := range sizes {
			v := value(uint32(len(did.given)), fmt.Sprint("v/", n), n)
			records = append(records, Record{Value: v})
			did.given[v.Key] = v.CRC32C
		}
		_, end, err := f.Append(records)
		if err != nil || f.Sync(end) != nil {
			return false
		}
		for _, r := range records {
			did.durable[r.Value.Key] = true
		}
		return true
	}
	if _, _, err := OpenAll(fs, "/shard/segments"); err != nil {
		return did
	}
	f, err := Create(fs, "/shard/segments", head)
	if err != nil {
		return did
	}
	put(f, 10, 0)
	put(f, gatherBytes+1, 7) // goes on after an append that failed, if the file does
	if !f.Writable() {
		return did
	}
	did.durable, did.dropped = map[store.Key]bool{}, did.durable
	b, err := f.Blank()
	if err != nil || b == nil {
		return did
	}
	g, err := b.Create("/shard/segments", Head{Job: head.Job, Step: head.Step, Number: head.Number + 1})
	if err != nil {
		return did
	}
	put(g, 100, 3)
	put(g, 5)
	return did
}

// TestSegmentsOnAnyDisk fails every call to the disk, and crashes after it: what was acknowledged is there
// and whole, and nothing is there that was not appended.
func TestSegmentsOnAnyDisk(t *testing.T) {
	vfstest.Sweep(t, func(fs vfs.FS) error { return vfs.MkdirAll(fs, "/shard", 0o777) }, stored,
		func(fs vfs.FS, did kept) error {
			files, highest, err := OpenAll(fs, "/shard/segments")
			if err != nil {
				return err
			}
			found := map[store.Key]bool{}
			for _, f := range files {
				err := f.Scan(context.Background(), 0, func(e Entry) error {
					if sum, ok := did.given[e.Key]; !ok || sum != e.CRC32C {
						return fmt.Errorf("%v was not appended", e.Key)
					}
					if f.Number > head.Number && did.dropped[e.Key] {
						return fmt.Errorf("%v comes back from the blocks of a dropped segment", e.Key)
					}
					found[e.Key] = !e.Damaged
					return nil
				})
				if err != nil {
					return err
				}
			}
			for k := range did.durable {
				if !found[k] {
					return fmt.Errorf("%v is lost", k)
				}
			}
			list, err := fs.ReadDir("/shard/segments")
			for _, e := range list {
				// The dropped segment may be found under its old name, with the head of the one in its blocks.
				if filepath.Ext(e.Name()) == damagedSuffix && !strings.HasPrefix(e.Name(), Name(head.Number)) {
					return fmt.Errorf("%s: a segment had the head of another one", e.Name())
				}
			}
			f, err2 := Create(fs, "/shard/segments", Head{Job: head.Job, Step: head.Step, Number: highest + 1})
			if err := errors.Join(err, err2); err != nil {
				return fmt.Errorf("a new segment behind the others: %w", err)
			}
			_, end, err := f.Append([]Record{{Value: value(1, "more", 1)}})
			return errors.Join(err, f.Sync(end))
		})
}
