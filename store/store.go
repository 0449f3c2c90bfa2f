package store

import (
	"context"
	"fmt"
	"slices"
)

// Store is one shard, or several behind one client. All methods may be called
// from several goroutines at once and end with the context's error when it ends.
// Bad keys and job ids are ErrInvalid, requests over the limits ErrTooLarge.
type Store interface {
	// Put stores values and returns when all of them are as durable as the
	// shard is. ErrConflict if a key holds other bytes; but the right bytes heal
	// a value whose stored ones are damaged. After an error any part of the
	// batch may be stored; as values never change, repeating is safe.
	// The store may keep the Data slices: see Value.
	Put(ctx context.Context, values []Value) error

	// Get returns the values of keys, in their order: nil where there is no
	// such value, an empty slice where it is empty. The slices are read-only.
	// ErrCorrupt, naming the key, if bytes do not match their checksum. Memory
	// is that of the values asked for, so callers choose their batches.
	Get(ctx context.Context, keys []Key) ([][]byte, error)

	// Commit deletes the values of a step's attempts that do not count:
	// attempts[task] does, 0 (and a task beyond the slice) means that none
	// does. Idempotent. Values that a late attempt writes afterwards stay,
	// unread, until the step is dropped.
	Commit(ctx context.Context, job string, step uint32, attempts []uint32) error

	// Drop deletes steps of a job and returns the number of values deleted.
	Drop(ctx context.Context, what DropSpec) (uint64, error)

	// List calls yield for the values of a job ("": of every job) in key
	// order, and ends with yield's error if it returns one. Values written
	// meanwhile may or may not be seen; yield may call the store.
	List(ctx context.Context, job string, yield func(Info) error) error

	// Close releases the store; later calls give ErrClosed. Idempotent.
	Close() error
}

// Shard is a Store that lies in this process and hands checksums on, so that one
// made by the writer is the one verified by the reader.
type Shard interface {
	Store
	// PutChecksummed is Put; it verifies each value against its checksum first.
	PutChecksummed(ctx context.Context, values []Checksummed) error
	// Read calls yield for keys[0], keys[1], ... with the value, verified, and
	// its stored checksum, or with nil Data where there is no such value. It
	// holds one value at a time and ends with yield's error if it returns one.
	Read(ctx context.Context, keys []Key, yield func(i int, v Checksummed) error) error
	// Limits are those that the shard enforces.
	Limits() Limits
}

// Collect is Get by way of Read.
func Collect(ctx context.Context, s Shard, keys []Key) ([][]byte, error) {
	out := make([][]byte, len(keys))
	err := s.Read(ctx, keys, func(i int, v Checksummed) error {
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

// Drops tells whether a step goes. Cost: linear in Keep.
func (d DropSpec) Drops(step uint32) bool {
	if d.All {
		return true
	}
	if step >= d.Before {
		return false
	}
	return !slices.Contains(d.Keep, step)
}

// IsCommitted tells whether an attempt is the one that a Commit names for its task.
func IsCommitted(attempts []uint32, task, attempt uint32) bool {
	return uint64(task) < uint64(len(attempts)) && attempts[task] == attempt
}

// FileBacked is a Shard whose values lie in files that other processes of its host may read. Its
// PutChecksummed keeps no slice of what it is given.
type FileBacked interface {
	Shard
	// Folder is that of the shard; "": it has no files.
	Folder() string
	// Locate tells where values lie, in the order of the keys. It reads none of them.
	Locate(ctx context.Context, keys []Key) ([]Location, error)
}

// Location is a value's place.
type Location struct {
	File   string // within the shard's folder; "": no such value, or in no such file: Read it
	Offset uint64 // of the data
	Bytes  uint64
	CRC32C uint32
}
