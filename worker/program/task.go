package program

import (
	"context"
	"runtime"
	"time"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Values is what a task reads and writes.
type Values interface {
	Get(ctx context.Context, keys []store.Key) ([][]byte, error)
	// Put writes values, now or with those of other tasks; written, unless it is nil, is
	// called once they are in the store.
	Put(ctx context.Context, values []store.Value, written func()) error
}

// Task is one lease being worked on. For one goroutine.
type Task struct {
	Op         string // what to do, in the method's words
	List, Item int    // the item that it is about
	Params     []byte // of the operation, in the method's own encoding
	Seed       uint64 // from the job's seed, the item and the sweep
	Sweep      uint32
	Emit       bool // it writes final weights: PutWeights

	Stats
	job    string
	place  taxonv1.Place
	inputs []*taxonv1.Input
	values Values
}

// Stats says what a task cost.
type Stats struct {
	CPUSeconds   float64
	BytesRead    uint64
	BytesWritten uint64
}

// NewTask is the task of a lease.
func NewTask(l *taxonv1.Lease, v Values) *Task {
	return &Task{
		Op: l.GetOp(), List: int(l.GetItems()), Item: int(l.GetItem()), Params: l.GetParams(), Seed: l.GetSeed(), Sweep: l.GetSweep(), Emit: l.GetEmit(),
		job: l.GetJob(), place: taxonv1.Place{Step: l.GetStep(), Task: l.GetTask(), Attempt: l.GetAttempt()}, inputs: l.GetInputs(), values: v,
	}
}

// Own is where the value of a family lies that belongs to the task's own item, in its last
// version (back 0) or the one before (1). The zero Place: it has none yet.
func (t *Task) Own(family string, back uint32) taxonv1.Place {
	if places := t.input(family, back, false); len(places) > 0 {
		return places[0]
	}
	return taxonv1.Place{}
}

// All is where a family's values of all items lie, in item order; zero Places: they have none
// yet. nil: the lease does not name them.
func (t *Task) All(family string, back uint32) []taxonv1.Place { return t.input(family, back, true) }

func (t *Task) input(family string, back uint32, all bool) []taxonv1.Place {
	for _, in := range t.inputs {
		if in.GetValue() == family && in.GetBack() == back && in.GetAll() == all {
			return in.GetRefs().Expand()
		}
	}
	return nil
}

// Place is this attempt, as later tasks will name it.
func (t *Task) Place() taxonv1.Place { return t.place }

// Key is that of a value that this attempt writes.
func (t *Task) Key(name string) store.Key { return t.KeyAt(t.place, name) }

// KeyAt is the key of a committed value.
func (t *Task) KeyAt(p taxonv1.Place, name string) store.Key {
	return store.Key{Job: t.job, Step: p.Step, Task: p.Task, Attempt: p.Attempt, Name: name}
}

// Get reads values that must be there. A missing one is no fault of the task: the
// store lost it, which the coordinator has to know.
func (t *Task) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	values, err := store.Need(ctx, t.values, keys)
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		t.BytesRead += uint64(len(v))
	}
	return values, nil
}

// Put writes values; written, unless it is nil, is called once they are in the store.
func (t *Task) Put(ctx context.Context, values []store.Value, written func()) error {
	for _, v := range values {
		t.BytesWritten += uint64(len(v.Data))
	}
	return t.values.Put(ctx, values, written)
}

// PutWeights writes the final weights that the task of an emitting step has found: of nodes in
// any order, each once. Nodes without entries need not be there. A node may be spread over
// several tasks, whose columns then ascend from task to task.
func (t *Task) PutWeights(ctx context.Context, nodes []NodeWeights) error {
	return t.Put(ctx, []store.Value{{Key: t.Key(WeightsName), Data: EncodeWeights(nodes)}}, nil)
}

// Compute runs f on one thread and adds its CPU time to the task's figures.
func (t *Task) Compute(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadSeconds()
	f()
	t.CPUSeconds += threadSeconds() - start
}

// wallSeconds stands in where the system can't tell a thread's time.
func wallSeconds() float64 { return float64(time.Now().UnixNano()) / 1e9 }
