package badger

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	bdg "github.com/dgraph-io/badger/v4"

	"taxon/store"
)

// listPage is how many values List describes between two releases of the lock.
const listPage = 1024

// errPageFull ends a scan.
var errPageFull = errors.New("page is full")

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
	var stale [][]byte // head before chunks: a value cut short by a crash is missing
	err := s.scan(store.AppendStepPrefix(nil, job, step), nil, func(item *bdg.Item, k store.Key, _ uint32) error {
		if !store.Counts(attempts, k.Task, k.Attempt) {
			stale = append(stale, item.KeyCopy(nil))
		}
		return ctx.Err()
	})
	if err != nil || len(stale) == 0 {
		return err
	}
	if err := s.roomToDelete(); err != nil {
		return err
	}
	wb := s.db.NewWriteBatch()
	defer wb.Cancel()
	for _, key := range stale {
		if err := wb.Delete(key); err != nil {
			return fmt.Errorf("store %s: commit: %w", s.dir, explain(err))
		}
	}
	if err := wb.Flush(); err != nil {
		return fmt.Errorf("store %s: commit: %w", s.dir, explain(err))
	}
	return nil
}

// Drop deletes whole steps by their prefixes; see store.Store.
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
	var values uint64
	var prefixes [][]byte
	last, found := uint32(0), false
	err := s.scan(store.AppendJobPrefix(nil, what.Job), nil, func(_ *bdg.Item, k store.Key, chunk uint32) error {
		if !what.Drops(k.Step) {
			return ctx.Err()
		}
		if chunk == 0 {
			values++
		}
		if !found || k.Step != last {
			last, found = k.Step, true
			prefixes = append(prefixes, store.AppendStepPrefix(nil, what.Job, k.Step))
		}
		return ctx.Err()
	})
	if err != nil || len(prefixes) == 0 {
		return 0, err
	}
	if err := s.roomToDelete(); err != nil {
		return 0, err
	}
	if err := s.db.DropPrefix(prefixes...); err != nil {
		return 0, fmt.Errorf("store %s: drop: %w", s.dir, explain(err))
	}
	return values, nil
}

// scan calls f for the entries below a prefix, in order, from a key on (nil: from
// the first), without reading their values. The caller holds the lock.
func (s *Store) scan(prefix, from []byte, f func(item *bdg.Item, k store.Key, chunk uint32) error) error {
	return s.view(func(txn *bdg.Txn) error {
		it := txn.NewIterator(bdg.IteratorOptions{Prefix: prefix})
		defer it.Close()
		if from == nil {
			from = prefix
		}
		for it.Seek(from); it.ValidForPrefix(prefix); it.Next() {
			item := it.Item()
			if bytes.Equal(item.Key(), []byte(formatKey)) {
				continue
			}
			k, chunk, err := parseEntryKey(item.Key())
			if err != nil {
				return fmt.Errorf("store %s: %w", s.dir, err)
			}
			if err := f(item, k, chunk); err != nil {
				return err
			}
		}
		return nil
	})
}

// List describes values page by page; see store.Store.
func (s *Store) List(ctx context.Context, job string, yield func(store.Info) error) error {
	var prefix []byte
	if job != "" {
		if err := store.ValidateJob(job); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		prefix = store.AppendJobPrefix(nil, job)
	}
	var from []byte
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := s.page(ctx, prefix, from)
		if err != nil {
			return err
		}
		for _, in := range page {
			if err := yield(in); err != nil {
				return err
			}
		}
		if len(page) < listPage {
			return ctx.Err()
		}
		// The least key behind the last value's entries: a name's end is NUL.
		from = append(store.AppendKey(nil, page[len(page)-1].Key), 1)
	}
}

// page describes up to listPage values from a key on.
func (s *Store) page(ctx context.Context, prefix, from []byte) ([]store.Info, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	out := make([]store.Info, 0, listPage)
	err := s.scan(prefix, from, func(item *bdg.Item, k store.Key, chunk uint32) error {
		if chunk != 0 {
			return ctx.Err()
		}
		if len(out) == listPage {
			return errPageFull
		}
		return item.Value(func(b []byte) error {
			h, _, _, err := parseHead(item.Key(), b)
			if err != nil {
				return &store.KeyError{Op: "list", Key: k, Err: err}
			}
			out = append(out, store.Info{Key: k, Bytes: h.size, CRC32C: h.crc32c})
			return ctx.Err()
		})
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, err
	}
	return out, nil
}
