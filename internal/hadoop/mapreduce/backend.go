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
	"taxon/internal/app/engine"
	"taxon/internal/fs"
	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker"
)

// Config configures a Backend.
type Config struct {
	// Dir is the state folder. Only one process uses it at a time.
	Dir string
	// Runner runs the jobs.
	Runner Runner
	// Maps and Reduces bound the number of map and reduce tasks of a job. Zero means as many as the
	// work requires.
	Maps, Reduces int
	// Note is called with messages for the user. A nil Note is not called.
	Note func(format string, args ...any)
	// Pause is the pause before a failed job is run again. Zero means 10 s.
	Pause time.Duration
	// Began is called with the id of a job that has begun to run elsewhere, and Moved with its
	// progress. Either may be nil.
	Began func(name, id string)
	Moved func(id, text string)
}

// Backend is a state folder on which a job's tasks run. The engine to which it belongs closes it.
type Backend struct {
	config Config
	dir    folder
	values *values
	exec   *executor
	limits store.Limits

	mu sync.Mutex
	// pinned are the steps to which the last checkpoint refers.
	pinned []uint32
	closed bool
	// written is the content of the job's file.
	written *taxonv1.JobResult
	// seconds holds, by item, the duration of its last task, except tasks that emit.
	seconds map[item]float64
}

var _ engine.Backend = (*Backend)(nil)

// New opens or makes a state folder. It kills jobs that earlier, killed drivers left running.
func New(ctx context.Context, c Config) (*Backend, error) {
	if c.Note == nil {
		c.Note = func(string, ...any) {}
	}
	if c.Began == nil {
		c.Began = func(string, string) {}
	}
	if c.Moved == nil {
		c.Moved = func(string, string) {}
	}
	c.Pause = cmp.Or(c.Pause, defaultPause)
	b := &Backend{config: c, dir: folder(c.Dir), limits: store.Limits{}.WithDefaults(), seconds: map[item]float64{}}
	b.values = newValues(b.dir)
	if err := fs.MkdirAll(b.dir.steps()); err != nil {
		return nil, fs.Explain(c.Dir, err)
	}
	return b, b.endOldRuns(ctx)
}

// endOldRuns kills the jobs that a killed driver left running, and removes their folders.
func (b *Backend) endOldRuns(ctx context.Context) error {
	names, err := fs.ReadDirNames(b.dir.runs())
	if err != nil {
		return nil // the folder does not exist
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

// Refused returns the error that ended the job if the user can correct it, such as a queue that
// does not exist. The coordinator has only its text.
func (b *Backend) Refused() error {
	if b.exec == nil {
		return nil
	}
	return b.exec.refusal()
}

// Close waits for running jobs, whose context must have ended.
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

// Checkpoint implements coordinator.Checkpointer. The values stay in place until the next
// checkpoint refers to others.
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
		retry.For(ctx, b.config.Pause)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pinned = slices.Clone(keep)
	return nil
}

// Resumed receives the steps to which the resumed checkpoint refers. It removes all others, which
// will be computed again.
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

// newID returns a name that no other run has. The results of a run do not depend on it.
func newID(prefix string) string {
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%s-%s", prefix, hex.EncodeToString(b[:]))
}
