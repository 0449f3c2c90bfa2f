package coordinator_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"taxon/coordinator"
	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"
	"taxon/worker"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// chaos is a connection that loses and doubles messages, until it is cut for good.
type chaos struct {
	taxonv1.TasksClient
	mu  sync.Mutex
	rng *rand.Rand
	cut bool
}

var errCut = status.Error(codes.Canceled, "connection was cut")

// call sends a message: lost before it arrives, delivered twice, or its answer lost.
func call[Q, A any](c *chaos, ctx context.Context, q Q, send func(context.Context, Q, ...grpc.CallOption) (A,
	error)) (A, error) {
	c.mu.Lock()
	fate, cut := c.rng.IntN(20), c.cut
	c.mu.Unlock()
	var none A
	switch {
	case cut:
		return none, errCut
	case fate == 0:
		return none, status.Error(codes.Unavailable, "message lost")
	case fate == 1:
		_, _ = send(ctx, q)
	case fate == 2:
		_, _ = send(ctx, q)
		return none, status.Error(codes.Unavailable, "answer lost")
	}
	return send(ctx, q)
}

func (c *chaos) Register(ctx context.Context, q *taxonv1.RegisterRequest,
	_ ...grpc.CallOption) (*taxonv1.RegisterResult, error) {
	return call(c, ctx, q, c.TasksClient.Register)
}

func (c *chaos) Job(ctx context.Context, q *taxonv1.JobRequest, _ ...grpc.CallOption) (*taxonv1.JobResult, error) {
	return call(c, ctx, q, c.TasksClient.Job)
}

func (c *chaos) Lease(ctx context.Context, q *taxonv1.LeaseRequest,
	_ ...grpc.CallOption) (*taxonv1.LeaseResult, error) {
	// The real call waits for half a minute; losing its answer here must not take so long.
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	return call(c, ctx, q, c.TasksClient.Lease)
}

func (c *chaos) Renew(ctx context.Context, q *taxonv1.RenewRequest,
	_ ...grpc.CallOption) (*taxonv1.RenewResult, error) {
	return call(c, ctx, q, c.TasksClient.Renew)
}

func (c *chaos) Report(ctx context.Context, q *taxonv1.ReportRequest,
	_ ...grpc.CallOption) (*taxonv1.ReportResult, error) {
	return call(c, ctx, q, c.TasksClient.Report)
}

func (c *chaos) Leave(ctx context.Context, q *taxonv1.LeaveRequest,
	_ ...grpc.CallOption) (*taxonv1.LeaveResult, error) {
	return call(c, ctx, q, c.TasksClient.Leave)
}

// Agents are killed at random and connections are bad; some agents are so slow that
// their leases run out. Two jobs at once end with the weights of the calm runs.
func TestChaos(t *testing.T) {
	specs := []*taxonv1.JobSpec{machinetest.Spec("twoblock", 5), machinetest.Spec("parity", 3)}
	var want [][]uint64
	for _, spec := range specs {
		w, _ := train(t, spec, 2)
		want = append(want, w)
	}
	store := newToyStore()
	c := newCluster(t, coordinator.Config{Store: store, Limits: machine.Limits{
		Lease: 60 * ms, Backoff: ms, MaxBackoff: 20 * ms, MaxErrors: 1000, MaxLosses: 1000,
	}})
	jobs := []string{c.submit("a", specs[0]), c.submit("b", specs[1])}
	stop := make(chan struct{})
	var agents sync.WaitGroup
	for n := range 4 {
		agents.Go(func() { killAgents(c, store, uint64(n), stop) })
	}
	retried := uint32(0)
	for i, job := range jobs {
		st := c.wait(job)
		got, err := store.weights(st)
		if err != nil || !slices.Equal(got, want[i]) {
			t.Errorf("job %s ended %v %s: other weights, %v", job, st.State, st.Error, err)
		}
		retried += st.Tasks.Retried
	}
	close(stop)
	agents.Wait()
	if retried == 0 {
		t.Error("no task was tried again: this test shows nothing")
	}
}

// killAgents runs one agent after the other, each for a short life.
func killAgents(c *cluster, store *toyStore, n uint64, stop <-chan struct{}) {
	rng := rand.New(rand.NewPCG(n, 2))
	for {
		link := &chaos{TasksClient: c.tasks, rng: rand.New(rand.NewPCG(rng.Uint64(), 3))}
		ctx, cancel := context.WithCancel(context.Background())
		ended, overlap := make(chan error, 1), rng.IntN(2) == 0
		slow := executorFunc(func(ctx context.Context, l *taxonv1.Lease) (*taxonv1.Sums, error) {
			link.mu.Lock()
			nap := time.Duration(link.rng.IntN(4)) * time.Millisecond
			if link.rng.IntN(20) == 0 {
				nap = 100 * time.Millisecond // longer than a lease, and deaf to its loss
			}
			link.mu.Unlock()
			time.Sleep(nap)
			return store.run(l)
		})
		go func() {
			ended <- (&worker.Agent{Name: "chaos", Slots: 2, Overlap: overlap, Tasks: link, Executor: slow}).Run(ctx)
		}()
		life := time.NewTimer(time.Duration(50+rng.IntN(200)) * time.Millisecond)
		last := false
		select {
		case <-life.C:
		case <-stop:
			last = true
		}
		life.Stop()
		if rng.IntN(2) == 0 { // killed; else it leaves in good order
			link.mu.Lock()
			link.cut = true
			link.mu.Unlock()
		}
		cancel()
		if err := <-ended; err != nil {
			c.t.Error(err)
		}
		if last {
			return
		}
	}
}
