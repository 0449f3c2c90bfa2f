package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"taxon/internal/retry"
	"taxon/internal/ui/format"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Holding knows what a store shard holds and how much room it has.
type Holding struct {
	// Shard is the shard itself.
	Shard store.Shard
	// Refused returns the size, in bytes, of the values for which there was no room at the last
	// write. It returns 0 if there was room. A nil Refused stands for 0.
	Refused func() uint64

	// values and bytes are from the last count.
	values, bytes atomic.Uint64
}

// These are interfaces that a shard may implement besides store.Shard.
type (
	// roomReporter returns the free bytes, and how many must be free for the shard to accept
	// writes.
	roomReporter interface {
		Room() (free, reserve uint64, err error)
	}
	// sizeReporter returns the bytes of its values.
	sizeReporter interface{ Bytes() uint64 }
	// valueChecker reports whether the shard holds any value. An error means that it can't be read.
	valueChecker interface {
		Any(ctx context.Context) (bool, error)
	}
)

// Any reports whether the shard holds a value. An error means that it can't be read.
func (h *Holding) Any(ctx context.Context) (bool, error) {
	if s, ok := h.Shard.(valueChecker); ok {
		return s.Any(ctx)
	}
	found := errors.New("found")
	err := h.Shard.List(ctx, "", func(store.Info) error { return found })
	if errors.Is(err, found) {
		return true, nil
	}
	return false, err
}

// Room returns the number of free bytes, and how many must be free for the shard to accept writes,
// such as the last one that it refused. It returns zeros if they are unknown.
func (h *Holding) Room() (free, reserve uint64) {
	s, ok := h.Shard.(roomReporter)
	if !ok {
		return 0, 0
	}
	free, reserve, err := s.Room()
	if err != nil {
		return 0, 0
	}
	if h.Refused != nil {
		// a shard wants up to twice a value's size besides its reserve
		reserve += 2 * h.Refused()
	}
	return free, reserve
}

// Writable returns an error if the shard refuses writes.
func (h *Holding) Writable() error {
	if free, reserve := h.Room(); free < reserve {
		return fmt.Errorf("writes are refused: %s are free, %s must be", format.Bytes(int64(free)),
			format.Bytes(int64(reserve)))
	}
	return nil
}

// Tell adds what the shard holds to its report to the coordinator.
func (h *Holding) Tell(ctx context.Context, r *taxonv1.JoinStoreRequest) {
	has, err := h.Any(ctx)
	r.Empty = err == nil && !has
	r.Free, r.Reserve = h.Room()
	r.Values, r.Bytes = h.values.Load(), h.bytes.Load()
	if s, ok := h.Shard.(sizeReporter); ok {
		r.Bytes = s.Bytes()
	}
}

// maxCountPause and countShare bound how much of a shard's time counting takes.
const (
	// maxCountPause and countShare bound how much of a shard's time counting takes.
	maxCountPause = 5 * time.Second
	countShare    = 200
)

// Run counts the values repeatedly until ctx ends, because shards keep no count.
func (h *Holding) Run(ctx context.Context) {
	for {
		began := time.Now()
		h.count(ctx)
		if retry.For(ctx, max(maxCountPause, countShare*time.Since(began))) != nil {
			return
		}
	}
}

// count counts the values once. After an error it keeps the last count.
func (h *Holding) count(ctx context.Context) {
	var values, bytes uint64
	err := h.Shard.List(ctx, "", func(i store.Info) error {
		values++
		bytes += i.Bytes
		return nil
	})
	if err == nil { // otherwise the last count stays
		h.values.Store(values)
		h.bytes.Store(bytes)
	}
}

// Refuses reports whether a shard refuses writes for lack of room.
func Refuses(s *taxonv1.Shard) bool { return s.GetFree() < s.GetReserve() }
