package badger

import (
	"context"
	"errors"
	"fmt"

	bdg "github.com/dgraph-io/badger/v4"

	"taxon/store"
)

// trustBytes bounds how much is allocated because of a head, before its chunks are seen.
const trustBytes = 64 << 20

// Get reads and verifies values; see store.Store.
func (s *Store) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	return store.Collect(ctx, s, keys)
}

// Read yields values one by one; see store.Shard.
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

// read loads and verifies one value; nil Data: missing.
func (s *Store) read(k store.Key) (store.Checksummed, error) {
	if err := s.enter(); err != nil {
		return store.Checksummed{}, err
	}
	defer s.mu.RUnlock()
	v := store.Checksummed{Key: k}
	var err error
	if p, inMemory, stored := s.look(k); inMemory {
		v.CRC32C = p.crc32c
		v.Data, err = p.load()
	} else if stored {
		err = s.view(func(txn *bdg.Txn) error {
			h, data, err := s.load(txn, headKey(k), k, func(head) bool { return true })
			v.Data, v.CRC32C = data, h.crc32c
			return err
		})
	}
	if errors.Is(err, bdg.ErrKeyNotFound) {
		return store.Checksummed{Key: k}, nil
	}
	if err != nil {
		return store.Checksummed{}, &store.KeyError{Op: "get", Key: k, Err: err}
	}
	return v, nil
}

// look finds a value whose head is in memory. If it is not, stored says whether Badger may have
// it.
func (s *Store) look(k store.Key) (p place, inMemory, stored bool) {
	st := s.table.find(k.Job, k.Step)
	if st == nil {
		return p, false, true // an earlier version wrote no segments
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	p, inMemory = st.heads[itemOf(k)]
	return p, inMemory, st.stored
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

func verify(data []byte, crc32c uint32) error {
	if got := store.Checksum(data); got != crc32c {
		return fmt.Errorf("%w: CRC32C is %08x, must be %08x", store.ErrCorrupt, got, crc32c)
	}
	return nil
}

// view runs f in a read transaction. Damage found by Badger is ErrCorrupt.
func (s *Store) view(f func(txn *bdg.Txn) error) (err error) {
	defer caught(&err)
	return explain(s.db.View(f))
}

// load reads a value's head from Badger and, if want accepts it, its verified data; else nil.
// bdg.ErrKeyNotFound: no such value, or its segment is gone.
func (s *Store) load(txn *bdg.Txn, key []byte, k store.Key, want func(head) bool) (h head, data []byte, err error) {
	item, err := txn.Get(key)
	if err != nil {
		return h, nil, err
	}
	wanted := false
	err = item.Value(func(b []byte) error {
		var inline []byte
		if h, inline, err = parseHead(key, b); err != nil {
			return err
		}
		if wanted = want(h); !wanted || h.layout == inSegment {
			return nil
		}
		data = make([]byte, 0, min(h.size, trustBytes))
		if h.chunks == 0 {
			data, err = s.codec.decode(data, h.encoding, inline)
		}
		return err
	})
	if err != nil || !wanted {
		return h, nil, err
	}
	if h.layout == inSegment {
		data, err = s.loadSegment(h)
		return h, data, err
	}
	for i := range h.chunks {
		if data, err = s.loadChunk(txn, chunkKey(key, i+1), data); err != nil {
			return h, nil, err
		}
	}
	if uint64(len(data)) != h.size {
		return h, nil, fmt.Errorf("%w: %d bytes, must be %d", store.ErrCorrupt, len(data), h.size)
	}
	return h, data, verify(data, h.crc32c)
}

func (s *Store) loadSegment(h head) ([]byte, error) {
	f := s.table.file(h.segment)
	if f == nil {
		return nil, bdg.ErrKeyNotFound
	}
	return place{f, int64(h.offset), h.size, h.crc32c}.load()
}

// loadChunk appends a chunk's data.
func (s *Store) loadChunk(txn *bdg.Txn, key, data []byte) ([]byte, error) {
	item, err := txn.Get(key)
	if errors.Is(err, bdg.ErrKeyNotFound) {
		return nil, fmt.Errorf("%w: a chunk is missing", store.ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	err = item.Value(func(b []byte) error {
		if len(b) == 0 {
			return fmt.Errorf("%w: empty chunk", store.ErrCorrupt)
		}
		data, err = s.codec.decode(data, b[0], b[1:])
		return err
	})
	return data, err
}

// Folder is the shard's folder: see store.FileBacked.
func (s *Store) Folder() string { return s.dir }

// Locate says where values are; see store.FileBacked.
func (s *Store) Locate(ctx context.Context, keys []store.Key) ([]store.Location, error) {
	if err := s.limits.CheckGet(keys); err != nil {
		return nil, err
	}
	out := make([]store.Location, len(keys))
	for i, k := range keys {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if out[i], err = s.locate(k); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Store) locate(k store.Key) (at store.Location, err error) {
	if err := s.enter(); err != nil {
		return at, err
	}
	defer s.mu.RUnlock()
	if p, inMemory, stored := s.look(k); inMemory {
		return p.location(), nil
	} else if !stored {
		return at, nil
	}
	err = s.view(func(txn *bdg.Txn) error {
		h, _, err := s.load(txn, headKey(k), k, func(head) bool { return false })
		if err != nil || h.layout != inSegment {
			return err
		}
		if f := s.table.file(h.segment); f != nil {
			at = place{f, int64(h.offset), h.size, h.crc32c}.location()
		}
		return nil
	})
	if errors.Is(err, bdg.ErrKeyNotFound) || errors.Is(err, store.ErrCorrupt) {
		return at, nil // Read reports it
	}
	return at, err
}

func (p place) location() store.Location {
	return store.Location{File: p.file.Path(), Offset: uint64(p.offset), Bytes: p.bytes, CRC32C: p.crc32c}
}
