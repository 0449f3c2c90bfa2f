package worker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker/program"
)

// putStore counts the calls that write, and fails with err.
type putStore struct {
	mu    sync.Mutex
	calls [][]store.Value
	err   error
}

func (s *putStore) Put(ctx context.Context, values []store.Value) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, slices.Clone(values))
	return s.err
}

func (s *putStore) Get(context.Context, []store.Key) ([][]byte, error) { return nil, nil }

// writer is an Executor whose tasks write so many bytes.
func writer(s Store, bytes int, kept *int) runFunc {
	return func(ctx context.Context, _ *taxonv1.JobResult, l *taxonv1.Lease) (*taxonv1.Sums, Stats, error) {
		key := store.Key{Job: l.Job, Step: l.Step, Task: l.Task, Attempt: l.Attempt, Name: "dual"}
		err := write(ctx, s, []store.Value{{Key: key, Data: make([]byte, bytes)}}, func() { *kept++ })
		return &taxonv1.Sums{Values: []float64{float64(l.Task)}}, Stats{}, err
	}
}

// batchOf hands out tasks 0 to n-1 together.
func batchOf(f *fakeTasks, n uint32) {
	for task := uint32(1); task < n; task++ {
		f.more = append(f.more, testLease(task))
	}
	f.leases <- testLease(0)
}

// reported are a batch's reports, the first one's before the others'.
func reported(f *fakeTasks) (all []*taxonv1.ReportRequest) {
	for _, r := range f.reports {
		all = append(append(all, r), r.More...)
	}
	return all
}

// The tasks of a batch are written by one call and told of by one.
func TestBatchIsWrittenOnce(t *testing.T) {
	f, s, kept := newFakeTasks(), &putStore{}, 0
	batchOf(f, 5)
	stop := startAgent(t, &Agent{Name: "test", Slots: 1, Batch: 8, Tasks: f, Executor: writer(s, 10, &kept)})
	f.eventually(t, "a report", func() bool { return len(f.reports) > 0 })
	stop()
	all := reported(f)
	if len(f.reports) != 1 || len(all) != 5 || len(s.calls) != 1 || len(s.calls[0]) != 5 || kept != 5 {
		t.Fatalf("%d reports of %d tasks, %d calls of the store, %d values kept", len(f.reports), len(all), len(s.calls),
			kept)
	}
	for n, r := range all {
		if r.Lease.Task != uint32(n) || r.Sums.Values[0] != float64(n) || r.Error != "" {
			t.Errorf("report %d: %v", n, r)
		}
	}
	if f.most[0] != 8 || f.reports[0].Most != 8 || f.reports[0].Worker != "w1" {
		t.Errorf("asked for %v tasks, report %v", f.most, f.reports[0])
	}
}

// Large values go out in several calls, so that a batch meets no limit that a task would not.
func TestBatchOfLargeValues(t *testing.T) {
	f, s, kept := newFakeTasks(), &putStore{}, 0
	batchOf(f, 5)
	stop := startAgent(t, &Agent{Name: "test", Slots: 1, Batch: 8, Tasks: f, Executor: writer(s, outboxBytes/2, &kept)})
	f.eventually(t, "a report", func() bool { return len(f.reports) > 0 })
	stop()
	if len(s.calls) != 3 || len(s.calls[0]) != 2 || kept != 5 {
		t.Errorf("%d calls of the store, %d values kept", len(s.calls), kept)
	}
}

// No task of a batch is reported done whose values are not in the store.
func TestBatchThatIsNotWritten(t *testing.T) {
	f, s, kept := newFakeTasks(), &putStore{err: store.ErrUnavailable}, 0
	batchOf(f, 3)
	stop := startAgent(t, &Agent{Name: "test", Slots: 1, Batch: 8, Tasks: f, Executor: writer(s, 10, &kept)})
	f.eventually(t, "a report", func() bool { return len(f.reports) > 0 })
	stop()
	for _, r := range reported(f) {
		if r.Error == "" || !r.Unavailable || r.Returned {
			t.Errorf("report %v", r)
		}
	}
	if kept != 0 {
		t.Errorf("%d values are kept that are not in the store", kept)
	}
}

// A task that fails, or whose lease is lost, does not touch the others of its batch.
func TestBatchWithALostLease(t *testing.T) {
	f, s, kept := newFakeTasks(), &putStore{}, 0
	batchOf(f, 4)
	f.lost = []uint64{101}
	f.leaseFor = 3000000 // 3 ms, see Register
	next := writer(s, 10, &kept)
	stop := startAgent(t, &Agent{Name: "test", Slots: 1, Batch: 8, Tasks: f, Executor: runFunc(
		func(ctx context.Context, job *taxonv1.JobResult, l *taxonv1.Lease) (*taxonv1.Sums, Stats, error) {
			switch l.Task {
			case 1:
				<-ctx.Done() // until the renewal tells
				return nil, Stats{}, ctx.Err()
			case 2:
				return nil, Stats{}, program.Deterministic(errors.New("shard is damaged"))
			}
			return next(ctx, job, l)
		})})
	f.eventually(t, "a report", func() bool { return len(f.reports) > 0 })
	stop()
	all := reported(f)
	if len(all) != 3 || all[0].Error != "" || all[1].Lease.Task != 2 || !all[1].Deterministic || all[2].Lease.Task != 3 ||
		all[2].Error != "" || kept != 2 {
		t.Errorf("reports %v, %d kept", all, kept)
	}
}

// A worker that leaves at once gives all of a batch back.
func TestLeavingWorkerGivesBatchBack(t *testing.T) {
	f, s, kept := newFakeTasks(), &putStore{}, 0
	batchOf(f, 4)
	begun := make(chan struct{})
	next := writer(s, 10, &kept)
	stop := startAgent(t, &Agent{Name: "test", Slots: 1, Batch: 8, Tasks: f, Executor: runFunc(
		func(ctx context.Context, job *taxonv1.JobResult, l *taxonv1.Lease) (*taxonv1.Sums, Stats, error) {
			if l.Task == 2 {
				close(begun)
				<-ctx.Done()
				return nil, Stats{}, ctx.Err()
			}
			return next(ctx, job, l)
		})})
	<-begun
	stop()
	all := reported(f)
	for _, r := range all { // what is computed but not written is not done
		if !r.Returned {
			t.Errorf("not given back: %v", r)
		}
	}
	if len(all) != 4 || len(s.calls) > 0 {
		t.Errorf("%d reports, %d calls of the store", len(all), len(s.calls))
	}
}

// A lease that is lost while the batch's values so far are written does not stop that.
func TestLostLeaseDoesNotStopWriting(t *testing.T) {
	s := &putStore{}
	box := &outbox{batch: t.Context()}
	large := func(task uint32) []store.Value {
		return []store.Value{{Key: store.Key{Job: "j", Step: 1, Task: task, Attempt: 1, Name: "dual"},
			Data: make([]byte, outboxBytes)}}
	}
	if err := write(withOutbox(t.Context(), box), s, large(0), nil); err != nil {
		t.Fatal(err)
	}
	lost, stop := context.WithCancel(t.Context())
	stop()
	if err := write(withOutbox(lost, box), s, large(1), nil); err != nil || len(s.calls) != 1 {
		t.Errorf("%v after %d calls of the store", err, len(s.calls))
	}
}
