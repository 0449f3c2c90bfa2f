package mapreduce

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"taxon/coordinator/machine"
	"taxon/internal/engine"
	"taxon/internal/fs"
	"taxon/internal/pause"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker"
)

// Config of a Backend.
type Config struct {
	Dir    string // the state folder; one process drives a job in it
	Runner Runner
	// Maps and Reduces bound the map and reduce tasks of a job; 0: as the work asks for.
	Maps, Reduces int
	// Note is told of what a user may want to know as it happens; nil: not told.
	Note func(format string, args ...any)
	// Pause is waited before a job that failed is run again; 0: 10 s.
	Pause time.Duration
	// Accepted is told when a job has begun to run elsewhere, or has ended well; nil: not told.
	Accepted func()
}

// Backend is a state folder, and what runs a job's tasks on it. Close it by way of the
// engine that it belongs to.
type Backend struct {
	config Config
	dir    folder
	values *values
	exec   *executor
	limits store.Limits

	mu      sync.Mutex
	pinned  []uint32 // steps that the last checkpoint refers to
	closed  bool
	written *taxonv1.JobResult // what the file of it holds
	seconds map[item]float64   // that a task of it took the last time, but for those that emit
}

var _ engine.Backend = (*Backend)(nil)

// New opens or makes a state folder. What runs of killed drivers left under way is ended.
func New(ctx context.Context, c Config) (*Backend, error) {
	if c.Note == nil {
		c.Note = func(string, ...any) {}
	}
	c.Pause = cmp.Or(c.Pause, defaultPause)
	if c.Accepted == nil {
		c.Accepted = func() {}
	}
	b := &Backend{config: c, dir: folder(c.Dir), limits: store.Limits{}.WithDefaults(), seconds: map[item]float64{}}
	b.values = newValues(b.dir)
	if err := fs.MkdirAll(b.dir.steps()); err != nil {
		return nil, fs.Explain(c.Dir, err)
	}
	return b, b.endOldRuns(ctx)
}

// endOldRuns ends the jobs that a killed driver left running, and removes their folders.
func (b *Backend) endOldRuns(ctx context.Context) error {
	names, err := fs.ReadDirNames(b.dir.runs())
	if err != nil {
		return nil // there is none
	}
	for _, n := range names {
		if id, err := fs.ReadFile(ctx, fs.Join(b.dir.run(n), idFile)); err == nil {
			if k, ok := b.config.Runner.(Killer); ok {
				k.Kill(ctx, string(id))
			}
		}
	}
	return fs.RemoveAll(b.dir.runs())
}

// Executor implements engine.Backend.
func (b *Backend) Executor(ahead func(job string) (machine.Lookahead, error)) worker.Executor {
	b.exec = newExecutor(b, ahead)
	return b.exec
}

// Refused is the error of the user's that ended the job, if one did: a queue that does not
// exist, say. The coordinator has its text alone.
func (b *Backend) Refused() error {
	if b.exec == nil {
		return nil
	}
	return b.exec.refusal()
}

// Close waits for what is under way, whose context has ended.
func (b *Backend) Close() error {
	if b.exec != nil {
		b.exec.close()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.values.close()
	return nil
}

// Checkpoint implements coordinator.Checkpointer: the values are where they are, and stay
// there until the next checkpoint refers to others.
func (b *Backend) Checkpoint(ctx context.Context, _ string, _ uint32, state []byte, keep []uint32) error {
	b.mu.Lock()
	before := b.pinned
	b.pinned = slices.Concat(before, keep)
	b.mu.Unlock()
	for try := 1; ; try++ {
		err := engine.WriteState(b.dir.state(), state)
		if err == nil {
			break
		}
		if ctx.Err() != nil || try == maxOutages || fs.IsDiskFull(err) {
			return err
		}
		b.config.Note("%v: tried again", err)
		pause.For(ctx, b.config.Pause)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pinned = slices.Clone(keep)
	return nil
}

// Resumed tells which steps the checkpoint that is continued from refers to, and removes all
// others: they are made again.
func (b *Backend) Resumed(keep []uint32) error {
	b.mu.Lock()
	b.pinned = slices.Clone(keep)
	b.mu.Unlock()
	return b.remove(func(step uint32) bool { return !slices.Contains(keep, step) })
}

// remove deletes steps.
func (b *Backend) remove(which func(step uint32) bool) error {
	steps, err := b.dir.stepNumbers()
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range steps {
		if which(s) {
			b.values.forget(s)
			errs = append(errs, fs.RemoveAll(b.dir.step(s)))
		}
	}
	return errors.Join(errs...)
}

// newID makes a name that no other run bears. It enters no result.
func newID(prefix string) string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%s-%s", prefix, hex.EncodeToString(b[:]))
}
