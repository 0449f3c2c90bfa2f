package program

import (
	"context"
	"runtime"
	"time"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Values is the store that a task reads from and writes to.
type Values interface {
	// Get reads values; a missing one is nil.
	Get(ctx context.Context, keys []store.Key) ([][]byte, error)
	// Put writes values, now or together with those of other tasks. It calls written once they are
	// in the store. written may be nil.
	Put(ctx context.Context, values []store.Value, written func()) error
}

// Task is a lease that is being worked on. It is for one goroutine.
type Task struct {
	// Op is the operation, in the method's terms.
	Op string

	// List and Item identify the item that the task is about.
	List, Item int

	// Params are the parameters of the operation, in the method's own encoding.
	Params []byte

	// Seed is computed from the job's seed, the item and the sweep. All attempts of a task have the
	// same seed.
	Seed uint64

	// Sweep is the number of the sweep.
	Sweep uint32

	// Emit says that the task writes final weights by PutWeights.
	Emit bool

	Stats
	job    string
	place  taxonv1.Place
	inputs []*taxonv1.Input
	values Values
}

// Stats holds what a task cost. Its bytes are the bytes that the task read from the store and wrote
// to it.
type Stats struct {
	CPUSeconds   float64
	BytesRead    uint64
	BytesWritten uint64
}

// NewTask returns the task of a lease.
func NewTask(l *taxonv1.Lease, v Values) *Task {
	return &Task{
		Op: l.GetOp(), List: int(l.GetItems()), Item: int(l.GetItem()), Params: l.GetParams(), Seed: l.GetSeed(),
		Sweep: l.GetSweep(), Emit: l.GetEmit(),
		job: l.GetJob(), place: taxonv1.Place{Step: l.GetStep(), Task: l.GetTask(), Attempt: l.GetAttempt()},
		inputs: l.GetInputs(), values: v,
	}
}

// Own returns where the value of a family lies that belongs to the task's own item, in its newest
// version (back 0) or the one before (1). It returns the zero Place if there is no such value yet.
func (t *Task) Own(family string, back uint32) taxonv1.Place {
	if places := t.input(family, back, false); len(places) > 0 {
		return places[0]
	}
	return taxonv1.Place{}
}

// All returns where a family's values of all items lie, in item order. Values that do not exist yet
// have the zero Place. It returns nil if the lease does not name the family.
func (t *Task) All(family string, back uint32) []taxonv1.Place { return t.input(family, back, true) }

// input returns the places of an input of the lease, or nil.
func (t *Task) input(family string, back uint32, all bool) []taxonv1.Place {
	for _, in := range t.inputs {
		if in.GetValue() == family && in.GetBack() == back && in.GetAll() == all {
			return in.GetRefs().Expand()
		}
	}
	return nil
}

// Place returns the place of this attempt, as later tasks name it.
func (t *Task) Place() taxonv1.Place { return t.place }

// Key returns the key of a value that this attempt writes.
func (t *Task) Key(name string) store.Key { return t.KeyAt(t.place, name) }

// KeyAt returns the key of a committed value.
func (t *Task) KeyAt(p taxonv1.Place, name string) store.Key {
	return store.Key{Job: t.job, Step: p.Step, Task: p.Task, Attempt: p.Attempt, Name: name}
}

// Get reads values that must exist. A missing value is not the task's fault: the store has lost it,
// and the error tells the coordinator so.
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

// Put writes values and calls written once they are in the store. written may be nil.
func (t *Task) Put(ctx context.Context, values []store.Value, written func()) error {
	for _, v := range values {
		t.BytesWritten += uint64(len(v.Data))
	}
	return t.values.Put(ctx, values, written)
}

// PutWeights writes the final weights that the task of an emitting step has found. The nodes may be
// in any order, each once; nodes without entries may be left out. A node may be spread over several
// tasks, whose columns must then ascend from task to task.
func (t *Task) PutWeights(ctx context.Context, nodes []NodeWeights) error {
	return t.Put(ctx, []store.Value{{Key: t.Key(WeightsName), Data: EncodeWeights(nodes)}}, nil)
}

// Compute runs f on one thread and adds its CPU time to the task's Stats.
func (t *Task) Compute(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadSeconds()
	f()
	t.CPUSeconds += threadSeconds() - start
}

// wallSeconds replaces the CPU time where the system can't tell that of a thread.
func wallSeconds() float64 { return float64(time.Now().UnixNano()) / 1e9 }
