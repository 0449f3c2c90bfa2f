package badger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"

	bdg "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"taxon/store"
)

// stripes is how many locks the keys share in Put; more than writers at once.
const stripes = 256

// defaultMemTableBytes: three tables at most are in memory, and a write batch may
// hold 15 % of one.
const defaultMemTableBytes = 32 << 20

// Options of a shard. Dir is required.
type Options struct {
	Dir           string // made if it is not there; one opener at a time
	MemTableBytes int64  // size of a memory table, 8 MiB or more; default 32 MiB
	Limits        store.Limits
}

// Store is a durable store.Shard. Make it with Open.
type Store struct {
	dir    string
	limits store.Limits
	codec  *codec

	// mu is held for reading by every call and for writing by Drop and Close:
	// dropping a prefix blocks Badger's writes, which would fail them.
	mu     sync.RWMutex
	db     *bdg.DB
	closed bool

	keys [stripes]sync.Mutex // serialise check and write of a key
}

var _ store.Shard = (*Store)(nil)

// Open opens or makes the shard in a directory. ErrLocked if it is open already,
// here or in another process.
func Open(o Options) (*Store, error) {
	if o.Dir == "" {
		return nil, fmt.Errorf("open store: %w: no directory", store.ErrInvalid)
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = defaultMemTableBytes
	}
	if o.MemTableBytes < 8<<20 {
		return nil, fmt.Errorf("open store %s: %w: memory tables of %d bytes, at least %d", o.Dir, store.ErrInvalid, o.MemTableBytes, 8<<20)
	}
	c, err := newCodec()
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", o.Dir, err)
	}
	db, err := bdg.Open(badgerOptions(o))
	if err != nil {
		// Badger wraps the system's error beyond the reach of errors.Is.
		if strings.Contains(err.Error(), "Cannot acquire directory lock") {
			err = fmt.Errorf("%w by another opener: end that process or choose another directory", store.ErrLocked)
		}
		return nil, errors.Join(fmt.Errorf("open store %s: %w", o.Dir, err), c.close())
	}
	s := &Store{dir: o.Dir, limits: o.Limits.WithDefaults(), codec: c, db: db}
	if err := s.checkFormat(); err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", o.Dir, err), s.Close())
	}
	return s, nil
}

// badgerOptions caps what Badger would take; the package comment says why.
func badgerOptions(o Options) bdg.Options {
	return bdg.DefaultOptions(o.Dir).
		WithSyncWrites(true).
		WithLogger(nil).
		WithMetricsEnabled(false).
		WithDetectConflicts(false). // keys are locked here
		WithMemTableSize(o.MemTableBytes).
		WithNumMemtables(2).
		WithBaseTableSize(8 << 20).
		WithBaseLevelSize(64 << 20).
		WithNumLevelZeroTables(4).
		WithNumLevelZeroTablesStall(8).
		WithNumCompactors(2). // the least that Badger takes
		WithValueThreshold(1 << 20).
		WithValueLogFileSize(8 << 20). // unused, but twice this is mapped
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithBlockSize(16 << 10).
		WithNumVersionsToKeep(1)
}

// checkFormat writes the version into an empty store and compares it in others.
func (s *Store) checkFormat() error {
	return s.db.Update(func(txn *bdg.Txn) error {
		item, err := txn.Get([]byte(formatKey))
		if errors.Is(err, bdg.ErrKeyNotFound) {
			if !empty(txn) {
				return errors.New("the directory holds a Badger database of something else")
			}
			return txn.Set([]byte(formatKey), binary.LittleEndian.AppendUint32(nil, formatVersion))
		}
		if err != nil {
			return err
		}
		return item.Value(func(b []byte) error {
			if len(b) != 4 || binary.LittleEndian.Uint32(b) != formatVersion {
				return fmt.Errorf("store format %x, this program reads %d", b, formatVersion)
			}
			return nil
		})
	})
}

func empty(txn *bdg.Txn) bool {
	it := txn.NewIterator(bdg.IteratorOptions{})
	defer it.Close()
	it.Rewind()
	return !it.Valid()
}

// Limits are those that the shard enforces.
func (s *Store) Limits() store.Limits { return s.limits }

// Close syncs and releases the directory; see store.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if err := errors.Join(s.db.Close(), s.codec.close()); err != nil {
		return fmt.Errorf("close store %s: %w", s.dir, err)
	}
	return nil
}

// enter begins a call: leave with s.mu.RUnlock.
func (s *Store) enter() error {
	s.mu.RLock()
	if s.closed {
		s.mu.RUnlock()
		return store.ErrClosed
	}
	return nil
}
