package store

import (
	"context"
	"fmt"
	"slices"
)

// Store is one shard, or several behind one client. All methods may be called from several
// goroutines at once. They end with the context's error when the context ends. Bad keys and job
// ids are ErrInvalid, requests over the limits ErrTooLarge.
type Store interface {
	// Put stores values, and returns when all of them are as durable as the shard makes them.
	// ErrConflict if a key holds other bytes. If the stored bytes are damaged, a Put of the right
	// ones replaces them. After an error any part of the batch may be stored; as values never
	// change, it is safe to repeat the call. The store may keep the Data slices: see Value.
	Put(ctx context.Context, values []Value) error

	// Get returns the values of keys, in their order: nil where there is no
	// such value, an empty slice where it is empty. The slices are read-only.
	// ErrCorrupt, naming the key, if bytes do not match their checksum. Memory
	// is that of the values asked for, so callers choose their batches.
	Get(ctx context.Context, keys []Key) ([][]byte, error)

	// Commit deletes the values of those attempts of a step that do not count. For each task
	// attempts[task] counts; 0, or a task beyond the slice, means that no attempt counts.
	// Idempotent. Values that a late attempt writes afterwards stay until the step is dropped,
	// and nobody reads them.
	Commit(ctx context.Context, job string, step uint32, attempts []uint32) error

	// Drop deletes steps of a job, and returns the number of values deleted.
	Drop(ctx context.Context, what DropSpec) (uint64, error)

	// List calls yield for the values of a job ("": of all jobs) in key order. If yield returns
	// an error, List ends with it. Values written meanwhile may or may not be seen. yield may
	// call the store.
	List(ctx context.Context, job string, yield func(Info) error) error

	// Close releases the store; later calls give ErrClosed. Idempotent.
	Close() error
}

// Shard is a Store in this process that passes checksums on, so that the reader verifies the very
// checksum that the writer made.
type Shard interface {
	Store
	// PutSummed is Put for values with checksums, which it verifies first.
	PutSummed(ctx context.Context, values []Summed) error
	// Read calls yield for keys[0], keys[1], ... with the verified value and its stored checksum,
	// or with nil Data where there is no value. It holds one value at a time. If yield returns an
	// error, Read ends with it.
	Read(ctx context.Context, keys []Key, yield func(i int, v Summed) error) error
	// Limits are the limits that the shard enforces.
	Limits() Limits
}

// Collect is Get in terms of Read.
func Collect(ctx context.Context, s Shard, keys []Key) ([][]byte, error) {
	out := make([][]byte, len(keys))
	err := s.Read(ctx, keys, func(i int, v Summed) error {
		out[i] = v.Data
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// DropSpec says which steps to drop.
type DropSpec struct {
	Job    string
	Before uint32   // steps below it go ...
	Keep   []uint32 // ... except these
	All    bool     // the whole job, whatever Before and Keep say
}

// Validate reports ErrInvalid for a bad job id, ErrTooLarge for too many steps to keep.
func (d DropSpec) Validate() error {
	if len(d.Keep) > MaxKeptSteps {
		return fmt.Errorf("%w: %d steps to keep, at most %d", ErrTooLarge, len(d.Keep), MaxKeptSteps)
	}
	return ValidateJob(d.Job)
}

// Drops says whether a step is dropped. Cost: linear in Keep.
func (d DropSpec) Drops(step uint32) bool {
	if d.All {
		return true
	}
	if step >= d.Before {
		return false
	}
	return !slices.Contains(d.Keep, step)
}

// Counts says whether an attempt is the one that a Commit names for its task.
func Counts(attempts []uint32, task, attempt uint32) bool {
	return uint64(task) < uint64(len(attempts)) && attempts[task] == attempt
}

// Filed is a Shard whose values lie in files that other processes of its host may read. Its
// PutSummed keeps no slice that it is given.
type Filed interface {
	Shard
	// Folder is the shard's folder; "": it has no files.
	Folder() string
	// Locate says where values lie, in the order of the keys. It does not read them.
	Locate(ctx context.Context, keys []Key) ([]Location, error)
}

// Location is a value's place.
type Location struct {
	File   string // within the shard's folder; "": there is no value, or it is not in a file: use Read
	Offset uint64 // of the data
	Bytes  uint64
	CRC32C uint32
}
