package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"taxon/internal/cluster"
	"taxon/internal/cluster/client"
	"taxon/internal/cluster/metrics"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/retry"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/badger"
	"taxon/store/memory"
	"taxon/store/storerpc"
)

// Store configures a shard of the store.
type Store struct {
	Process

	// Coordinator is the address of the coordinator.
	Coordinator string

	// Memory is how many bytes of values are kept in memory. Zero keeps values on disk.
	Memory int64

	// Advertise is the address at which others reach the shard. If it is empty, it is the address
	// listened on.
	Advertise string
}

// Run runs the shard until ctx ends.
func (o *Store) Run(ctx context.Context) (err error) {
	if err := sizeFrom("store", "memory", o.Memory, 1<<20); err != nil {
		return option.Errorf("%w", err)
	}
	if err := o.identify(); err != nil {
		return err
	}
	cluster.NameServers(&o.Security, o.Coordinator)
	yieldCores()
	p, err := newProcess(ctx, "store", &o.Process, true, storerpc.BulkServerOptions()...)
	if err != nil {
		return err
	}
	if o.Advertise == "" {
		o.Advertise = reachable(p.addr)
	}
	if err := o.Security.CheckServes(o.Advertise); err != nil {
		return errors.Join(option.Errorf("store: %w", err), p.listen.Close())
	}
	shard, err := o.open(ctx)
	if err != nil {
		return errors.Join(fs.Explain(o.Dir, err), p.listen.Close())
	}
	defer func() { err = errors.Join(err, shard.Close()) }()
	watched := p.figure.Shard(shard)
	service := storerpc.NewServer(watched)
	service.Register(p.server)
	dialer := &cluster.Dialer{Security: o.Security}
	defer func() { err = errors.Join(err, dialer.Close()) }()
	conn, err := dialer.Conn(o.Coordinator)
	if err != nil {
		return option.Errorf("store: %w", err)
	}
	warn := metrics.Warner(p.log, "failed")
	m := &cluster.Member{ID: o.Name, Version: o.Version, Addr: o.Advertise, Members: taxonv1.NewMembersClient(conn),
		Capacity: uint64(max(o.Memory, 0)),
		Failed:   explained(warn, o.Coordinator), Away: make(chan struct{}, 1)}
	m.Holding = &cluster.Holding{Shard: shard, Refused: service.Refused}
	p.figure.Room(m.Holding.Room)
	jobs := taxonv1.NewJobsClient(conn)
	shards := &cluster.Shards{Dialer: dialer, List: func(ctx context.Context) (*taxonv1.StoresResult, error) {
		call, done := context.WithTimeout(ctx, client.Timeout)
		defer done()
		return jobs.Stores(call, &taxonv1.StoresRequest{})
	}}
	repairer := &cluster.Repairer{ID: o.Name, Jobs: jobs, Stores: &cluster.JobStores{Shards: shards}, Failed: warn,
		Done: func(job string, r storerpc.RepairResult) {
			p.log.Info("repaired from other copies", "job", job, "values", r.Copied, "bytes", r.Bytes)
		}}
	m.Repairing = repairer.Busy
	healthy := func() error {
		if !m.Known() {
			return errors.New("the coordinator does not know the shard yet")
		}
		_, err := m.Holding.Any(ctx)
		return errors.Join(err, m.Holding.Writable())
	}
	return p.serveMember(ctx, o.Coordinator, m, repairer, healthy)
}

// reachable turns a bound address into one for others. If all interfaces are bound, it uses the
// host's name.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	name, nameErr := os.Hostname()
	if err != nil || nameErr != nil || ip == nil || !ip.IsUnspecified() {
		return addr
	}
	return net.JoinHostPort(name, port)
}

// serveMember serves the shard, keeps it registered, and repairs it after it was away. The shard is
// ready when the coordinator knows it.
func (p *process) serveMember(ctx context.Context, coordinator string, m *cluster.Member, r *cluster.Repairer,
	healthy func() error) error {
	m.Joined = func() { p.ready(", shard " + m.ID) }
	return p.serve(ctx, healthy, func(ctx context.Context) error {
		repairing, stop := context.WithCancel(ctx)
		var rest sync.WaitGroup
		rest.Go(func() { r.Run(repairing, m.Away) })
		rest.Go(func() { m.Holding.Run(repairing) })
		err := denied("store", coordinator, m.Run(ctx))
		stop()
		rest.Wait()
		return err
	})
}

// identify finds or makes the shard's id in its folder.
func (o *Store) identify() error {
	if err := cluster.StoreFolder(o.Dir); err != nil {
		return err
	}
	if err := fs.MkdirMode(o.Dir, 0o755); err != nil {
		return fs.Explain(o.Dir, err)
	}
	id, err := store.ShardID(vfs.OS, o.Dir, o.Name)
	if err != nil {
		return option.Errorf("store: %w", err)
	}
	o.Name = id
	return nil
}

// openWait is how long a shard waits for its folder, whose last owner may still be ending.
const openWait = 5 * time.Second

// open opens the shard's values.
func (o *Store) open(ctx context.Context) (s store.Shard, err error) {
	if o.Memory > 0 {
		return memory.New(memory.Options{MaxBytes: uint64(o.Memory)}), nil
	}
	folder := filepath.Join(o.Dir, "values")
	err = retry.Retry(ctx, openWait, func() error {
		var b *badger.Store
		b, err := badger.Open(badger.Options{Dir: folder, ID: o.Name})
		s = b
		return err
	}, func(err error) bool { return errors.Is(err, store.ErrLocked) })
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return s, nil
}
