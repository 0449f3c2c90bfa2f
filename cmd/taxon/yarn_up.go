package main

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/fs"
	"taxon/internal/yarn"
)

// yarnUpOptions are the flags of yarn up.
type yarnUpOptions struct {
	yarnOptions
	workers, stores, slots    int
	workerMem, storeMem       int64
	coordinatorMem, cache     int64
	data, hierarchy           string
	queue, local              string
	lifetime                  time.Duration
	lease                     time.Duration
	every                     int
	pause                     time.Duration
	certs                     string
	insecure                  bool
	principal, keytab, binary string
	roots                     []string
}

func newYarnUp(a *app) *cobra.Command {
	var o yarnUpOptions
	cmd := &cobra.Command{
		Use:   "up --name NAME",
		Short: "start a cluster on YARN, and return when all of it is ready",
		Long: "Copies this binary, certificates and what the processes are started with to a folder in HDFS, launches a service of three components there, and returns when coordinator, stores and workers are ready. " +
			"The coordinator's journal and the jobs' snapshots lie in the same folder: what was shut down, or lost with its hosts, goes on from there. What the cluster can't give is refused before anything is written.",
		Example: "taxon yarn up --name wiki --workers 16 --slots 8 --stores 4 --data hdfs:///data/wiki --hierarchy hdfs:///data/tree.txt\n" +
			"taxon yarn up --workers 2 --stores 1 --worker-memory 4GiB --queue research --json",
		RunE: func(cmd *cobra.Command, _ []string) error { return o.up(cmd.Context(), a) },
	}
	o.yarnOptions.flags(cmd)
	flagGroup(cmd, "Processes", func(f *pflag.FlagSet) {
		intFlag(f, &o.workers, "workers", 2, 0, 1<<16, "`N` workers")
		intFlag(f, &o.slots, "slots", 1, 1, 4096, "`N` tasks at a time of each worker, a core each")
		intFlag(f, &o.stores, "stores", 1, 1, 256, "`N` shards of the store")
		f.DurationVar(&o.lease, "lease", 10*time.Second, "a process that is silent for `TIME` is taken for lost")
	})
	flagGroup(cmd, "Containers", func(f *pflag.FlagSet) {
		f.StringVar(&o.data, "data", "", "size the containers by the plan of a training of this data: `PATH`")
		f.StringVar(&o.hierarchy, "hierarchy", "", "class structure of the data: a `FILE`")
		bytesFlag(f, &o.workerMem, "worker-memory", 0, "`SIZE` of a worker's container (default: by the plan, else 4GiB)")
		bytesFlag(f, &o.storeMem, "store-memory", 0, "`SIZE` of a store's container (default: by the plan, else 2GiB)")
		bytesFlag(f, &o.coordinatorMem, "coordinator-memory", 1<<30, "`SIZE` of the coordinator's container")
		bytesFlag(f, &o.cache, "cache", 16<<30, "`SIZE` on each host's disk that fetched data sets may take")
		f.StringVar(&o.local, "local", "", "`DIR` on every host for stores and caches, writable by the containers' user (default: YARN's own for the service, which goes with it)")
		f.StringArrayVar(&o.roots, "data-root", nil, "`DIR` below which jobs may name data in place, in HDFS or on every host; repeated: several (--data's is one, if it is in HDFS)")
		f.StringVar(&o.queue, "queue", "", "`QUEUE` of YARN's (default: its default)")
		f.DurationVar(&o.lifetime, "lifetime", 0, "have YARN end the service after `TIME` (default: never)")
	})
	flagGroup(cmd, "Snapshots", func(f *pflag.FlagSet) {
		intFlag(f, &o.every, "snapshot-every", 0, 0, math.MaxInt32, "`N` sweeps between snapshots in HDFS (default: what each job asks for with --checkpoint-every, 4)")
		f.DurationVar(&o.pause, "snapshot-pause", time.Minute, "no two of a job within `TIME`")
	})
	flagGroup(cmd, "Security", func(f *pflag.FlagSet) {
		f.StringVar(&o.certs, "certs", "", "`DIR` of the authority that makes the cluster's certificates, and of its tokens if there are any (default: of the user's configuration)")
		f.BoolVar(&o.insecure, "insecure", false, "no TLS and no identities, for networks that are protected otherwise")
		f.StringVar(&o.principal, "principal", "", "Kerberos `PRINCIPAL` of the processes (with --keytab)")
		f.StringVar(&o.keytab, "keytab", "", "the principal's keytab: a `FILE`")
	})
	o.yarnFlags(cmd)
	flagGroup(cmd, "YARN", func(f *pflag.FlagSet) {
		f.StringVar(&o.binary, "binary", "", "static taxon binary `FILE` for the hosts (default: this one)")
	})
	return cmd
}

// minContainer is below what a process can do anything with.
const minContainer = 64 << 20

// workerShare is the part of its container that a worker tells the coordinator for tasks.
const workerShare = 0.85

func (o *yarnUpOptions) check() error {
	if err := o.prepare(); err != nil {
		return err
	}
	switch {
	case o.hierarchy != "" && o.data == "":
		return usagef("yarn up: --hierarchy goes with --data")
	case (o.principal == "") != (o.keytab == ""):
		return usagef("yarn up: --principal and --keytab go together")
	case o.lifetime < 0 || o.lifetime > 0 && o.lifetime < time.Minute:
		return usagef("yarn up: --lifetime %v: must be a minute or more", o.lifetime)
	case o.lease < 100*time.Millisecond:
		return usagef("yarn up: --lease %v: must be 100ms or more", o.lease)
	case o.pause < time.Millisecond:
		return usagef("yarn up: --snapshot-pause %v: must be 1ms or more", o.pause)
	case o.insecure && o.certs != "":
		return usagef("yarn up: --insecure and --certs contradict each other")
	case strings.ContainsAny(o.local, "{},"):
		return usagef("yarn up: --local %s: must be one folder", quoteIfOdd(o.local))
	}
	for _, r := range o.roots {
		if !fs.IsRemote(r) && !filepath.IsAbs(r) {
			return usagef("yarn up: --data-root %s: must be hdfs://... or an absolute path", quoteIfOdd(r))
		}
	}
	for flag, size := range map[string]int64{"worker": o.workerMem, "store": o.storeMem, "coordinator": o.coordinatorMem} {
		if size > 0 && size < minContainer {
			return usagef("yarn up: --%s-memory %s: must be %s or more", flag, formatBytes(size), formatBytes(minContainer))
		}
	}
	return nil
}

// size sets the containers' memory by the plan, where it was not given.
func (o *yarnUpOptions) size(ctx context.Context, a *app) error {
	const (
		defaultWorker = 4 << 30
		defaultStore  = 2 << 30
		room          = 256 << 20 // for what a process has besides its tasks
		grain         = 256 << 20
	)
	up := func(n int64) int64 { return (n + grain - 1) / grain * grain }
	worker, store := int64(defaultWorker), int64(defaultStore)
	if o.data != "" && (o.workerMem == 0 || o.storeMem == 0) {
		i, err := gatherInfo(ctx, a, infoOptions{path: o.data, hierarchy: o.hierarchy,
			plan: planOptions{plan: true, workers: o.workers, slots: o.slots, stores: o.stores}})
		if err != nil {
			return err
		}
		if i.Plan == nil {
			return usagef("yarn up: --data %s: is no data to train on", quoteIfOdd(o.data))
		}
		worker, store = up(int64(float64(i.Plan.WorkerLeast)/workerShare)+room), up(i.Plan.StoreMemory+room)
		a.ui.Note("by the plan: %s a worker, %s a store", formatBytes(worker), formatBytes(store))
	}
	for _, path := range []string{o.data, o.hierarchy} {
		if err := isThere(ctx, path); err != nil {
			return err
		}
	}
	if o.workerMem == 0 {
		o.workerMem = worker
	}
	if o.storeMem == 0 {
		o.storeMem = store
	}
	return nil
}

// isThere refuses a path of input that names nothing; "" is no path.
func isThere(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	_, err := fs.Stat(path)
	if err == nil {
		return nil
	}
	files, expandErr := fs.Expand(ctx, path)
	if expandErr != nil {
		return expandErr
	}
	if len(files) == 1 && files[0] == path {
		return fs.Explain(path, err)
	}
	return nil
}

// spec is the cluster that the flags ask for; the files in HDFS are filled in later.
func (o *yarnUpOptions) spec() yarn.Spec {
	return yarn.Spec{Name: o.name, Queue: o.queue, User: o.user, Lifetime: int64(o.lifetime / time.Second), Principal: o.principal,
		Sizes: map[string]yarn.Size{
			yarn.Coordinator: {Count: 1, Cores: 1, Bytes: o.coordinatorMem},
			yarn.Store:       {Count: o.stores, Cores: 1, Bytes: o.storeMem},
			yarn.Worker:      {Count: o.workers, Cores: o.slots, Bytes: o.workerMem},
		}}
}

func (o *yarnUpOptions) up(ctx context.Context, a *app) error {
	if err := o.check(); err != nil {
		return err
	}
	binary, err := o.findBinary()
	if err != nil {
		return err
	}
	c, conf, err := o.client()
	if err != nil {
		return err
	}
	if conf.Kerberos() && o.principal == "" {
		return usagef("yarn up: the cluster uses Kerberos: give --principal and --keytab, for the processes to read and write HDFS with")
	}
	services, err := o.services(ctx, c)
	if err != nil {
		return err
	}
	if err := o.free(ctx, services); err != nil {
		return err
	}
	k, err := c.Cluster(ctx)
	if err != nil {
		return o.fail(err)
	}
	if err := o.size(ctx, a); err != nil {
		return err
	}
	spec := o.spec()
	if err := k.Check(spec); err != nil {
		return usagef("yarn up: %w", err)
	}
	s := &shipment{o: o, a: a, spec: spec}
	if err := s.ship(ctx, binary); err != nil {
		return firstError(err, s.undo())
	}
	if err := services.Launch(ctx, yarn.Definition(s.spec)); err != nil {
		_ = services.Destroy(context.WithoutCancel(ctx), o.name) // YARN keeps the definition of what it refused
		return firstError(o.fail(err), s.undo())
	}
	if err := o.awaitMembers(ctx, a, c, s.epoch, o.stores, o.workers, nil); err != nil {
		if isCancelled(err) {
			a.ui.Note("the service stays: `taxon yarn status --name %s` shows it, `taxon yarn down --name %s` ends it", o.name, o.name)
			return err
		}
		var status *statusError
		if errors.As(err, &status) && status.Code == exitUsage { // it ended before it was ready
			o.abandon(context.WithoutCancel(ctx), c, services)
			return firstError(err, s.undo())
		}
		return err
	}
	return o.print(ctx, a, c, services)
}

// abandonLimit bounds waiting for the end of a service that did not come up.
const abandonLimit = 30 * time.Second

// abandon ends a service that did not come up, and waits until none of its processes can
// write to its folder any more.
func (o *yarnUpOptions) abandon(ctx context.Context, c *yarn.Client, services yarn.Services) {
	ctx, done := context.WithTimeout(ctx, abandonLimit)
	defer done()
	if services.Destroy(ctx, o.name) == nil {
		_ = o.awaitEnd(ctx, c) // the cause is told, not this
	}
}

// free refuses a name under which a service is there already.
func (o *yarnUpOptions) free(ctx context.Context, services yarn.Services) error {
	s, err := services.Status(ctx, o.name)
	switch {
	case errors.Is(err, yarn.ErrNoService):
		return nil
	case err != nil:
		return o.fail(err)
	}
	return usagef("yarn up: a service %s is there already (%s): `taxon yarn status --name %s` shows it, `taxon yarn down --name %s` ends it",
		o.name, strings.ToLower(s.State), o.name, o.name)
}

// findBinary is the program that the containers run.
func (o *yarnUpOptions) findBinary() (string, error) {
	path, err := yarn.StaticProgram(o.binary)
	if err != nil {
		return "", usagef("yarn up: %w", err)
	}
	return path, nil
}

// firstError is the cause; that tidying up failed too is said only where there is no cause.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
