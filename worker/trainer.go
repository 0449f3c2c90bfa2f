package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker/program"
)

// Store is the part of the parameter store that a Trainer needs.
type Store interface {
	// Put writes values; see store.Store.
	Put(ctx context.Context, values []store.Value) error
	// Get reads values; a missing one is nil. See store.Store.
	Get(ctx context.Context, keys []store.Key) ([][]byte, error)
}

// Trainer is the Executor that trains: it runs tasks by the program of their job's method. It may
// be used by several goroutines.
type Trainer struct {
	// Store holds the values of all jobs, unless Stores is set.
	Store Store

	// Stores returns the store of one job, if jobs have stores of their own. A nil Stores means
	// Store.
	Stores func(job string, r *taxonv1.JobResult) (Store, error)

	// Weights keeps the final weights of jobs. If it is nil, they go to the job's store.
	Weights *WeightBuffer

	// Open returns a job's data. By default it is dataset.Open of the path that the job names. Its
	// errors are taken to be transient unless they are marked by program.Deterministic.
	Open func(ctx context.Context, d *taxonv1.Data) (*dataset.Set, error)

	// NoCache makes tasks keep nothing of what they wrote for later tasks, which then read it from
	// the store.
	NoCache bool

	// Release is called with the data of each job that Trim drops. It may be nil.
	Release func(*dataset.Set)

	// mu guards jobs, and users and idle of its entries.
	mu   sync.Mutex
	jobs map[string]*loading
}

// loading is a job that is being loaded or has been. The trainer's mu guards users and idle.
type loading struct {
	// ready is closed when the fields up to err are set.
	ready chan struct{}
	job   *program.Job
	// run is nil if the job could not be loaded.
	run   program.Program
	store Store
	err   error
	// users is the number of tasks that run or wait for the job.
	users int
	// idle is the time since which there are none.
	idle time.Time
}

// Forget drops everything that is kept of a job. Its tasks must have ended.
func (t *Trainer) Forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.jobs, id)
}

// Trim drops the jobs that have had no task for a time, because they have ended or other workers do
// their tasks. A task that arrives later loads its job again.
func (t *Trainer) Trim(idle time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, l := range t.jobs {
		if l.users > 0 || l.run == nil || time.Since(l.idle) < idle {
			continue
		}
		delete(t.jobs, id)
		if t.Release != nil {
			t.Release(l.job.Set)
		}
	}
}

// Run implements Executor.
func (t *Trainer) Run(ctx context.Context, r *taxonv1.JobResult,
	l *taxonv1.Lease) (sums *taxonv1.Sums, stats Stats, err error) {
	defer func() {
		// a bug in one job must not take the worker's other jobs down
		if p := recover(); p != nil {
			err = program.Deterministic(fmt.Errorf("internal error: %v; please report", p))
		}
		if errors.Is(err, fs.ErrFault) {
			err = program.Deterministic(err)
		}
	}()
	defer fs.CatchFault(&err)()
	loaded, err := t.load(ctx, l.GetJob(), r)
	if err != nil {
		return nil, Stats{}, err
	}
	defer t.leave(loaded)
	k := program.NewTask(l, sink{loaded.store, t.Weights})
	figures, err := loaded.run.Run(ctx, k)
	if want := len(r.GetPlan().GetSums()); err == nil && len(figures) != want {
		err = program.Deterministic(fmt.Errorf("%s gave %d figures, the plan has %d: this worker is of another version "+
			"than the coordinator", l.GetOp(), len(figures), want))
	}
	if err != nil {
		return nil, k.Stats, err
	}
	return &taxonv1.Sums{Values: figures}, k.Stats, nil
}

// sink is the store that a task writes to. Writes go through the outbox of the task's batch, except
// final weights if there is a WeightBuffer.
type sink struct {
	Store
	weights *WeightBuffer
}

// Put implements program.Values.
func (s sink) Put(ctx context.Context, values []store.Value, written func()) error {
	if s.weights == nil || values[0].Key.Name != program.WeightsName {
		return write(ctx, s.Store, values, written)
	}
	for _, v := range values {
		if err := s.weights.put(v); err != nil {
			return program.Deterministic(err)
		}
	}
	return nil
}

// load returns the job's shared state, which is built once. The caller calls leave when it is done.
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

// leave ends the use of a job by a task.
func (t *Trainer) leave(l *loading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.users--; l.users == 0 {
		l.idle = time.Now()
	}
}

// build loads the job into l. Even if it panics, it wakes those who wait and removes the entry.
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
	l.job, l.run, l.err = t.open(ctx, id, r)
}

// open opens the data of a job and its program.
func (t *Trainer) open(ctx context.Context, id string, r *taxonv1.JobResult) (*program.Job, program.Program, error) {
	open := t.Open
	if open == nil {
		open = func(_ context.Context, d *taxonv1.Data) (*dataset.Set, error) {
			set, err := dataset.Open(d.GetPath())
			return set, program.Deterministic(err)
		}
	}
	return openJob(ctx, &program.Job{ID: id, Spec: r.GetSpec(), Plan: r.GetPlan(), NoCache: t.NoCache}, open)
}

// openJob completes a job and opens its program. Its errors are deterministic, except those of open
// and that of a method which this worker does not know.
func openJob(ctx context.Context, j *program.Job, open func(context.Context, *taxonv1.Data) (*dataset.Set,
	error)) (*program.Job, program.Program, error) {
	data := j.Spec.GetData()
	m, err := program.Lookup(j.Spec.GetOptions().GetMethod())
	if err != nil {
		return nil, nil, err
	}
	if j.Tree, _, err = jobspec.Tree(j.Spec, j.Plan.GetRooted()); err != nil {
		return nil, nil, program.Deterministic(err)
	}
	if j.Set, err = open(ctx, data); err != nil {
		return nil, nil, err
	}
	if j.Set.Fingerprint != data.GetFingerprint() {
		return nil, nil, program.Deterministic(fmt.Errorf("%s: the data has changed since the job was submitted",
			data.GetPath()))
	}
	if rows := data.GetRows(); len(rows) > 0 {
		if j.Set, err = j.Set.Part(rows); err != nil {
			return nil, nil, program.Deterministic(fmt.Errorf("%s: %w", data.GetPath(), err))
		}
	}
	j.Unwanted = func() bool { return ctx.Err() != nil }
	p, err := m.Open(j)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	return j, p, program.Deterministic(err)
}

// WarmStart returns the values that a job begins with at given weights, and the names of their
// families; see program.WarmStarter.
func WarmStart(ctx context.Context, id string, r *taxonv1.JobResult, set *dataset.Set,
	from program.InitialWeights) (values []store.Value, families []string, err error) {
	_, p, err := openJob(ctx, &program.Job{ID: id, Spec: r.GetSpec(), Plan: r.GetPlan()},
		func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return set, nil })
	if err != nil {
		return nil, nil, err
	}
	w, ok := p.(program.WarmStarter)
	if !ok {
		return nil, nil, fmt.Errorf("method %s can't begin at given weights", r.GetSpec().GetOptions().GetMethod())
	}
	return w.WarmStart(ctx, from)
}

// lost returns the tasks whose values an error found missing or damaged, each once.
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
