package badger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"taxon/internal/fs/vfs"
	"taxon/store"
	"taxon/store/segment"
)

// Put implements store.Store. It returns when the values are on the disk.
func (s *Store) Put(ctx context.Context, values []store.Value) error {
	summed, err := s.limits.SumPut(values)
	if err != nil {
		return err
	}
	return s.put(ctx, summed)
}

// PutChecksummed implements store.Shard.
func (s *Store) PutChecksummed(ctx context.Context, values []store.Checksummed) error {
	if err := s.limits.VerifyPut(values); err != nil {
		return err
	}
	return s.put(ctx, values)
}

// put appends the values step by step, and then waits until all of them are durable.
func (s *Store) put(ctx context.Context, values []store.Checksummed) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.RUnlock()
	var wanted durable
	for len(values) > 0 {
		n := 1 // values of the same step: most batches have one step
		for n < len(values) && values[n].Key.Step == values[0].Key.Step && values[n].Key.Job == values[0].Key.Job {
			n++
		}
		if err := s.putStep(ctx, values[:n], &wanted); err != nil {
			return s.explain(err)
		}
		values = values[n:]
	}
	if err := wanted.sync(); err != nil {
		return s.explain(err)
	}
	return s.flushHeads(ctx)
}

// explain adds the name of the store to an error, unless the error names a key.
func (s *Store) explain(err error) error {
	var ke *store.KeyError
	if errors.As(err, &ke) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("store %s: %w", s.dir, explain(err))
}

// durable lists what must be on the disk before a call returns.
type durable []place

// need adds a value. Only the last one in a file counts.
func (d *durable) need(p place) {
	for i := range *d {
		if at := &(*d)[i]; at.file == p.file {
			if p.end() > at.end() {
				*at = p
			}
			return
		}
	}
	*d = append(*d, p)
}

// sync makes the values durable.
func (d durable) sync() error {
	for _, p := range d {
		if err := p.file.Sync(p.end()); err != nil {
			return err
		}
	}
	return nil
}

// putStep appends the values of one step that are not stored yet. It adds to wanted what must
// become durable for all of them.
func (s *Store) putStep(ctx context.Context, values []store.Checksummed, wanted *durable) error {
	st := s.table.findOrMake(values[0].Key.Job, values[0].Key.Step)
	st.mu.Lock()
	defer st.mu.Unlock()
	fresh, err := s.fresh(ctx, st, values, wanted)
	if err != nil || len(fresh) == 0 {
		return err
	}
	var size uint64
	for _, r := range fresh {
		size += uint64(len(r.Value.Data)) + store.MaxKeyBytes
	}
	if err := s.room(size); err != nil {
		return err
	}
	places, err := s.append(st, fresh)
	if err != nil {
		return err
	}
	for i, p := range places {
		s.table.set(st, itemOf(fresh[i].Value.Key), p)
		wanted.need(p)
	}
	return nil
}

// append writes records to the step's segment, or to a new one if that can't be written to. The
// caller holds the step's mu.
func (s *Store) append(st *step, records []segment.Record) ([]place, error) {
	if n := len(st.files); n == 0 || !st.files[n-1].Writable() {
		f, err := s.create(segment.Head{Job: st.job, Step: st.number, Number: s.table.number()})
		if err != nil {
			return nil, err
		}
		st.files = append(st.files, f)
		s.table.add(f)
	}
	f := st.files[len(st.files)-1]
	offsets, _, err := f.Append(records)
	if err != nil {
		return nil, err
	}
	places := make([]place, len(records))
	for i, r := range records {
		places[i] = place{f, offsets[i], uint64(len(r.Value.Data)), r.Value.CRC32C}
	}
	return places, nil
}

// create makes a segment, from a spare file if there is one.
func (s *Store) create(h segment.Head) (*segment.File, error) {
	if b := s.spares.take(); b != nil {
		return b.Create(s.segments(), h)
	}
	return segment.Create(vfs.OS, s.segments(), h)
}

// segments returns the folder of the segments.
func (s *Store) segments() string { return filepath.Join(s.dir, segment.Folder) }

// fresh lists the values that are not stored yet. A value with other bytes than the stored one, or
// than an earlier one of the batch, is ErrConflict. The caller holds the step's mu.
func (s *Store) fresh(ctx context.Context, st *step, values []store.Checksummed,
	wanted *durable) ([]segment.Record, error) {
	out := make([]segment.Record, 0, len(values))
	seen := make(map[item]int, len(values))
	for i, v := range values {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		it := itemOf(v.Key)
		if j, ok := seen[it]; ok {
			if !bytes.Equal(values[j].Data, v.Data) {
				return nil, conflict(v, uint64(len(values[j].Data)), values[j].CRC32C)
			}
			continue
		}
		seen[it] = i
		there, err := s.compare(st, it, v, wanted)
		if err != nil {
			return nil, err
		}
		if !there {
			out = append(out, segment.Record{Value: v})
		}
	}
	return out, nil
}

// compare reports whether the value is stored intact. It returns ErrConflict if other bytes are
// stored. A damaged value counts as not stored if its size and checksum were those of this value.
func (s *Store) compare(st *step, it item, v store.Checksummed, wanted *durable) (there bool, err error) {
	same := func(size uint64, crc32c uint32) bool { return size == uint64(len(v.Data)) && crc32c == v.CRC32C }
	var size uint64
	var crc32c uint32
	var data []byte
	if p, ok := st.heads[it]; ok {
		if size, crc32c = p.bytes, p.crc32c; same(size, crc32c) {
			if !p.file.Holds(p.end()) {
				return false, nil // it could not be synced: counts as not stored
			}
			data, err = p.load()
			wanted.need(p)
		}
	} else if st.stored {
		p, ok, err = s.indexed(v.Key)
		if size, crc32c = p.bytes, p.crc32c; ok && same(size, crc32c) {
			data, err = p.load()
		}
		if !ok && err == nil {
			return false, nil
		}
	} else {
		return false, nil
	}
	switch {
	case errors.Is(err, store.ErrCorrupt):
		return false, nil
	case err != nil:
		return false, &store.KeyError{Op: "put", Key: v.Key, Err: err}
	case !same(size, crc32c) || !bytes.Equal(data, v.Data):
		return false, conflict(v, size, crc32c)
	}
	return true, nil
}

// conflict returns the ErrConflict of a value.
func conflict(v store.Checksummed, size uint64, crc32c uint32) error {
	return &store.KeyError{Op: "put", Key: v.Key, Err: fmt.Errorf("%w: %d bytes with CRC32C %08x there, %d "+
		"bytes with %08x sent",
		store.ErrConflict, size, crc32c, len(v.Data), v.CRC32C)}
}
