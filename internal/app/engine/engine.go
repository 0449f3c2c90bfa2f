// Package engine runs a whole cluster inside one process: a coordinator, store shards and a worker.
// They use the same gRPC services as a cluster of processes, over an in-memory transport. `taxon
// train` is a client of it.
//
// Two jobs must not share a checkpoint folder.
package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/coordinator"
	"taxon/coordinator/machine"
	"taxon/internal/data/dataset"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/badger"
	"taxon/store/memory"
	"taxon/store/storerpc"
	"taxon/worker"
)

// ErrEarlyStop is returned by Config.Show to end a job with the current weights.
var ErrEarlyStop = coordinator.ErrEarlyStop

// Config configures an engine. The zero value runs one task at a time, with one store shard in
// memory and without checkpoints. Open is required unless Backend is set.
type Config struct {
	// Slots is the number of tasks that run at a time. Less than 1 means 1.
	Slots int

	// Shards is the number of store shards. Less than 1 means 1.
	Shards int

	// ShardBytes is the memory for the values of a shard in memory, in bytes. Zero means the
	// default of store/memory.
	ShardBytes uint64

	// BadgerDir is the folder of durable shards. If it is empty, shards are in memory.
	BadgerDir string

	// NoCache keeps tasks from caching decoded values, which takes less memory and more time.
	NoCache bool

	// Scratch is the folder of the temporary file of final weights. If it is empty, the system's
	// temporary folder is used.
	Scratch string

	// Checkpoints returns the folder for a job's checkpoints. If it is nil, no checkpoints are
	// written.
	Checkpoints func(job string) (dir string)

	// CheckpointEvery is the minimum time between two checkpoints. Zero means the coordinator's
	// default.
	CheckpointEvery time.Duration

	// Spent returns the CPU seconds of the training so far, which checkpoints record. If it is nil,
	// they record none.
	Spent func() float64

	// Show is called with the weights of every options.eval_every-th sweep. It ends the job by
	// returning ErrEarlyStop; see coordinator.Config.Evaluate.
	Show func(ctx context.Context, st *taxonv1.JobStatus) error

	// Open opens a job's data.
	Open func(ctx context.Context, d *taxonv1.Data) (*dataset.Set, error)

	// Failed is called for each failure, whether it is retried or not. It may be nil.
	Failed func(error)

	// Wrap wraps the worker's executor, for tests and measurements. It may be nil.
	Wrap func(worker.Executor) worker.Executor

	// Backend replaces shards, checkpoints and the worker's executor. If it is nil, they are in
	// this process.
	Backend Backend
}

// Backend keeps a job's values and runs its tasks outside this process. The engine closes it.
type Backend interface {
	// Shard holds all values. They outlive the process.
	store.Shard
	coordinator.Checkpointer
	// Executor returns the executor of tasks. ahead describes the steps that follow the step of a
	// task.
	Executor(ahead func(job string) (machine.Lookahead, error)) worker.Executor
	// Resumed is called before a job continues from a checkpoint, with the steps that it refers to.
	Resumed(keep []uint32) error
}

// Engine is a running embedded cluster.
type Engine struct {
	// Jobs is the coordinator's service for users.
	Jobs taxonv1.JobsClient

	// Store is the client of the shards.
	Store *storerpc.Client

	server  *coordinator.Server
	trainer *worker.Trainer
	// weights holds the final weights. It is nil if the store has them.
	weights *worker.WeightBuffer
	shards  []store.Shard
	backend Backend
	scratch string
	stop    context.CancelFunc
	agent   sync.WaitGroup
	failed  func(error)
	// full reports that a full store has been reported already. unsaved reports the same of a
	// checkpoint that did not fit on the disk.
	full    atomic.Bool
	unsaved atomic.Bool
	// err is the agent's error. It may be read after agent.Wait.
	err error
}

// maxOutage is how long the engine waits for a full store. It is short, because nothing else frees
// memory in this process, and the user wants to know of a full disk.
const maxOutage = machine.Tick(4 * time.Second)

// Start starts the cluster. The caller must call Close.
func Start(c Config) (*Engine, error) {
	e := &Engine{scratch: c.Scratch}
	e.failed = func(err error) {
		// Every task reports a full store, and every checkpoint a full disk. Show each once.
		again := errors.Is(err, store.ErrFull) && e.full.Swap(true) || errors.Is(err, coordinator.ErrOlderKept) &&
			e.unsaved.Swap(true)
		if c.Failed != nil && !again {
			c.Failed(err)
		}
	}
	if c.Backend == nil {
		e.weights = worker.NewWeightBuffer(c.Scratch)
	}
	if err := e.openShards(c); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	var err error
	if e.Store, err = storerpc.Embedded(e.shards, store.Limits{}); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	config := coordinator.Config{Store: keeper{e.Store, e.weights}, Evaluate: c.Show, Failed: e.failed}
	if c.Backend == nil {
		config.Limits.MaxOutage = maxOutage
	}
	switch {
	case c.Backend != nil: // its checkpoints are cheap: one a sweep
		config.Checkpointer = c.Backend
		config.Limits.CheckpointEvery, config.Limits.CheckpointSweeps, config.Limits.KeepInputs = 1, 1, true
	case c.Checkpoints != nil:
		config.Checkpointer = &checkpointer{dir: c.Checkpoints, store: e.Store, spent: c.Spent}
		config.Limits.CheckpointEvery = machine.Tick(c.CheckpointEvery)
	}
	if e.server, err = coordinator.NewServer(config); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	channel := storerpc.NewChannel()
	e.server.Register(channel)
	e.Jobs = taxonv1.NewJobsClient(channel)
	e.startAgent(c, taxonv1.NewTasksClient(channel))
	return e, nil
}

// openShards opens the store shards.
func (e *Engine) openShards(c Config) error {
	if e.backend = c.Backend; e.backend != nil {
		e.shards = []store.Shard{e.backend}
		return nil
	}
	for i := range max(c.Shards, 1) {
		if c.BadgerDir == "" {
			e.shards = append(e.shards, memory.New(memory.Options{MaxBytes: c.ShardBytes}))
			continue
		}
		s, err := badger.Open(badger.Options{Dir: filepath.Join(c.BadgerDir, fmt.Sprintf("shard-%d", i))})
		if err != nil {
			return err
		}
		e.shards = append(e.shards, s)
	}
	return nil
}

// startAgent starts the worker.
func (e *Engine) startAgent(c Config, tasks taxonv1.TasksClient) {
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.trainer = &worker.Trainer{Store: e.Store, Weights: e.weights, Open: c.Open, NoCache: c.NoCache}
	var executor worker.Executor = e.trainer
	batch := uint32(worker.Batch)
	if e.backend != nil { // it gathers tasks itself
		executor, batch = e.backend.Executor(e.server.Lookahead), 1
	}
	if c.Wrap != nil {
		executor = c.Wrap(executor)
	}
	agent := &worker.Agent{Name: "embedded", Slots: max(c.Slots, 1), Batch: batch, Tasks: tasks, Failed: e.failed,
		Executor: executor}
	e.agent.Add(1)
	go func() {
		defer e.agent.Done()
		e.err = agent.Run(ctx)
	}()
}

// Close returns running tasks, ends the coordinator and closes the shards.
func (e *Engine) Close() error {
	var errs []error
	if e.stop != nil {
		e.stop()
		e.agent.Wait()
		errs = append(errs, e.err)
	}
	if e.server != nil {
		errs = append(errs, e.server.Close())
	}
	for _, s := range e.shards {
		errs = append(errs, s.Close())
	}
	if e.weights != nil {
		errs = append(errs, e.weights.Close())
	}
	return errors.Join(errs...)
}

// StreamWeights yields the final weights of a finished job, node by node (see
// worker.StreamWeights).
func (e *Engine) StreamWeights(ctx context.Context, nodes int, st *taxonv1.JobStatus,
	yield func(node int, columns []uint32, values []float32) error) error {
	if e.weights != nil {
		return e.weights.Stream(ctx, nodes, st, yield)
	}
	return worker.StreamWeights(ctx, e.Store, nodes, st, e.scratch, yield)
}

// Resume puts a checkpoint's values back into the store and continues its job.
func (e *Engine) Resume(ctx context.Context, c *Checkpoint) (job string, err error) {
	if e.backend == nil {
		err = c.damage(c.back.Restore(ctx, e.Store))
	} else {
		var saved *machine.SavedState
		if saved, err = machine.ReadState(c.State); err == nil {
			err = e.backend.Resumed(saved.Keep)
		}
	}
	if err != nil {
		return "", err
	}
	return e.server.SubmitCheckpoint(c.State)
}

// keeper is what the coordinator uses as its store. It consists of the store and the final weights.
type keeper struct {
	*storerpc.Client
	weights *worker.WeightBuffer
}

// Drop implements coordinator.Store.
func (k keeper) Drop(ctx context.Context, job string, keep []uint32, before uint32) error {
	what := store.DropSpec{Job: job, Keep: keep, Before: before}
	_, err := k.Client.Drop(ctx, what)
	if k.weights != nil {
		err = errors.Join(err, k.weights.Drop(what))
	}
	return err
}

// StripStatus removes the transport's text from the error of a service. A cancellation remains
// context.Canceled.
func StripStatus(err error) error {
	s, ok := status.FromError(err)
	switch {
	case err == nil || !ok:
		return err
	case s.Code() == codes.Canceled:
		return context.Canceled
	}
	return errors.New(s.Message())
}
