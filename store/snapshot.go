package store

import (
	"context"
	"fmt"
	"io"
	"slices"
)

// The layout of a snapshot is in FORMAT.md; all numbers are little endian, keys are
// those of AppendKey.
const (
	snapshotMagic   = "taxonsnap\x00"
	snapshotVersion = 1

	recordValue = 'V'
	recordEnd   = 'E'

	// batches of Snapshot and Restore are at most this many bytes, or one value.
	snapshotBatchBytes  = 16 << 20
	snapshotBatchValues = 4096
)

// Snapshot writes the values of keys to w, in key order whatever the order given,
// each once, in the format of FORMAT.md. A key without a value is ErrMissing. The
// same keys and values give the same bytes. It neither syncs nor closes w. Memory is
// bounded by 16 MiB or the largest value, whichever is more.
func Snapshot(ctx context.Context, w io.Writer, src Store, keys []Key) error {
	sizes, err := snapshotSizes(ctx, src, keys)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	sorted := slices.Clone(keys)
	slices.SortFunc(sorted, Key.Compare)
	sorted = slices.Compact(sorted)
	infos := make([]Info, len(sorted))
	for i, k := range sorted {
		infos[i] = Info{Key: k, Bytes: sizes[k]}
	}
	return SnapshotListed(ctx, w, src, infos)
}

// SnapshotListed is Snapshot of values as List gave them: in strictly rising order of
// keys, with their sizes.
func SnapshotListed(ctx context.Context, w io.Writer, src Store, infos []Info) error {
	out, err := NewSnapshotWriter(w)
	if err != nil {
		return err
	}
	for len(infos) > 0 {
		var keys []Key
		bytes := uint64(0)
		for _, in := range infos {
			if len(keys) == snapshotBatchValues || len(keys) > 0 && bytes+in.Bytes > snapshotBatchBytes {
				break
			}
			bytes += in.Bytes
			keys = append(keys, in.Key)
		}
		if err := snapshotBatch(ctx, out, src, keys); err != nil {
			return err
		}
		infos = infos[len(keys):]
	}
	return out.End()
}

// snapshotSizes asks the store how large the values are, so that batches fit.
func snapshotSizes(ctx context.Context, src Store, keys []Key) (map[Key]uint64, error) {
	sizes := make(map[Key]uint64, len(keys))
	jobs := map[string]bool{}
	for _, k := range keys {
		if err := k.Validate(); err != nil {
			return nil, err
		}
		sizes[k] = 0
		jobs[k.Job] = true
	}
	for job := range jobs {
		err := src.List(ctx, job, func(in Info) error {
			if _, ok := sizes[in.Key]; ok {
				sizes[in.Key] = in.Bytes
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return sizes, nil
}

func snapshotBatch(ctx context.Context, out *SnapshotWriter, src Store, keys []Key) error {
	data, err := src.Get(ctx, keys)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	for i, k := range keys {
		if data[i] == nil {
			return &KeyError{Op: "snapshot", Key: k, Err: ErrMissing}
		}
		if err := out.Add(Sum(Value{Key: k, Data: data[i]})); err != nil {
			return err
		}
	}
	return nil
}

// Restore checks a whole snapshot and only then puts its values into dst: a damaged
// one changes nothing. It reads r twice, from its present position.
func Restore(ctx context.Context, r io.ReadSeeker, dst Store, limits Limits) error {
	start, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	if err := ReadSnapshot(ctx, r, limits, func(Summed) error { return nil }); err != nil {
		return err
	}
	if _, err := r.Seek(start, io.SeekStart); err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	var batch []Value
	var bytes uint64
	flush := func() error {
		err := dst.Put(ctx, batch)
		batch, bytes = nil, 0
		return err
	}
	err = ReadSnapshot(ctx, r, limits, func(v Summed) error {
		batch = append(batch, Value{Key: v.Key, Data: v.Data})
		bytes += uint64(len(v.Data))
		if bytes >= snapshotBatchBytes || len(batch) >= snapshotBatchValues {
			return flush()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return flush()
}
