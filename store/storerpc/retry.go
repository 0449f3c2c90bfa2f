package storerpc

import (
	"context"
	"errors"
	"time"

	"taxon/internal/pause"
	"taxon/store"
)

const (
	// defaultPatience is how long an unavailable shard is tried again: a supervisor
	// starts it anew within seconds, and reading its log back takes a few more.
	defaultPatience = 20 * time.Second

	firstWait = 25 * time.Millisecond
	lastWait  = time.Second
)

// patience is the time that one call has for shards that are away. Tries are apart by
// waits that double up to a second.
type patience struct {
	total time.Duration
	start time.Time
	wait  time.Duration
}

func newPatience(total time.Duration) patience {
	return patience{total: total, start: time.Now(), wait: firstWait}
}

// spent tells whether a share (0 to 1) of the patience is over.
func (p *patience) spent(share float64) bool {
	return time.Since(p.start) >= time.Duration(share*float64(p.total))
}

// pause waits before the next try; the context's error if that ends first.
func (p *patience) pause(ctx context.Context) error {
	d := p.wait
	p.wait = min(2*d, lastWait)
	return pause.For(ctx, d)
}

// away tells whether an error is of a shard that is away for a while: it can't be
// reached, or it is closing (which comes as both errors).
func away(err error) bool {
	return errors.Is(err, store.ErrUnavailable)
}

// insist repeats a call to one shard for as long as it is away and patience lasts.
func (c *Client) insist(ctx context.Context, call func() error) error {
	p := newPatience(c.patience)
	for {
		err := call()
		if err == nil || !away(err) || p.spent(1) {
			return err
		}
		if err := p.pause(ctx); err != nil {
			return err
		}
	}
}
