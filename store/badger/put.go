package badger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"
	bdg "github.com/dgraph-io/badger/v4"

	"taxon/store"
)

// Put writes values and returns when the log is synced; see store.Store.
func (s *Store) Put(ctx context.Context, values []store.Value) error {
	if err := s.limits.CheckPut(values); err != nil {
		return err
	}
	summed := make([]store.Summed, len(values))
	for i, v := range values {
		summed[i] = store.Sum(v)
	}
	return s.put(ctx, summed)
}

// PutSummed is Put of values that bring their checksums.
func (s *Store) PutSummed(ctx context.Context, values []store.Summed) error {
	if err := s.limits.CheckPutSummed(values); err != nil {
		return err
	}
	for _, v := range values {
		if err := v.Verify("put"); err != nil {
			return err
		}
	}
	return s.put(ctx, values)
}

func (s *Store) put(ctx context.Context, values []store.Summed) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	if len(values) == 0 {
		return nil
	}
	keys := make([][]byte, len(values))
	for i, v := range values {
		keys[i] = headKey(v.Key)
	}
	defer s.lockKeys(keys)()
	fresh, err := s.fresh(ctx, keys, values)
	if err != nil || len(fresh) == 0 {
		return err
	}
	var size uint64
	for _, i := range fresh {
		size += uint64(len(keys[i]) + len(values[i].Data))
	}
	if err := s.room(size); err != nil {
		return err
	}
	wb := s.db.NewWriteBatch()
	defer wb.Cancel() // no effect after Flush
	for _, i := range fresh {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.write(wb, keys[i], values[i]); err != nil {
			return fmt.Errorf("store %s: %w", s.dir, explain(err))
		}
	}
	if err := wb.Flush(); err != nil {
		return fmt.Errorf("store %s: %w", s.dir, explain(err))
	}
	return nil
}

// lockKeys locks the keys' stripes, in order so that batches cannot wait for each
// other, and returns what unlocks them.
func (s *Store) lockKeys(keys [][]byte) (unlock func()) {
	held := make([]int, len(keys))
	for i, k := range keys {
		held[i] = int(xxhash.Sum64(k) % stripes)
	}
	slices.Sort(held)
	held = slices.Compact(held)
	for _, i := range held {
		s.keys[i].Lock()
	}
	return func() {
		for _, i := range held {
			s.keys[i].Unlock()
		}
	}
}

// fresh lists the values that are not stored yet; one with other bytes than the
// stored one, or than an earlier one of the batch, is ErrConflict.
func (s *Store) fresh(ctx context.Context, keys [][]byte, values []store.Summed) ([]int, error) {
	var out []int
	seen := make(map[store.Key]int, len(values))
	for i, v := range values {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if j, ok := seen[v.Key]; ok {
			if !bytes.Equal(values[j].Data, v.Data) {
				return nil, conflict(v, head{size: uint64(len(values[j].Data)), crc32c: values[j].CRC32C})
			}
			continue
		}
		seen[v.Key] = i
		there, err := s.compare(keys[i], v)
		if err != nil {
			return nil, err
		}
		if !there {
			out = append(out, i)
		}
	}
	return out, nil
}

// compare tells whether the value is stored whole; with other bytes: ErrConflict. A
// damaged one is as good as none if, for what can be told, it was this one.
func (s *Store) compare(key []byte, v store.Summed) (there bool, err error) {
	err = s.view(func(txn *bdg.Txn) error {
		h, data, err := s.load(txn, key, v.Key, func(h head) bool {
			return h.size == uint64(len(v.Data)) && h.crc32c == v.CRC32C
		})
		switch {
		case errors.Is(err, bdg.ErrKeyNotFound), errors.Is(err, store.ErrCorrupt):
			return nil
		case err != nil:
			return &store.KeyError{Op: "put", Key: v.Key, Err: err}
		case data == nil || !bytes.Equal(data, v.Data):
			return conflict(v, h)
		}
		there = true
		return nil
	})
	return there, err
}

func conflict(v store.Summed, old head) error {
	return &store.KeyError{Op: "put", Key: v.Key, Err: fmt.Errorf("%w: %d bytes with CRC32C %08x there, %d bytes with %08x sent",
		store.ErrConflict, old.size, old.crc32c, len(v.Data), v.CRC32C)}
}

// write adds a value's entries to the batch, the head last: entries reach the log in
// this order, so that a head is never there without its chunks.
func (s *Store) write(wb *bdg.WriteBatch, key []byte, v store.Summed) error {
	h := head{size: uint64(len(v.Data)), crc32c: v.CRC32C, chunks: chunksOf(uint64(len(v.Data)))}
	kind := kindOf(v.Key)
	if h.chunks == 0 {
		encoding, stored := s.codec.encode(kind, v.Data)
		return wb.Set(key, encodeHead(key, h, encoding, stored))
	}
	for i := range h.chunks {
		from := uint64(i) * chunkBytes
		encoding, stored := s.codec.encode(kind, v.Data[from:min(from+chunkBytes, h.size)])
		entry := append(append(make([]byte, 0, 1+len(stored)), encoding), stored...)
		if err := wb.Set(chunkKey(key, i+1), entry); err != nil {
			return err
		}
	}
	return wb.Set(key, encodeHead(key, h, encodingRaw, nil))
}
