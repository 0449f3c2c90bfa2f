package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster/node"
)

func newWorkerCmd(a *app) *cobra.Command {
	var o node.Worker
	cmd := &cobra.Command{
		Use:     "worker --coordinator ADDR --dir CACHE",
		GroupID: groupCluster,
		Short:   "run a worker: takes tasks from the coordinator and computes",
		Long: "Runs a worker: it leases tasks, reads what they refer to from the store, computes, and writes what it found. Workers may join and leave at any time; " +
			"what a worker that is killed had begun is done again elsewhere, with the same bytes. On SIGTERM it gives its tasks back (after --grace, if given) and ends. " +
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
		f.StringArrayVar(&o.Roots, "data-root", nil, "`DIR` below which jobs may name data in place; repeated: several (default none)")
		f.DurationVar(&o.Grace, "grace", 0, "after SIGTERM, give running tasks `TIME` to finish before they are given back")
	})
	flagGroup(cmd, "Resources", func(f *pflag.FlagSet) {
		intFlag(f, &o.Slots, "slots", 0, 0, 4096, "`N` tasks at a time (default: all cores)")
		bytesFlag(f, &o.Memory, "memory", 0, "`SIZE` that it may take: told to the coordinator, which gives it no tasks of jobs that need more; garbage is collected in time (default: not told)")
		bytesFlag(f, &o.Cache, "cache", 64<<30, "`SIZE` on disk that the fetched data sets may take; the one used longest ago goes first")
	})
	frameFlags(cmd, &o.Process)
	require(cmd, "dir")
	return cmd
}
