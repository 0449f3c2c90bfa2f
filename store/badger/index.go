package badger

import (
	"context"
	"fmt"

	bdg "github.com/dgraph-io/badger/v4"

	"taxon/store"
)

// Heads wait in memory, where most are dropped with their steps, and go to Badger in large
// batches. When the shard is opened, heads that waited are found by reading the ends of the
// segments; so what waits is bounded in bytes, too.
const (
	defaultWaiting      = 16 << 10
	defaultWaitingBytes = 256 << 20
)

// flushHeads moves heads to Badger, the oldest steps' first, until half the allowed number waits.
// The values themselves are durable already. The caller has entered.
func (s *Store) flushHeads(ctx context.Context) error {
	over := func(share int64) bool {
		return s.table.waiting.Load() > s.waiting/share || s.table.bytes.Load() > s.waitingBytes/share
	}
	if !over(1) || !s.flushing.TryLock() {
		return nil
	}
	defer s.flushing.Unlock()
	for over(2) {
		if err := ctx.Err(); err != nil {
			return nil // the next one continues with it
		}
		st := s.oldest()
		if st == nil {
			return nil
		}
		if err := s.index(st); err != nil {
			return s.explain(err)
		}
	}
	return nil
}

// oldest is the step with waiting heads whose first segment is the oldest.
func (s *Store) oldest() (oldest *step) {
	var least uint64
	for _, st := range s.table.of("") {
		st.mu.Lock()
		if len(st.heads) > 0 && (oldest == nil || st.files[0].Number < least) {
			oldest, least = st, st.files[0].Number
		}
		st.mu.Unlock()
	}
	return oldest
}

// index moves a step's heads to Badger. A crash in the middle leaves heads that are written
// again: in the log, the marks come after all of them.
func (s *Store) index(st *step) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	ends := make([]int64, len(st.files))
	for i, f := range st.files {
		ends[i] = f.Size()
		if f.Holds(ends[i]) {
			if err := f.Sync(ends[i]); err != nil {
				return err
			}
		}
	}
	if err := s.room(uint64(len(st.heads)) * 2 * (store.MaxKeyBytes + headBytes)); err != nil {
		return err
	}
	wb := s.db.NewWriteBatch()
	defer wb.Cancel() // no effect after Flush
	for _, k := range st.keys() {
		p := st.heads[itemOf(k)]
		if !p.file.Holds(p.end()) {
			continue // it was never acknowledged
		}
		key := headKey(k)
		h := head{size: p.bytes, crc32c: p.crc32c, segment: p.file.Number, offset: uint64(p.offset)}
		if err := wb.Set(key, encodeHead(key, h)); err != nil {
			return err
		}
	}
	for i, f := range st.files {
		if err := wb.Set(markOf(f.Number), mark{ends[i], f.Sum()}.encode()); err != nil {
			return err
		}
	}
	if err := wb.Flush(); err != nil {
		return err
	}
	st.stored = true
	for it := range st.heads {
		s.table.drop(st, it)
	}
	return nil
}

// hasEntries tells whether Badger has any entry below a prefix.
func (s *Store) hasEntries(prefix []byte) (found bool, err error) {
	err = s.view(func(txn *bdg.Txn) error {
		it := txn.NewIterator(bdg.IteratorOptions{Prefix: prefix})
		defer it.Close()
		it.Seek(prefix)
		found = it.ValidForPrefix(prefix)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("look for entries: %w", err)
	}
	return found, nil
}
