package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/pause"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker/program"
)

// Executor runs one task: it reads what the lease refers to, computes, and writes the results
// under the lease's attempt. When it returns, everything it wrote is in the store, or in the
// outbox of the batch that the task belongs to (Agent.Batch). It must give up soon after ctx
// ends. Several tasks run at a time.
//
// An error marked by program.Deterministic fails the job. After any other error the coordinator
// leases the task again.
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
	// shutdownGrace bounds the calls that give tasks back and sign off. Without them the leases
	// run out.
	shutdownGrace = 2 * time.Second
	// firstWait and maxWait bound the pause before a failed call is repeated. The pause doubles
	// each time.
	firstWait = 20 * time.Millisecond
	maxWait   = 2 * time.Second
	// maxJobBytes bounds a JobResult. It holds the labels and the structure, for millions of
	// classes.
	maxJobBytes = 1 << 30
)

// Batch is the usual Agent.Batch for a Trainer. With 32 tasks a batch the cost of the calls is a
// thirtieth; larger batches save next to nothing.
const Batch = 32

// Agent takes tasks from a coordinator and has an Executor run them. Slots, Tasks and
// Executor are required.
type Agent struct {
	Name   string
	Slots  int    // tasks that run at a time
	Memory uint64 // bytes that its tasks may take, reported to the coordinator; 0: not reported
	Batch  uint32 // most short tasks that a slot takes together; 0: one. The Executor must be a Trainer, or end in one
	// Overlap lets a slot write and report one batch while it works on the next. That hides the
	// time of the store and its disk. The Executor must be a Trainer, or end in one.
	Overlap  bool
	Tasks    taxonv1.TasksClient
	Executor Executor
	// Grace is how long running tasks may go on after Run's context ended. Those that do not end
	// in time are given back. Zero: all are given back at once.
	Grace time.Duration
	// Failed is called for each failed call and task; nil: not called.
	Failed func(error)
	// Shards is called with the addresses of the store's shards at each registration; nil: not
	// called.
	Shards func([]*taxonv1.Shard)
	// Previous is the id under which a process of this name, now dead, was registered. The
	// coordinator need not wait for that process's leases to run out. "": none.
	Previous string
	Version  string // of this worker's taxon, shown in lists of workers
	// Registered is called at each registration; nil: not called.
	Registered func(worker string)

	mu       sync.Mutex
	identity *identity             // nil: not registered
	held     map[uint64]*heldLease // by epoch
	jobs     jobCache

	end         func(error) // ends the leasing with the error that Run returns
	known       bool        // it has been registered before
	registering sync.Mutex  // held by the slot that registers
	registered  signal      // wakes the renewer
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

// Run works until ctx ends or the coordinator drains the worker. After ctx ends it gives back
// what is not done (see Grace) and returns nil. When drained it finishes what it has begun and
// returns ErrDrained. It survives outages of the coordinator.
//
// Any other error means that the agent is not set up rightly. A worker that is denied access at
// its first registration ends with that error. Once it has been registered it keeps asking,
// because its certificates, or the coordinator's, may be in the middle of a change. When Run
// returns, all of its goroutines have ended.
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
	// Tasks go on for Grace after ctx, and the renewer outlives all of them.
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

// denied says whether err means that coordinator and worker do not accept each other.
func denied(err error) bool {
	code := status.Code(err)
	return code == codes.Unauthenticated || code == codes.PermissionDenied
}

// extendContext is a context that ends a time after ctx does.
func extendContext(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, end) })
	return longer, func() { stop(); end() }
}

func (a *Agent) tell(ctx context.Context, err error) {
	if a.Failed != nil && ctx.Err() == nil {
		a.Failed(err)
	}
}

// job returns a job's specification, which never changes.
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

// maxJobs is the number of jobs whose specification is kept: a coordinator runs few at a time.
const maxJobs = 8

// jobCache keeps the specifications of the jobs used last. Slots that need the same one wait for
// one fetch.
type jobCache struct {
	mu   sync.Mutex
	jobs []*cachedJob // last used last
}

// cachedJob is filled by the slot that holds its token.
type cachedJob struct {
	id     string
	token  chan struct{} // of capacity 1: held while fetching
	result *taxonv1.JobResult
}

func (c *jobCache) init() { c.jobs = nil }

// get returns a job, fetching it if it is not there.
func (c *jobCache) get(ctx context.Context, id string, fetch func(context.Context) (*taxonv1.JobResult, error)) (*taxonv1.JobResult, error) {
	j := c.entry(id)
	select {
	case j.token <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-j.token }()
	if j.result != nil {
		return j.result, nil
	}
	r, err := fetch(ctx)
	if err != nil {
		return nil, err
	}
	j.result = r
	return r, nil
}

// entry finds or makes the entry of a job and marks it as used last.
func (c *jobCache) entry(id string) *cachedJob {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.jobs, func(j *cachedJob) bool { return j.id == id })
	var j *cachedJob
	if at >= 0 {
		j = c.jobs[at]
		c.jobs = slices.Delete(c.jobs, at, at+1)
	} else {
		j = &cachedJob{id: id, token: make(chan struct{}, 1)}
	}
	c.jobs = append(c.jobs, j)
	if len(c.jobs) > maxJobs {
		c.jobs = slices.Delete(c.jobs, 0, 1)
	}
	return j
}

// signal wakes one waiter: at once, or the next one that comes.
type signal chan struct{}

func (s signal) signal() {
	select {
	case s <- struct{}{}:
	default:
	}
}

func (s signal) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s:
		return nil
	}
}

// register returns the agent's registration, and registers if there is none.
func (a *Agent) register(ctx context.Context) (*identity, error) {
	a.mu.Lock()
	me := a.identity
	a.mu.Unlock()
	if me != nil {
		return me, nil
	}
	a.registering.Lock()
	defer a.registering.Unlock()
	a.mu.Lock()
	me = a.identity
	a.mu.Unlock()
	if me != nil { // another slot was faster
		return me, nil
	}
	call, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	r, err := a.Tasks.Register(call, &taxonv1.RegisterRequest{Name: a.Name, Slots: uint32(a.Slots), MemoryBytes: a.Memory, Previous: a.Previous, Version: a.Version})
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	if a.Shards != nil {
		a.Shards(r.GetShards())
	}
	if a.Registered != nil {
		a.Registered(r.GetWorker())
	}
	me = &identity{worker: r.Worker, lease: time.Duration(max(r.LeaseMs, 1)) * time.Millisecond}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.identity, a.known = me, true
	a.registered.signal()
	return me, nil
}

// wasKnown says whether the agent has been registered once.
func (a *Agent) wasKnown() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known
}

// forgetIfUnknown drops a registration that the coordinator no longer knows, with all leases
// under it.
func (a *Agent) forgetIfUnknown(me *identity, err error) {
	if status.Code(err) != codes.NotFound {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.identity != nil && a.identity.worker == me.worker {
		a.identity = nil
	}
	for _, h := range a.held {
		if h.worker == me.worker {
			h.stop(errLost)
		}
	}
}

// renew renews the registration and the leases until ctx ends. It does so three times in a
// lease's life, so two lost messages do no harm. A failed call is repeated soon: a coordinator
// that has restarted must hear its workers before the leases run out.
func (a *Agent) renew(ctx context.Context) {
	for share := time.Duration(3); ; {
		a.mu.Lock()
		me := a.identity
		a.mu.Unlock()
		if me == nil {
			if a.registered.wait(ctx) != nil {
				return
			}
			continue
		}
		if pause.For(ctx, me.lease/share) != nil {
			return
		}
		if share = 3; !a.renewOnce(ctx, me) {
			share = 12
		}
	}
}

// renewOnce renews everything held under a registration, and stops the tasks whose lease was
// lost. It returns whether the coordinator answered.
func (a *Agent) renewOnce(ctx context.Context, me *identity) bool {
	r := &taxonv1.RenewRequest{Worker: me.worker}
	a.mu.Lock()
	for _, h := range a.held {
		if h.worker == me.worker {
			r.Leases = append(r.Leases, h.id)
		}
	}
	a.mu.Unlock()
	slices.SortFunc(r.Leases, func(x, y *taxonv1.LeaseId) int { return cmp.Compare(x.Epoch, y.Epoch) })
	call, done := context.WithTimeout(ctx, callTimeout)
	answer, err := a.Tasks.Renew(call, r)
	done()
	if err != nil {
		a.tell(ctx, fmt.Errorf("renew: %w", err))
		a.forgetIfUnknown(me, err)
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range answer.GetLost() {
		if h := a.held[id.GetEpoch()]; h != nil {
			h.stop(errLost)
		}
	}
	return true
}

// leave signs the worker off, so that its leases are given to others at once.
func (a *Agent) leave(ctx context.Context) {
	a.mu.Lock()
	me := a.identity
	a.mu.Unlock()
	if me == nil {
		return
	}
	call, done := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer done()
	if _, err := a.Tasks.Leave(call, &taxonv1.LeaveRequest{Worker: me.worker}); err != nil {
		a.tell(call, fmt.Errorf("leave: %w", err))
	}
}
