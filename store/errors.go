package store

import (
	"errors"
	"fmt"
)

// Sentinel errors; every error of a Store wraps one of them or a context error.
var (
	// ErrInvalid: the request breaks a rule on keys or arguments. Never retry.
	ErrInvalid = errors.New("invalid request")
	// ErrConflict: the key already holds other bytes. Never retry: the writer
	// is not deterministic or reuses a (step, task, attempt).
	ErrConflict = errors.New("key already holds other bytes")
	// ErrCorrupt: bytes do not match their checksum. The value is lost in this
	// shard; write it anew under another attempt.
	ErrCorrupt = errors.New("checksum does not match")
	// ErrTooLarge: a value or batch is over the limits; send smaller ones.
	ErrTooLarge = errors.New("over the size limit")
	// ErrFull: the shard's memory budget or its disk is spent. Nothing is lost by it; try
	// again later, when somebody has freed space.
	ErrFull = errors.New("store is full")
	// ErrMissing: a value that must be there is not.
	ErrMissing = errors.New("no such value")
	// ErrLocked: another process (or this one) has the shard's directory open.
	ErrLocked = errors.New("store directory is in use")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
	// ErrUnavailable: a shard could not be reached, for as long as the client was
	// told to try. Nothing is lost by it; try again later.
	ErrUnavailable = errors.New("store shard is unavailable")
	// ErrSnapshot: a snapshot is truncated, damaged or no snapshot at all.
	ErrSnapshot = errors.New("bad snapshot")
)

// Passing says of an error that the same call may succeed later: the shard is away, or full.
func Passing(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) }

// KeyError is a failure that one key is to blame for. It wraps a sentinel.
type KeyError struct {
	Op  string // put, get, snapshot
	Key Key
	Err error
}

// Error renders "op key: cause" on one line.
func (e *KeyError) Error() string { return e.Op + " " + e.Key.String() + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *KeyError) Unwrap() error { return e.Err }

// invalidf makes an ErrInvalid with its reason.
func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
