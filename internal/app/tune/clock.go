package tune

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"taxon/internal/ui/progress"
)

// clock measures the time of a search, including its last training, against a limit. A limit of 0
// means that there is no limit.
type clock struct {
	now   func() time.Time
	began time.Time
	limit time.Duration
	// secondsRatio is the number of real seconds per second of this clock.
	secondsRatio float64

	mu sync.Mutex
	// text is the last progress text.
	text []string
}

// newClock returns a running clock. Tests replace it.
var newClock = func(limit time.Duration) *clock {
	return &clock{now: time.Now, began: time.Now(), limit: limit, secondsRatio: 1}
}

// errTimeUp ends a search whose time is up. The results that it had until then count.
var errTimeUp = errors.New("the time is up")

// left returns the remaining time minus the reserve, in seconds.
func (k *clock) left(reserve float64) float64 {
	if k.limit == 0 {
		return math.Inf(1)
	}
	return (k.limit - k.now().Sub(k.began)).Seconds() - reserve
}

// bound returns a context that ends when only the reserve of the time is left.
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

// tickEvery is the interval at which bound looks at the clock.
const tickEvery = 50 * time.Millisecond

// ended returns the error of work that ran under bounded, the context that bound derived from ctx.
// It is errTimeUp if the time ended the work.
func (k *clock) ended(ctx, bounded context.Context, err error) error {
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(bounded), errTimeUp) {
		return errTimeUp
	}
	return err
}

// show makes a progress line count the seconds until the time is up, if there is a limit. The
// caller calls stop at the end.
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

// set shows progress: the number of trainings or, with a limit, the elapsed seconds.
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
