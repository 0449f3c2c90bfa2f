package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"taxon/internal/dataset"
	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Store is what a Trainer needs of the parameter store.
type Store interface {
	Put(ctx context.Context, values []store.Value) error
	Get(ctx context.Context, keys []store.Key) ([][]byte, error)
}

// Trainer is the Executor that trains: it runs map, reduce and emit tasks.
type Trainer struct {
	Store Store
	// Stores gives the store of one job, where jobs have stores of their own; nil: Store.
	Stores func(job string, r *taxonv1.JobResult) (Store, error)
	// Open gives a job's data; nil: dataset.Open of the path the job names. Its errors
	// need not come again elsewhere, but those marked by Deterministic.
	Open func(ctx context.Context, d *taxonv1.Data) (*dataset.Set, error)
	// Once: no task reads what another one of this process has written, so nothing of it is kept.
	Once bool
	// Release takes the data of a job that Trim has dropped back; nil: nothing.
	Release func(*dataset.Set)

	mu   sync.Mutex
	jobs map[string]*loading
}

// loading is a job that is being, or has been, loaded. users and idle are guarded by the
// trainer's mu.
type loading struct {
	ready chan struct{}
	job   *job
	store Store
	err   error
	users int       // tasks that run
	idle  time.Time // since when there are none
}

// Forget drops what is kept of a job. Its tasks must have ended.
func (t *Trainer) Forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.jobs, id)
}

// Trim drops the jobs that have had no task for a time: they have ended, or others do
// their work. A task that comes all the same loads its job again.
func (t *Trainer) Trim(idle time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, l := range t.jobs {
		if l.users > 0 || l.job == nil || time.Since(l.idle) < idle {
			continue
		}
		delete(t.jobs, id)
		if t.Release != nil {
			t.Release(l.job.set)
		}
	}
}

// Run implements Executor.
func (t *Trainer) Run(ctx context.Context, r *taxonv1.JobResult, l *taxonv1.Lease) (sums *taxonv1.Sums, stats Stats, err error) {
	defer func() { // a bug in one job must not take the worker's other jobs down
		if p := recover(); p != nil {
			err = Deterministic(fmt.Errorf("internal error: %v; please report", p))
		}
		if errors.Is(err, fs.ErrFault) {
			err = Deterministic(err)
		}
	}()
	defer fs.CatchFault(&err)()
	loaded, err := t.load(ctx, l.GetJob(), r)
	if err != nil {
		return nil, Stats{}, err
	}
	defer t.leave(loaded)
	j := loaded.job
	k := &task{job: j, store: loaded.store, lease: l}
	s := j.scratch.take() // a panic leaves it in an unknown state: then it is not put back
	switch l.GetKind() {
	case taxonv1.TaskKind_TASK_KIND_MAP:
		sums, err = k.solve(ctx, s)
	case taxonv1.TaskKind_TASK_KIND_REDUCE:
		sums, err = k.reduce(ctx, s)
	case taxonv1.TaskKind_TASK_KIND_EMIT_MAP:
		sums, err = &taxonv1.Sums{}, k.emitBlock(ctx, s)
	case taxonv1.TaskKind_TASK_KIND_EMIT_REDUCE:
		sums, err = &taxonv1.Sums{}, k.emitRange(ctx, s)
	default:
		err = Deterministic(fmt.Errorf("this worker does not know task kind %d: it is older than the coordinator", l.GetKind()))
	}
	j.scratch.put(s)
	return sums, k.stats, err
}

// load returns the job's shared state, built once. The caller leaves it.
func (t *Trainer) load(ctx context.Context, id string, r *taxonv1.JobResult) (*loading, error) {
	t.mu.Lock()
	if t.jobs == nil {
		t.jobs = map[string]*loading{}
	}
	l, ok := t.jobs[id]
	if !ok {
		l = &loading{ready: make(chan struct{})}
		t.jobs[id] = l
	}
	l.users++
	t.mu.Unlock()
	if !ok {
		t.build(ctx, l, id, r)
	}
	var err error
	select {
	case <-l.ready:
		err = l.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		t.leave(l)
		return nil, err
	}
	return l, nil
}

// leave notes that a task no longer uses a job.
func (t *Trainer) leave(l *loading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.users--; l.users == 0 {
		l.idle = time.Now()
	}
}

// build loads the job into l. A panic, too, leaves nobody waiting and nothing behind.
func (t *Trainer) build(ctx context.Context, l *loading, id string, r *taxonv1.JobResult) {
	l.err = errors.New("loading the job was broken off")
	defer func() {
		if l.err != nil {
			t.Forget(id)
		}
		close(l.ready)
	}()
	l.store = t.Store
	if t.Stores != nil {
		if l.store, l.err = t.Stores(id, r); l.err != nil {
			return
		}
	}
	var opening *openError
	l.job, l.err = newJob(ctx, id, r, t.open)
	if l.err == nil {
		l.job.once = t.Once
	}
	if errors.As(l.err, &opening) {
		l.err = opening.error
	} else if l.err != nil && ctx.Err() == nil {
		l.err = Deterministic(l.err)
	}
}

// openError is an error of Open: data that is away now may be there later.
type openError struct{ error }

func (t *Trainer) open(ctx context.Context, d *taxonv1.Data) (*dataset.Set, error) {
	if t.Open == nil {
		return dataset.Open(d.GetPath())
	}
	set, err := t.Open(ctx, d)
	if err != nil {
		return nil, &openError{err}
	}
	return set, nil
}

// task is one lease being worked on.
type task struct {
	job   *job
	store Store
	lease *taxonv1.Lease
	stats Stats
}

// key of a value that this attempt writes.
func (k *task) key(name string) store.Key {
	l := k.lease
	return store.Key{Job: l.GetJob(), Step: l.GetStep(), Task: l.GetTask(), Attempt: l.GetAttempt(), Name: name}
}

// place of this attempt.
func (k *task) place() taxonv1.Place {
	return taxonv1.Place{Step: k.lease.GetStep(), Task: k.lease.GetTask(), Attempt: k.lease.GetAttempt()}
}

// keyAt of a committed value.
func (k *task) keyAt(p taxonv1.Place, name string) store.Key {
	return store.Key{Job: k.lease.GetJob(), Step: p.Step, Task: p.Task, Attempt: p.Attempt, Name: name}
}

// get reads values that must be there. A missing one is no fault of the task: the
// store lost it, which the coordinator has to know.
func (k *task) get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	values, err := store.Need(ctx, k.store, keys)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		k.stats.BytesRead += uint64(len(v))
	}
	return values, nil
}

// lost names the tasks whose values an error found missing or damaged, each once.
func lost(err error) []*taxonv1.Ref {
	var refs []*taxonv1.Ref
	keys := store.Lost(err)
	for i, k := range keys {
		if i == 0 || k.Step != keys[i-1].Step || k.Task != keys[i-1].Task || k.Attempt != keys[i-1].Attempt {
			refs = append(refs, taxonv1.Place{Step: k.Step, Task: k.Task, Attempt: k.Attempt}.Ref())
		}
	}
	return refs
}

// compute runs f on one thread and adds its CPU time to the task's figures.
func (k *task) compute(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadSeconds()
	f()
	k.stats.CPUSeconds += threadSeconds() - start
}

// put writes values; written, unless it is nil, is called once they are in the store.
func (k *task) put(ctx context.Context, values []store.Value, written func()) error {
	for _, v := range values {
		k.stats.BytesWritten += uint64(len(v.Data))
	}
	return write(ctx, k.store, values, written)
}

// wallSeconds stands in where the system can't tell a thread's time.
func wallSeconds() float64 { return float64(time.Now().UnixNano()) / 1e9 }
