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

// Executor runs one task: it reads what the lease refers to, computes, and writes the results under
// the lease's attempt. It returns after everything it wrote is in the store, or is in the outbox of
// the batch that ctx says the task belongs to (Agent.Batch). It must return soon after ctx ends.
// Several tasks run at a time.
//
// An error made by program.Deterministic fails the job. After any other error the coordinator hands
// the task out again.
type Executor interface {
	Run(ctx context.Context, job *taxonv1.JobResult, lease *taxonv1.Lease) (*taxonv1.Sums, Stats, error)
}

// Stats says what a task cost.
type Stats = program.Stats

const (
	// leaseTimeout exceeds the coordinator's own bound on a Lease call, so that the coordinator
	// answers first.
	leaseTimeout = 30 * time.Second
	// callTimeout bounds the other calls, which are answered at once.
	callTimeout = 10 * time.Second
	// shutdownGrace bounds the calls that return tasks and leave. When they fail, the leases
	// expire.
	shutdownGrace = 2 * time.Second
	// firstWait and maxWait bound the pause before a failed call is repeated. The pause doubles.
	firstWait = 20 * time.Millisecond
	maxWait   = 2 * time.Second
	// maxJobBytes bounds a JobResult: labels and structure of millions of classes.
	maxJobBytes = 1 << 30
)

// Batch is a good Agent.Batch for a Trainer. Larger batches save little: at 32 the calls around the
// tasks are a thirtieth of what they are without batches.
const Batch = 32

// Agent leases tasks from a coordinator and has an Executor run them. Slots, Tasks and Executor are
// required.
type Agent struct {
	// Name is shown to users. It should be unique among the workers.
	Name string

	// Slots is the number of tasks that run at a time, at least 1.
	Slots int

	// Memory is what the tasks may take together, in bytes. The coordinator then grants only tasks
	// of jobs that fit. Zero leaves it unknown.
	Memory uint64

	// Batch is the most short tasks that a slot takes together, which saves calls. Zero means one.
	// With more than one, Executor must be a *Trainer or wrap one, because others do not collect
	// the writes of a batch.
	Batch uint32

	// Overlap makes a slot write and report a batch while it works on the next one, which hides the
	// latency of the store and its disk. Executor must be a *Trainer or wrap one.
	Overlap bool

	// Tasks is the coordinator's service.
	Tasks taxonv1.TasksClient

	// Executor runs the tasks.
	Executor Executor

	// Grace is how long running tasks may continue after Run's context ended. Tasks that do not end
	// in time are returned. Zero returns all at once.
	Grace time.Duration

	// Failed is called with each call and each task that failed. A nil Failed drops the errors.
	Failed func(error)

	// Shards is called at each registration with the addresses of the store's shards. It may be
	// nil.
	Shards func([]*taxonv1.Shard)

	// Previous is the id under which a dead process of this name was registered. Its tasks are then
	// handed out again at once. An empty id means that there is none.
	Previous string

	// Version is the worker's version of taxon, for lists of workers.
	Version string

	// Registered is called at each registration with the id given. It may be nil.
	Registered func(worker string)

	// mu guards identity, held and known.
	mu sync.Mutex
	// identity is the present registration. It is nil while there is none.
	identity *identity
	// held are the leases that the renewer keeps alive, by epoch.
	held map[uint64]*heldLease
	jobs jobCache

	// end stops leasing. Run returns the first error that it is given.
	end func(error)
	// known says that the agent was registered at least once.
	known bool
	// registering is held by the slot that registers.
	registering sync.Mutex
	// registered wakes the renewer after a registration.
	registered signal
}

// identity is a registration: the id of the worker and how long a lease lives.
type identity struct {
	worker string
	lease  time.Duration
}

// errLost ends the context of a task whose lease is no longer held.
var errLost = errors.New("the lease was lost")

// errLeaving ends the context of a task that is to be returned.
var errLeaving = errors.New("the worker is leaving")

// ErrDrained is returned by Run when the coordinator has drained the worker.
var ErrDrained = errors.New("the worker was drained")

// Run works until ctx ends or until the coordinator drains the worker. When ctx ends it returns
// unfinished tasks after Grace, leaves, and returns nil. When the worker is drained it finishes its
// tasks, leaves, and returns ErrDrained. Run survives outages of the coordinator. If the first
// registration is denied, Run returns that error; later denials are retried, because credentials
// may be being rotated. Any other error means that the agent is not configured correctly. All of
// its goroutines have ended when Run returns.
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

// denied reports whether an error means that the coordinator and this process do not accept each
// other's credentials.
func denied(err error) bool {
	code := status.Code(err)
	return code == codes.Unauthenticated || code == codes.PermissionDenied
}

// extendContext returns a context that ends a time after ctx does.
func extendContext(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, end) })
	return longer, func() { stop(); end() }
}

// tell passes an error to Failed, unless ctx has ended.
func (a *Agent) tell(ctx context.Context, err error) {
	if a.Failed != nil && ctx.Err() == nil {
		a.Failed(err)
	}
}

// job returns the coordinator's description of a job, which never changes.
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

// maxJobs is the number of jobs whose description is kept. A coordinator runs few at a time.
const maxJobs = 8

// jobCache keeps the last used jobs. One fetch serves all slots that wait for it.
type jobCache struct {
	mu   sync.Mutex
	jobs []*cachedJob // last used last
}

// cachedJob is filled by the slot that holds its token.
type cachedJob struct {
	id string
	// token has capacity 1, and is held while the job is fetched.
	token  chan struct{}
	result *taxonv1.JobResult
}

// init empties the cache.
func (c *jobCache) init() { c.jobs = nil }

// get returns a job, and fetches it if it is not in the cache.
func (c *jobCache) get(ctx context.Context, id string, fetch func(context.Context) (*taxonv1.JobResult,
	error)) (*taxonv1.JobResult, error) {
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

// signal wakes the waiter, or the next one.
func (s signal) signal() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// wait waits for a signal or for the end of ctx.
func (s signal) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s:
		return nil
	}
}

// register returns the agent's registration, and registers the agent if it has none.
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
	r, err := a.Tasks.Register(call, &taxonv1.RegisterRequest{Name: a.Name, Slots: uint32(a.Slots), MemoryBytes: a.Memory,
		Cores: uint32(runtime.NumCPU()), Previous: a.Previous, Version: a.Version})
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

// wasKnown reports whether the agent was registered at least once.
func (a *Agent) wasKnown() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known
}

// forgetIfUnknown drops a registration that the coordinator no longer knows, and all work that was
// leased under it.
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

// renew keeps the registration and the held leases alive until ctx ends. It calls three times in a
// lease's life, so that two lost messages do no harm. A failed call is repeated sooner, because a
// coordinator that is back has to hear its workers within the rest of a lease.
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

// renewOnce renews what is held under a registration and stops what was lost. It returns whether
// the coordinator has answered.
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

// leave tells the coordinator that the worker ends, so that its leases are given to others at once.
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
