package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"taxon/internal/pause"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker/program"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Executor runs one task: it reads what the lease refers to, computes, and writes the
// results under the lease's attempt. It returns after everything it wrote is in the
// store, or lies with the batch that ctx says the task belongs to (Agent.Batch). It must
// give up soon after ctx ends. Several tasks run at a time.
//
// An error made by program.Deterministic fails the job; any other one makes the coordinator
// hand the task out again.
type Executor interface {
	Run(ctx context.Context, job *taxonv1.JobResult, lease *taxonv1.Lease) (*taxonv1.Sums, Stats, error)
}

// Stats says what a task cost.
type Stats = program.Stats

const (
	// leaseTimeout is above the coordinator's own bound on a Lease call, which answers first.
	leaseTimeout = 30 * time.Second
	// callTimeout bounds the other calls: they answer at once.
	callTimeout = 10 * time.Second
	// farewell bounds giving tasks back and leaving, after which the leases run out anyway.
	farewell = 2 * time.Second
	// firstWait and maxWait bound the pause before a call that failed is made again; it doubles.
	firstWait = 20 * time.Millisecond
	maxWait   = 2 * time.Second
	// maxJobBytes is the greatest JobResult: labels and structure of millions of classes.
	maxJobBytes = 1 << 30
)

// Batch is an Agent.Batch for a Trainer: beyond it the calls around the tasks are no more
// than a thirtieth of what they were.
const Batch = 32

// Agent takes tasks from a coordinator and has an Executor run them. Slots, Tasks and
// Executor are required.
type Agent struct {
	Name   string
	Slots  int    // tasks that run at a time
	Memory uint64 // bytes that its tasks may take, told to the coordinator; 0: not told
	Batch  uint32 // short tasks that a slot takes together at most; 0: one. The Executor must be a Trainer, or lead to one
	// Overlap: a slot writes and reports a batch while it works on the next one, which hides
	// the way to the store and its disk. The Executor must be a Trainer, or lead to one.
	Overlap  bool
	Tasks    taxonv1.TasksClient
	Executor Executor
	// Grace is how long running tasks may go on after Run's context ended; the ones that
	// do not end in it are given back. Zero: all are given back at once.
	Grace time.Duration
	// Failed is told of calls and tasks that failed, as it happens; nil: not told.
	Failed func(error)
	// Shards is told where the store's shards are, at each registration; nil: not told.
	Shards func([]*taxonv1.Shard)
	// Previous is the id under which a process of this name, now dead, was registered:
	// what it held need not be waited for. "": none.
	Previous string
	// Registered is told of each registration; nil: not told.
	Registered func(worker string)

	mu       sync.Mutex
	identity *identity             // nil: not registered
	held     map[uint64]*heldLease // by epoch
	jobs     jobCache

	end         func(error) // ends the leasing, and is what Run returns
	known       bool        // it has been registered once
	registering sync.Mutex  // held by the slot that registers
	registered  signal      // raised for the renewer
}

// identity is a registration.
type identity struct {
	worker string
	lease  time.Duration
}

// errLost ends the context of a task whose lease is no longer held.
var errLost = errors.New("the lease was lost")

// errLeaving ends the context of a task that is to be given back.
var errLeaving = errors.New("the worker is leaving")

// ErrDrained is what Run returns when the coordinator has taken the worker out.
var ErrDrained = errors.New("the worker was drained")

// Run works until ctx ends, then gives back what is not done (see Grace), or until the
// coordinator takes it out (drain), then finishes what it has begun; it leaves and
// returns nil, or ErrDrained. It survives outages of the coordinator. Any other error means
// that the agent is not set up rightly: one that is denied access from the beginning ends
// with that; once registered it asks on, as its files, or the coordinator's, may be being
// changed. When it returns all of its goroutines have ended.
func (a *Agent) Run(ctx context.Context) error {
	leasing, stopLeasing := context.WithCancel(ctx)
	defer stopLeasing()
	var why error
	var once sync.Once
	a.end = func(err error) { once.Do(func() { why = err; stopLeasing() }) }
	if a.Slots < 1 || a.Tasks == nil || a.Executor == nil {
		return fmt.Errorf("worker %s: needs a coordinator, an executor and at least one slot, has %d", a.Name, a.Slots)
	}
	a.held = map[uint64]*heldLease{}
	a.jobs.init()
	a.registered = make(signal, 1)
	// Tasks outlive ctx by Grace, and the renewer all of them.
	tasks, endTasks := context.WithCancelCause(context.WithoutCancel(ctx))
	renewing, endRenewing := context.WithCancel(context.WithoutCancel(ctx))
	var slots, rest sync.WaitGroup
	for range a.Slots {
		slots.Go(func() { (&slot{Agent: a, ctx: ctx, leasing: leasing, tasks: tasks}).run() })
	}
	rest.Go(func() { a.renew(renewing) })
	rest.Go(func() {
		select {
		case <-ctx.Done():
			_ = pause.For(renewing, a.Grace) // cut short when the slots are done
			endTasks(errLeaving)
		case <-renewing.Done():
		}
	})
	slots.Wait()
	endRenewing()
	rest.Wait()
	endTasks(nil)
	a.leave(ctx)
	return why
}

// denied says whether the coordinator and this process do not accept each other.
func denied(err error) bool {
	code := status.Code(err)
	return code == codes.Unauthenticated || code == codes.PermissionDenied
}

// outlive is a context that ends a time after ctx does.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, end) })
	return longer, func() { stop(); end() }
}

func (a *Agent) tell(ctx context.Context, err error) {
	if a.Failed != nil && ctx.Err() == nil {
		a.Failed(err)
	}
}

// job returns what the coordinator says about a job; it never changes.
func (a *Agent) job(ctx context.Context, id string) (*taxonv1.JobResult, error) {
	return a.jobs.get(ctx, id, func(ctx context.Context) (*taxonv1.JobResult, error) {
		call, done := context.WithTimeout(ctx, callTimeout)
		defer done()
		r, err := a.Tasks.Job(call, &taxonv1.JobRequest{Job: id}, grpc.MaxCallRecvMsgSize(maxJobBytes))
		if err != nil {
			return nil, fmt.Errorf("specification of job %s: %w", id, err)
		}
		return r, nil
	})
}
