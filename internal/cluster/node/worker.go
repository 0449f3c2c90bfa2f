package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"taxon/coordinator/footprint"
	"taxon/internal/cluster"
	"taxon/internal/cluster/client"
	"taxon/internal/cluster/metrics"
	"taxon/internal/data/dataset"
	"taxon/internal/retry"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker"
	"taxon/worker/program"
)

// Worker configures a worker.
type Worker struct {
	Process

	// Coordinator is the address of the coordinator.
	Coordinator string

	// Slots is the number of tasks that run at a time. Zero means one per core.
	Slots int

	// Memory is how many bytes the worker may use. Zero means unknown.
	Memory int64

	// Cache is how many bytes of disk fetched data sets may take.
	Cache int64

	// Grace is how long running tasks may continue when the worker is told to end.
	Grace time.Duration
}

// Run runs the worker until ctx ends.
func (o *Worker) Run(ctx context.Context) (err error) {
	o.Name = cmp.Or(o.Name, hostName())
	if len(o.Name) > maxWorkerName {
		return option.Errorf("worker: ‹name› has %d bytes: give at most %d", len(o.Name), maxWorkerName)
	}
	if err := errors.Join(sizeFrom("worker", "memory", o.Memory, 1<<20), sizeFrom("worker", "cache", o.Cache,
		16<<10)); err != nil {
		return option.Errorf("%w", err)
	}
	if err := cluster.WorkerFolder(o.Dir); err != nil {
		return err
	}
	cluster.NameServers(&o.Security, o.Coordinator)
	roots, err := cluster.MakeRoots(o.Roots)
	if err != nil {
		return option.Errorf("worker: %w", err)
	}
	p, err := newProcess(ctx, "worker", &o.Process, false)
	if err != nil {
		return err
	}
	if o.Memory > 0 && os.Getenv("GOMEMLIMIT") == "" {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(footprint.HeapLimit(o.Memory)))
	}
	slots := o.Slots
	if slots == 0 {
		slots = runtime.GOMAXPROCS(0)
	} else {
		// One more thread serves calls while all slots compute.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(o.Slots+1, runtime.NumCPU())))
	}
	dialer := &cluster.Dialer{Security: o.Security}
	defer func() { err = errors.Join(err, dialer.Close()) }()
	conn, err := dialer.Conn(o.Coordinator)
	if err != nil {
		return option.Errorf("worker: %w", err)
	}
	jobs := taxonv1.NewJobsClient(conn)
	shards := &cluster.Shards{Dialer: dialer, List: func(ctx context.Context) (*taxonv1.StoresResult, error) {
		call, done := context.WithTimeout(ctx, client.Timeout)
		defer done()
		return jobs.Stores(call, &taxonv1.StoresRequest{})
	}}
	cache := &cluster.Cache{Dir: filepath.Join(o.Dir, "data"), Bytes: o.Cache, Roots: roots,
		Store: &cluster.DataStore{Shards: shards}}
	trainer := o.trainer(cache, &cluster.JobStores{Shards: shards})
	agent := &worker.Agent{
		Name: o.Name, Version: o.Version, Slots: slots, Batch: worker.Batch, Overlap: true, Memory: uint64(o.Memory),
		Tasks: taxonv1.NewTasksClient(conn), Grace: o.Grace,
		Executor: p.figure.Executor(trainer, slots), Failed: explained(metrics.Warner(p.log, "failed"), o.Coordinator),
		Shards: shards.Replace,
	}
	workerName, err := cluster.ReserveName(o.Dir, o.Name)
	if err != nil {
		return err
	}
	defer workerName.Close()
	agent.Previous = workerName.Previous
	var once sync.Once
	var registered atomic.Bool
	agent.Registered = func(id string) {
		if err := workerName.SaveID(id); err != nil {
			p.log.Warn("note the registration", "error", err.Error())
		}
		p.log.Info("registered", "worker", id)
		registered.Store(true)
		once.Do(func() { p.ready(fmt.Sprintf(", %s", format.Counted(int64(slots), "slot", "slots"))) })
	}
	healthy := func() error {
		if !registered.Load() {
			return errors.New("the coordinator does not know the worker yet")
		}
		return nil
	}
	return p.serve(ctx, healthy, func(ctx context.Context) error { return o.work(ctx, p, agent, trainer) })
}

// maxWorkerName is the greatest length of a worker's name, so that the name fits into the names of
// files.
const maxWorkerName = 200

// trimEvery is how often the worker looks for jobs without tasks. It drops those that have had none
// for trimAfter.
const (
	trimEvery = 5 * time.Second
	trimAfter = time.Minute
)

// work runs the agent until it ends.
func (o *Worker) work(ctx context.Context, p *process, agent *worker.Agent, trainer *worker.Trainer) error {
	trimming, stop := context.WithCancel(ctx)
	var rest sync.WaitGroup
	rest.Go(func() {
		for retry.For(trimming, trimEvery) == nil {
			trainer.Trim(trimAfter)
		}
	})
	err := agent.Run(ctx)
	stop()
	rest.Wait()
	trainer.Trim(-math.MaxInt64)
	if errors.Is(err, worker.ErrDrained) {
		p.say("taxon worker: drained")
		p.log.Info("drained")
		return nil
	}
	return denied("worker", o.Coordinator, err)
}

// trainer returns a Trainer with data from the cache and values from each job's shards.
func (o *Worker) trainer(cache *cluster.Cache, stores *cluster.JobStores) *worker.Trainer {
	return &worker.Trainer{
		Open: func(ctx context.Context, d *taxonv1.Data) (*dataset.Set, error) {
			set, err := cache.Open(ctx, d)
			if cluster.Refused(err) {
				return nil, program.Unfit(err)
			}
			return set, err
		},
		Release: func(s *dataset.Set) { _ = s.Close() }, // nothing was written
		Stores: func(job string, r *taxonv1.JobResult) (worker.Store, error) {
			return stores.Of(job, r.GetShards(), r.GetReplicas())
		},
	}
}
