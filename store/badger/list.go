package badger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	bdg "github.com/dgraph-io/badger/v4"

	"taxon/store"
)

// listPage is how many values List describes between two releases of the lock.
const listPage = 1024

// errPageFull ends a scan.
var errPageFull = errors.New("page is full")

// List implements store.Store. It describes values page by page.
func (s *Store) List(ctx context.Context, job string, yield func(store.Info) error) error {
	if job != "" {
		if err := store.ValidateJob(job); err != nil {
			return fmt.Errorf("list: %w", err)
		}
	}
	var last *store.Key // nil: none yet
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		page, err := s.page(ctx, job, last)
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
		last = &page[len(page)-1].Key
	}
}

// Any reports whether the shard holds a value. An error means that the shard can't be read. It is
// called at each heartbeat, for which List would be too slow because it sorts a page.
func (s *Store) Any(ctx context.Context) (bool, error) {
	if err := s.enter(); err != nil {
		return false, err
	}
	defer s.mu.RUnlock()
	stored, err := s.storedPage(ctx, "", nil, 1)
	if err != nil || len(stored) > 0 {
		return len(stored) > 0, err
	}
	return s.table.any(), nil
}

// page describes up to listPage values after a key. A nil key stands for the beginning of the list.
func (s *Store) page(ctx context.Context, job string, last *store.Key) ([]store.Info, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.mu.RUnlock()
	waiting := s.waitingPage(job, last)
	stored, err := s.storedPage(ctx, job, last, listPage)
	if err != nil {
		return nil, err
	}
	return merge(waiting, stored), nil
}

// merge joins two lists in key order into one page. If a value is in both, it uses the first list's
// description.
func merge(a, b []store.Info) []store.Info {
	out := make([]store.Info, 0, min(len(a)+len(b), listPage))
	for len(a)+len(b) > 0 && len(out) < listPage {
		order := -1
		if len(a) == 0 {
			order = 1
		} else if len(b) > 0 {
			order = a[0].Key.Compare(b[0].Key)
		}
		if order <= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out = append(out, b[0])
		}
		if order >= 0 {
			b = b[1:]
		}
	}
	return out
}

// waitingPage describes values whose heads are in memory.
func (s *Store) waitingPage(job string, last *store.Key) []store.Info {
	var out []store.Info
	for _, st := range s.table.of(job) {
		if last != nil && (st.job < last.Job || st.job == last.Job && st.number < last.Step) {
			continue
		}
		from := len(out)
		st.mu.Lock()
		for it, p := range st.heads {
			if k := st.key(it); last == nil || k.Compare(*last) > 0 {
				out = append(out, store.Info{Key: k, Bytes: p.bytes, CRC32C: p.crc32c})
			}
		}
		st.mu.Unlock()
		slices.SortFunc(out[from:], func(a, b store.Info) int { return a.Key.Compare(b.Key) })
		if len(out) >= listPage {
			return out[:listPage]
		}
	}
	return out
}

// storedPage describes up to `most` values whose heads are in Badger.
func (s *Store) storedPage(ctx context.Context, job string, last *store.Key, most int) ([]store.Info, error) {
	var prefix, from []byte
	if job != "" {
		prefix = store.AppendJobPrefix(nil, job)
	}
	if last != nil {
		// the first possible entry after that of the last value: names end with NUL
		from = append(store.AppendKey(nil, *last), 1)
	}
	out := make([]store.Info, 0, 64)
	err := s.scan(prefix, from, func(item *bdg.Item, k store.Key) error {
		if len(out) == most {
			return errPageFull
		}
		return item.Value(func(b []byte) error {
			h, err := parseHead(item.Key(), b)
			if err != nil {
				return &store.KeyError{Op: "list", Key: k, Err: err}
			}
			if s.table.file(h.segment) != nil {
				out = append(out, store.Info{Key: k, Bytes: h.size, CRC32C: h.crc32c})
			}
			return ctx.Err()
		})
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, err
	}
	return out, nil
}
