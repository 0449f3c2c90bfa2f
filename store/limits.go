package store

import (
	"cmp"
	"fmt"
)

// Limits bound a single request. The zero value means the defaults.
type Limits struct {
	ValueBytes  uint64 // largest value; default 256 MiB
	BatchBytes  uint64 // sum of the values of a Put or Get; default 1 GiB
	BatchValues int    // keys of a Put or Get; default 65,536
}

// Defaults: the largest values (duals of a block, a range's sums) are a few MB at
// the sizes we know; 256 MiB leaves room and still fits a small machine.
const (
	defaultValueBytes  = 256 << 20
	defaultBatchBytes  = 1 << 30
	defaultBatchValues = 1 << 16
)

// WithDefaults fills in what is zero.
func (l Limits) WithDefaults() Limits {
	l.ValueBytes = cmp.Or(l.ValueBytes, defaultValueBytes)
	l.BatchBytes = cmp.Or(l.BatchBytes, max(defaultBatchBytes, l.ValueBytes))
	if l.BatchValues <= 0 {
		l.BatchValues = defaultBatchValues
	}
	return l
}

// Bounds of Commit and Drop, whatever the limits: far beyond any plan's tasks and any
// job's live steps, and small enough that a request can't be a burden.
const (
	MaxTasks     = 1 << 20
	MaxKeptSteps = 1 << 12
)

// CheckCommit validates a Commit.
func CheckCommit(job string, attempts []uint32) error {
	if err := ValidateJob(job); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if len(attempts) > MaxTasks {
		return fmt.Errorf("commit: %w: %d tasks, at most %d", ErrTooLarge, len(attempts), MaxTasks)
	}
	return nil
}

// CheckValue reports ErrTooLarge for a value over the bound.
func (l Limits) CheckValue(op string, k Key, size uint64) error {
	if size > l.ValueBytes {
		return &KeyError{Op: op, Key: k, Err: fmt.Errorf("%w: %d bytes, at most %d: split it over several names", ErrTooLarge, size, l.ValueBytes)}
	}
	return nil
}

// CheckBatch reports ErrTooLarge for a batch of n values and size bytes.
func (l Limits) CheckBatch(op string, n int, size uint64) error {
	if n > l.BatchValues {
		return fmt.Errorf("%s: %w: %d values in one batch, at most %d: use smaller batches", op, ErrTooLarge, n, l.BatchValues)
	}
	if size > l.BatchBytes {
		return fmt.Errorf("%s: %w: %d bytes in one batch, at most %d: use smaller batches", op, ErrTooLarge, size, l.BatchBytes)
	}
	return nil
}

// CheckPut validates the keys and sizes of a batch to put.
func (l Limits) CheckPut(values []Value) error {
	var size uint64
	for i := range values {
		if err := l.checkPut(values[i].Key, uint64(len(values[i].Data)), &size); err != nil {
			return err
		}
	}
	return l.CheckBatch("put", len(values), size)
}

// SumPut is CheckPut of values that come without checksums, and gives them theirs.
func (l Limits) SumPut(values []Value) ([]Checksummed, error) {
	if err := l.CheckPut(values); err != nil {
		return nil, err
	}
	out := make([]Checksummed, len(values))
	for i, v := range values {
		if err := v.verifyName(); err != nil {
			return nil, err
		}
		out[i] = Sum(v)
	}
	return out, nil
}

// VerifyPut is CheckPut of values with checksums, and compares those.
func (l Limits) VerifyPut(values []Checksummed) error {
	var size uint64
	for i := range values {
		if err := l.checkPut(values[i].Key, uint64(len(values[i].Data)), &size); err != nil {
			return err
		}
	}
	if err := l.CheckBatch("put", len(values), size); err != nil {
		return err
	}
	for i := range values {
		if err := values[i].Verify("put"); err != nil {
			return err
		}
		if err := (Value{values[i].Key, values[i].Data}).verifyName(); err != nil {
			return err
		}
	}
	return nil
}

func (l Limits) checkPut(k Key, size uint64, sum *uint64) error {
	if err := k.Validate(); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	*sum += size
	return l.CheckValue("put", k, size)
}

// CheckGet validates the keys of a batch to get (its bytes are known later).
func (l Limits) CheckGet(keys []Key) error {
	for _, k := range keys {
		if err := k.Validate(); err != nil {
			return fmt.Errorf("get: %w", err)
		}
	}
	return l.CheckBatch("get", len(keys), 0)
}
