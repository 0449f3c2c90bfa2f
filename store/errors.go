package store

import (
	"context"
	"errors"
	"fmt"
)

// These are the sentinel errors. Every error of a Store wraps one of them or a context error.
var (
	// ErrInvalid means that the request breaks a rule on keys or arguments. Retrying is pointless.
	ErrInvalid = errors.New("invalid request")
	// ErrConflict means that the key already holds other bytes. Retrying is pointless: the writer
	// is not deterministic, or reuses a step, task and attempt.
	ErrConflict = errors.New("key already holds other bytes")
	// ErrCorrupt means that bytes do not match their checksum. The value is lost in this shard. A
	// Put of the original bytes restores it.
	ErrCorrupt = errors.New("checksum does not match")
	// ErrTooLarge means that a value or batch is over the limits. Send smaller ones.
	ErrTooLarge = errors.New("over the size limit")
	// ErrFull means that the shard's memory budget or its disk is used up. Nothing is lost. Try
	// again when somebody has freed space.
	ErrFull = errors.New("store is full")
	// ErrMissing means that a value which must exist does not.
	ErrMissing = errors.New("no such value")
	// ErrLocked means that a process, possibly this one, has the shard's directory open.
	ErrLocked = errors.New("store directory is in use")
	// ErrClosed means that the store was closed.
	ErrClosed = errors.New("store is closed")
	// ErrUnavailable means that a shard could not be reached for as long as the client was told to
	// try. Nothing is lost. Try again later.
	ErrUnavailable = errors.New("store shard is unavailable")
	// ErrSnapshot means that a snapshot is truncated, damaged or not a snapshot at all.
	ErrSnapshot = errors.New("bad snapshot")
)

// IsTransient reports whether the same call may succeed later, because a shard is away or full.
func IsTransient(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) }

// KeyError is an error about one key. It wraps a sentinel error.
type KeyError struct {
	// Op is the operation: put, get or snapshot.
	Op  string
	Key Key
	Err error
}

// Error formats the error on one line, as "op key: cause".
func (e *KeyError) Error() string { return e.Op + " " + e.Key.String() + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *KeyError) Unwrap() error { return e.Err }

// invalidf returns an error that wraps ErrInvalid and states a reason.
func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// LostError says that values which must exist have no intact copy anywhere. Retrying does not help:
// they must be recomputed. While a shard that may hold a copy is away, the error is ErrUnavailable
// instead.
type LostError struct {
	// Keys lists the keys of the lost values in the order asked for. There is at least one.
	Keys []Key
	// Err is the reason why the first value is lost: ErrMissing or ErrCorrupt, with details.
	Err error
}

// Error returns one line with the first key and the number of further keys.
func (e *LostError) Error() string {
	if n := len(e.Keys) - 1; n > 0 {
		return fmt.Sprintf("%s (and %d more values)", e.Unwrap(), n)
	}
	return e.Unwrap().Error()
}

// Unwrap returns a KeyError of the first key.
func (e *LostError) Unwrap() error { return &KeyError{Op: "get", Key: e.Keys[0], Err: e.Err} }

// Lost returns the keys that an error of Get or Need reports as lost. It returns nil for other
// errors.
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

// Need does what Get does, for values that must exist. If values are missing, it returns a
// LostError with all of their keys.
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
