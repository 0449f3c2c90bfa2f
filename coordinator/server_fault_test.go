package coordinator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"taxon/coordinator"
	"taxon/coordinator/journal"
	"taxon/coordinator/machine"
	"taxon/internal/fs/vfs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"
	"taxon/worker"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// executorFunc is an Executor of one function.
type executorFunc func(ctx context.Context, l *taxonv1.Lease) (*taxonv1.Sums, error)

func (f executorFunc) Run(ctx context.Context, _ *taxonv1.JobResult,
	l *taxonv1.Lease) (*taxonv1.Sums, worker.Stats, error) {
	sums, err := f(ctx, l)
	return sums, worker.Stats{CPUSeconds: 0.001}, err
}

// checkpoints keeps the last checkpoint of a job and may stop a training at some sweep.
type checkpoints struct {
	mu    sync.Mutex
	store *toyStore
	saved *toyStore
	state []byte
	sweep uint32
	count int
	err   error
	at    func(sweep uint32) // called after each, without the lock
}

func (c *checkpoints) Checkpoint(_ context.Context, job string, sweep uint32, state []byte, keep []uint32) error {
	c.mu.Lock()
	c.saved, c.state, c.sweep = c.store.copySteps(job, keep), state, sweep
	c.count++
	err := c.err
	c.mu.Unlock()
	if c.at != nil {
		c.at(sweep)
	}
	return err
}

// A job that was cancelled continues from its checkpoint in another process, with the same
// weights; so does one that was killed, from whatever checkpoint came last.
func TestCheckpointAndResume(t *testing.T) {
	for _, schedule := range schedules {
		t.Run(schedule, func(t *testing.T) {
			want, calm := train(t, machinetest.Spec(schedule, 0), 2)
			for _, stopAt := range []uint32{1, 2, 5} {
				got, st := trainInTwoParts(t, machinetest.Spec(schedule, 0), stopAt)
				if !slices.Equal(got, want) {
					t.Errorf("stopped at sweep %d: other weights", stopAt)
				}
				if st.Sweep != calm.Sweep || len(st.Trace) != len(calm.Trace) || st.CpuSeconds < 0.9*calm.CpuSeconds {
					t.Errorf("stopped at sweep %d: ends at sweep %d with %d lines of trace and %g s", stopAt, st.Sweep, len(st.Trace),
						st.CpuSeconds)
				}
			}
		})
	}
}

// trainInTwoParts cancels a job at a sweep and finishes it on a new server and store.
func trainInTwoParts(t *testing.T, spec *taxonv1.JobSpec, stopAt uint32) ([]uint64, *taxonv1.JobStatus) {
	t.Helper()
	store := newToyStore()
	points := &checkpoints{store: store}
	c := newCluster(t, coordinator.Config{Store: store, Checkpointer: points, Limits: machine.Limits{CheckpointEvery: 1,
		CheckpointSweeps: 1, Lease: 60 * ms}})
	var once sync.Once
	points.at = func(sweep uint32) {
		if sweep >= stopAt {
			once.Do(func() {
				if _, err := c.jobs.Cancel(context.Background(), &taxonv1.CancelRequest{Job: "j"}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	// The sweep after it hangs until the leases are lost.
	c.work(2, executorFunc(func(ctx context.Context, l *taxonv1.Lease) (*taxonv1.Sums, error) {
		if l.Sweep > stopAt {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return store.run(l)
	}))
	c.submit("j", spec)
	st := c.wait("j")
	if st.State != taxonv1.JobState_JOB_STATE_CANCELLED || st.StoppedBy != "cancelled" {
		t.Fatalf("job ended %v by %q: %s", st.State, st.StoppedBy, st.Error)
	}
	c.stop()

	c = newCluster(t, coordinator.Config{Store: points.saved})
	c.work(3, points.saved)
	id, err := c.server.SubmitCheckpoint(points.state)
	if err != nil || id != "j" {
		t.Fatalf("resume: job %q, %v", id, err)
	}
	if _, err := c.server.SubmitCheckpoint(points.state); !errors.Is(err, machine.ErrJobExists) {
		t.Errorf("a second resume: %v", err)
	}
	st = c.wait("j")
	if st.State != taxonv1.JobState_JOB_STATE_DONE {
		t.Fatalf("resumed job ended %v: %s", st.State, st.Error)
	}
	weights, err := points.saved.weights(st)
	if err != nil {
		t.Fatal(err)
	}
	return weights, st
}

func TestCheckpointThatFails(t *testing.T) {
	store := newToyStore()
	points := &checkpoints{store: store, err: errors.New("no space left on device")}
	c := newCluster(t, coordinator.Config{Store: store, Checkpointer: points, Limits: machine.Limits{CheckpointEvery: 1}})
	c.work(1, store)
	spec := machinetest.Spec("twoblock", 0)
	spec.Options.Set("gap", 1e-300) // never
	st := c.wait(c.submit("", spec))
	if st.State != taxonv1.JobState_JOB_STATE_FAILED || !strings.Contains(st.Error, "no space left") {
		t.Errorf("job ended %v: %s", st.State, st.Error)
	}
}

// The server is killed again and again, with its journal in a file; agents come and go.
func TestServerRestarts(t *testing.T) {
	want, _ := train(t, machinetest.Spec("twoblock", 0), 1)
	store := newToyStore()
	rng := rand.New(rand.NewPCG(3, 1))
	dir := t.TempDir()
	for life := 0; ; life++ {
		if life > 100 {
			t.Fatal("the job does not end")
		}
		journal, snapshot, records, err := journal.Open(vfs.OS, dir)
		if err != nil {
			t.Fatal(err)
		}
		c := newCluster(t, coordinator.Config{
			Store: store, Journal: journal, Snapshot: snapshot, Records: records,
			Limits: machine.Limits{Lease: 100 * ms},
		})
		if life == 0 {
			c.submit("j", machinetest.Spec("twoblock", 0))
		}
		// This life ends after some tasks: a deaf agent then holds leases that nobody renews.
		left := 5 + rng.IntN(20)
		var mu sync.Mutex
		dead := make(chan struct{})
		stop := c.work(2, executorFunc(func(ctx context.Context, l *taxonv1.Lease) (*taxonv1.Sums, error) {
			mu.Lock()
			left--
			if left == 0 {
				close(dead)
			}
			over := left <= 0
			mu.Unlock()
			if over {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return store.run(l)
		}))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			watch, err := c.jobs.Watch(context.Background(), &taxonv1.StatusRequest{Job: "j"})
			for err == nil {
				_, err = watch.Recv()
			}
		}()
		select {
		case <-dead:
			c.stop()
			stop()
			<-ended
			continue
		case <-ended:
		}
		st := c.wait("j")
		got, err := store.weights(st)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("after %d restarts: other weights, %v", life, err)
		}
		if life == 0 {
			t.Error("no restart: this test shows nothing")
		}
		stop()
		c.stop()
		return
	}
}

// A store that is away for a while costs time, nothing else.
func TestStoreOutage(t *testing.T) {
	store := newToyStore()
	store.failures = 3
	var told sync.Map
	c := newCluster(t, coordinator.Config{Store: store, Failed: func(err error) { told.Store(err.Error(), true) }})
	stop := c.work(2, store)
	st := c.wait(c.submit("", machinetest.Spec("twoblock", 0)))
	if st.State != taxonv1.JobState_JOB_STATE_DONE {
		t.Errorf("job ended %v: %s", st.State, st.Error)
	}
	stop()
	waitFor(t, func() bool { return slices.Equal(store.steps(st.Job), keptAtEnd(st, store)) })
	n := 0
	told.Range(func(any, any) bool { n++; return true })
	if n == 0 {
		t.Error("nobody was told of the outage")
	}
}

// keptAtEnd is what an ended job may leave: its final step and the steps it was made from.
func keptAtEnd(st *taxonv1.JobStatus, store *toyStore) []uint32 {
	steps := store.steps(st.Job)
	if len(steps) > 4 || !slices.Contains(steps, st.FinalStep) {
		return nil
	}
	return steps
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it did not happen")
}

func TestSubmitErrors(t *testing.T) {
	c := newCluster(t, coordinator.Config{Store: newToyStore()})
	for name, change := range map[string]func(*taxonv1.JobSpec){
		"no options":  func(s *taxonv1.JobSpec) { s.Options = nil },
		"gap 0":       func(s *taxonv1.JobSpec) { s.Options.Set("gap", 0) },
		"gap 2":       func(s *taxonv1.JobSpec) { s.Options.Set("gap", 2) },
		"C 0":         func(s *taxonv1.JobSpec) { s.Options.Set("c", 0) },
		"bias -1":     func(s *taxonv1.JobSpec) { s.Options.Set("bias", -1) },
		"max_seconds": func(s *taxonv1.JobSpec) { s.Options.Set("max_seconds", -1) },
		"schedule":    func(s *taxonv1.JobSpec) { s.Options.Set("schedule", "twoblok") },
		"prune":       func(s *taxonv1.JobSpec) { s.Options.Set("prune", "some") },
		"labels":      func(s *taxonv1.JobSpec) { s.Data.LabelInstances = nil },
		"cycle": func(s *taxonv1.JobSpec) {
			s.Structure.Parents = append(s.Structure.Parents, s.Structure.Children[0])
			s.Structure.Children = append(s.Structure.Children, 0)
		},
	} {
		spec := machinetest.Spec("twoblock", 0)
		change(spec)
		_, err := c.jobs.Submit(context.Background(), &taxonv1.SubmitRequest{Spec: spec})
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.submit("j", machinetest.Spec("twoblock", 0))
	c.submit("j", machinetest.Spec("twoblock", 0)) // again, as after a lost answer
	_, err := c.jobs.Submit(context.Background(), &taxonv1.SubmitRequest{Spec: machinetest.Spec("parity", 0), Job: "j"})
	if status.Code(err) != codes.AlreadyExists {
		t.Errorf("another job of one id: %v", err)
	}
	if _, err := c.jobs.Status(context.Background(),
		&taxonv1.StatusRequest{Job: "x"}); status.Code(err) != codes.NotFound {
		t.Errorf("status of no job: %v", err)
	}
	if _, err := c.tasks.Lease(context.Background(),
		&taxonv1.LeaseRequest{Worker: "x"}); status.Code(err) != codes.NotFound {
		t.Errorf("lease of no worker: %v", err)
	}
}

// Nothing hangs and nothing leaks when a server closes under waiting calls.
func TestCloseEndsWaitingCalls(t *testing.T) {
	c := newCluster(t, coordinator.Config{Store: newToyStore()})
	r, err := c.tasks.Register(context.Background(), &taxonv1.RegisterRequest{Name: "w", Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	c.submit("j", machinetest.Spec("twoblock", 0))
	for range 3 { // all tasks of the step
		if l, err := c.tasks.Lease(context.Background(), &taxonv1.LeaseRequest{Worker: r.Worker}); err != nil ||
			l.Lease == nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 2)
	go func() {
		_, err := c.tasks.Lease(context.Background(), &taxonv1.LeaseRequest{Worker: r.Worker})
		ended <- err
	}()
	go func() {
		watch, err := c.jobs.Watch(context.Background(), &taxonv1.StatusRequest{Job: "j"})
		for err == nil {
			_, err = watch.Recv()
		}
		ended <- err
	}()
	c.stop()
	for range 2 {
		if err := <-ended; err == nil {
			t.Error("a call ended well on a closed server")
		}
	}
	// A Lease call with a deadline answers before it.
	d := newCluster(t, coordinator.Config{Store: newToyStore()})
	if r, err = d.tasks.Register(context.Background(), &taxonv1.RegisterRequest{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if l, err := d.tasks.Lease(ctx, &taxonv1.LeaseRequest{Worker: r.Worker}); err != nil || l.Lease != nil {
		t.Errorf("a lease call without tasks: %v, %v", l, err)
	}
}

// BenchmarkWholeJob measures what the machine, the shell and an agent cost per task on a
// job of 212 blocks: divide by the tasks reported.
func BenchmarkWholeJob(b *testing.B) {
	spec := machinetest.Spec("twoblock", 40)
	spec.Options.Set("gap", 1e-300)
	for n := range 3300 {
		name := fmt.Sprintf("x%d", n)
		spec.Structure.Names = append(spec.Structure.Names, name)
		spec.Structure.Parents = append(spec.Structure.Parents, 1)
		spec.Structure.Children = append(spec.Structure.Children, uint32(len(spec.Structure.Names)-1))
		spec.Data.Labels, spec.Data.LabelInstances = append(spec.Data.Labels, name), append(spec.Data.LabelInstances, 5)
	}
	tasks := 0
	var mu sync.Mutex
	for b.Loop() {
		t := &testing.T{}
		c := newCluster(t, coordinator.Config{Store: newToyStore()})
		stop := c.work(2, executorFunc(func(_ context.Context, l *taxonv1.Lease) (*taxonv1.Sums, error) {
			mu.Lock()
			tasks++
			mu.Unlock()
			return &taxonv1.Sums{Values: machinetest.Sums(l)}, nil
		}))
		c.wait(c.submit("", spec))
		stop()
		c.stop()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tasks), "ns/task")
}
