package storerpc

import (
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// defaultStall is how long a stream's other side may do nothing. A process that is
// stopped or cut off is found out sooner, by gRPC's pings.
const defaultStall = time.Minute

// turns tells whose turn it is in a stream: odd while its other side must do something.
type turns struct{ atomic.Uint64 }

// other makes a call that waits for the other side.
func (t *turns) other(call func() error) error {
	t.Add(1)
	defer t.Add(1)
	return call()
}

// watch runs the work of a stream, and ends the stream if its other side does nothing
// for as long as stall: else a few such streams could hold all slots. Ending the stream
// is what ends the work.
func (s *Server) watch(work func(t *turns) error) error {
	var t turns
	if s.local {
		return work(&t)
	}
	done := make(chan error, 1)
	go func() { done <- work(&t) }()
	tick := time.NewTicker(s.stall)
	defer tick.Stop()
	for last := t.Load(); ; {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			now := t.Load()
			if now == last && now%2 == 1 {
				return status.Errorf(codes.Unavailable, "the stream's other side did nothing for %s", s.stall)
			}
			last = now
		}
	}
}
