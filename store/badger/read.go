package badger

import (
	"context"
	"errors"
	"fmt"

	bdg "github.com/dgraph-io/badger/v4"

	"taxon/store"
)

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	return store.Collect(ctx, s, keys)
}

// Read implements store.Shard.
func (s *Store) Read(ctx context.Context, keys []store.Key, yield func(i int, v store.Checksummed) error) error {
	if err := s.limits.CheckGet(keys); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var size uint64
	for i, k := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		v, err := s.read(k)
		if err != nil {
			return err
		}
		size += uint64(len(v.Data))
		if err := s.limits.CheckBatch("get", len(keys), size); err != nil {
			return err
		}
		v.Verified = v.Data != nil
		if err := yield(i, v); err != nil {
			return err
		}
	}
	if len(keys) == 0 {
		if err := s.enter(); err != nil {
			return err
		}
		s.mu.RUnlock()
	}
	return nil
}

// read loads and verifies one value. It returns nil Data if there is none.
func (s *Store) read(k store.Key) (store.Checksummed, error) {
	if err := s.enter(); err != nil {
		return store.Checksummed{}, err
	}
	defer s.mu.RUnlock()
	v := store.Checksummed{Key: k}
	p, ok, err := s.find(k)
	if ok {
		v.CRC32C = p.crc32c
		v.Data, err = p.load()
	}
	if err != nil {
		return store.Checksummed{}, &store.KeyError{Op: "get", Key: k, Err: err}
	}
	return v, nil
}

// find returns a value's place. ok is false if there is no such value.
func (s *Store) find(k store.Key) (p place, ok bool, err error) {
	p, ok, stored := s.look(k)
	if !ok && stored {
		return s.indexed(k)
	}
	return p, ok, nil
}

// look finds a value whose head is in memory. If it is not, stored says whether Badger may have it.
func (s *Store) look(k store.Key) (p place, inMemory, stored bool) {
	st := s.table.find(k.Job, k.Step)
	if st == nil {
		return p, false, false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	p, inMemory = st.heads[itemOf(k)]
	return p, inMemory, st.stored
}

// indexed finds a value whose head is in Badger. ok is false if there is none, or if its segment
// was removed.
func (s *Store) indexed(k store.Key) (p place, ok bool, err error) {
	key := headKey(k)
	err = s.view(func(txn *bdg.Txn) error {
		item, err := txn.Get(key)
		if err != nil {
			return err
		}
		return item.Value(func(b []byte) error {
			h, err := parseHead(key, b)
			if err != nil {
				return err
			}
			p = place{s.table.file(h.segment), int64(h.offset), h.size, h.crc32c}
			return nil
		})
	})
	if errors.Is(err, bdg.ErrKeyNotFound) {
		err = nil
	}
	return p, p.file != nil, err
}

// load reads and verifies a value in its segment.
func (p place) load() ([]byte, error) {
	if p.offset < 0 || p.end() < p.offset || p.end() > p.file.Size() {
		return nil, fmt.Errorf("%w: the segment ends before the value does", store.ErrCorrupt)
	}
	data := make([]byte, p.bytes)
	if err := p.file.ReadAt(data, p.offset); err != nil {
		return nil, err
	}
	return data, verify(data, p.crc32c)
}

// verify returns ErrCorrupt if data do not match their checksum.
func verify(data []byte, crc32c uint32) error {
	if got := store.Checksum(data); got != crc32c {
		return fmt.Errorf("%w: CRC32C is %08x, must be %08x", store.ErrCorrupt, got, crc32c)
	}
	return nil
}

// view runs f in a read transaction. Damage that Badger finds is ErrCorrupt.
func (s *Store) view(f func(txn *bdg.Txn) error) (err error) {
	defer caught(&err)
	return explain(s.db.View(f))
}
