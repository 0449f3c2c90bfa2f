package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"taxon/internal/dataset"
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
	// Open gives a job's data; nil: dataset.Open of the path the job names.
	Open func(ctx context.Context, d *taxonv1.Data) (*dataset.Set, error)

	mu   sync.Mutex
	jobs map[string]*loading
}

// loading is a job that is being, or has been, loaded.
type loading struct {
	ready chan struct{}
	job   *job
	err   error
}

// Forget drops what is kept of a job. Its tasks must have ended.
func (t *Trainer) Forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.jobs, id)
}

// Run implements Executor.
func (t *Trainer) Run(ctx context.Context, r *taxonv1.JobResult, l *taxonv1.Lease) (sums *taxonv1.Sums, stats Stats, err error) {
	defer func() { // a bug in one job must not take the worker's other jobs down
		if p := recover(); p != nil {
			err = Deterministic(fmt.Errorf("internal error: %v; please report", p))
		}
	}()
	j, err := t.load(ctx, l.GetJob(), r)
	if err != nil {
		return nil, Stats{}, err
	}
	k := &task{job: j, store: t.Store, lease: l}
	s := j.scratch.take() // a panic leaves it in an unknown state: then it is not put back
	switch l.GetKind() {
	case taxonv1.TaskKind_TASK_KIND_MAP:
		sums, err = k.solve(ctx, s)
	case taxonv1.TaskKind_TASK_KIND_REDUCE:
		sums, err = k.reduce(ctx)
	case taxonv1.TaskKind_TASK_KIND_EMIT_MAP:
		sums, err = &taxonv1.Sums{}, k.emitBlock(ctx, s)
	case taxonv1.TaskKind_TASK_KIND_EMIT_REDUCE:
		sums, err = &taxonv1.Sums{}, k.emitRange(ctx)
	default:
		err = Deterministic(fmt.Errorf("this worker does not know task kind %d: it is older than the coordinator", l.GetKind()))
	}
	j.scratch.put(s)
	return sums, k.stats, err
}

// load returns the job's shared state, built once.
func (t *Trainer) load(ctx context.Context, id string, r *taxonv1.JobResult) (*job, error) {
	t.mu.Lock()
	if t.jobs == nil {
		t.jobs = map[string]*loading{}
	}
	l, ok := t.jobs[id]
	if !ok {
		l = &loading{ready: make(chan struct{})}
		t.jobs[id] = l
	}
	t.mu.Unlock()
	if !ok {
		t.build(ctx, l, id, r)
	}
	select {
	case <-l.ready:
		return l.job, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
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
	if l.job, l.err = newJob(ctx, id, r, t.open); l.err != nil && ctx.Err() == nil {
		l.err = Deterministic(l.err)
	}
}

func (t *Trainer) open(ctx context.Context, d *taxonv1.Data) (*dataset.Set, error) {
	if t.Open != nil {
		return t.Open(ctx, d)
	}
	return dataset.Open(d.GetPath())
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

// keyAt of a committed value.
func (k *task) keyAt(p taxonv1.Place, name string) store.Key {
	return store.Key{Job: k.lease.GetJob(), Step: p.Step, Task: p.Task, Attempt: p.Attempt, Name: name}
}

// get reads values that must be there. A missing one is no fault of the task: the
// store lost it, which the coordinator has to know.
func (k *task) get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	values, err := k.store.Get(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i, v := range values {
		if v == nil {
			return nil, fmt.Errorf("read %v: the store has lost it", keys[i])
		}
		k.stats.BytesRead += uint64(len(v))
	}
	return values, nil
}

// compute runs f on one thread and adds its CPU time to the task's figures.
func (k *task) compute(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadSeconds()
	f()
	k.stats.CPUSeconds += threadSeconds() - start
}

func (k *task) put(ctx context.Context, values []store.Value) error {
	for _, v := range values {
		k.stats.BytesWritten += uint64(len(v.Data))
	}
	return k.store.Put(ctx, values)
}

// wallSeconds stands in where the system can't tell a thread's time.
func wallSeconds() float64 { return float64(time.Now().UnixNano()) / 1e9 }
