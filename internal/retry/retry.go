// Package retry waits between the tries of a call.
package retry

import (
	"context"
	"time"
)

const (
	// First is the first pause; each further one is twice as long.
	First = 20 * time.Millisecond
	// Longest bounds that pause.
	Longest = 500 * time.Millisecond
)

// For waits for a time, or for the context's end, which is its error.
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

// Retry repeats an attempt, after growing pauses, while again accepts its error, for as long as
// limit (0: until ctx ends). It returns the last error.
func Retry(ctx context.Context, limit time.Duration, attempt func() error, again func(error) bool) error {
	return RetryEvery(ctx, limit, Longest, attempt, again)
}

// RetryEvery is Retry with its own bound on the pause.
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
