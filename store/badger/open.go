package badger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"

	bdg "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"taxon/internal/fs/vfs"
	"taxon/store"
	"taxon/store/segment"
)

const (
	// tablesInMemory is how much memory Badger takes, in memory tables: three of them (one being
	// written, two waiting to be flushed) with the pages of their logs, and the buffers in which
	// tables are built. Those begin at twice a table's size and grow by doubling; up to eight are
	// kept for reuse.
	tablesInMemory = 40

	minTableBytes = 4 << 20
	maxTableBytes = 64 << 20

	defaultMemory = 512 << 20
	minMemory     = tablesInMemory * minTableBytes
)

// Options configure a shard. Dir is required.
type Options struct {
	// Dir is the shard's folder. It is made if needed. Only one Store may have it open at a time.
	Dir string

	// ID is the id of a new shard. By default it is random. See store.ShardID.
	ID string

	// Memory bounds the memory that the shard takes, in bytes, apart from values on their way. It
	// must be at least 160 MiB. Zero stands for 512 MiB. A memory table has 1/40 of it, and at most
	// 64 MiB. 2/5 of Memory (16 tables) stays free on the disk (see store.ErrFull).
	Memory uint64

	// Limits bound single requests.
	Limits store.Limits
}

// Store is a durable store.Shard. Open makes one.
type Store struct {
	dir    string
	id     string
	limits store.Limits
	// reserve is how many bytes of the disk stay free.
	reserve uint64
	// free returns how many bytes of the disk are free.
	free func(dir string) (uint64, error)

	// mu is locked for reading by every call, and for writing by Drop and Close: files must not be
	// removed while they are read, and dropping a prefix would make Badger's writes fail.
	mu     sync.RWMutex
	db     *bdg.DB
	closed bool

	table  *table
	spares spares
	// flushing is held while heads are moved to Badger.
	flushing sync.Mutex
	// waiting is the number of heads that may wait in memory.
	waiting int64
	// waitingBytes is the size of their values that may wait. It bounds what Open has to read after
	// a crash.
	waitingBytes int64
}

var _ store.Shard = (*Store)(nil)

// Open opens or makes the shard in a directory. It returns ErrLocked if this or another process has
// it open, ErrCorrupt if more than single values are damaged, and ErrFull if the disk has no room
// to read its log.
func Open(o Options) (*Store, error) {
	if o.Dir == "" {
		return nil, fmt.Errorf("open store: %w: no directory", store.ErrInvalid)
	}
	o.Memory = cmp.Or(o.Memory, defaultMemory)
	if o.Memory < minMemory {
		return nil, fmt.Errorf("open store %s: %w: %d MiB of memory, at least %d", o.Dir, store.ErrInvalid, o.Memory>>20,
			minMemory>>20)
	}
	s, err := open(o)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Dir, err)
	}
	return s, nil
}

// open does what Open does, for valid options.
func open(o Options) (*Store, error) {
	table := int64(min(o.Memory/tablesInMemory, maxTableBytes))
	s := &Store{dir: o.Dir, limits: o.Limits.WithDefaults(), reserve: reserveTables * uint64(table), free: freeBytes,
		table: newTable(), waiting: defaultWaiting, waitingBytes: defaultWaitingBytes}
	if err := roomToOpen(o.Dir, s.free); err != nil {
		return nil, err
	}
	var err error
	if s.db, err = openBadger(badgerOptions(o.Dir, table)); err != nil {
		return nil, err
	}
	if err := s.checkFormat(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.replay(); err != nil {
		return nil, errors.Join(explain(err), s.Close())
	}
	// Under the database's lock, so that two first openers do not make two ids.
	if s.id, err = store.ShardID(vfs.OS, o.Dir, o.ID); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openBadger opens the index, and translates Badger's errors.
func openBadger(o bdg.Options) (db *bdg.DB, err error) {
	defer caught(&err)
	if db, err = bdg.Open(o); err == nil {
		return db, nil
	}
	// Badger wraps the system's error so that errors.Is does not find it.
	if strings.Contains(err.Error(), "Cannot acquire directory lock") {
		return nil, fmt.Errorf("%w by another opener: end that process or choose another directory", store.ErrLocked)
	}
	if full := explain(err); full != err {
		return nil, full
	}
	return nil, unreadable(err)
}

// unreadable rephrases Badger's error about its files. It counts as damage of the whole store: what
// is left is of no use, and what the shard held comes from other copies or is recomputed.
func unreadable(err error) error {
	text := oneLine(err)
	for _, other := range []string{"permission denied", "too many open files", "cannot allocate memory",
		"read-only file system"} {
		if strings.Contains(text, other) {
			return errors.New(text)
		}
	}
	return fmt.Errorf("%w: the shard's files are damaged (%s): put the folder back from a copy, or remove it: "+
		"then jobs take what is lost from other copies (‹replicas›) or their snapshots, or make it again", store.ErrCorrupt,
		text)
}

// badgerOptions returns the configuration of Badger, which the package comment explains.
func badgerOptions(dir string, table int64) bdg.Options {
	return bdg.DefaultOptions(dir).
		WithSyncWrites(true).
		WithLogger(nil).
		WithMetricsEnabled(false).
		WithDetectConflicts(false). // keys are locked here
		WithMemTableSize(table).
		WithNumMemtables(2).
		WithBaseTableSize(table / 4).
		WithBaseLevelSize(2 * table).
		WithNumLevelZeroTables(8). // most values are dropped before anything rewrites them
		WithNumLevelZeroTablesStall(16).
		WithNumCompactors(2).          // the least that Badger takes
		WithValueThreshold(1 << 10).   // heads and marks are shorter: the value log stays empty
		WithValueLogFileSize(8 << 20). // unused, but twice this is mapped
		WithChecksumVerificationMode(options.OnBlockRead).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithBlockSize(16 << 10).
		WithNumVersionsToKeep(1)
}

// checkFormat writes the version into an empty store, and compares it otherwise.
func (s *Store) checkFormat() (err error) {
	defer caught(&err)
	return s.db.Update(func(txn *bdg.Txn) error {
		item, err := txn.Get([]byte(formatKey))
		if errors.Is(err, bdg.ErrKeyNotFound) {
			if !empty(txn) {
				return errors.New("the directory holds a Badger database of something else")
			}
			return txn.Set([]byte(formatKey), formatOf(formatVersion))
		}
		if err != nil {
			return err
		}
		version, err := item.ValueCopy(nil)
		switch {
		case err != nil:
			return err
		case !bytes.Equal(version, formatOf(formatVersion)):
			return fmt.Errorf("store format %x, this program reads %d", version, formatVersion)
		}
		return nil
	})
}

// formatOf encodes a format version.
func formatOf(version uint32) []byte { return binary.LittleEndian.AppendUint32(nil, version) }

// empty reports whether Badger has no entry.
func empty(txn *bdg.Txn) bool {
	it := txn.NewIterator(bdg.IteratorOptions{})
	defer it.Close()
	it.Rewind()
	return !it.Valid()
}

// ID returns the shard's permanent id (see store.ShardID).
func (s *Store) ID() string { return s.id }

// Limits implements store.Shard.
func (s *Store) Limits() store.Limits { return s.limits }

// Close implements store.Store. It flushes and releases the directory. If the disk is too full for
// that, it returns ErrFull and leaves the files as they are. Nothing is lost: the log is read when
// the shard is opened again.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	_, err := s.spares.clear()
	err = errors.Join(err, s.table.close())
	full := s.roomToDelete()
	if full == nil {
		err = errors.Join(err, s.db.Close())
	}
	if err = errors.Join(err, full); err != nil {
		return fmt.Errorf("close store %s: %w", s.dir, err)
	}
	return nil
}

// enter begins a call. The caller ends it by s.mu.RUnlock.
func (s *Store) enter() error {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return store.ErrClosed
	}
	return nil
}

// replay opens the segments, and finds the values whose heads are not in Badger.
func (s *Store) replay() error {
	files, highest, err := segment.OpenAll(vfs.OS, s.segments())
	for _, f := range files { // from now on Close closes them
		s.table.add(f)
	}
	if err != nil {
		return err
	}
	marks, err := s.marks()
	if err != nil {
		return err
	}
	s.table.next = max(s.table.next, highest+1)
	var stale [][]byte
	for number := range marks {
		s.table.next = max(s.table.next, number+1)
		if s.table.file(number) == nil { // the crash came in the middle of a drop
			stale = append(stale, markOf(number))
		}
	}
	if err := s.mark(stale); err != nil {
		return err
	}
	for _, f := range files {
		if err := s.replayFile(f, marks[f.Number]); err != nil {
			return err
		}
	}
	if err := s.flushHeads(context.Background()); !errors.Is(err, store.ErrFull) { // else they stay in memory
		return err
	}
	return nil
}

// replayFile reads the heads of a segment that are not in Badger.
func (s *Store) replayFile(f *segment.File, m mark) error {
	if m.sum != f.Sum() || m.end > f.Size() {
		m.end = 0
	}
	st := s.table.findOrMake(f.Job, f.Step)
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.files) == 0 {
		var err error
		if st.stored, err = s.hasEntries(store.AppendStepPrefix(nil, f.Job, f.Step)); err != nil {
			return err
		}
	}
	st.files = append(st.files, f)
	// A damaged value was being written, or has decayed. Either way a reader that misses it can
	// have it computed again, and an earlier value under the key still counts.
	return f.Scan(context.Background(), m.end, func(e segment.Entry) error {
		switch {
		case e.Deleted:
			s.table.drop(st, itemOf(e.Key))
		case !e.Damaged:
			s.table.set(st, itemOf(e.Key), place{f, e.Offset, e.Bytes, e.CRC32C})
		}
		return nil
	})
}

// marks returns, for each segment number, the offset up to which the segment's records have heads
// in Badger.
func (s *Store) marks() (map[uint64]mark, error) {
	out := map[uint64]mark{}
	err := s.view(func(txn *bdg.Txn) error {
		prefix := []byte(markKey)
		it := txn.NewIterator(bdg.IteratorOptions{Prefix: prefix})
		defer it.Close()
		for it.Seek(prefix); it.ValidForPrefix(prefix); it.Next() {
			item := it.Item()
			err := item.Value(func(b []byte) error {
				if m, ok := parseMark(b); ok && len(item.Key()) == len(prefix)+8 {
					out[binary.BigEndian.Uint64(item.Key()[len(prefix):])] = m
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// spares holds files of dropped steps that wait for reuse (see segment.Blank). In each sweep a job
// drops about as much as it writes.
type spares struct {
	mu    sync.Mutex
	files []*segment.Blank
	bytes int64
}

// maxSpares and maxSpareBytes bound the spare files. Writes that need the room get it.
const (
	// maxSpares and maxSpareBytes bound the spare files. They are removed when writes need the
	// room.
	maxSpares     = 4
	maxSpareBytes = 256 << 20
)

// keep takes the file of a dropped step, or removes it.
func (s *spares) keep(f *segment.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.files) == maxSpares || s.bytes+f.Size() > maxSpareBytes {
		return f.Remove()
	}
	b, err := f.Blank()
	if b != nil {
		s.files = append(s.files, b)
		s.bytes += b.Size
	}
	return err
}

// take returns the file that has waited longest, or nil if there is none.
func (s *spares) take() *segment.Blank {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.files) == 0 {
		return nil
	}
	b := s.files[0]
	s.files = s.files[1:]
	s.bytes -= b.Size
	return b
}

// clear removes all spare files, and reports whether there were any.
func (s *spares) clear() (some bool, err error) {
	for b := s.take(); b != nil; b = s.take() {
		some = true
		err = errors.Join(err, b.Remove())
	}
	return some, err
}
