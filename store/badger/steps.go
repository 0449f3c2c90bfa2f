package badger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

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
	if err := s.mark(stale); err != nil {
		return fmt.Errorf("store %s: commit: %w", s.dir, explain(err))
	}
	return nil
}

// Drop deletes whole steps; see store.Store. A job's past steps get deletion marks, which
// compaction applies: dropping their prefix would write all memory tables out and rewrite
// every table that holds a step, at each step of a job (measured: a third of what a store
// does while a job trains). A job that goes as a whole goes by its prefixes, at once.
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
	if err != nil || len(old.prefixes) == 0 {
		return 0, err
	}
	if err := s.roomToDelete(); err != nil {
		return 0, err
	}
	if what.All {
		err = s.db.DropPrefix(old.prefixes...)
	} else {
		err = s.mark(old.entries)
	}
	if err != nil {
		return 0, fmt.Errorf("store %s: drop: %w", s.dir, explain(err))
	}
	return old.values, nil
}

// dropped is what a Drop deletes.
type dropped struct {
	values   uint64
	prefixes [][]byte // of the steps
	entries  [][]byte // keys, in order; none if the whole job goes
}

// droppable finds what a Drop deletes, passing over the steps that stay: reading keys
// means reading the blocks of the values between them.
func (s *Store) droppable(ctx context.Context, what store.DropSpec) (old dropped, err error) {
	prefix := store.AppendJobPrefix(nil, what.Job)
	err = s.view(func(txn *bdg.Txn) error {
		it := txn.NewIterator(bdg.IteratorOptions{Prefix: prefix})
		defer it.Close()
		last, found := uint32(0), false
		for it.Seek(prefix); it.ValidForPrefix(prefix); {
			k, chunk, err := parseEntryKey(it.Item().Key())
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
			if chunk == 0 {
				old.values++
			}
			if !found || k.Step != last {
				last, found = k.Step, true
				old.prefixes = append(old.prefixes, store.AppendStepPrefix(nil, what.Job, k.Step))
			}
			if !what.All {
				old.entries = append(old.entries, it.Item().KeyCopy(nil))
			}
			it.Next()
		}
		return nil
	})
	return old, err
}

// mark deletes entries one by one. Heads come before their chunks: a value of which a
// crash leaves a part is missing.
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
