package store

import (
	"context"
	"fmt"
	"slices"
)

// Store is one shard, or several behind one client. Its methods may be called from several
// goroutines, and return the context's error when the context ends. A bad key or job id gives
// ErrInvalid, and a request over the limits ErrTooLarge.
type Store interface {
	// Put stores values and returns when all of them are as durable as the shard is. It returns
	// ErrConflict if a key holds other bytes, but the original bytes replace a stored value that is
	// damaged. After an error any part of the batch may be stored; as values never change,
	// repeating the call is safe. The store may keep the Data slices (see Value).
	Put(ctx context.Context, values []Value) error

	// Get returns the values of keys, in their order. A key without a value gives nil, and an empty
	// value an empty slice. The slices are read-only. It returns ErrCorrupt, naming the key, if
	// bytes do not match their checksum. It takes the memory of all values together, so callers
	// choose their batches.
	Get(ctx context.Context, keys []Key) ([][]byte, error)

	// Commit deletes the values of a step's attempts that do not count. The attempt of a task that
	// counts is attempts[task]; 0, or a task beyond the slice, means none. Commit is idempotent.
	// Values that a late attempt writes afterwards stay, unread, until the step is dropped.
	Commit(ctx context.Context, job string, step uint32, attempts []uint32) error

	// Drop deletes steps of a job and returns the number of values deleted.
	Drop(ctx context.Context, what DropSpec) (uint64, error)

	// List calls yield for the values of a job in key order, or of every job if job is empty. It
	// returns yield's error if there is one. Values written meanwhile may or may not be listed.
	// yield may call the store.
	List(ctx context.Context, job string, yield func(Info) error) error

	// Close releases the store. Later calls return ErrClosed. Close is idempotent.
	Close() error
}

// Shard is a Store in this process that passes checksums on, so that the checksum made by the
// writer is the one verified by the reader.
type Shard interface {
	Store
	// PutChecksummed is Put with checksums. It first verifies each value against its checksum.
	PutChecksummed(ctx context.Context, values []Checksummed) error
	// Read calls yield for keys[0], keys[1], ... with the verified value and its stored checksum,
	// or with nil Data if there is no such value. It holds one value at a time, and returns yield's
	// error if there is one.
	Read(ctx context.Context, keys []Key, yield func(i int, v Checksummed) error) error
	// Limits returns the limits that the shard enforces.
	Limits() Limits
}

// Collect implements Get by Read.
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

// DropSpec says which steps of a job to drop.
type DropSpec struct {
	// Job is the id of the job.
	Job string
	// Before is the first step that stays. Steps below it are dropped, except those in Keep.
	Before uint32
	// Keep lists steps below Before that stay. It may have MaxKeptSteps entries.
	Keep []uint32
	// All drops the whole job, whatever Before and Keep say.
	All bool
}

// Validate returns ErrInvalid for a bad job id, and ErrTooLarge for too many steps to keep.
func (d DropSpec) Validate() error {
	if len(d.Keep) > MaxKeptSteps {
		return fmt.Errorf("%w: %d steps to keep, at most %d", ErrTooLarge, len(d.Keep), MaxKeptSteps)
	}
	return ValidateJob(d.Job)
}

// Drops reports whether a step is dropped, in time linear in Keep.
func (d DropSpec) Drops(step uint32) bool {
	if d.All {
		return true
	}
	if step >= d.Before {
		return false
	}
	return !slices.Contains(d.Keep, step)
}

// IsCommitted reports whether an attempt is the one that a Commit names for its task.
func IsCommitted(attempts []uint32, task, attempt uint32) bool {
	return uint64(task) < uint64(len(attempts)) && attempts[task] == attempt
}
