package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker/program"
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
	// shutdownGrace bounds giving tasks back and leaving, after which the leases run out anyway.
	shutdownGrace = 2 * time.Second
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
	Version  string // of its taxon, for those who list workers
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
			_ = retry.For(renewing, a.Grace) // cut short when the slots are done
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

// maxJobs is the number of jobs whose specification is kept: a coordinator runs few at a time.
const maxJobs = 8

// jobCache remembers the last used jobs; one fetch serves all slots that wait for it.
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

// signal wakes one waiter, now or later.
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

// register returns the agent's registration, making one if there is none.
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
	r, err := a.Tasks.Register(call, &taxonv1.RegisterRequest{Name: a.Name, Slots: uint32(a.Slots), MemoryBytes: a.Memory, Cores: uint32(runtime.NumCPU()), Previous: a.Previous, Version: a.Version})
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

// forgetIfUnknown drops a registration that the coordinator no longer knows, and all
// work that was leased under it.
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

// renew keeps the registration and the held leases alive until ctx ends: three times in
// a lease's life, so that two lost messages do no harm. A call that failed is made again
// soon: a coordinator that is back has the rest of a lease to hear its workers.
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
		if retry.For(ctx, me.lease/share) != nil {
			return
		}
		if share = 3; !a.renewOnce(ctx, me) {
			share = 12
		}
	}
}

// renewOnce renews what is held under a registration and stops what was lost. It returns
// whether the coordinator has answered.
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

// leave tells the coordinator that the worker ends. Its leases are then given to others at once.
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
