package coordinator_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"taxon/coordinator"
	"taxon/coordinator/machine"
	rr "taxon/internal/methods/rr/plan"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/test/machinetest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// logs reads a job's log to its end.
func (c *cluster) logs(r *taxonv1.LogsRequest) []*taxonv1.LogLine {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	stream, err := c.jobs.Logs(ctx, r)
	if err != nil {
		c.t.Fatal(err)
	}
	var out []*taxonv1.LogLine
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			c.t.Fatal(err)
		}
		out = append(out, m.Lines...)
	}
}

// Lists, logs and descriptions of jobs, while they run and when they have ended.
func TestListsAndLogs(t *testing.T) {
	store := newToyStore()
	c := newCluster(t, coordinator.Config{Store: store})
	_, err := c.jobs.Submit(t.Context(), &taxonv1.SubmitRequest{Spec: machinetest.Spec("twoblock", 3), Job: "a",
		Name: "the first"})
	if err != nil {
		t.Fatal(err)
	}
	c.submit("b", machinetest.Spec("parity", 2))
	c.work(2, store)
	lines := c.logs(&taxonv1.LogsRequest{Job: "a", Follow: true})
	if len(lines) < 5 || !strings.HasPrefix(lines[0].Text, "queued") || lines[len(lines)-1].Text != "done" {
		t.Errorf("log of a: %v", lines)
	}
	for i, l := range lines {
		if l.Number != uint64(i+1) || l.UnixMs < 1e12 || l.Level == "" {
			t.Errorf("line %v", l)
		}
	}
	if tail := c.logs(&taxonv1.LogsRequest{Job: "a", After: lines[1].Number}); len(tail) != len(lines)-2 {
		t.Errorf("%d of %d lines behind the second", len(tail), len(lines))
	}
	c.wait("b")
	jobs, err := c.jobs.ListJobs(t.Context(), &taxonv1.ListJobsRequest{})
	if err != nil || len(jobs.Jobs) != 2 {
		t.Fatalf("%v, %v", jobs, err)
	}
	if a := jobs.Jobs[0]; a.Job != "a" || a.Name != "the first" || a.State != taxonv1.JobState_JOB_STATE_DONE ||
		!a.Exportable ||
		a.Sweep != 3 || a.SubmittedUnixMs > a.StartedUnixMs || a.StartedUnixMs > a.EndedUnixMs || a.SubmittedUnixMs == 0 {
		t.Errorf("%v", a)
	}
	d, err := c.jobs.Describe(t.Context(), &taxonv1.JobRequest{Job: "a"})
	if err != nil || len(d.Plan.GetItems()) == 0 || d.Replicas != 1 {
		t.Errorf("%v, %v", d, err)
	}
	w, err := c.jobs.Workers(t.Context(), &taxonv1.WorkersRequest{})
	if err != nil || len(w.Workers) != 1 || w.Workers[0].Name != "toy" || w.Workers[0].TasksDone == 0 ||
		w.Workers[0].State != taxonv1.MemberState_MEMBER_STATE_UP {
		t.Errorf("%v, %v", w, err)
	}
	if _, err := c.jobs.Describe(t.Context(), &taxonv1.JobRequest{Job: "nobody"}); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown job: %v", err)
	}
}

// A queue that is full refuses with the number.
func TestFullQueue(t *testing.T) {
	c := newCluster(t, coordinator.Config{Store: newToyStore(), Limits: machine.Limits{MaxRunning: 1, MaxQueued: 2}})
	for _, id := range []string{"a", "b", "c"} {
		c.submit(id, machinetest.Spec("twoblock", 0))
	}
	_, err := c.jobs.Submit(t.Context(), &taxonv1.SubmitRequest{Spec: machinetest.Spec("twoblock", 0), Job: "d"})
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "3 jobs") {
		t.Errorf("a fourth job: %v", err)
	}
	st, err := c.jobs.Status(t.Context(), &taxonv1.StatusRequest{Job: "c"})
	if err != nil || st.QueuePosition != 2 || st.StartedUnixMs != 0 {
		t.Errorf("%v, %v", st, err)
	}
	if _, err := c.jobs.Cancel(t.Context(), &taxonv1.CancelRequest{Job: "b", Discard: true}); err != nil {
		t.Fatal(err)
	}
	c.submit("d", machinetest.Spec("twoblock", 0))
}

// A job that is cancelled in its middle goes on where it was, to the same weights; one
// that was discarded leaves nothing in the store and can't go on.
func TestCancelAndResumeInPlace(t *testing.T) {
	for _, schedule := range schedules {
		want, _ := train(t, machinetest.Spec(schedule, 0), 1)
		store := newToyStore()
		c := newCluster(t, coordinator.Config{Store: store})
		job := c.submit("", machinetest.Spec(schedule, 0))
		var once sync.Once
		c.work(2, executorFunc(func(ctx context.Context, l *taxonv1.Lease) (*taxonv1.Sums, error) {
			if l.Sweep == 3 {
				once.Do(func() { _, _ = c.jobs.Cancel(ctx, &taxonv1.CancelRequest{Job: job}) })
			}
			return store.run(l)
		}))
		if st := c.wait(job); st.State != taxonv1.JobState_JOB_STATE_CANCELLED || !st.Resumable || st.Sweep < 2 &&
			schedule != "flat" {
			t.Fatalf("%s: ended %v at sweep %d", schedule, st.State, st.Sweep)
		}
		if _, err := c.jobs.Resume(t.Context(), &taxonv1.ResumeRequest{Job: job}); err != nil {
			t.Fatal(err)
		}
		st := c.wait(job)
		got, err := store.weights(st)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: other weights, %v", schedule, err)
		}
		if _, err := c.jobs.Resume(t.Context(),
			&taxonv1.ResumeRequest{Job: job}); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("resume of a finished job: %v", err)
		}
		if _, err := c.jobs.Cancel(t.Context(), &taxonv1.CancelRequest{Job: job, Discard: true}); err != nil {
			t.Error(err)
		}
		eventually(t, "the store is empty", func() bool { return len(store.steps(job)) == 0 })
	}
}

// eventually waits for something that another goroutine does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

// A drained worker is told with its next question, and leaves its tasks done.
func TestDrain(t *testing.T) {
	c := newCluster(t, coordinator.Config{Store: newToyStore()})
	c.submit("j", machinetest.Spec("twoblock", 0))
	r, err := c.tasks.Register(t.Context(), &taxonv1.RegisterRequest{Name: "host", Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.tasks.Lease(t.Context(), &taxonv1.LeaseRequest{Worker: r.Worker})
	if err != nil || l.Lease == nil || l.Drain {
		t.Fatalf("%v, %v", l, err)
	}
	w, err := c.jobs.Drain(t.Context(), &taxonv1.DrainRequest{Worker: "host"})
	if err != nil || w.State != taxonv1.MemberState_MEMBER_STATE_DRAINING || w.Running != 1 || w.Worker != r.Worker {
		t.Fatalf("%v, %v", w, err)
	}
	if l, err := c.tasks.Lease(t.Context(), &taxonv1.LeaseRequest{Worker: r.Worker}); err != nil || !l.Drain ||
		l.Lease != nil {
		t.Errorf("%v, %v", l, err)
	}
	if _, err := c.jobs.Drain(t.Context(), &taxonv1.DrainRequest{Worker: "nobody"}); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown worker: %v", err)
	}
}

// Shards are known with where they are, and a job's are those that were up.
func TestStores(t *testing.T) {
	c := newCluster(t, coordinator.Config{Store: newToyStore(), Limits: machine.Limits{NeedShards: true, Lease: 300 * ms}})
	if _, err := c.jobs.Submit(t.Context(), &taxonv1.SubmitRequest{Spec: machinetest.Spec("twoblock",
		0)}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a job without shards: %v", err)
	}
	if _, err := c.stores.JoinStore(t.Context(),
		&taxonv1.JoinStoreRequest{Addr: "host:1"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a shard without an id: %v", err)
	}
	for _, s := range []*taxonv1.JoinStoreRequest{{Id: "s1", Addr: "host:1", Capacity: 1 << 40}, {Id: "s2", Addr: "host:2",
		Capacity: 1 << 40}} {
		if r, err := c.stores.JoinStore(t.Context(), s); err != nil || r.HeartbeatMs != 100 {
			t.Fatalf("%v, %v", r, err)
		}
	}
	if _, err := c.jobs.Submit(t.Context(), &taxonv1.SubmitRequest{Spec: machinetest.Spec("twoblock", 0),
		Replicas: 3}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("three replicas on two shards: %v", err)
	}
	_, err := c.jobs.Submit(t.Context(), &taxonv1.SubmitRequest{Spec: machinetest.Spec("twoblock", 0), Job: "j",
		Replicas: 2})
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.tasks.Job(t.Context(), &taxonv1.JobRequest{Job: "j"})
	if err != nil || len(d.Shards) != 2 || d.Shards[1].Addr != "host:2" || d.Replicas != 2 {
		t.Fatalf("%v, %v", d, err)
	}
	_, before := c.server.Shards()
	eventually(t, "a silent shard is down, and the version tells", func() bool {
		r, err := c.stores.JoinStore(t.Context(), &taxonv1.JoinStoreRequest{Id: "s1", Addr: "host:1"})
		return err == nil && r.Shards[0].State == taxonv1.MemberState_MEMBER_STATE_UP &&
			r.Shards[1].State == taxonv1.MemberState_MEMBER_STATE_DOWN && r.Version > before
	})
	if _, err := c.stores.LeaveStore(t.Context(), &taxonv1.LeaveStoreRequest{Id: "s1"}); err != nil {
		t.Fatal(err)
	}
	shards, err := c.jobs.Stores(t.Context(), &taxonv1.StoresRequest{})
	if err != nil || shards.Shards[0].State != taxonv1.MemberState_MEMBER_STATE_DOWN {
		t.Errorf("%v, %v", shards, err)
	}
}

// RestoreCheckpoint makes checkpoints a Restorer.
func (c *checkpoints) RestoreCheckpoint(context.Context, string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.saved == nil {
		return nil, nil
	}
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	for k, v := range c.saved.values {
		c.store.values[k] = v
	}
	return c.state, nil
}

// A store that loses values: they are made again, or the job goes back to its last
// checkpoint, or to its beginning; the weights are the same.
func TestLostValues(t *testing.T) {
	want, _ := train(t, machinetest.Spec("twoblock", 0), 1)
	for _, test := range []struct {
		name              string
		keep, checkpoints bool
		all               bool // all values go, else one
		remade, rollbacks bool
	}{
		{"made again", true, false, false, true, false},
		{"from the beginning", true, false, true, false, true},
		{"from a checkpoint", false, true, true, false, true},
	} {
		toy := newToyStore()
		config := coordinator.Config{Store: toy, Limits: machine.Limits{KeepInputs: test.keep, CheckpointEvery: 1}}
		if test.checkpoints {
			config.Checkpointer = &checkpoints{store: toy}
		}
		c := newCluster(t, config)
		var once sync.Once
		c.work(2, executorFunc(func(_ context.Context, l *taxonv1.Lease) (*taxonv1.Sums, error) {
			if l.Sweep == 4 && l.Items == rr.Blocks {
				once.Do(func() { toy.lose(l, test.all) })
			}
			for {
				sums, err := toy.run(l)
				if err == nil {
					return sums, nil
				}
				if lost := toy.missing(l); len(lost) > 0 { // else another task has brought it back meanwhile
					return nil, &store.LostError{Keys: lost, Err: store.ErrMissing}
				}
			}
		}))
		st := c.wait(c.submit("", machinetest.Spec("twoblock", 0)))
		got, err := toy.weights(st)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: ended %v %s: other weights, %v", test.name, st.State, st.Error, err)
		}
		if st.Remade > 0 != test.remade || st.Rollbacks > 0 != test.rollbacks {
			t.Errorf("%s: %d values made again, %d rollbacks", test.name, st.Remade, st.Rollbacks)
		}
	}
}

// lose takes values away: all, or one that a task reads.
func (s *toyStore) lose(l *taxonv1.Lease, all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := l.Inputs[1].Refs.Expand()[0]
	for k := range s.values {
		if all || k == (toyKey{l.Job, one.Step, one.Task, one.Attempt}) {
			delete(s.values, k)
		}
	}
}

// missing lists the values that a task reads and the store has not.
func (s *toyStore) missing(l *taxonv1.Lease) []store.Key {
	var places []taxonv1.Place
	for _, in := range l.Inputs {
		places = append(places, in.Refs.Expand()...)
	}
	var out []store.Key
	for _, p := range places {
		if _, err := s.read(l.Job, p); err != nil {
			out = append(out, store.Key{Job: l.Job, Step: p.Step, Task: p.Task, Attempt: p.Attempt})
		}
	}
	return out
}

// A shard that is away for one job holds up no other's commits.
func TestErrandsOfJobsDoNotWait(t *testing.T) {
	toy := newToyStore()
	stuck := &stuckStore{toyStore: toy, job: "a"}
	c := newCluster(t, coordinator.Config{Store: stuck})
	c.submit("a", machinetest.Spec("twoblock", 2))
	c.submit("b", machinetest.Spec("twoblock", 2))
	c.work(2, toy)
	c.wait("a")
	c.wait("b")
	eventually(t, "the steps of b are dropped", func() bool { return len(toy.steps("b")) <= 3 })
}

// stuckStore never carries out what is about one job.
type stuckStore struct {
	*toyStore
	job string
}

func (s *stuckStore) Commit(ctx context.Context, job string, step uint32, attempts []uint32) error {
	if job == s.job {
		return errToyStore
	}
	return s.toyStore.Commit(ctx, job, step, attempts)
}

// Registrations are bounded: who floods the coordinator with names is refused, and one
// that leaves makes room.
func TestWorkersAreBounded(t *testing.T) {
	m := machine.New(machine.Limits{})
	register := func() error {
		for _, a := range m.Step(0, machine.Register{Name: "w", Slots: 1}) {
			if r, ok := a.(machine.Refused); ok {
				return r.Err
			}
		}
		return nil
	}
	for n := range 16384 {
		if err := register(); err != nil {
			t.Fatalf("worker %d: %v", n, err)
		}
	}
	if err := register(); !errors.Is(err, machine.ErrTooManyWorkers) {
		t.Errorf("one too many: %v", err)
	}
	m.Step(0, machine.Leave{Worker: "w1"})
	if err := register(); err != nil {
		t.Errorf("after one has left: %v", err)
	}
}
