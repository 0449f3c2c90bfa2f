package main

import (
	"fmt"
	"math"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster"
	"taxon/internal/cluster/metrics"
	"taxon/internal/cluster/node"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// envCoordinator is the environment variable that replaces --coordinator.
const envCoordinator = "TAXON_COORDINATOR"

// coordinatorFlag defines --coordinator.
func coordinatorFlag(f *pflag.FlagSet, p *string) {
	f.StringVar(p, "coordinator", os.Getenv(envCoordinator), "`ADDR` (host:port) of the coordinator, or the hdfs:// "+
		"file that names it (default "+envCoordinator+")")
	f.Lookup("coordinator").DefValue = "" // the environment's value belongs in no help text
}

// needCoordinator returns an error for a command line without the coordinator's address.
func needCoordinator(verb, addr string) error {
	if cluster.IsPlace(addr) {
		return nil // read when it is called
	}
	if addr == "" {
		return option.Errorf("%s: which cluster? give --coordinator HOST:PORT or set %s", verb, envCoordinator)
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return option.Errorf("%s: --coordinator %s: must be HOST:PORT", verb, format.QuoteIfNeeded(addr))
	}
	return nil
}

// listenFlags defines where a process listens.
func listenFlags(f *pflag.FlagSet, o *node.Process, addr string) {
	f.StringVar(&o.Listen, "listen", addr, "`ADDR` (host:port) to listen on; beyond loopback it needs TLS, see `taxon "+
		"help certs`; port 0: any")
	f.IntVar(&o.ListenFD, "listen-fd", -1, "listening socket `N` that the process was given")
	f.Lookup("listen-fd").Hidden = true // for `taxon cluster`
}

// frameFlags defines the groups of flags that all processes share.
func frameFlags(cmd *cobra.Command, o *node.Process) {
	flagGroup(cmd, "Security", o.Security.AddFlags)
	flagGroup(cmd, "Watching", func(f *pflag.FlagSet) {
		o.Metrics.AddFlags(f)
		o.Log.AddFlags(f)
	})
}

// starts records the program that starts a process, and sets up the process's output.
func (a *app) starts(o *node.Process) {
	o.Version, o.LogTo = readVersion().Version, a.stderr
	o.Say = func(line string) { fmt.Fprintln(a.stdout, line) }
	a.logsBy(o.Log)
}

// logsBy sets up the log of a long-running process. Libraries write to the same log. If it is in
// JSON, the error that ends the process is also written there.
func (a *app) logsBy(o metrics.LogOptions) {
	log, err := o.Logger(a.stderr)
	if err != nil {
		return // the process refuses the options
	}
	metrics.Adopt(log)
	if o.JSON() {
		a.log = log
	}
}

func newCoordinatorCmd(a *app) *cobra.Command {
	var o node.Coordinator
	cmd := &cobra.Command{
		Use:     "coordinator --dir DIR",
		GroupID: groupCluster,
		Short:   "run a cluster's coordinator: jobs, tasks, leases",
		Long: "Runs the process of a cluster that manages the jobs: it cuts them into tasks, leases the tasks to workers, " +
			"and decides which results count. " +
			"Each decision is in a journal on the disk, in --dir, before the coordinator announces it. Started again on the " +
			"same --dir, it continues where it was, and so do running jobs. " +
			"It holds no data. Outside of loopback it needs TLS and identities (see `taxon help certs`). On SIGTERM it ends. " +
			"Its jobs continue when it is started again.",
		Example: "taxon coordinator --dir /var/lib/taxon/coordinator\n" +
			"taxon coordinator --dir coordinator --listen 127.0.0.1:7070 --data-root /data --metrics 127.0.0.1:9100",
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.starts(&o.Process)
			return o.Run(cmd.Context())
		},
	}
	flagGroup(cmd, "Process", func(f *pflag.FlagSet) {
		f.StringVar(&o.Dir, "dir", "", "folder of the journal: `DIR`")
		listenFlags(f, &o.Process, "127.0.0.1:7070")
		f.StringArrayVar(&o.Roots, "data-root", nil, "`DIR` below which jobs may name data in place; repeated: "+
			"several (default none)")
	})
	flagGroup(cmd, "Scheduling", func(f *pflag.FlagSet) {
		f.DurationVar(&o.Lease, "lease", 10*time.Second, "a worker or store that is silent for `TIME` is taken for lost")
		intFlag(f, &o.Running, "running-jobs", 4, 1, 1000, "`N` jobs that share the workers at a time; others queue")
	})
	flagGroup(cmd, "Uploaded data", func(f *pflag.FlagSet) {
		f.DurationVar(&o.Keep, "keep-data", 24*time.Hour, "drop data sets from the store that no job has "+
			"referred to for `TIME`")
	})
	flagGroup(cmd, "Jobs that have ended", func(f *pflag.FlagSet) {
		intFlag(f, &o.KeepJobs, "keep-jobs", 100, 1, 1000, "keep the values (weights, what resume needs) of the last `N`; "+
			"`taxon jobs` says which go next")
		intFlag(f, &o.KeepDays, "keep-days", 30, 1, 36500, "and for at most `N` days")
	})
	flagGroup(cmd, "Snapshots", func(f *pflag.FlagSet) { snapshotFlags(f, &o.Snapshots, &o.Every, &o.Pause) })
	flagGroup(cmd, "On hosts that change", func(f *pflag.FlagSet) {
		f.StringVar(&o.Announce, "announce", "", "say in this `FILE`, mostly hdfs://, where the coordinator is; the others "+
			"find it by --coordinator FILE")
		f.StringVar(&o.Journal, "journal", "", "keep the journal in `FOLDER`, usually hdfs://, instead of --dir: a "+
			"coordinator started on another host continues from it, and the one before can decide nothing any more")
	})
	frameFlags(cmd, &o.Process)
	require(cmd, "dir")
	return cmd
}

// snapshotFlags are the flags that say when snapshots are taken and where they are written.
func snapshotFlags(f *pflag.FlagSet, dir *string, every *int, pause *time.Duration) {
	f.StringVar(dir, "snapshots", "", "keep a snapshot of each job in `DIR`, on a disk that the stores' failures leave "+
		"alone: what lost shards held is taken from there, and `taxon restore` puts jobs onto another "+
		"cluster (default: none)")
	intFlag(f, every, "snapshot-every", 0, 0, math.MaxInt32, "`N` sweeps between them (default: what each job asks for "+
		"with --x checkpoint-every, 4)")
	f.DurationVar(pause, "snapshot-pause", 10*time.Second, "no two of a job within `TIME`")
}

func newStoreCmd(a *app) *cobra.Command {
	var o node.Store
	cmd := &cobra.Command{
		Use:     "store --dir DIR --coordinator ADDR",
		GroupID: groupCluster,
		Short:   "run a shard of a cluster's parameter store",
		Long: "Runs one shard of the parameter store: it keeps what workers write, and the data sets that submitters " +
			"upload, checksummed. " +
			"Values are in files of --dir, with a Badger index, and are synced before they are acknowledged, so a shard that " +
			"is killed comes back with all of them. " +
			"With --memory they are in memory and end with the process. The shard's id is kept in --dir: the same folder is " +
			"the same shard, wherever it runs.",
		Example: "taxon store --dir /var/lib/taxon/store --coordinator coordinator.example:7070 --listen 127.0.0.1:7071\n" +
			"TAXON_COORDINATOR=127.0.0.1:7070 taxon store --dir store-0",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needCoordinator("store", o.Coordinator); err != nil {
				return err
			}
			a.starts(&o.Process)
			return o.Run(cmd.Context())
		},
	}
	flagGroup(cmd, "Process", func(f *pflag.FlagSet) {
		f.StringVar(&o.Dir, "dir", "", "folder of the shard: `DIR`")
		coordinatorFlag(f, &o.Coordinator)
		listenFlags(f, &o.Process, "127.0.0.1:0")
		f.StringVar(&o.Advertise, "advertise", "", "`ADDR` (host:port) under which others reach it (default: "+
			"the one it listens on)")
		f.StringVar(&o.Name, "name", "", "`NAME` of a new shard (default: made up)")
		bytesFlag(f, &o.Memory, "memory", 0, "keep values in memory instead, at most `SIZE` of them")
	})
	frameFlags(cmd, &o.Process)
	require(cmd, "dir")
	return cmd
}

func newWorkerCmd(a *app) *cobra.Command {
	var o node.Worker
	cmd := &cobra.Command{
		Use:     "worker --coordinator ADDR --dir CACHE",
		GroupID: groupCluster,
		Short:   "run a worker: takes tasks from the coordinator and computes",
		Long: "Runs a worker: it leases tasks, reads their inputs from the store, computes, and writes the results. " +
			"Workers may join and leave at any time. " +
			"The tasks of a killed worker are repeated on others, with the same bytes. On SIGTERM it gives its tasks back " +
			"(after --grace, if given) and ends. " +
			"Data sets that it has fetched stay in --dir, which several workers of a host may share.",
		Example: "taxon worker --coordinator coordinator.example:7070 --slots 8 --dir /var/cache/taxon\n" +
			"TAXON_COORDINATOR=127.0.0.1:7070 taxon worker --slots 2 --memory 4GB --dir cache",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needCoordinator("worker", o.Coordinator); err != nil {
				return err
			}
			a.starts(&o.Process)
			return o.Run(cmd.Context())
		},
	}
	flagGroup(cmd, "Process", func(f *pflag.FlagSet) {
		coordinatorFlag(f, &o.Coordinator)
		f.StringVar(&o.Dir, "dir", "", "folder of the data sets that were fetched: `CACHE`")
		f.StringVar(&o.Name, "name", "", "`NAME` that it goes by in lists (default: of the host, and the process)")
		f.StringArrayVar(&o.Roots, "data-root", nil, "`DIR` below which jobs may name data in place; repeated: "+
			"several (default none)")
		f.DurationVar(&o.Grace, "grace", 0, "after SIGTERM, give running tasks `TIME` to finish before they are given back")
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		intFlag(f, &o.Slots, "slots", 0, 0, 4096, "`N` tasks at a time (default: all cores)")
		bytesFlag(f, &o.Memory, "memory", 0, "`SIZE` that it may take: the coordinator gives it no tasks of jobs that need "+
			"more, and garbage is collected in time (default: no limit)")
		bytesFlag(f, &o.Cache, "cache", 64<<30, "`SIZE` on disk that the fetched data sets may take; the one used "+
			"longest ago goes first")
	})
	frameFlags(cmd, &o.Process)
	require(cmd, "dir")
	return cmd
}
