package badger

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"taxon/internal/fs/vfs"
	"taxon/store"
)

// reserveTables is the free disk space that writes leave untouched, in sizes of a memory table.
// Badger writes through memory maps of sparse files: if the disk has no block for a page, the
// system kills the process. So what is acknowledged must never make Badger run out of space later,
// while it flushes (at most 3 tables) and compacts. Compaction writes new files before it deletes
// the old ones: the tables of level zero, 8 at most, and what they overlap in the next level, 2 to
// 3. The rest is slack for the levels below.
const reserveTables = 16

// deleteTables is the free space, in memory tables, below which nothing is deleted or flushed
// either. It is reached only if somebody else has filled the disk.
const deleteTables = 4

// roomToDelete refuses operations that make Badger flush if the disk is too full for that.
func (s *Store) roomToDelete() error { return s.must(s.reserve / reserveTables * deleteTables) }

// room refuses a write of n bytes that would use the reserve. The bytes count twice, once in the
// log and once in a table.
func (s *Store) room(n uint64) error { return s.must(s.reserve + 2*n) }

// Room returns the disk space left for the shard, in bytes, including files that wait to be
// overwritten. Writes are refused while less than reserve is free.
func (s *Store) Room() (free, reserve uint64, err error) {
	free, err = s.free(s.dir)
	s.spares.mu.Lock()
	defer s.spares.mu.Unlock()
	return max(free, free+uint64(s.spares.bytes)), s.reserve, err // free may be everything
}

// must returns ErrFull unless `need` bytes are free. It removes spare files if that helps. Callers
// add which store it is.
func (s *Store) must(need uint64) error {
	free, err := s.free(s.dir)
	if err == nil && free < need {
		var some bool
		if some, err = s.spares.clear(); some && err == nil {
			free, err = s.free(s.dir)
		}
	}
	if err != nil {
		return err
	}
	if free < need {
		return fmt.Errorf("%w: %dMiB are free on the disk, %dMiB must be: free some or give the shard a larger disk",
			store.ErrFull, free>>20, (need+1<<20-1)>>20)
	}
	return nil
}

// roomToOpen refuses to open a store if reading its logs would fill the disk, because they are
// flushed to tables at once.
func roomToOpen(dir string, free func(string) (uint64, error)) error {
	logs, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil || len(logs) == 0 {
		return err
	}
	var need uint64 = 1 << 20
	for _, name := range logs {
		if info, err := vfs.OS.Stat(name); err == nil {
			need += uint64(info.Size())
		}
	}
	have, err := free(dir)
	if err != nil {
		return err
	}
	if have < need {
		return fmt.Errorf("%w: %dMiB are free on the disk, %dMiB must be to read the log back: free some", store.ErrFull,
			have>>20, need>>20)
	}
	return nil
}

// explain translates an error of Badger to an error of package store.
func explain(err error) error {
	var ke *store.KeyError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrCorrupt), errors.As(err, &ke):
		return err
	// Badger wraps the system's error so that errors.Is does not find it.
	case noSpace(err), strings.Contains(err.Error(), "no space left on device"):
		return fmt.Errorf("%w: %s", store.ErrFull, oneLine(err))
	case strings.Contains(strings.ToLower(err.Error()), "checksum"):
		return fmt.Errorf("%w: %s", store.ErrCorrupt, oneLine(err))
	}
	return err
}

// oneLine returns an error's text without the stack that Badger may add.
func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// caught turns a panic into ErrCorrupt. Badger uses data from the disk as indexes without checks,
// so damage that no checksum caught shows as a panic.
func caught(err *error) {
	switch p := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("%w: %s", store.ErrCorrupt, oneLine(p))
	default:
		*err = fmt.Errorf("%w: %s", store.ErrCorrupt, oneLine(errors.New(fmt.Sprint(p))))
	}
}
