package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"taxon/coordinator"
	"taxon/coordinator/journal"
	"taxon/coordinator/machine"
	"taxon/internal/cluster"
	"taxon/internal/cluster/fsjournal"
	"taxon/internal/cluster/metrics"
	"taxon/internal/cluster/page"
	"taxon/internal/cluster/secure"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/backup"
	"taxon/store/storerpc"
	"taxon/worker"
)

// Coordinator configures a coordinator.
type Coordinator struct {
	Process

	// Lease is how long a worker or store may be silent before it counts as lost.
	Lease time.Duration

	// Running is the number of jobs that share the workers; further jobs wait.
	Running int

	// Keep is how long uploaded data stay without a job that refers to them.
	Keep time.Duration

	// KeepJobs and KeepDays bound the number and age of ended jobs whose values are kept.
	KeepJobs, KeepDays int

	// Snapshots is the folder of snapshots. If it is empty, none are taken.
	Snapshots string

	// Every is the number of sweeps between two snapshots. Zero leaves it to each job.
	Every int

	// Pause is the least time between two snapshots of a job.
	Pause time.Duration

	// Announce is the file in which the coordinator writes its address. If Announce is empty, the
	// coordinator writes none.
	Announce string

	// Journal is the folder of the journal. If it is empty, the journal is in Dir.
	Journal string
}

// snapshotPatience is how long a snapshot waits for a shard that is away.
const snapshotPatience = 20 * time.Second

// Run runs the coordinator until ctx ends.
func (o *Coordinator) Run(ctx context.Context) (err error) {
	if o.Lease < 100*time.Millisecond {
		return option.Errorf("coordinator: ‹lease=%v›: must be 100ms or more", o.Lease)
	}
	if o.Keep <= 0 {
		return option.Errorf("coordinator: ‹keep-data=%v›: must be above 0", o.Keep)
	}
	if o.Pause < time.Millisecond {
		return option.Errorf("coordinator: ‹snapshot-pause=%v›: must be 1ms or more", o.Pause)
	}
	if err := cluster.CoordinatorFolder(o.Dir); err != nil {
		return err
	}
	o.Name = "coordinator"
	roots, err := cluster.MakeRoots(o.Roots)
	if err != nil {
		return option.Errorf("coordinator: %w", err)
	}
	cluster.NameServers(&o.Security, o.Announce)
	yieldCores()
	p, err := newProcess(ctx, "coordinator", &o.Process, true)
	if err != nil {
		return err
	}
	if o.Announce != "" {
		if err := o.Security.CheckServes(reachable(p.addr)); err != nil {
			return errors.Join(option.Errorf("coordinator: %w", err), p.listen.Close())
		}
	}
	if err := fs.MkdirMode(o.Dir, 0o700); err != nil { // on disk, as what the journal acknowledges is
		return errors.Join(fs.Explain(o.Dir, err), p.listen.Close())
	}
	journal, snapshot, records, err := o.openJournal(ctx, o.Dir)
	if err != nil {
		return errors.Join(fs.Explain(o.Dir, err), p.listen.Close())
	}
	identity, err := cluster.Identity(ctx, cmp.Or(o.Journal, o.Dir))
	if err != nil {
		return errors.Join(fs.Explain(o.Dir, err), journal.Close(), p.listen.Close())
	}
	c := &coordinatorProcess{started: make(chan struct{})}
	c.dialer = &cluster.Dialer{Security: o.Security}
	defer func() { err = errors.Join(err, c.dialer.Close()) }()
	c.stores = &cluster.JobStores{Shards: &cluster.Shards{Dialer: c.dialer, List: c.shards}}
	c.orders = &cluster.JobStores{Shards: c.stores.Shards}
	warn := metrics.Warner(p.log, "failed")
	keeper := &cluster.StoreCleaner{Of: c.keptIn}
	config := coordinator.Config{
		Store: keeper, Journal: journal, Snapshot: snapshot, Records: records, Failed: warn, Caller: secure.Caller,
		Notice: p.tellEvent,
		Limits: machine.Limits{Lease: machine.Tick(o.Lease), MaxRunning: o.Running, KeepJobs: o.KeepJobs,
			KeepFor: machine.Tick(o.KeepDays) * machine.Tick(24*time.Hour), NeedShards: true, KeepInputs: true,
			CheckpointSweeps: uint32(o.Every), CheckpointEvery: machine.Tick(o.Pause)},
	}
	var saved func(job string) time.Time
	if o.Snapshots != "" {
		s := &cluster.Snapshots{Dir: o.Snapshots, Cluster: identity, Data: &cluster.DataStore{Shards: c.stores.Shards,
			Patience: snapshotPatience}, DataOf: dataOfState,
			Store: func(job string) (backup.Placed, error) { return c.storeOf(job) }}
		config.Checkpointer, keeper.Forget, saved = s, s.Forget, s.Taken
	}
	config.Digester = &cluster.Digester{Dir: filepath.Join(o.Dir, "spool"),
		Store: func(job string) (worker.Store, error) { return c.storeOf(job) }}
	server, err := coordinator.NewServer(config)
	if err != nil {
		return errors.Join(fs.Explain(o.Dir, err), journal.Close(), p.listen.Close())
	}
	c.server = server
	p.figure.Cluster(newClusterFigures(server, journal.Size, saved).read)
	close(c.started)
	p.pages = []metrics.Extra{page.New(c.jobs()).Extra()}
	collector := c.collector(o.Keep, p.log, warn)
	server.Register(cluster.Guard(p.server, cluster.Rules{Roots: roots, DataOf: dataOfState,
		Submitting: collector.Submitting, Strays: collector.Strays}))
	collecting, stop := context.WithCancel(ctx)
	var rest sync.WaitGroup
	rest.Go(func() { collector.Run(collecting) })
	rest.Go(func() { collector.Refill(collecting) })
	err = p.serve(ctx, server.Healthy, func(ctx context.Context) error {
		return o.announced(ctx, p, journal, func(ctx context.Context) error {
			p.ready(", " + format.Counted(int64(len(records)), "record", "records") + " in the journal")
			return server.Wait(ctx)
		})
	})
	stop()
	rest.Wait()
	return errors.Join(err, server.Close())
}

// coordinatorProcess connects a coordinator with the shards of its jobs.
type coordinatorProcess struct {
	dialer  *cluster.Dialer
	stores  *cluster.JobStores
	orders  *cluster.JobStores // for each job's shards that were not forgotten
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

// jobs returns a client that calls the coordinator directly, without a connection.
func (c *coordinatorProcess) jobs() taxonv1.JobsClient {
	channel := storerpc.NewChannel()
	c.server.Register(channel)
	return taxonv1.NewJobsClient(channel)
}

// collector returns the collector of uploaded data sets.
func (c *coordinatorProcess) collector(keep time.Duration, log *slog.Logger, warn func(error)) *cluster.Collector {
	return &cluster.Collector{Data: &cluster.DataStore{Shards: c.stores.Shards, Patience: collectPatience}, Keep: keep,
		Failed:  warn,
		Jobs:    c.jobs(),
		Dropped: func(set string) { log.Info("dropped data that no job refers to", "set", set) }}
}

// collectPatience is how long the collector, or a submission, waits for a shard.
const collectPatience = 2 * time.Second

// dataOfState returns the job and the data of a checkpoint's state.
func dataOfState(state []byte) (string, *taxonv1.Data, error) {
	s, err := machine.ReadState(state)
	if err != nil {
		return "", nil, err
	}
	return s.Job, s.Spec.GetData(), nil
}

// keptIn returns a job's store for orders that free space. The orders go to the shards that are
// known. It returns nil if all were forgotten.
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

// storeOf returns the store of a job.
func (c *coordinatorProcess) storeOf(job string) (*storerpc.Client, error) {
	<-c.started
	shards, replicas, err := c.server.JobShards(job)
	if err != nil {
		return nil, err
	}
	return c.stores.Of(job, shards, replicas)
}

// openJournal opens the journal in its own folder, or in dir.
func (o *Coordinator) openJournal(ctx context.Context,
	dir string) (j journal.Journal, snapshot []byte, records [][]byte, err error) {
	if o.Journal == "" {
		return journal.Open(vfs.OS, dir)
	}
	j, snapshot, records, err = fsjournal.Open(ctx, o.Journal)
	return j, snapshot, records, err
}

// announced announces the coordinator in its file, and runs work until that ends or another
// coordinator takes over.
func (o *Coordinator) announced(ctx context.Context, p *process, j journal.Journal,
	work func(context.Context) error) error {
	if o.Announce == "" {
		return work(ctx)
	}
	a := &cluster.Announcer{Path: o.Announce, Addr: reachable(p.addr)}
	if p.page != nil {
		a.Page = strings.TrimSuffix(p.page.URL, "metrics")
	}
	if f, ok := j.(*fsjournal.Folder); ok {
		a.Epoch = f.Epoch()
	}
	if err := a.Announce(ctx); err != nil {
		return err
	}
	both, ctx := errgroup.WithContext(ctx)
	watching, stop := context.WithCancel(ctx)
	both.Go(func() error { return a.Watch(watching) })
	both.Go(func() error {
		defer stop()
		return work(ctx)
	})
	return both.Wait()
}
