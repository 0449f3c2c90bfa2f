package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker/program"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fakeTasks is a coordinator of one function per call; the zero value hands out nothing.
type fakeTasks struct {
	mu       sync.Mutex
	leases   chan *taxonv1.Lease
	lost     []uint64 // epochs to be named as lost
	reports  []*taxonv1.ReportRequest
	left     []string
	renewed  []uint64
	workers  int
	fetches  int
	refuse   map[string]int // calls that fail so many times: by name
	code     codes.Code     // with this
	leaseFor time.Duration
	next     []*taxonv1.Lease // handed out with the answers to reports
	more     []*taxonv1.Lease // come along with the next lease
	most     []uint32         // what askers took together at most
	drain    bool             // workers are taken out
	unknown  string           // this worker is not registered (any more)
}

func newFakeTasks() *fakeTasks {
	return &fakeTasks{leases: make(chan *taxonv1.Lease, 100), refuse: map[string]int{}, code: codes.Unavailable,
		leaseFor: 30 * time.Millisecond}
}

// fault is the error that a call meets. The caller holds mu.
func (f *fakeTasks) fault(call, worker string) error {
	if worker != "" && worker == f.unknown {
		return status.Error(codes.NotFound, "unknown worker")
	}
	if f.refuse[call] > 0 {
		f.refuse[call]--
		return status.Error(f.code, "away")
	}
	return nil
}

func (f *fakeTasks) Register(context.Context, *taxonv1.RegisterRequest,
	...grpc.CallOption) (*taxonv1.RegisterResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fault("register", ""); err != nil {
		return nil, err
	}
	f.workers++
	return &taxonv1.RegisterResult{Worker: fmt.Sprintf("w%d", f.workers), LeaseMs: uint32(f.leaseFor / time.Millisecond)},
		nil
}

func (f *fakeTasks) Job(_ context.Context, r *taxonv1.JobRequest, _ ...grpc.CallOption) (*taxonv1.JobResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fetches++
	if err := f.fault("job", ""); err != nil {
		return nil, err
	}
	return &taxonv1.JobResult{Plan: &taxonv1.Plan{Items: make([]*taxonv1.Items, len(r.Job))}}, nil
}

func (f *fakeTasks) Lease(ctx context.Context, r *taxonv1.LeaseRequest,
	_ ...grpc.CallOption) (*taxonv1.LeaseResult, error) {
	f.mu.Lock()
	err := f.fault("lease", r.Worker)
	drain := f.drain
	f.mu.Unlock()
	if err != nil || drain {
		return &taxonv1.LeaseResult{Drain: drain}, err
	}
	select {
	case l := <-f.leases:
		f.mu.Lock()
		defer f.mu.Unlock()
		if err := f.fault("lease", r.Worker); err != nil {
			f.leases <- l
			return nil, err
		}
		out := &taxonv1.LeaseResult{Lease: l, More: f.more}
		f.more, f.most = nil, append(f.most, r.Most)
		return out, nil
	case <-time.After(20 * time.Millisecond):
		return &taxonv1.LeaseResult{}, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

func (f *fakeTasks) Renew(_ context.Context, r *taxonv1.RenewRequest,
	_ ...grpc.CallOption) (*taxonv1.RenewResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fault("renew", r.Worker); err != nil {
		return nil, err
	}
	out := &taxonv1.RenewResult{}
	for _, l := range r.Leases {
		f.renewed = append(f.renewed, l.Epoch)
		if slices.Contains(f.lost, l.Epoch) {
			out.Lost = append(out.Lost, l)
		}
	}
	return out, nil
}

func (f *fakeTasks) Report(_ context.Context, r *taxonv1.ReportRequest,
	_ ...grpc.CallOption) (*taxonv1.ReportResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fault("report", r.Worker); err != nil {
		return nil, err
	}
	f.reports = append(f.reports, r)
	out := &taxonv1.ReportResult{Accepted: true}
	if r.Next && len(f.next) > 0 {
		out.Lease, f.next = f.next[0], f.next[1:]
	}
	return out, nil
}

func (f *fakeTasks) Leave(_ context.Context, r *taxonv1.LeaveRequest,
	_ ...grpc.CallOption) (*taxonv1.LeaveResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = append(f.left, r.Worker)
	return &taxonv1.LeaveResult{}, nil
}

// runFunc is an Executor of one function.
type runFunc func(ctx context.Context, job *taxonv1.JobResult, l *taxonv1.Lease) (*taxonv1.Sums, Stats, error)

func (f runFunc) Run(ctx context.Context, job *taxonv1.JobResult, l *taxonv1.Lease) (*taxonv1.Sums, Stats, error) {
	return f(ctx, job, l)
}

// double answers with twice the task's number.
var double = runFunc(func(_ context.Context, _ *taxonv1.JobResult, l *taxonv1.Lease) (*taxonv1.Sums, Stats, error) {
	return &taxonv1.Sums{Values: []float64{2 * float64(l.Task)}}, Stats{CPUSeconds: 1, BytesRead: 2, BytesWritten: 3}, nil
})

// untilCancelled works until it is told to stop.
var untilCancelled = runFunc(func(ctx context.Context, _ *taxonv1.JobResult, _ *taxonv1.Lease) (*taxonv1.Sums, Stats,
	error) {
	<-ctx.Done()
	return nil, Stats{}, ctx.Err()
})

func testLease(task uint32) *taxonv1.Lease {
	return &taxonv1.Lease{Job: "j", Step: 1, Task: task, Attempt: 1, Epoch: uint64(task) + 100}
}

// start runs an agent; stop ends it and checks that nothing is left behind.
func start(t *testing.T, f *fakeTasks, slots int, grace time.Duration, e Executor) (stop func()) {
	t.Helper()
	return startAgent(t, &Agent{Name: "test", Slots: slots, Tasks: f, Executor: e, Grace: grace})
}

func startAgent(t *testing.T, a *Agent) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- a.Run(ctx)
	}()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, goleak.IgnoreCurrent())
	}
	t.Cleanup(stop)
	return stop
}

func (f *fakeTasks) eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		f.mu.Lock()
		done := ok()
		f.mu.Unlock()
		if done {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func TestAgentRunsAndReports(t *testing.T) {
	f := newFakeTasks()
	for n := range uint32(5) {
		f.leases <- testLease(n)
	}
	f.next = []*taxonv1.Lease{testLease(5), testLease(6)} // come with reports
	stop := start(t, f, 3, 0, double)
	f.eventually(t, "seven reports", func() bool { return len(f.reports) == 7 })
	stop()
	seen := map[uint32]bool{}
	for _, r := range f.reports {
		seen[r.Lease.Task] = true
		if r.Error != "" || r.Sums.Values[0] != 2*float64(r.Lease.Task) || r.CpuSeconds != 1 || r.BytesRead != 2 ||
			r.BytesWritten != 3 ||
			r.Worker != "w1" || r.Lease.Epoch != uint64(r.Lease.Task)+100 {
			t.Errorf("report %v", r)
		}
	}
	if len(seen) != 7 || f.fetches != 1 || f.workers != 1 || !slices.Equal(f.left, []string{"w1"}) {
		t.Errorf("%d tasks, %d fetches of one job, %d registrations, left %v", len(seen), f.fetches, f.workers, f.left)
	}
}

func TestAgentReportsErrors(t *testing.T) {
	for _, test := range []struct {
		err           error
		deterministic bool
	}{
		{errors.New("store is away"), false},
		{program.Deterministic(errors.New("shard is damaged")), true},
		{fmt.Errorf("block 3: %w", program.Deterministic(errors.New("shard is damaged"))), true},
	} {
		f := newFakeTasks()
		f.leases <- testLease(0)
		stop := start(t, f, 1, 0, runFunc(func(context.Context, *taxonv1.JobResult, *taxonv1.Lease) (*taxonv1.Sums, Stats,
			error) {
			return nil, Stats{}, test.err
		}))
		f.eventually(t, "a report", func() bool { return len(f.reports) == 1 })
		stop()
		if r := f.reports[0]; r.Error != test.err.Error() || r.Deterministic != test.deterministic || r.Returned {
			t.Errorf("%v: report %v", test.err, r)
		}
	}
	if program.Deterministic(nil) != nil || program.IsDeterministic(nil) || program.IsDeterministic(errLost) {
		t.Error("no error is deterministic by itself")
	}
	inner := errors.New("inner")
	if !errors.Is(program.Deterministic(inner), inner) {
		t.Error("Deterministic hides its error")
	}
}

// An agent survives outages in every call, and goes on where it was.
func TestAgentSurvivesOutages(t *testing.T) {
	for _, call := range []string{"register", "job", "lease", "renew", "report"} {
		f := newFakeTasks()
		f.refuse[call] = 3
		for n := range uint32(4) {
			// a task whose job can't be fetched is reported with an error
			f.leases <- testLease(n)
		}
		stop := start(t, f, 1, 0, double)
		f.eventually(t, "all reports through outage of "+call, func() bool {
			return len(f.reports) == 4 &&
				f.refuse[call] == 0
		})
		stop()
		if last := f.reports[3]; last.Error != "" {
			t.Errorf("%s: last report %v", call, last)
		}
	}
}

// A coordinator that no longer knows the worker: it registers anew, its old work stops
// and is not reported.
func TestAgentRegistersAgain(t *testing.T) {
	f := newFakeTasks()
	f.leases <- testLease(0)
	began := make(chan struct{}, 10)
	stop := start(t, f, 2, 0, runFunc(func(ctx context.Context, job *taxonv1.JobResult, l *taxonv1.Lease) (*taxonv1.Sums,
		Stats, error) {
		began <- struct{}{}
		if l.Task == 0 {
			return untilCancelled(ctx, job, l)
		}
		return double(ctx, job, l)
	}))
	<-began
	f.mu.Lock()
	f.unknown = "w1"
	f.mu.Unlock()
	f.eventually(t, "a second registration", func() bool { return f.workers == 2 })
	f.leases <- testLease(1)
	f.eventually(t, "a report of the new worker", func() bool { return len(f.reports) == 1 })
	stop()
	if r := f.reports[0]; r.Worker != "w2" || r.Lease.Task != 1 {
		t.Errorf("report %v", r)
	}
}

// Leases are renewed while their tasks run; a lost one ends its task without a report.
// TestAgentDenied: access that is denied from the beginning ends the agent; denied to one
// that was registered it is asked for again, as files may be being changed.
func TestAgentDenied(t *testing.T) {
	for _, code := range []codes.Code{codes.Unauthenticated, codes.PermissionDenied} {
		f := newFakeTasks()
		f.refuse["register"], f.code = 1<<30, code
		if err := (&Agent{Name: "test", Slots: 3, Tasks: f, Executor: double}).Run(t.Context()); status.Code(err) != code {
			t.Errorf("from the beginning: %v", err)
		}
		f = newFakeTasks()
		stop := start(t, f, 2, 0, double)
		f.eventually(t, "a registration", func() bool { return f.workers == 1 })
		f.mu.Lock()
		f.unknown, f.refuse["register"], f.code = "w1", 5, code
		f.mu.Unlock()
		f.eventually(t, "a second registration", func() bool { return f.workers == 2 })
		stop()
	}
}

func TestAgentStopsLostWork(t *testing.T) {
	f := newFakeTasks()
	f.leases <- testLease(0)
	cause := make(chan error, 1)
	stop := start(t, f, 1, 0, runFunc(func(ctx context.Context, job *taxonv1.JobResult, l *taxonv1.Lease) (*taxonv1.Sums,
		Stats, error) {
		if l.Task == 1 {
			return double(ctx, job, l)
		}
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil, Stats{}, ctx.Err()
	}))
	f.eventually(t, "two renewals", func() bool { return len(f.renewed) >= 2 })
	f.mu.Lock()
	f.lost = []uint64{100}
	f.mu.Unlock()
	if err := <-cause; !errors.Is(err, errLost) {
		t.Errorf("the task ended by %v", err)
	}
	f.leases <- testLease(1)
	f.eventually(t, "the next task's report", func() bool { return len(f.reports) == 1 })
	stop()
	if r := f.reports[0]; r.Lease.Task != 1 {
		t.Errorf("report %v", r)
	}
}

// Without grace a leaving agent gives its task back; with grace it may finish.
func TestAgentDrains(t *testing.T) {
	for _, grace := range []time.Duration{0, 20 * time.Millisecond, time.Minute} {
		f := newFakeTasks()
		f.leases <- testLease(3)
		began, finish := make(chan struct{}), make(chan struct{})
		stop := start(t, f, 2, grace, runFunc(func(ctx context.Context, job *taxonv1.JobResult,
			l *taxonv1.Lease) (*taxonv1.Sums, Stats, error) {
			close(began)
			select {
			case <-ctx.Done():
				return nil, Stats{}, ctx.Err()
			case <-finish:
				return double(ctx, job, l)
			}
		}))
		<-began
		if grace == time.Minute {
			time.AfterFunc(30*time.Millisecond, func() { close(finish) })
		}
		stop()
		if len(f.reports) != 1 || f.reports[0].Returned != (grace < time.Minute) || f.reports[0].Next {
			t.Errorf("grace %v: reports %v", grace, f.reports)
		}
		if !slices.Equal(f.left, []string{"w1"}) {
			t.Errorf("left %v", f.left)
		}
	}
}

// A drained agent finishes what it has begun, however long that takes, and ends.
func TestAgentIsDrained(t *testing.T) {
	f := newFakeTasks()
	f.leases <- testLease(3)
	began, finish := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- (&Agent{Name: "test", Slots: 2, Tasks: f, Executor: runFunc(func(ctx context.Context, job *taxonv1.JobResult,
			l *taxonv1.Lease) (*taxonv1.Sums, Stats, error) {
			close(began)
			<-finish
			return double(ctx, job, l)
		})}).Run(t.Context())
	}()
	<-began
	f.mu.Lock()
	f.drain = true
	f.mu.Unlock()
	time.Sleep(50 * time.Millisecond) // the other slot learns of it
	close(finish)
	if err := <-ended; !errors.Is(err, ErrDrained) {
		t.Errorf("a drained agent ended with %v", err)
	}
	if len(f.reports) != 1 || f.reports[0].Returned || f.reports[0].Error != "" || f.reports[0].Next ||
		!slices.Equal(f.left, []string{"w1"}) {
		t.Errorf("reports %v, left %v", f.reports, f.left)
	}
}

// What the store lacks is named, so that it can be made again.
func TestAgentReportsLostValues(t *testing.T) {
	key := func(step, task uint32, name string) store.Key {
		return store.Key{Job: "j", Step: step, Task: task, Attempt: 2, Name: name}
	}
	away := fmt.Errorf("put: %w", store.ErrUnavailable)
	for _, test := range []struct {
		err         error
		lost        string
		unavailable bool
	}{
		{&store.LostError{Keys: []store.Key{key(3, 1, "v/0"), key(3, 1, "v/1"), key(3, 2, "v/0")}, Err: store.ErrMissing},
			"[step:3 task:1 attempt:2 step:3 task:2 attempt:2]", false},
		{fmt.Errorf("get: %w", &store.KeyError{Op: "get", Key: key(4, 5, "x"), Err: store.ErrCorrupt}),
			"[step:4 task:5 attempt:2]", false},
		{away, "[]", true},
		{fmt.Errorf("put: %w", store.ErrFull), "[]", true},
		{errors.New("other"), "[]", false},
	} {
		f := newFakeTasks()
		f.leases <- testLease(0)
		stop := start(t, f, 1, 0, runFunc(func(context.Context, *taxonv1.JobResult, *taxonv1.Lease) (*taxonv1.Sums, Stats,
			error) {
			return nil, Stats{}, test.err
		}))
		f.eventually(t, "a report", func() bool { return len(f.reports) == 1 })
		stop()
		r := f.reports[0]
		if got := strings.ReplaceAll(fmt.Sprint(r.Lost), "  ", " "); got != test.lost || r.Unavailable != test.unavailable {
			t.Errorf("%v: lost %v, unavailable %v", test.err, got, r.Unavailable)
		}
	}
}

func TestAgentBadSetup(t *testing.T) {
	if err := (&Agent{Slots: 0, Tasks: newFakeTasks(), Executor: double}).Run(context.Background()); err == nil {
		t.Error("an agent without slots ran")
	}
	if err := (&Agent{Slots: 1}).Run(context.Background()); err == nil {
		t.Error("an agent without a coordinator ran")
	}
}

// One fetch serves all who wait; old jobs make room.
func TestJobCache(t *testing.T) {
	var c jobCache
	c.init()
	fetches := 0
	get := func(id string) {
		r, err := c.get(t.Context(), id, func(context.Context) (*taxonv1.JobResult, error) {
			fetches++
			return &taxonv1.JobResult{}, nil
		})
		if err != nil || r == nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		for n := range maxJobs {
			get(fmt.Sprint(n))
		}
	}
	if fetches != maxJobs {
		t.Errorf("%d fetches of %d jobs", fetches, maxJobs)
	}
	get("another")
	get("0")
	get("7")
	if fetches != maxJobs+2 {
		t.Errorf("%d fetches: the one used longest ago should have gone", fetches)
	}
	_, err := c.get(t.Context(), "bad", func(context.Context) (*taxonv1.JobResult, error) { return nil, errLost })
	if !errors.Is(err, errLost) {
		t.Errorf("error %v", err)
	}
	get("bad") // an error is not remembered
}
