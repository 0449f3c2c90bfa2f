package yarn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"taxon/internal/app/estimate"
	"taxon/internal/app/inspect"
	"taxon/internal/cluster/client"
	"taxon/internal/fs"
	"taxon/internal/ui/format"
)

// UpOptions configure a cluster to start. Sizes are in bytes.
type UpOptions struct {
	Options
	Workers, Stores, Slots int
	Lease                  time.Duration
	// Data, Hierarchy and Method describe a training for which the containers' sizes are planned.
	// They are empty if there is none.
	Data, Hierarchy, Method string
	Files                   fs.Local
	// WorkerMemory and StoreMemory are planned if they are zero.
	WorkerMemory, StoreMemory int64
	CoordinatorMemory, Cache  int64
	// Queue and Local are YARN's own if they are empty.
	Queue, Local string
	// DataRoots are folders in which jobs may name data.
	DataRoots []string
	Lifetime  time.Duration
	// Metrics is the first port of metrics, probes and page. Zero means that there are none.
	Metrics       int
	SnapshotEvery int
	SnapshotPause time.Duration
	// Certs is the folder of the authority. If it is empty, the folder in the user's configuration
	// is used.
	Certs    string
	Insecure bool
	// Principal and Keytab are the Kerberos principal and its keytab. They are empty without
	// Kerberos.
	Principal, Keytab string
	// Binary is the program. If it is empty, it is this program.
	Binary string
}

// minContainer is the smallest useful size of a container, in bytes.
const minContainer = 64 << 20

// workerShare is the share of its container's memory that a worker offers for tasks.
const workerShare = 0.85

// Check returns an error that lists everything wrong with the options themselves.
func (o *UpOptions) Check() error {
	var all []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	want(o.Hierarchy == "" || o.Data != "", "‹hierarchy› goes with ‹data›")
	want((o.Principal == "") == (o.Keytab == ""), "‹principal› and ‹keytab› go together")
	want(o.Lifetime == 0 || o.Lifetime >= time.Minute, "‹lifetime=%v›: must be a minute or more", o.Lifetime)
	want(o.Metrics >= 0 && o.Metrics < 1<<16, "‹metrics=%d›: must be a port", o.Metrics)
	want(o.Lease >= 100*time.Millisecond, "‹lease=%v›: must be 100ms or more", o.Lease)
	want(o.SnapshotPause >= time.Millisecond, "‹snapshot-pause=%v›: must be 1ms or more", o.SnapshotPause)
	want(!o.Insecure || o.Certs == "", "‹insecure› and ‹certs› contradict each other")
	want(!strings.ContainsAny(o.Local, "{},"), "‹local=%s›: must be one folder", format.QuoteIfNeeded(o.Local))
	for _, r := range o.DataRoots {
		want(fs.IsAbs(r), "‹data-root=%s›: must be hdfs://... or an absolute path",
			format.QuoteIfNeeded(r))
	}
	for i, size := range []int64{o.CoordinatorMemory, o.StoreMemory, o.WorkerMemory} {
		want(size <= 0 || size >= minContainer, "‹%s-memory=%s›: must be %s or more", Roles()[i], format.Bytes(size),
			format.Bytes(minContainer))
	}
	return refused(errors.Join(all...))
}

// size plans the containers' memory where it was not given.
func (o *UpOptions) size(ctx context.Context) error {
	const (
		defaultWorker = 4 << 30
		defaultStore  = 2 << 30
		room          = 256 << 20 // for the needs of a process beside its tasks
		memoryStep    = 256 << 20
	)
	up := func(n int64) int64 { return (n + memoryStep - 1) / memoryStep * memoryStep }
	worker, store := int64(defaultWorker), int64(defaultStore)
	if o.Data != "" && (o.WorkerMemory == 0 || o.StoreMemory == 0) {
		i, err := inspect.Look(ctx, inspect.Options{Path: o.Data, Hierarchy: o.Hierarchy, Method: o.Method, Files: o.Files,
			Plan: &inspect.Plan{Cluster: estimate.Cluster{Workers: o.Workers, Slots: o.Slots, Stores: o.Stores}}}, o.UI)
		if err != nil {
			return err
		}
		plan := i.Plan
		if plan == nil {
			return refuse("‹data=%s›: is not data to train on", format.QuoteIfNeeded(o.Data))
		}
		worker, store = up(int64(float64(plan.WorkerLeast)/workerShare)+room), up(plan.StoreMemory+room)
		o.UI.Note("by the plan: %s a worker, %s a store", format.Bytes(worker), format.Bytes(store))
	}
	for _, path := range []string{o.Data, o.Hierarchy} {
		if err := isThere(ctx, path); err != nil {
			return err
		}
	}
	o.WorkerMemory = cmp.Or(o.WorkerMemory, worker)
	o.StoreMemory = cmp.Or(o.StoreMemory, store)
	return nil
}

// isThere returns an error for an input path that does not exist. The empty path is accepted.
func isThere(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	if fs.Exists(path) {
		return nil
	}
	_, err := fs.Expand(ctx, path)
	return err
}

// spec describes the requested cluster. The files in HDFS are filled in later.
func (o *UpOptions) spec(user string) Spec {
	return Spec{Name: o.Name, Queue: o.Queue, User: user, Lifetime: int64(o.Lifetime / time.Second),
		Principal: o.Principal,
		Sizes: map[string]Size{
			Coordinator: {Count: 1, Cores: 1, Bytes: o.CoordinatorMemory},
			Store:       {Count: o.Stores, Cores: 1, Bytes: o.StoreMemory},
			Worker:      {Count: o.Workers, Cores: o.Slots, Bytes: o.WorkerMemory},
		}}
}

// Run returns the configuration of the processes, for a cluster folder dir. Roles in tokens have a
// token file.
func (o *UpOptions) Run(dir string, tokens []string) Run {
	place := fs.Join(dir, placeName)
	find := []string{"--coordinator", place}
	r := Run{Name: o.Name, Dir: dir, Local: o.Local, Stores: o.Stores, Metrics: o.Metrics, Args: map[string][]string{
		Coordinator: {"--dir", "{local}", "--listen", "{host}:0", "--announce", place, "--journal", fs.Join(dir, "journal"),
			"--lease", o.Lease.String(),
			"--snapshots", fs.Join(dir, "snapshots"), "--snapshot-every", strconv.Itoa(o.SnapshotEvery), "--snapshot-pause",
			o.SnapshotPause.String()},
		Store: append([]string{"--dir", "{local}", "--listen", "{host}:0", "--name", "{instance}"}, find...),
		Worker: append([]string{"--dir", "{shared}", "--name", "{instance}", "--slots", strconv.Itoa(o.Slots),
			"--memory", strconv.FormatInt(int64(workerShare*float64(o.WorkerMemory)), 10), "--cache", strconv.FormatInt(o.Cache,
				10)}, find...),
	}}
	roots := slices.Clone(o.DataRoots)
	if fs.Shared(o.Data) {
		roots = append(roots, fs.Clean(o.Data))
	}
	for _, root := range roots {
		for _, role := range []string{Coordinator, Worker} {
			r.Args[role] = append(r.Args[role], "--data-root", root)
		}
	}
	for _, role := range Roles() {
		args := []string{"--insecure"}
		if !o.Insecure {
			args = []string{"--tls-ca", client.CAFile, "--tls-cert", role + ".crt", "--tls-key", role + ".key"}
			if slices.Contains(tokens, role) {
				args = append(args, "--token-file", role+tokensEnding)
			}
		}
		r.Args[role] = append(r.Args[role], args...)
	}
	return r
}

// Up launches the service, and returns when everything is ready. Requests that the cluster cannot
// satisfy are refused before anything is written. A service that ends before it is ready leaves
// nothing behind.
func Up(ctx context.Context, o UpOptions) (*Deployment, error) {
	d, err := newDeployment(o.Options)
	if err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Binary, err = StaticProgram(o.Binary); err != nil {
		return nil, refused(err)
	}
	var conf Conf
	if d.manager, conf, err = NewClient(o.Manager, d.user); err != nil {
		return nil, err
	}
	if conf.Kerberos() && o.Principal == "" {
		return nil, refuse("the cluster uses Kerberos: give ‹principal› and ‹keytab›, for the processes to read " +
			"and write HDFS with")
	}
	if err := d.findServices(ctx); err != nil {
		return nil, err
	}
	if err := d.free(ctx); err != nil {
		return nil, err
	}
	k, err := d.manager.Cluster(ctx)
	if err != nil {
		return nil, refused(err)
	}
	if err := o.size(ctx); err != nil {
		return nil, err
	}
	s := &shipment{UpOptions: &o, dir: d.Dir, spec: o.spec(d.user)}
	if err := k.Check(s.spec); err != nil {
		return nil, refused(err)
	}
	if err := s.ship(ctx); err != nil {
		_ = s.undo() // the first error is reported, not this
		return nil, err
	}
	if err := d.services.Launch(ctx, Definition(s.spec)); err != nil {
		_ = d.services.Destroy(context.WithoutCancel(ctx), d.Name) // YARN keeps the definition of a refused service
		_ = s.undo()
		return nil, refused(err)
	}
	if err := d.awaitMembers(ctx, s.epoch, o.Stores, o.Workers, nil); err != nil {
		var problem *Problem
		switch {
		case errors.Is(err, context.Canceled):
			o.UI.Note("the service stays: `taxon yarn status ‹name=%s›` shows it, `taxon yarn down ‹name=%s›` ends it", d.Name,
				d.Name)
		case errors.As(err, &problem) && problem.Usage: // it ended before it was ready
			d.abandon(context.WithoutCancel(ctx))
			_ = s.undo()
		}
		return nil, err
	}
	return d, nil
}

// abandonLimit bounds the wait for the end of a service that did not start properly.
const abandonLimit = 30 * time.Second

// abandon ends a service that did not start properly, and waits until none of its processes can
// write to its folder.
func (d *Deployment) abandon(ctx context.Context) {
	ctx, done := context.WithTimeout(ctx, abandonLimit)
	defer done()
	if d.services.Destroy(ctx, d.Name) == nil {
		_ = d.awaitEnd(ctx) // the first error is reported, not this
	}
}

// free returns an error for a name that a service already has.
func (d *Deployment) free(ctx context.Context) error {
	s, err := d.services.Status(ctx, d.Name)
	switch {
	case errors.Is(err, ErrNoService):
		return nil
	case err != nil:
		return refused(err)
	}
	return refuse("a service %s is there already (%s): `taxon yarn status ‹name=%s›` shows it, `taxon yarn down "+
		"‹name=%s›` ends it",
		d.Name, strings.ToLower(s.State), d.Name, d.Name)
}
