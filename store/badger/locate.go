package badger

import (
	"context"
	"errors"

	bdg "github.com/dgraph-io/badger/v4"

	"taxon/store"
)

// Folder is the shard's: see store.Filed.
func (s *Store) Folder() string { return s.dir }

// Locate tells where values lie; see store.Filed.
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
		return at, nil // Read says so
	}
	return at, err
}

func (p place) location() store.Location {
	return store.Location{File: p.file.Path(), Offset: uint64(p.offset), Bytes: p.bytes, CRC32C: p.crc32c}
}
