package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A worker whose renewal fails does not wait for the next one's turn: the coordinator may be
// back, and has to hear it before its lease is over. The time is a pretended one.
func TestRenewsSoonAfterFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeTasks()
		f.leaseFor = 12 * time.Second
		f.refuse["renew"] = 2
		f.leases <- testLease(0)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- (&Agent{Name: "test", Slots: 1, Tasks: f, Executor: untilCancelled}).Run(ctx)
		}()
		for _, at := range []struct {
			passed  time.Duration
			renewed int
		}{{3900 * time.Millisecond, 0}, {2200 * time.Millisecond, 1}, {3800 * time.Millisecond, 1}, {200 * time.Millisecond,
			2}} {
			time.Sleep(at.passed)
			synctest.Wait()
			f.mu.Lock()
			if len(f.renewed) != at.renewed {
				t.Errorf("%d renewals, want %d", len(f.renewed), at.renewed)
			}
			f.mu.Unlock()
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
