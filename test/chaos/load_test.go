package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/cluster"
	"taxon/worker"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	idleWorkers = 500
	// callPause makes 10,000 calls a minute.
	callPause = 6 * time.Millisecond

	// coordinatorMiB is the coordinator's memory under this load according to docs/faults.md.
	coordinatorMiB = 256
)

// idler is the executor of a worker that must get no task.
type idler struct{}

func (idler) Run(context.Context, *taxonv1.JobResult, *taxonv1.Lease) (*taxonv1.Sums, worker.Stats, error) {
	return nil, worker.Stats{}, errors.New("an idle worker has got a task")
}

// TestManyCallers checks that many idle workers and many calls cost a coordinator little time and
// memory.
func TestManyCallers(t *testing.T) {
	thorough(t)
	_, gap, _ := settings(t)
	calls := 500
	if os.Getenv("TAXON_DATA") != "" {
		calls = 10000
	}
	c := bench.Up(t, 1, 1)
	job := c.Submit(t, gap)
	if s := c.Await(t, job, nil); s.State != "done" {
		t.Fatalf("the job ended as %s", s.State)
	}
	coordinator := c.Process(t, "coordinator")
	idle(t, coordinator.Addr)
	conn := dial(t, coordinator.Addr)
	jobs := taxonv1.NewJobsClient(conn)
	awaitWorkers(t, jobs, idleWorkers+1)
	took := make([]time.Duration, 0, calls)
	pace := time.NewTicker(callPause)
	defer pace.Stop()
	for range calls {
		<-pace.C
		began := time.Now()
		if _, err := jobs.Status(t.Context(), &taxonv1.StatusRequest{Job: job}); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	peak := peakMiB(t, coordinator)
	t.Logf("%d idle workers, %d calls of status: median %v, slowest %v; the coordinator took %d MiB at most", idleWorkers,
		calls, took[calls/2], took[calls-1], peak)
	if peak > coordinatorMiB {
		t.Errorf("the coordinator took %d MiB, more than %d", peak, coordinatorMiB)
	}
}

// idle connects many workers, each through its own connection.
func idle(t *testing.T, addr string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	for i := range idleWorkers {
		a := &worker.Agent{Name: fmt.Sprint("idle-", i), Slots: 1, Tasks: taxonv1.NewTasksClient(dial(t, addr)),
			Executor: idler{}}
		running.Go(func() {
			if err := a.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

func dial(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// awaitWorkers waits until n workers are registered.
func awaitWorkers(t *testing.T, jobs taxonv1.JobsClient, n int) {
	t.Helper()
	for end := time.Now().Add(bench.Deadline); ; time.Sleep(50 * time.Millisecond) {
		r, err := jobs.Workers(t.Context(), &taxonv1.WorkersRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.GetWorkers()) >= n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d workers of %d have registered", len(r.GetWorkers()), n)
		}
	}
}

// peakMiB returns the largest resident memory of a process.
func peakMiB(t *testing.T, p cluster.Process) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
	if err != nil {
		t.Skip("the system does not tell a process's memory")
	}
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// TestStatusWhileCoordinatorDies checks that status calls succeed while the coordinator is killed
// again and again: they wait for it.
func TestStatusWhileCoordinatorDies(t *testing.T) {
	t.Parallel()
	_, gap, longer := settings(t)
	want := bench.Embedded(t, gap, longer...)
	c := bench.Up(t, 2, 1)
	job := c.Submit(t, gap, longer...)
	var took []time.Duration
	last, sweep, kills := time.Now(), uint32(0), 0
	c.Done(t, job, want, func(s cluster.Status) {
		took = append(took, time.Since(last)) // includes the harness's own pause of 20 ms
		if s.Sweep >= sweep+10 {
			sweep = s.Sweep
			c.Process(t, "coordinator").Signal(syscall.SIGKILL)
			kills++
		}
		last = time.Now()
	})
	slices.Sort(took)
	if kills == 0 {
		t.Fatal("the coordinator was never killed")
	}
	t.Logf("coordinator killed %d times; %d questions, median %v, slowest %v", kills, len(took), took[len(took)/2],
		took[len(took)-1])
}
