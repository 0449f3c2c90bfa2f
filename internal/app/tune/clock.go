package tune

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"taxon/internal/ui/progress"
)

// clock is the time that a search has, with its last training; 0: unlimited.
type clock struct {
	now   func() time.Time
	began time.Time
	limit time.Duration
	// secondsRatio is how many real seconds pass in one of this clock's.
	secondsRatio float64

	mu   sync.Mutex
	text []string // of the last progress
}

var newClock = func(limit time.Duration) *clock {
	return &clock{now: time.Now, began: time.Now(), limit: limit, secondsRatio: 1}
}

// errTimeUp ends a search whose time is up. What it has found counts.
var errTimeUp = errors.New("the time is up")

// left is how many seconds are left, without those reserved.
func (k *clock) left(reserve float64) float64 {
	if k.limit == 0 {
		return math.Inf(1)
	}
	return (k.limit - k.now().Sub(k.began)).Seconds() - reserve
}

// bound ends a context when the time, without the reserve, is up.
func (k *clock) bound(ctx context.Context, reserve float64) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithCancelCause(ctx)
	if k.limit > 0 {
		go func() { // a timer would not follow this clock
			tick := time.NewTicker(tickEvery)
			defer tick.Stop()
			for k.left(reserve) > 0 {
				select {
				case <-bounded.Done():
					return
				case <-tick.C:
				}
			}
			cancel(errTimeUp)
		}()
	}
	return bounded, func() { cancel(nil) }
}

const tickEvery = 50 * time.Millisecond

// ended is the error of work that ran under bounded, the context that bound made from ctx.
func (k *clock) ended(ctx, bounded context.Context, err error) error {
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(bounded), errTimeUp) {
		return errTimeUp
	}
	return err
}

// show has a progress line count the seconds until the time is up, if there is a limit. Call what
// it returns at the end.
func (k *clock) show(line progress.Progress) (stop func()) {
	if k.limit == 0 {
		return func() {}
	}
	line.Total(int64(k.limit.Seconds()))
	line.Resume(int64(k.now().Sub(k.began).Seconds()))
	quit := make(chan struct{})
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				return
			case <-tick.C:
				k.set(line, 0)
			}
		}
	}()
	return func() { close(quit) }
}

// set shows progress: the number of trainings, or with a limit the seconds gone by.
func (k *clock) set(line progress.Progress, done int, text ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.limit > 0 {
		done = int(min(k.now().Sub(k.began), k.limit).Seconds())
	}
	if text != nil {
		k.text = text
	}
	line.Set(int64(done), k.text...)
}
