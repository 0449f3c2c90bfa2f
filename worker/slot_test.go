package worker

import (
	"context"
	"slices"
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// gatedStore writes when it is let.
type gatedStore struct {
	putStore
	gate chan struct{}
}

func (s *gatedStore) Put(ctx context.Context, values []store.Value) error {
	select {
	case <-s.gate:
		return s.putStore.Put(ctx, values)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// overlapping is an agent of one slot whose tasks write to s and are told of to ran.
func overlapping(f *fakeTasks, s Store, ran chan<- uint32) *Agent {
	return &Agent{Name: "test", Slots: 1, Batch: 8, Overlap: true, Tasks: f, Executor: runFunc(
		func(ctx context.Context, _ *taxonv1.JobResult, l *taxonv1.Lease) (*taxonv1.Sums, Stats, error) {
			key := store.Key{Job: l.Job, Step: l.Step, Task: l.Task, Attempt: l.Attempt, Name: "dual"}
			err := write(ctx, s, []store.Value{{Key: key, Data: []byte{1}}}, nil)
			ran <- l.Task
			return &taxonv1.Sums{}, Stats{}, err
		})}
}

// A slot works on a batch while the one before is written, but no further.
func TestSlotWorksWhileItWrites(t *testing.T) {
	f, s, ran := newFakeTasks(), &gatedStore{gate: make(chan struct{})}, make(chan uint32, 9)
	for task := range uint32(3) {
		f.leases <- testLease(task)
	}
	stop := startAgent(t, overlapping(f, s, ran))
	for want := range uint32(2) {
		if got := <-ran; got != want {
			t.Fatalf("task %d runs, want %d", got, want)
		}
	}
	f.mu.Lock()
	if len(f.reports) > 0 || len(f.leases) != 1 || len(ran) > 0 {
		t.Errorf("%d reports, %d tasks wait: nothing is written yet, and two batches are held", len(f.reports), len(f.leases))
	}
	f.mu.Unlock()
	close(s.gate)
	f.eventually(t, "three reports", func() bool { return len(f.reports) == 3 })
	stop()
	for n, r := range f.reports {
		if r.Lease.Task != uint32(n) || r.Error != "" {
			t.Errorf("report %d: %v", n, r)
		}
	}
}

// What an answer brings while the slot works is kept alive, and done next.
func TestSlotTakesTasksAhead(t *testing.T) {
	f, s, ran := newFakeTasks(), &gatedStore{gate: make(chan struct{}, 9)}, make(chan uint32)
	f.leaseFor = 3000000 // 3 ms, see Register
	f.leases <- testLease(0)
	f.leases <- testLease(1)
	f.next = []*taxonv1.Lease{testLease(2), testLease(3)}
	stop := startAgent(t, overlapping(f, s, ran))
	<-ran // 0: its batch is delivered now, and waits for the store
	f.eventually(t, "the second task", func() bool { return len(f.leases) == 0 })
	s.gate <- struct{}{}
	f.eventually(t, "a renewal of what came ahead", func() bool { return slices.Contains(f.renewed, testLease(2).Epoch) })
	for want := uint32(1); want < 4; want++ {
		if got := <-ran; got != want {
			t.Fatalf("task %d runs, want %d", got, want)
		}
		s.gate <- struct{}{}
	}
	f.eventually(t, "all reports", func() bool { return len(f.reports) == 4 })
	stop()
	for n, r := range f.reports {
		if r.Lease.Task != uint32(n) || r.Next && !r.Ahead {
			t.Errorf("report %d: %v", n, r)
		}
	}
	if f.reports[3].Next {
		t.Error("a slot that waits for a lease asked for another one")
	}
}

// A worker that leaves gives back what it writes, what it works on and what came ahead.
func TestLeavingSlotGivesAllBack(t *testing.T) {
	f, s, ran := newFakeTasks(), &gatedStore{gate: make(chan struct{}, 1)}, make(chan uint32)
	f.leases <- testLease(0)
	f.leases <- testLease(1)
	f.next = []*taxonv1.Lease{testLease(2)}
	stop := startAgent(t, overlapping(f, s, ran))
	<-ran
	f.eventually(t, "the second task", func() bool { return len(f.leases) == 0 })
	s.gate <- struct{}{}
	f.eventually(t, "the first report", func() bool { return len(f.reports) == 1 })
	<-ran // 1: computed, not written
	go func() {
		for range ran { // 2 may begin before the end is seen
		}
	}()
	stop()
	close(ran)
	for _, r := range f.reports[1:] {
		if !r.Returned {
			t.Errorf("not given back: %v", r)
		}
	}
	if len(f.reports) != 3 || len(s.calls) != 1 || len(f.left) != 1 {
		t.Errorf("%d reports, %d calls of the store", len(f.reports), len(s.calls))
	}
}
