package main

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster/localcluster"
)

// newClusterCmd returns the verb cluster, which runs a cluster on this machine.
func newClusterCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cluster VERB",
		GroupID: groupCluster,
		Short:   "a real cluster of processes on this machine",
		Long: "Runs a coordinator, stores and workers as processes of this machine, on loopback. A supervisor restarts a " +
			"process that dies within half a second, on the same address. " +
			"It is for trials and tests, and does everything that a cluster of several hosts does.",
		Example: "taxon cluster up --workers 3 --stores 2 --dir c && export TAXON_COORDINATOR=$(taxon cluster status --dir " +
			"c --json | jq -r .coordinator)\n" +
			"taxon cluster down --dir c",
	}
	cmd.AddCommand(newClusterUp(a), newClusterScale(a), newClusterStatus(a), newClusterDown(a), newClusterSupervise(a))
	return cmd
}

// clusterDocument is the JSON output of `taxon cluster up` and `taxon cluster status`.
type clusterDocument struct {
	Coordinator string           `json:"coordinator"`
	Processes   []clusterProcess `json:"processes"`
}

// clusterProcess is a process of the cluster.
type clusterProcess struct {
	Role string `json:"role"`
	ID   string `json:"id"`
	// PID is 0 while the process is being restarted.
	PID      int    `json:"pid"`
	Addr     string `json:"addr"`
	Restarts int    `json:"restarts"`
}

// clusterDocumentOf returns the document of a cluster's state.
func clusterDocumentOf(s *localcluster.State) clusterDocument {
	d := clusterDocument{Coordinator: s.Coordinator, Processes: []clusterProcess{}}
	for _, p := range s.Processes {
		d.Processes = append(d.Processes, clusterProcess{Role: p.Role, ID: p.ID, PID: p.PID, Addr: p.Addr,
			Restarts: p.Restarts})
	}
	return d
}

// printCluster prints the running processes.
func (a *app) printCluster(s *localcluster.State) error {
	d := clusterDocumentOf(s)
	rows := [][]string{{"ROLE", "ID", "PID", "ADDRESS", "RESTARTS"}}
	for _, p := range d.Processes {
		rows = append(rows, []string{p.Role, p.ID, fmt.Sprint(p.PID), cmp.Or(p.Addr, "-"), fmt.Sprint(p.Restarts)})
	}
	return a.printTable(d, rows, "no processes")
}

func clusterDirFlag(cmd *cobra.Command, dir *string) {
	flagGroup(cmd, "Cluster", func(f *pflag.FlagSet) {
		f.StringVar(dir, "dir", "", "the cluster's folder: `DIR`")
	})
	require(cmd, "dir")
}

func clusterWaitFlag(f *pflag.FlagSet, wait *time.Duration) {
	f.DurationVar(wait, "wait", time.Minute, "give up if it is not ready after `TIME`")
}

func newClusterUp(a *app) *cobra.Command {
	var o localcluster.Settings
	var dir string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "up --dir DIR",
		Short: "start a cluster, and return when all of it is ready",
		Long: "Starts a coordinator, stores and workers and returns when all are ready. They outlive the terminal; their " +
			"logs are in DIR/logs. " +
			"On the folder of a cluster that was shut down or killed it starts that cluster again, with its jobs and data; " +
			"flags that are not given keep their last values.",
		Example: "taxon cluster up --workers 2 --stores 1 --dir c\n" +
			"taxon cluster up --workers 4 --slots 2 --stores 2 --dir c --data-root /data --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := localcluster.Up(cmd.Context(), dir, o, cmd.Flags().Changed, wait, a.ui)
			if err != nil {
				return err
			}
			return a.printCluster(s)
		},
	}
	clusterDirFlag(cmd, &dir)
	flagGroup(cmd, "Processes", func(f *pflag.FlagSet) {
		intFlag(f, &o.Workers, "workers", 2, 0, 1024, "`N` workers")
		intFlag(f, &o.Stores, "stores", 1, 1, 256, "`N` shards of the store")
		intFlag(f, &o.Slots, "slots", 1, 1, 4096, "`N` tasks at a time of each worker")
		f.BoolVar(&o.MemoryStores, "memory-stores", false, "stores keep values in memory: faster, and lost with the process")
		f.DurationVar(&o.Lease, "lease", 3*time.Second, "a process that is silent for `TIME` is taken for lost")
		f.StringVar(&o.Metrics, "metrics", "", "show the cluster in a browser at http://`ADDR`/ (host:port on loopback), "+
			"and the coordinator's figures below it (default none)")
		f.StringArrayVar(&o.Roots, "data-root", nil, "`DIR` below which jobs may name data in place; repeated: several")
		clusterWaitFlag(f, &wait)
	})
	flagGroup(cmd, "Snapshots", func(f *pflag.FlagSet) {
		snapshotFlags(f, &o.Snapshots, &o.SnapshotEvery,
			&o.SnapshotPause)
	})
	return cmd
}

func newClusterScale(a *app) *cobra.Command {
	var dir string
	var workers int
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "scale --workers K --dir DIR",
		Short: "change the number of workers of a running cluster",
		Long: "Starts or ends workers of a running cluster, also in the middle of jobs, and returns when the " +
			"new ones are ready. " +
			"Workers that end give their tasks back.",
		Example: "taxon cluster scale --workers 8 --dir c\ntaxon cluster scale --workers 1 --dir c --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := localcluster.Scale(cmd.Context(), dir, workers, wait, a.ui)
			if err != nil {
				return err
			}
			return a.printCluster(s)
		},
	}
	clusterDirFlag(cmd, &dir)
	flagGroup(cmd, "Processes", func(f *pflag.FlagSet) {
		intFlag(f, &workers, "workers", 0, 0, 1024, "`K` workers")
		clusterWaitFlag(f, &wait)
	})
	require(cmd, "workers")
	return cmd
}

func newClusterStatus(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "status --dir DIR",
		Short: "the processes of a cluster",
		Long: "Lists the processes of the cluster in a folder: role, id, process id, address, and how often " +
			"each was started again.",
		Example: "taxon cluster status --dir c\ntaxon cluster status --dir c --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := localcluster.Status(cmd.Context(), dir)
			if err != nil {
				return err
			}
			if err := a.printCluster(s); err != nil {
				return err
			}
			for _, p := range s.Exited() {
				a.ui.Warn("%s, process %d, has ended since, and the supervisor could not write that down: is the disk full that "+
					"%s is on? %s says more", p.ID, p.PID, s.Dir, localcluster.LogDir(s.Dir))
			}
			return nil
		},
	}
	clusterDirFlag(cmd, &dir)
	return cmd
}

func newClusterDown(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "down --dir DIR",
		Short: "end a cluster; its jobs and data stay in the folder",
		Long: "Ends all processes of the cluster in a folder, also those of a killed supervisor. Jobs and data stay: " +
			"`up` on the same folder continues with them.",
		Example: "taxon cluster down --dir c\ntaxon cluster down --dir c --quiet",
		RunE:    func(cmd *cobra.Command, _ []string) error { return localcluster.Down(cmd.Context(), dir, a.ui) },
	}
	clusterDirFlag(cmd, &dir)
	return cmd
}

// newClusterSupervise returns the hidden verb of the supervisor, which up starts.
func newClusterSupervise(a *app) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "supervise --dir DIR",
		Short:   "the supervisor that `taxon cluster up` starts",
		Long:    "Keeps the processes of the cluster in a folder running until it is stopped. `taxon cluster up` starts it.",
		Example: "taxon cluster supervise --dir c\ntaxon cluster supervise --dir c 2>supervisor.log",
		Hidden:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reload := make(chan os.Signal, 1)
			signal.Notify(reload, syscall.SIGHUP)
			defer signal.Stop(reload)
			s := &localcluster.Supervisor{Dir: dir, Log: a.stderr}
			return s.Run(cmd.Context(), reload)
		},
	}
	clusterDirFlag(cmd, &dir)
	return cmd
}
