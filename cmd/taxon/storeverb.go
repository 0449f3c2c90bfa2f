package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster"
	"taxon/internal/cluster/client"
	"taxon/internal/fs"
	"taxon/internal/metrics"
	"taxon/internal/pause"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/badger"
	"taxon/store/memory"
	"taxon/store/storerpc"
)

// storeOptions are the flags of store.
type storeOptions struct {
	processOptions
	coordinator string
	memory      int64 // 0: on disk
	advertise   string
	short       bool
}

func newStoreCmd(a *app) *cobra.Command {
	var o storeOptions
	cmd := &cobra.Command{
		Use:     "store --dir DIR --coordinator ADDR",
		GroupID: groupCluster,
		Short:   "run a shard of a cluster's parameter store",
		Long: "Runs one shard of the parameter store: it keeps what workers write, and the data sets that submitters upload, checksummed. " +
			"Values lie in files of --dir, with Badger for what tells where, and are synced before they are acknowledged, so a shard that is killed comes back with all of them; " +
			"with --memory they live in memory and go with the process. The shard's id is kept in --dir: the same folder is the same shard, wherever it runs.",
		Example: "taxon store --dir /var/lib/taxon/store --coordinator coordinator.example:7070 --listen 127.0.0.1:7071\n" +
			"TAXON_COORDINATOR=127.0.0.1:7070 taxon store --dir store-0",
		RunE: func(cmd *cobra.Command, _ []string) error { return runStore(cmd.Context(), a, &o) },
	}
	flagGroup(cmd, "Process", func(f *pflag.FlagSet) {
		f.StringVar(&o.dir, "dir", "", "folder of the shard: `DIR`")
		coordinatorFlag(f, &o.coordinator)
		o.listenFlags(f, "127.0.0.1:0")
		f.StringVar(&o.advertise, "advertise", "", "`ADDR` (host:port) under which others reach it (default: the one it listens on)")
		f.StringVar(&o.name, "name", "", "`NAME` of a new shard (default: made up)")
		f.BoolVar(&o.short, "short-circuit", true, "let workers on this host that may open DIR read and write values by way of its files, not the network")
		bytesFlag(f, &o.memory, "memory", 0, "keep values in memory instead, at most `SIZE` of them")
	})
	o.frameFlags(cmd)
	require(cmd, "dir")
	return cmd
}

func runStore(ctx context.Context, a *app, o *storeOptions) (err error) {
	if err := needCoordinator("store", o.coordinator); err != nil {
		return err
	}
	if err := sizeFrom("store", "memory", o.memory, 1<<20); err != nil {
		return usagef("%w", err)
	}
	if err := o.identify(); err != nil {
		return err
	}
	cluster.NameServers(&o.security, o.coordinator)
	yieldCores()
	p, err := newProcess(ctx, a, "store", &o.processOptions, true, storerpc.BulkServerOptions()...)
	if err != nil {
		return err
	}
	if o.advertise == "" {
		o.advertise = reachable(p.addr)
	}
	if err := o.security.CheckServes(o.advertise); err != nil {
		return errors.Join(usagef("store: %w", err), p.listen.Close())
	}
	shard, err := o.open(ctx)
	if err != nil {
		return errors.Join(fs.Explain(o.dir, err), p.listen.Close())
	}
	defer func() { err = errors.Join(err, shard.Close()) }()
	watched := p.figure.Shard(shard)
	storerpc.NewServerWith(watched, storerpc.ServerOptions{ShortCircuit: o.short}).Register(p.server)
	dialer := &cluster.Dialer{Security: o.security}
	defer func() { err = errors.Join(err, dialer.Close()) }()
	conn, err := dialer.Conn(o.coordinator)
	if err != nil {
		return usagef("store: %w", err)
	}
	warn := metrics.Warner(p.log, "failed")
	m := &cluster.Member{ID: o.name, Addr: o.advertise, Members: taxonv1.NewMembersClient(conn), Capacity: uint64(max(o.memory, 0)),
		Failed: plainly(warn, o.coordinator), Away: make(chan struct{}, 1)}
	m.Holding = &cluster.Holding{Shard: shard}
	p.figure.Room(m.Holding.Room)
	jobs := taxonv1.NewJobsClient(conn)
	shards := &cluster.Shards{Dialer: dialer, List: func(ctx context.Context) (*taxonv1.StoresResult, error) {
		call, done := context.WithTimeout(ctx, client.Timeout)
		defer done()
		return jobs.Stores(call, &taxonv1.StoresRequest{})
	}}
	repairer := &cluster.Repairer{ID: o.name, Jobs: jobs, Stores: &cluster.JobStores{Shards: shards}, Failed: warn,
		Done: func(job string, r storerpc.RepairResult) {
			p.log.Info("repaired from other copies", "job", job, "values", r.Copied, "bytes", r.Bytes)
		}}
	healthy := func() error {
		if !m.Known() {
			return errors.New("the coordinator does not know the shard yet")
		}
		_, err := m.Holding.Any(ctx)
		return err
	}
	return p.serveMember(ctx, a, o.coordinator, m, repairer, healthy)
}

// reachable is how others may call a bound address: one of all interfaces by the host's name.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	name, nameErr := os.Hostname()
	if err != nil || nameErr != nil || ip == nil || !ip.IsUnspecified() {
		return addr
	}
	return net.JoinHostPort(name, port)
}

// serveMember serves, keeps the shard known to the coordinator, and repairs it when it
// was away. It is ready when the coordinator knows it.
func (p *process) serveMember(ctx context.Context, a *app, coordinator string, m *cluster.Member, r *cluster.Repairer, healthy func() error) error {
	m.Joined = func() { p.ready(a, ", shard "+m.ID) }
	return p.serve(ctx, a, healthy, func(ctx context.Context) error {
		repairing, stop := context.WithCancel(ctx)
		var rest sync.WaitGroup
		rest.Go(func() { r.Run(repairing, m.Away) })
		rest.Go(func() { m.Holding.Run(repairing) })
		err := denied("store", coordinator, m.Run(ctx))
		stop()
		rest.Wait()
		return err
	}, "")
}

// identify finds the shard's id in its folder, or makes one.
func (o *storeOptions) identify() error {
	if err := cluster.StoreFolder(o.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return fs.Explain(o.dir, err)
	}
	id, err := store.ShardID(o.dir, o.name)
	if err != nil {
		return usagef("store: %w", err)
	}
	o.name = id
	return nil
}

// openWait is how long a shard waits for its folder: whoever had it may still be ending.
const openWait = 5 * time.Second

// open opens the shard's values.
func (o *storeOptions) open(ctx context.Context) (s store.Shard, err error) {
	if o.memory > 0 {
		return memory.New(memory.Options{MaxBytes: uint64(o.memory)}), nil
	}
	folder := filepath.Join(o.dir, "values")
	if err := storerpc.ClearInbox(folder); err != nil { // before the room to open it is judged
		return nil, fs.Explain(folder, err)
	}
	err = pause.Insist(ctx, openWait, func() error {
		var b *badger.Store
		b, err := badger.Open(badger.Options{Dir: folder, ID: o.name})
		s = b
		return err
	}, func(err error) bool { return errors.Is(err, store.ErrLocked) })
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return s, nil
}
