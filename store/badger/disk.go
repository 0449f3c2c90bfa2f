package badger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"taxon/store"
)

// reserveTables is the free space that writes leave untouched, in memory tables. Badger
// writes through memory maps of sparse files: where the disk has no block for a page,
// the system kills the process. So what is acknowledged must never make Badger run out
// later, while it flushes (at most 3 tables) and compacts (the tables of level zero, 8
// at most, and what they overlap of the next level, of 2 to 3) into new files before it
// deletes the old ones; the rest is slack for levels below.
const reserveTables = 16

// deleteTables is the free space in memory tables without which nothing is deleted or
// flushed either: somebody else has filled the disk.
const deleteTables = 4

// roomToDelete refuses what makes Badger flush.
func (s *Store) roomToDelete() error { return s.must(s.reserve / reserveTables * deleteTables) }

// room refuses a write of n bytes that would eat into the reserve. They are written
// twice, to the log and to a table.
func (s *Store) room(n uint64) error { return s.must(s.reserve + 2*n) }

// Room is what the disk has left for the shard, in bytes, with the files that wait to be
// written over; with less than reserve free it refuses writes.
func (s *Store) Room() (free, reserve uint64, err error) {
	free, err = s.free(s.dir)
	s.spares.mu.Lock()
	defer s.spares.mu.Unlock()
	return max(free, free+uint64(s.spares.bytes)), s.reserve, err // free may be all there is
}

// must reports ErrFull unless need bytes are free; callers say which store it is.
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
		return fmt.Errorf("%w: %d MiB are free on the disk, %d MiB must be: free some or give the shard a larger disk",
			store.ErrFull, free>>20, (need+1<<20-1)>>20)
	}
	return nil
}

// roomToOpen refuses to open where reading the logs back would fill the disk: they
// are flushed to tables at once.
func roomToOpen(dir string, free func(string) (uint64, error)) error {
	logs, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil || len(logs) == 0 {
		return err
	}
	var need uint64 = 1 << 20
	for _, name := range logs {
		if info, err := os.Stat(name); err == nil {
			need += uint64(info.Size())
		}
	}
	have, err := free(dir)
	if err != nil {
		return err
	}
	if have < need {
		return fmt.Errorf("%w: %d MiB are free on the disk, %d MiB must be to read the log back: free some", store.ErrFull, have>>20, need>>20)
	}
	return nil
}

// explain gives an error of Badger's its meaning.
func explain(err error) error {
	var ke *store.KeyError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrCorrupt), errors.As(err, &ke):
		return err
	case noSpace(err), strings.Contains(err.Error(), "no space left on device"): // wrapped beyond errors.Is
		return fmt.Errorf("%w: %s", store.ErrFull, oneLine(err))
	case strings.Contains(strings.ToLower(err.Error()), "checksum"):
		return fmt.Errorf("%w: %s", store.ErrCorrupt, oneLine(err))
	}
	return err
}

// oneLine is an error's text without the stack that Badger may add to it.
func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// caught turns a panic into ErrCorrupt: Badger indexes into what it reads from disk
// without looking, and where no checksum stood before it, damage shows like this.
func caught(err *error) {
	switch p := recover().(type) {
	case nil:
	case error:
		*err = fmt.Errorf("%w: %s", store.ErrCorrupt, oneLine(p))
	default:
		*err = fmt.Errorf("%w: %s", store.ErrCorrupt, oneLine(errors.New(fmt.Sprint(p))))
	}
}
