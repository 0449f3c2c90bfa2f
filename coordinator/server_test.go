package coordinator_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"taxon/coordinator"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"
	"taxon/worker"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a server behind an in-memory transport.
type cluster struct {
	t      *testing.T
	server *coordinator.Server
	jobs   taxonv1.JobsClient
	tasks  taxonv1.TasksClient
	stores taxonv1.MembersClient
	conn   grpc.ClientConnInterface
	stop   func() // ends the server; may be called twice
}

func newCluster(t *testing.T, config coordinator.Config) *cluster {
	t.Helper()
	server, err := coordinator.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	pipe := bufconn.Listen(1 << 20)
	g := grpc.NewServer()
	server.Register(g)
	served := make(chan struct{})
	go func() { defer close(served); _ = g.Serve(pipe) }()
	conn, err := grpc.NewClient("passthrough:bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	c := &cluster{t: t, server: server, jobs: taxonv1.NewJobsClient(conn), tasks: taxonv1.NewTasksClient(conn),
		stores: taxonv1.NewMembersClient(conn), conn: conn}
	c.stop = func() {
		if stopped {
			return
		}
		stopped = true
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		conn.Close()
		g.Stop()
		<-served
	}
	t.Cleanup(c.stop)
	return c
}

// work runs an agent until the returned function is called.
func (c *cluster) work(slots int, e worker.Executor) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- (&worker.Agent{Name: "toy", Slots: slots, Tasks: c.tasks, Executor: e}).Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			c.t.Error(err)
		}
	}
	c.t.Cleanup(stop)
	return stop
}

func (c *cluster) submit(id string, spec *taxonv1.JobSpec) string {
	c.t.Helper()
	r, err := c.jobs.Submit(context.Background(), &taxonv1.SubmitRequest{Spec: spec, Job: id})
	if err != nil {
		c.t.Fatal(err)
	}
	return r.Job
}

// wait watches a job to its end and checks that the trace comes without holes.
func (c *cluster) wait(job string) *taxonv1.JobStatus {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	watch, err := c.jobs.Watch(ctx, &taxonv1.StatusRequest{Job: job})
	if err != nil {
		c.t.Fatal(err)
	}
	next := uint32(1)
	var trace []*taxonv1.SweepRecord
	for {
		st, err := watch.Recv()
		if err != nil {
			c.t.Fatalf("watch: %v", err)
		}
		for _, r := range st.Trace {
			if r.Sweep != next {
				c.t.Fatalf("trace goes on with sweep %d, want %d", r.Sweep, next)
			}
			next++
		}
		trace = append(trace, st.Trace...)
		if st.State >= taxonv1.JobState_JOB_STATE_DONE {
			st.Trace = trace
			return st
		}
	}
}

// train runs one job to its end and returns its weights.
func train(t *testing.T, spec *taxonv1.JobSpec, slots ...int) ([]uint64, *taxonv1.JobStatus) {
	t.Helper()
	store := newToyStore()
	c := newCluster(t, coordinator.Config{Store: store})
	for _, n := range slots {
		defer c.work(n, store)()
	}
	st := c.wait(c.submit("", spec))
	if st.State != taxonv1.JobState_JOB_STATE_DONE {
		t.Fatalf("job ended %v: %s", st.State, st.Error)
	}
	weights, err := store.weights(st)
	if err != nil {
		t.Fatal(err)
	}
	return weights, st
}

var schedules = []string{"twoblock", "parity", "colour", "jacobi", "flat"}

// A whole job of every schedule ends at its tolerance, with the same result for any
// number of workers and slots.
func TestWholeJobs(t *testing.T) {
	for _, schedule := range schedules {
		t.Run(schedule, func(t *testing.T) {
			want, st := train(t, machinetest.Spec(schedule, 0), 1)
			if st.StoppedBy != "gap" || st.Certificate.GetGap() > 1e-3 || len(want) == 0 {
				t.Fatalf("stopped by %q at gap %g with %d values", st.StoppedBy, st.Certificate.GetGap(), len(want))
			}
			for _, slots := range [][]int{{2}, {3}, {1, 2, 1}} {
				if got, _ := train(t, machinetest.Spec(schedule, 0), slots...); !slices.Equal(got, want) {
					t.Errorf("slots %v: other weights", slots)
				}
			}
		})
	}
}
