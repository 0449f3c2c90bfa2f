package main

import (
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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster"
	"taxon/internal/cluster/client"
	"taxon/internal/dataset"
	"taxon/internal/metrics"
	"taxon/internal/pause"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker"
	"taxon/worker/program"
)

// workerOptions are the flags of worker.
type workerOptions struct {
	processOptions
	coordinator string
	slots       int
	memory      int64
	cache       int64
	grace       time.Duration
}

func newWorkerCmd(a *app) *cobra.Command {
	var o workerOptions
	cmd := &cobra.Command{
		Use:     "worker --coordinator ADDR --dir CACHE",
		GroupID: groupCluster,
		Short:   "run a worker: takes tasks from the coordinator and computes",
		Long: "Runs a worker: it leases tasks, reads what they refer to from the store, computes, and writes what it found. Workers may join and leave at any time; " +
			"what a worker that is killed had begun is done again elsewhere, with the same bytes. On SIGTERM it gives its tasks back (after --grace, if given) and ends. " +
			"Data sets that it has fetched stay in --dir, which several workers of a host may share.",
		Example: "taxon worker --coordinator coordinator.example:7070 --slots 8 --dir /var/cache/taxon\n" +
			"TAXON_COORDINATOR=127.0.0.1:7070 taxon worker --slots 2 --memory 4GB --dir cache",
		RunE: func(cmd *cobra.Command, _ []string) error { return runWorker(cmd.Context(), a, &o) },
	}
	flagGroup(cmd, "Process", func(f *pflag.FlagSet) {
		coordinatorFlag(f, &o.coordinator)
		f.StringVar(&o.dir, "dir", "", "folder of the data sets that were fetched: `CACHE`")
		f.StringVar(&o.name, "name", "", "`NAME` that it goes by in lists (default: of the host, and the process)")
		f.StringArrayVar(&o.roots, "data-root", nil, "`DIR` below which jobs may name data in place; repeated: several (default none)")
		f.DurationVar(&o.grace, "grace", 0, "after SIGTERM, give running tasks `TIME` to finish before they are given back")
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		intFlag(f, &o.slots, "slots", 0, 0, 4096, "`N` tasks at a time (default: all cores)")
		bytesFlag(f, &o.memory, "memory", 0, "`SIZE` that it may take: told to the coordinator, which gives it no tasks of jobs that need more; garbage is collected in time (default: not told)")
		bytesFlag(f, &o.cache, "cache", 64<<30, "`SIZE` on disk that the fetched data sets may take; the one used longest ago goes first")
	})
	o.frameFlags(cmd)
	require(cmd, "dir")
	return cmd
}

func runWorker(ctx context.Context, a *app, o *workerOptions) (err error) {
	if err := needCoordinator("worker", o.coordinator); err != nil {
		return err
	}
	if o.name == "" {
		o.name = hostName()
	}
	if len(o.name) > maxWorkerName {
		return usagef("worker: --name has %d bytes: give at most %d", len(o.name), maxWorkerName)
	}
	if err := errors.Join(sizeFrom("worker", "memory", o.memory, 1<<20), sizeFrom("worker", "cache", o.cache, 16<<10)); err != nil {
		return usagef("%w", err)
	}
	if err := cluster.WorkerFolder(o.dir); err != nil {
		return err
	}
	cluster.NameServers(&o.security, o.coordinator)
	roots, err := cluster.MakeRoots(o.roots)
	if err != nil {
		return usagef("worker: %w", err)
	}
	p, err := newProcess(ctx, a, "worker", &o.processOptions, false)
	if err != nil {
		return err
	}
	if o.memory > 0 && os.Getenv("GOMEMLIMIT") == "" {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(max(o.memory-beyondHeap, o.memory/2)))
	}
	slots := workers(o.slots)
	if o.slots > 0 {
		// One thread more serves calls while all slots compute.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(min(o.slots+1, runtime.NumCPU())))
	}
	dialer := &cluster.Dialer{Security: o.security}
	defer func() { err = errors.Join(err, dialer.Close()) }()
	conn, err := dialer.Conn(o.coordinator)
	if err != nil {
		return usagef("worker: %w", err)
	}
	jobs := taxonv1.NewJobsClient(conn)
	shards := &cluster.Shards{Dialer: dialer, List: func(ctx context.Context) (*taxonv1.StoresResult, error) {
		call, done := context.WithTimeout(ctx, client.Timeout)
		defer done()
		return jobs.Stores(call, &taxonv1.StoresRequest{})
	}}
	cache := &cluster.Cache{Dir: filepath.Join(o.dir, "data"), Bytes: o.cache, Roots: roots, Store: &cluster.DataStore{Shards: shards}}
	trainer := o.trainer(cache, &cluster.JobStores{Shards: shards})
	agent := &worker.Agent{
		Name: o.name, Slots: slots, Batch: worker.Batch, Overlap: true, Memory: uint64(o.memory), Tasks: taxonv1.NewTasksClient(conn), Grace: o.grace,
		Executor: p.figure.Executor(trainer, slots), Failed: plainly(metrics.Warner(p.log, "failed"), o.coordinator), Shards: shards.Replace,
	}
	life, err := cluster.TakeLife(o.dir, o.name)
	if err != nil {
		return err
	}
	defer life.Close()
	agent.Previous = life.Previous
	var once sync.Once
	var registered atomic.Bool
	agent.Registered = func(id string) {
		if err := life.Note(id); err != nil {
			p.log.Warn("note the registration", "error", err.Error())
		}
		p.log.Info("registered", "worker", id)
		registered.Store(true)
		once.Do(func() { p.ready(a, fmt.Sprintf(", %s", counted(int64(slots), "slot", "slots"))) })
	}
	healthy := func() error {
		if !registered.Load() {
			return errors.New("the coordinator does not know the worker yet")
		}
		return nil
	}
	return p.serve(ctx, a, healthy, func(ctx context.Context) error { return o.work(ctx, a, p, agent, trainer) }, "")
}

// beyondHeap is what a worker holds beside what Go's memory limit counts: pages of the program, and of mapped data.
const beyondHeap = 40 << 20

// maxWorkerName is what fits into a file's name, beside what is added to it.
const maxWorkerName = 200

// trimEvery and trimAfter let go of jobs that have had no task for a while.
const (
	trimEvery = 5 * time.Second
	trimAfter = time.Minute
)

// work runs the agent until it ends.
func (o *workerOptions) work(ctx context.Context, a *app, p *process, agent *worker.Agent, trainer *worker.Trainer) error {
	trimming, stop := context.WithCancel(ctx)
	var rest sync.WaitGroup
	rest.Go(func() {
		for pause.For(trimming, trimEvery) == nil {
			trainer.Trim(trimAfter)
		}
	})
	err := agent.Run(ctx)
	stop()
	rest.Wait()
	trainer.Trim(-math.MaxInt64)
	if errors.Is(err, worker.ErrDrained) {
		fmt.Fprintf(a.stdout, "taxon worker: drained\n")
		return nil
	}
	return denied("worker", o.coordinator, err)
}

// trainer computes on data from the cache and values from each job's shards.
func (o *workerOptions) trainer(cache *cluster.Cache, stores *cluster.JobStores) *worker.Trainer {
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
