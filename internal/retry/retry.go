// Package retry repeats calls that fail, with pauses in between.
package retry

import (
	"context"
	"time"
)

const (
	// First is the first pause. Each further one is twice as long.
	First = 20 * time.Millisecond
	// Longest bounds the pause.
	Longest = 500 * time.Millisecond
)

// For waits for a duration. It returns early with the context's error if the context ends.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Retry repeats attempt, with growing pauses, while again returns true for its error, for as long
// as limit. Zero means until ctx ends. It returns the last error.
func Retry(ctx context.Context, limit time.Duration, attempt func() error, again func(error) bool) error {
	return RetryEvery(ctx, limit, Longest, attempt, again)
}

// RetryEvery is Retry with another bound on the pause.
func RetryEvery(ctx context.Context, limit, longest time.Duration, attempt func() error, again func(error) bool) error {
	began := time.Now()
	for wait := First; ; wait = min(2*wait, longest) {
		err := attempt()
		if err == nil || !again(err) || limit > 0 && time.Since(began) >= limit {
			return err
		}
		if For(ctx, wait) != nil {
			return err
		}
	}
}
