package store

import (
	"context"
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

// IsTransient says of an error that the same call may succeed later: the shard is away, or full.
func IsTransient(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) }

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

// LostError tells that values which must be there have no whole copy anywhere: trying
// again does not help, they must be made anew. While a shard that may hold a copy is
// away the error is ErrUnavailable instead.
type LostError struct {
	Keys []Key // not empty, in the order asked for
	Err  error // why, of the first: ErrMissing or ErrCorrupt, with particulars
}

// Error names the first key on one line, and how many more there are.
func (e *LostError) Error() string {
	if n := len(e.Keys) - 1; n > 0 {
		return fmt.Sprintf("%s (and %d more values)", e.Unwrap(), n)
	}
	return e.Unwrap().Error()
}

// Unwrap gives a KeyError of the first key.
func (e *LostError) Unwrap() error { return &KeyError{Op: "get", Key: e.Keys[0], Err: e.Err} }

// Lost gives the keys that an error of Get or Need tells to be lost, nil if it tells
// something else.
func Lost(err error) []Key {
	var lost *LostError
	if errors.As(err, &lost) {
		return lost.Keys
	}
	var ke *KeyError
	if errors.As(err, &ke) && (errors.Is(err, ErrMissing) || errors.Is(err, ErrCorrupt)) {
		return []Key{ke.Key}
	}
	return nil
}

// Getter is the part of a Store that reads.
type Getter interface {
	Get(ctx context.Context, keys []Key) ([][]byte, error)
}

// Need is Get of values that must be there: missing ones are a LostError that names
// all of them.
func Need(ctx context.Context, s Getter, keys []Key) ([][]byte, error) {
	values, err := s.Get(ctx, keys)
	if err != nil {
		return nil, err
	}
	var lost []Key
	for i, v := range values {
		if v == nil {
			lost = append(lost, keys[i])
		}
	}
	if lost != nil {
		return nil, &LostError{Keys: lost, Err: ErrMissing}
	}
	return values, nil
}
