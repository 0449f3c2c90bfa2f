package main

import (
	"math"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster/node"
	"taxon/internal/train"
)

func newCoordinatorCmd(a *app) *cobra.Command {
	var o node.Coordinator
	cmd := &cobra.Command{
		Use:     "coordinator --dir DIR",
		GroupID: groupCluster,
		Short:   "run a cluster's coordinator: jobs, tasks, leases",
		Long: "Runs the one process of a cluster that knows the jobs: it cuts them into tasks, leases these to workers and decides what counts. " +
			"Each decision is on the disk, in a journal in --dir, before anybody is told; started again on the same --dir it goes on where it was, and so do running jobs. " +
			"It holds no data. On loopback nothing else is needed; beyond it, TLS and identities are (see `taxon help certs`). On SIGTERM it ends; its jobs go on when it is started again.",
		Example: "taxon coordinator --dir /var/lib/taxon/coordinator\n" +
			"taxon coordinator --dir coordinator --listen 127.0.0.1:7070 --data-root /data --metrics 127.0.0.1:9100",
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Resident = func() uint64 { return uint64(train.PeakRSS()) }
			a.starts(&o.Process)
			return o.Run(cmd.Context())
		},
	}
	flagGroup(cmd, "Process", func(f *pflag.FlagSet) {
		f.StringVar(&o.Dir, "dir", "", "folder of the journal: `DIR`")
		listenFlags(f, &o.Process, "127.0.0.1:7070")
		f.StringArrayVar(&o.Roots, "data-root", nil, "`DIR` below which jobs may name data in place; repeated: several (default none)")
	})
	flagGroup(cmd, "Scheduling", func(f *pflag.FlagSet) {
		f.DurationVar(&o.Lease, "lease", 10*time.Second, "a worker or store that is silent for `TIME` is taken for lost")
		intFlag(f, &o.Running, "running-jobs", 4, 1, 1000, "`N` jobs that share the workers at a time; others queue")
	})
	flagGroup(cmd, "Uploaded data", func(f *pflag.FlagSet) {
		f.DurationVar(&o.Keep, "keep-data", 24*time.Hour, "drop data sets from the store that no job has referred to for `TIME`")
	})
	flagGroup(cmd, "Jobs that have ended", func(f *pflag.FlagSet) {
		intFlag(f, &o.KeepJobs, "keep-jobs", 100, 1, 1000, "keep the values (weights, what resume needs) of the last `N`; `taxon jobs` says which go next")
		intFlag(f, &o.KeepDays, "keep-days", 30, 1, 36500, "and for at most `N` days")
	})
	flagGroup(cmd, "Snapshots", func(f *pflag.FlagSet) { snapshotFlags(f, &o.Snapshots, &o.Every, &o.Pause) })
	flagGroup(cmd, "On hosts that change", func(f *pflag.FlagSet) {
		f.StringVar(&o.Announce, "announce", "", "say in this `FILE`, mostly hdfs://, where the coordinator is; the others find it by --coordinator FILE")
		f.StringVar(&o.Journal, "journal", "", "keep the journal in `FOLDER`, mostly hdfs://, instead of --dir: started on another host it goes on, and what went before it can decide nothing any more")
	})
	frameFlags(cmd, &o.Process)
	require(cmd, "dir")
	return cmd
}

// snapshotFlags say when snapshots are taken, and where they go.
func snapshotFlags(f *pflag.FlagSet, dir *string, every *int, pause *time.Duration) {
	f.StringVar(dir, "snapshots", "", "keep a snapshot of each job in `DIR`, on a disk that the stores' failures leave alone: what lost shards held is taken from there, and `taxon restore` puts jobs onto another cluster (default: none)")
	intFlag(f, every, "snapshot-every", 0, 0, math.MaxInt32, "`N` sweeps between them (default: what each job asks for with --checkpoint-every, 4)")
	f.DurationVar(pause, "snapshot-pause", 10*time.Second, "no two of a job within `TIME`")
}
