package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator"
	"taxon/internal/cluster"
	"taxon/internal/fs"
	"taxon/internal/metrics"
	"taxon/internal/train"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/backup"
	"taxon/store/storerpc"
	"taxon/worker"
)

// coordinatorOptions are the flags of coordinator.
type coordinatorOptions struct {
	processOptions
	snapshotOptions
	announceOptions
	lease   time.Duration
	running int
	keep    time.Duration

	keepJobs, keepDays int
}

// snapshotOptions say when snapshots are taken, and where they go.
type snapshotOptions struct {
	snapshots string
	every     int
	pause     time.Duration
}

func newCoordinatorCmd(a *app) *cobra.Command {
	var o coordinatorOptions
	cmd := &cobra.Command{
		Use:     "coordinator --dir DIR",
		GroupID: groupCluster,
		Short:   "run a cluster's coordinator: jobs, tasks, leases",
		Long: "Runs the one process of a cluster that knows the jobs: it cuts them into tasks, leases these to workers and decides what counts. " +
			"Each decision is on the disk, in a journal in --dir, before anybody is told; started again on the same --dir it goes on where it was, and so do running jobs. " +
			"It holds no data. On loopback nothing else is needed; beyond it, TLS and identities are (see `taxon help certs`). On SIGTERM it ends; its jobs go on when it is started again.",
		Example: "taxon coordinator --dir /var/lib/taxon/coordinator\n" +
			"taxon coordinator --dir coordinator --listen 127.0.0.1:7070 --data-root /data --metrics 127.0.0.1:9100",
		RunE: func(cmd *cobra.Command, _ []string) error { return runCoordinator(cmd.Context(), a, &o) },
	}
	flagGroup(cmd, "Process", func(f *pflag.FlagSet) {
		f.StringVar(&o.dir, "dir", "", "folder of the journal: `DIR`")
		o.listenFlags(f, "127.0.0.1:7070")
		f.StringArrayVar(&o.roots, "data-root", nil, "`DIR` below which jobs may name data in place; repeated: several (default none)")
	})
	flagGroup(cmd, "Scheduling", func(f *pflag.FlagSet) {
		f.DurationVar(&o.lease, "lease", 10*time.Second, "a worker or store that is silent for `TIME` is taken for lost")
		intFlag(f, &o.running, "running-jobs", 4, 1, 1000, "`N` jobs that share the workers at a time; others queue")
	})
	flagGroup(cmd, "Uploaded data", func(f *pflag.FlagSet) {
		f.DurationVar(&o.keep, "keep-data", 24*time.Hour, "drop data sets from the store that no job has referred to for `TIME`")
	})
	flagGroup(cmd, "Jobs that have ended", func(f *pflag.FlagSet) {
		intFlag(f, &o.keepJobs, "keep-jobs", 100, 1, 1000, "keep the values (weights, what resume needs) of the last `N`; `taxon jobs` says which go next")
		intFlag(f, &o.keepDays, "keep-days", 30, 1, 36500, "and for at most `N` days")
	})
	flagGroup(cmd, "Snapshots", o.snapshotOptions.flags)
	flagGroup(cmd, "On hosts that change", o.announceOptions.flags)
	o.frameFlags(cmd)
	require(cmd, "dir")
	return cmd
}

// snapshotPatience is how long a snapshot waits for a shard that is away.
const snapshotPatience = 20 * time.Second

// flags defines the options.
func (o *snapshotOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.snapshots, "snapshots", "", "keep a snapshot of each job in `DIR`, on a disk that the stores' failures leave alone: what lost shards held is taken from there, and `taxon restore` puts jobs onto another cluster (default: none)")
	intFlag(f, &o.every, "snapshot-every", 0, 0, math.MaxInt32, "`N` sweeps between them (default: what each job asks for with --checkpoint-every, 4)")
	f.DurationVar(&o.pause, "snapshot-pause", 10*time.Second, "no two of a job within `TIME`")
}

func runCoordinator(ctx context.Context, a *app, o *coordinatorOptions) (err error) {
	if o.lease < 100*time.Millisecond {
		return usagef("coordinator: --lease %v: must be 100ms or more", o.lease)
	}
	if o.keep <= 0 {
		return usagef("coordinator: --keep-data %v: must be above 0", o.keep)
	}
	if o.pause < time.Millisecond {
		return usagef("coordinator: --snapshot-pause %v: must be 1ms or more", o.pause)
	}
	if err := cluster.CoordinatorFolder(o.dir); err != nil {
		return err
	}
	o.name = "coordinator"
	roots, err := cluster.MakeRoots(o.roots)
	if err != nil {
		return usagef("coordinator: %w", err)
	}
	named(&o.security, o.announce)
	yieldCores()
	p, err := newProcess(ctx, a, "coordinator", &o.processOptions, true)
	if err != nil {
		return err
	}
	if o.announce != "" {
		if err := o.security.CheckServes(reachable(p.addr)); err != nil {
			return errors.Join(usagef("coordinator: %w", err), p.listen.Close())
		}
	}
	journal, snapshot, records, err := o.openJournal(ctx, o.dir)
	if err != nil {
		return errors.Join(fs.Explain(o.dir, err), p.listen.Close())
	}
	identity, err := cluster.Identity(ctx, cmp.Or(o.journal, o.dir))
	if err != nil {
		return errors.Join(fs.Explain(o.dir, err), journal.Close(), p.listen.Close())
	}
	c := &coordinatorProcess{started: make(chan struct{})}
	c.dialer = &cluster.Dialer{Security: o.security}
	defer func() { err = errors.Join(err, c.dialer.Close()) }()
	c.stores = &cluster.JobStores{Shards: &cluster.Shards{Dialer: c.dialer, List: c.shards}}
	c.orders = &cluster.JobStores{Shards: c.stores.Shards}
	warn := metrics.Warner(p.log, "failed")
	keeper := &cluster.Keeper{Of: c.keptIn}
	config := coordinator.Config{
		Store: keeper, Journal: journal, Snapshot: snapshot, Records: records, Failed: warn,
		Limits: coordinator.Limits{Lease: coordinator.Tick(o.lease), MaxRunning: o.running, KeepJobs: o.keepJobs, KeepFor: coordinator.Tick(o.keepDays) * coordinator.Tick(24*time.Hour), NeedShards: true, KeepInputs: true,
			CheckpointSweeps: uint32(o.every), CheckpointEvery: coordinator.Tick(o.pause)},
	}
	if o.snapshots != "" {
		s := &cluster.Snapshots{Dir: o.snapshots, Cluster: identity, Same: coordinator.SameJob, Data: &cluster.DataStore{Shards: c.stores.Shards, Patience: snapshotPatience}, DataOf: dataOfState,
			Store: func(job string) (backup.Placed, error) { return c.storeOf(job) }}
		config.Checkpointer, keeper.Forget = s, s.Forget
	}
	sealer := &cluster.Sealer{Dir: filepath.Join(o.dir, "seals"), Failed: warn, Resident: func() uint64 { return uint64(train.PeakRSS()) },
		Store: func(job string) (worker.Store, error) { return c.storeOf(job) },
		JobOf: func(state []byte) (string, error) { job, _, err := dataOfState(state); return job, err },
		Lose:  func(job, reason string) error { return c.server.WeightsLost(job, reason) }}
	config.Ended = func(job string, state taxonv1.JobState) {
		if state == taxonv1.JobState_JOB_STATE_DONE {
			sealer.Ended(job)
		}
	}
	sealer.Start()
	server, err := coordinator.NewServer(config)
	if err != nil {
		return errors.Join(fs.Explain(o.dir, err), journal.Close(), p.listen.Close())
	}
	c.server = server
	p.figure.Cluster(newClusterFigures(server, journal.Size).read)
	close(c.started)
	collector := c.collector(o.keep, p.log, warn)
	server.Register(sealer.Registrar(cluster.Guard(p.server, cluster.Rules{Roots: roots, DataOf: dataOfState, Submitting: collector.Submitting})))
	sealer.Catch()
	collecting, stop := context.WithCancel(ctx)
	var rest sync.WaitGroup
	rest.Go(func() { collector.Run(collecting) })
	err = p.serve(ctx, a, server.Healthy, func(ctx context.Context) error {
		return o.announced(ctx, reachable(p.addr), journal, func(ctx context.Context) error {
			p.ready(a, fmt.Sprintf(", %d records in the journal", len(records)))
			return server.Wait(ctx)
		})
	}, "")
	stop()
	rest.Wait()
	sealer.Close()
	return errors.Join(err, server.Close())
}

// coordinatorProcess joins a coordinator with the shards of its jobs.
type coordinatorProcess struct {
	dialer  *cluster.Dialer
	stores  *cluster.JobStores
	orders  *cluster.JobStores // of those shards of each job that were not forgotten
	started chan struct{}      // closed when server is set
	server  *coordinator.Server
}

// shards says where the shards are.
func (c *coordinatorProcess) shards(ctx context.Context) (*taxonv1.StoresResult, error) {
	select {
	case <-c.started:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	shards, version := c.server.Shards()
	return &taxonv1.StoresResult{Shards: shards, Version: version}, nil
}

// collector looks after the uploaded data sets.
func (c *coordinatorProcess) collector(keep time.Duration, log *slog.Logger, warn func(error)) *cluster.Collector {
	channel := storerpc.NewChannel()
	c.server.Register(channel)
	return &cluster.Collector{Data: &cluster.DataStore{Shards: c.stores.Shards, Patience: collectPatience}, Keep: keep, Failed: warn,
		Jobs:    taxonv1.NewJobsClient(channel),
		Dropped: func(set string) { log.Info("dropped data that no job refers to", "set", set) }}
}

// collectPatience is how long the collector, and a submission, wait for a shard.
const collectPatience = 2 * time.Second

// dataOfState tells the job of a checkpoint's state, and its data.
func dataOfState(state []byte) (string, *taxonv1.Data, error) {
	s, err := coordinator.ReadState(state)
	if err != nil {
		return "", nil, err
	}
	return s.Job, s.Spec.GetData(), nil
}

// keptIn is the store of a job, for orders, which free space: they go to the shards that are
// known. nil: all were forgotten.
func (c *coordinatorProcess) keptIn(job string) (store.Store, error) {
	<-c.started
	shards, replicas, err := c.server.JobShards(job)
	if err != nil {
		return nil, err
	}
	all := len(shards)
	shards = slices.DeleteFunc(shards, func(s *taxonv1.Shard) bool { return s.GetAddr() == "" })
	if len(shards) == 0 && all > 0 {
		return nil, nil
	}
	return c.orders.Of(job, shards, min(replicas, uint32(len(shards))))
}

// storeOf is the store of a job.
func (c *coordinatorProcess) storeOf(job string) (*storerpc.Client, error) {
	<-c.started
	shards, replicas, err := c.server.JobShards(job)
	if err != nil {
		return nil, err
	}
	return c.stores.Of(job, shards, replicas)
}
