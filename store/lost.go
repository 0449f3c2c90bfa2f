package store

import (
	"context"
	"errors"
	"fmt"
)

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
