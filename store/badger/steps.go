package badger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	bdg "github.com/dgraph-io/badger/v4"

	"taxon/store"
	"taxon/store/segment"
)

// Commit deletes the step's attempts that do not count; see store.Store.
func (s *Store) Commit(ctx context.Context, job string, step uint32, attempts []uint32) error {
	if err := store.CheckCommit(job, attempts); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	stale := func(k store.Key) bool { return !store.IsCommitted(attempts, k.Task, k.Attempt) }
	st := s.table.find(job, step)
	if st == nil {
		return nil
	}
	stored, err := s.commitWaiting(st, stale)
	if err != nil {
		return fmt.Errorf("commit: %w", s.explain(err))
	}
	if !stored {
		return ctx.Err()
	}
	var entries [][]byte
	err = s.scan(store.AppendStepPrefix(nil, job, step), nil, func(item *bdg.Item, k store.Key) error {
		if stale(k) {
			entries = append(entries, item.KeyCopy(nil))
		}
		return ctx.Err()
	})
	if err != nil || len(entries) == 0 {
		return err
	}
	err = s.roomToDelete()
	if err == nil {
		err = s.mark(entries)
	}
	if err != nil {
		return fmt.Errorf("commit: %w", s.explain(err))
	}
	return nil
}

// commitWaiting deletes values whose heads wait in memory, by writing deletion records. It says
// whether Badger may have heads of the step.
func (s *Store) commitWaiting(st *step, stale func(store.Key) bool) (stored bool, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, f := range st.files { // everything that counts is in it
		if err := f.Trim(); err != nil {
			return false, err
		}
	}
	var records []segment.Record
	for _, k := range st.keys() {
		if stale(k) {
			records = append(records, segment.Record{Value: store.Checksummed{Key: k}, Deleted: true})
		}
	}
	if len(records) == 0 {
		return st.stored, nil
	}
	if err := s.roomToDelete(); err != nil {
		return false, err
	}
	places, err := s.append(st, records)
	if err != nil {
		return false, err
	}
	last := places[len(places)-1]
	if err := last.file.Sync(last.end()); err != nil {
		return false, err
	}
	for _, r := range records {
		s.table.drop(st, itemOf(r.Value.Key))
	}
	return st.stored, nil
}

// Drop deletes whole steps; see store.Store. A step's segment files become spares for later
// steps. First its entries in Badger are deleted: by deletion marks, which compaction applies
// (dropping a prefix would write all memory tables out at each step), or by prefix if the whole
// job goes. After a crash between the two, the segments still have all the step's values.
func (s *Store) Drop(ctx context.Context, what store.DropSpec) (uint64, error) {
	if err := what.Validate(); err != nil {
		return 0, fmt.Errorf("drop: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, store.ErrClosed
	}
	old, err := s.droppable(ctx, what)
	if err != nil {
		return 0, err
	}
	if err := s.dropEntries(old, what.All); err != nil {
		return 0, fmt.Errorf("drop: %w", s.explain(err))
	}
	for _, st := range old.steps {
		s.table.remove(st)
		for _, f := range st.files {
			err = errors.Join(err, s.spares.keep(f))
		}
	}
	if len(old.steps) > 0 && len(s.table.of(what.Job)) == 0 { // nothing of a dropped job stays
		_, gone := s.spares.clear()
		err = errors.Join(err, gone)
	}
	if what.All && len(old.steps) > 0 { // a dropped job must not come back after a power failure
		err = errors.Join(err, segment.SyncDir(s.segments()))
	}
	if err != nil {
		return 0, fmt.Errorf("drop: %w", s.explain(err))
	}
	return old.values, nil
}

// dropEntries deletes the entries of dropped steps in Badger.
func (s *Store) dropEntries(old dropped, all bool) error {
	if len(old.entries) == 0 {
		return nil
	}
	if err := s.roomToDelete(); err != nil {
		return err
	}
	if !all {
		return s.mark(old.entries)
	}
	if err := s.mark(old.marks); err != nil {
		return err
	}
	return s.db.DropPrefix(old.prefixes...)
}

// dropped is what a Drop deletes.
type dropped struct {
	values   uint64
	steps    []*step  // with segments
	prefixes [][]byte // of the steps in Badger
	marks    [][]byte // keys of the segments' marks
	entries  [][]byte // keys of all entries, marks first; only if a value has entries
}

// droppable finds what a Drop deletes.
func (s *Store) droppable(ctx context.Context, what store.DropSpec) (old dropped, err error) {
	for _, st := range s.table.of(what.Job) {
		if what.Drops(st.number) {
			old.steps = append(old.steps, st)
			old.values += uint64(len(st.heads))
			for _, f := range st.files {
				old.marks = append(old.marks, markOf(f.Number))
			}
		}
	}
	err = s.droppableEntries(ctx, what, &old)
	if len(old.entries) > 0 {
		old.entries = append(slices.Clone(old.marks), old.entries...)
	}
	return old, err
}

// droppableEntries finds what Badger has, and skips the steps that stay.
func (s *Store) droppableEntries(ctx context.Context, what store.DropSpec, old *dropped) error {
	prefix := store.AppendJobPrefix(nil, what.Job)
	return s.view(func(txn *bdg.Txn) error {
		it := txn.NewIterator(bdg.IteratorOptions{Prefix: prefix})
		defer it.Close()
		last, found := uint32(0), false
		for it.Seek(prefix); it.ValidForPrefix(prefix); {
			k, err := parseEntryKey(it.Item().Key())
			if err != nil {
				return fmt.Errorf("store %s: %w", s.dir, err)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if !what.Drops(k.Step) {
				if k.Step == math.MaxUint32 {
					return nil
				}
				it.Seek(store.AppendStepPrefix(nil, what.Job, k.Step+1))
				continue
			}
			if !s.waits(k) {
				old.values++
			}
			if !found || k.Step != last {
				last, found = k.Step, true
				old.prefixes = append(old.prefixes, store.AppendStepPrefix(nil, what.Job, k.Step))
			}
			old.entries = append(old.entries, it.Item().KeyCopy(nil))
			it.Next()
		}
		return nil
	})
}

// waits tells whether a value's head is in memory.
func (s *Store) waits(k store.Key) bool {
	_, inMemory, _ := s.look(k)
	return inMemory
}

// mark deletes entries one by one.
func (s *Store) mark(entries [][]byte) error {
	wb := s.db.NewWriteBatch()
	defer wb.Cancel() // no effect after Flush
	for _, key := range entries {
		if err := wb.Delete(key); err != nil {
			return err
		}
	}
	return wb.Flush()
}

// scan calls f for the entries below a prefix, in order, from a key on (nil: from the first),
// without reading their values. The caller holds the lock.
func (s *Store) scan(prefix, from []byte, f func(item *bdg.Item, k store.Key) error) error {
	return s.view(func(txn *bdg.Txn) error {
		it := txn.NewIterator(bdg.IteratorOptions{Prefix: prefix})
		defer it.Close()
		if from == nil {
			from = prefix
		}
		for it.Seek(from); it.ValidForPrefix(prefix); it.Next() {
			item := it.Item()
			if item.Key()[0] == 0 { // the format's version, a segment's mark
				continue
			}
			k, err := parseEntryKey(item.Key())
			if err != nil {
				return fmt.Errorf("store %s: %w", s.dir, err)
			}
			if err := f(item, k); err != nil {
				return err
			}
		}
		return nil
	})
}
