package store

import (
	"cmp"
	"fmt"
)

// Limits bound a single request. A field of zero means its default.
type Limits struct {
	// ValueBytes is the size of the largest value, in bytes. Zero stands for 256 MiB: the largest
	// values known (duals of a block, sums of a feature range) have a few MB, and one value must
	// fit into a small machine's memory.
	ValueBytes uint64

	// BatchBytes bounds the sum of the values of a Put or Get, in bytes. Zero stands for 1 GiB, or
	// for ValueBytes if that is more.
	BatchBytes uint64

	// BatchValues bounds the number of keys of a Put or Get. Zero stands for 65,536.
	BatchValues int
}

// These are the defaults of Limits.
const (
	defaultValueBytes  = 256 << 20
	defaultBatchBytes  = 1 << 30
	defaultBatchValues = 1 << 16
)

// WithDefaults returns the limits with every zero field replaced by its default.
func (l Limits) WithDefaults() Limits {
	l.ValueBytes = cmp.Or(l.ValueBytes, defaultValueBytes)
	l.BatchBytes = cmp.Or(l.BatchBytes, max(defaultBatchBytes, l.ValueBytes))
	if l.BatchValues <= 0 {
		l.BatchValues = defaultBatchValues
	}
	return l
}

// MaxTasks and MaxKeptSteps bound Commit and Drop, whatever the limits. They are far above the
// tasks of any plan and the live steps of any job, and small enough that a request can't be a
// burden.
const (
	MaxTasks     = 1 << 20
	MaxKeptSteps = 1 << 12
)

// CheckCommit validates the arguments of a Commit.
func CheckCommit(job string, attempts []uint32) error {
	if err := ValidateJob(job); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if len(attempts) > MaxTasks {
		return fmt.Errorf("commit: %w: %d tasks, at most %d", ErrTooLarge, len(attempts), MaxTasks)
	}
	return nil
}

// CheckValue returns ErrTooLarge for a value of more than ValueBytes.
func (l Limits) CheckValue(op string, k Key, size uint64) error {
	if size > l.ValueBytes {
		return &KeyError{Op: op, Key: k, Err: fmt.Errorf("%w: %d bytes, at most %d: split it over several names", ErrTooLarge,
			size, l.ValueBytes)}
	}
	return nil
}

// CheckBatch returns ErrTooLarge for a batch of too many values or bytes.
func (l Limits) CheckBatch(op string, n int, size uint64) error {
	if n > l.BatchValues {
		return fmt.Errorf("%s: %w: %d values in one batch, at most %d: use smaller batches", op, ErrTooLarge, n,
			l.BatchValues)
	}
	if size > l.BatchBytes {
		return fmt.Errorf("%s: %w: %d bytes in one batch, at most %d: use smaller batches", op, ErrTooLarge, size,
			l.BatchBytes)
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

// SumPut validates values as CheckPut does, and computes their checksums.
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

// VerifyPut validates values as CheckPut does, and compares their checksums.
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

// checkPut validates one value of a batch, and adds its size to sum.
func (l Limits) checkPut(k Key, size uint64, sum *uint64) error {
	if err := k.Validate(); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	*sum += size
	return l.CheckValue("put", k, size)
}

// CheckGet validates the keys of a batch to get. Its bytes are known only later.
func (l Limits) CheckGet(keys []Key) error {
	for _, k := range keys {
		if err := k.Validate(); err != nil {
			return fmt.Errorf("get: %w", err)
		}
	}
	return l.CheckBatch("get", len(keys), 0)
}
