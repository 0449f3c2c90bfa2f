package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster"
	"taxon/internal/cluster/supervise"
	"taxon/internal/fs"
	"taxon/internal/pause"
)

// clusterOptions are the flags of cluster's verbs.
type clusterOptions struct {
	dir     string
	workers int
	stores  int
	slots   int
	memory  bool
	lease   time.Duration
	roots   []string
	wait    time.Duration
	snapshotOptions
}

func newClusterCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "cluster VERB",
		GroupID: groupCluster,
		Short:   "a real cluster of processes on this machine",
		Long: "Runs a coordinator, stores and workers as processes of this machine, on loopback. A supervisor restarts within half a second, on the same address, any that dies. " +
			"It is for trying things and for tests, and does all that a cluster of several hosts does.",
		Example: "taxon cluster up --workers 3 --stores 2 --dir c && export TAXON_COORDINATOR=$(taxon cluster status --dir c --json | jq -r .coordinator)\n" +
			"taxon cluster down --dir c",
	}
	cmd.AddCommand(newClusterUp(a), newClusterScale(a), newClusterStatus(a), newClusterDown(a), newClusterSupervise(a))
	return cmd
}

// clusterDocument is `taxon cluster up --json` and `taxon cluster status --json`.
type clusterDocument struct {
	Coordinator string           `json:"coordinator"`
	Processes   []clusterProcess `json:"processes"`
}

type clusterProcess struct {
	Role     string `json:"role"`
	ID       string `json:"id"`
	PID      int    `json:"pid"` // 0: just being started again
	Addr     string `json:"addr"`
	Restarts int    `json:"restarts"`
}

func clusterDocumentOf(s *supervise.State) clusterDocument {
	d := clusterDocument{Coordinator: s.Coordinator, Processes: []clusterProcess{}}
	for _, p := range s.Processes {
		d.Processes = append(d.Processes, clusterProcess{Role: p.Role, ID: p.ID, PID: p.PID, Addr: p.Addr, Restarts: p.Restarts})
	}
	return d
}

// printCluster shows what runs.
func (a *app) printCluster(s *supervise.State) error {
	d := clusterDocumentOf(s)
	if a.json {
		return a.printJSON(d)
	}
	rows := [][]string{{"ROLE", "ID", "PID", "ADDRESS", "RESTARTS"}}
	for _, p := range d.Processes {
		addr := p.Addr
		if addr == "" {
			addr = "-"
		}
		rows = append(rows, []string{p.Role, p.ID, fmt.Sprint(p.PID), addr, fmt.Sprint(p.Restarts)})
	}
	a.table(rows)
	return nil
}

func (o *clusterOptions) dirFlag(cmd *cobra.Command) {
	flagGroup(cmd, "Cluster", func(f *pflag.FlagSet) {
		f.StringVar(&o.dir, "dir", "", "the cluster's folder: `DIR`")
	})
	require(cmd, "dir")
}

func (o *clusterOptions) waitFlag(f *pflag.FlagSet) {
	f.DurationVar(&o.wait, "wait", time.Minute, "give up if it is not ready after `TIME`")
}

func newClusterUp(a *app) *cobra.Command {
	var o clusterOptions
	cmd := &cobra.Command{
		Use:   "up --dir DIR",
		Short: "start a cluster, and return when all of it is ready",
		Long: "Starts a coordinator, stores and workers and returns when all are ready. They outlive the terminal; their logs are in DIR/logs. " +
			"On the folder of a cluster that was shut down or killed it starts that cluster again, with its jobs and data; flags that are not given keep their last values.",
		Example: "taxon cluster up --workers 2 --stores 1 --dir c\n" +
			"taxon cluster up --workers 4 --slots 2 --stores 2 --dir c --data-root /data --json",
		RunE: func(cmd *cobra.Command, _ []string) error { return o.up(cmd.Context(), a, cmd.Flags().Changed) },
	}
	o.dirFlag(cmd)
	flagGroup(cmd, "Processes", func(f *pflag.FlagSet) {
		intFlag(f, &o.workers, "workers", 2, 0, 1024, "`N` workers")
		intFlag(f, &o.stores, "stores", 1, 1, 256, "`N` shards of the store")
		intFlag(f, &o.slots, "slots", 1, 1, 4096, "`N` tasks at a time of each worker")
		f.BoolVar(&o.memory, "memory-stores", false, "stores keep values in memory: faster, and lost with the process")
		f.DurationVar(&o.lease, "lease", 3*time.Second, "a process that is silent for `TIME` is taken for lost")
		f.StringArrayVar(&o.roots, "data-root", nil, "`DIR` below which jobs may name data in place; repeated: several")
		o.waitFlag(f)
	})
	flagGroup(cmd, "Snapshots", o.snapshotOptions.flags)
	return cmd
}

// memoryStoreSize bounds a store of --memory-stores.
const memoryStoreSize = "16GiB"

// wanted describes the cluster for its supervisor.
func (o *clusterOptions) wanted() (*supervise.Wanted, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cluster: where is this program? %w", err)
	}
	w := &supervise.Wanted{Version: 1, Program: program, Stores: o.stores, Workers: o.workers,
		Coordinator: []string{"--lease", o.lease.String()}, Worker: []string{"--slots", fmt.Sprint(o.slots)}}
	if o.snapshots != "" {
		at := o.snapshots
		if !strings.Contains(at, "://") {
			if at, err = filepath.Abs(at); err != nil {
				return nil, err
			}
		}
		w.Coordinator = append(w.Coordinator, "--snapshots", at, "--snapshot-every", fmt.Sprint(o.every), "--snapshot-pause", o.pause.String())
	}
	if o.memory {
		w.Store = []string{"--memory", memoryStoreSize}
	}
	for _, r := range o.roots {
		abs := r
		if !fs.IsRemote(r) {
			if abs, err = filepath.Abs(r); err != nil {
				return nil, err
			}
		}
		w.Coordinator = append(w.Coordinator, "--data-root", abs)
		w.Worker = append(w.Worker, "--data-root", abs)
	}
	return w, nil
}

func (o *clusterOptions) up(ctx context.Context, a *app, given func(flag string) bool) error {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	o.dir = dir
	if err := cluster.SupervisorFolder(o.dir); err != nil {
		return err
	}
	if err := o.keepSettings(given); err != nil {
		return err
	}
	if _, err := cluster.MakeRoots(o.roots); err != nil {
		return usagef("cluster up: %w", err)
	}
	if err := o.claim(ctx, a); err != nil {
		return err
	}
	w, err := o.wanted()
	if err != nil {
		return err
	}
	if err := supervise.WriteWanted(o.dir, w); err != nil {
		return err
	}
	cmd, err := supervise.Detach(w.Program, o.dir, "cluster", "supervise", "--dir", o.dir)
	if err != nil {
		return fmt.Errorf("cluster up: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s, err := o.await(ctx, a, w.Version, ended)
	if err != nil {
		_ = cmd.Process.Signal(syscall.SIGTERM) // nothing half-started stays behind
		select {
		case <-ended:
		case <-time.After(downWait):
		}
		return err
	}
	return a.printCluster(s)
}

// lockWait is how long a supervisor that was killed may take to be gone.
const lockWait = 300 * time.Millisecond

// claim refuses a folder where a cluster runs, and ends what a killed one has left.
func (o *clusterOptions) claim(ctx context.Context, a *app) error {
	var lock *os.File
	err := pause.Insist(ctx, lockWait, func() (err error) {
		lock, err = supervise.Lock(o.dir)
		return err
	}, func(err error) bool { return errors.Is(err, supervise.ErrRunning) })
	if errors.Is(err, supervise.ErrRunning) {
		where := ""
		if s, err := supervise.ReadState(o.dir); err == nil {
			where = " (coordinator at " + s.Coordinator + ")"
		}
		return usagef("cluster up: a cluster runs in %s already%s: `taxon cluster status --dir %s` shows it, `taxon cluster down --dir %s` ends it", o.dir, where, o.dir, o.dir)
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	n, err := supervise.Sweep(o.dir)
	if n > 0 {
		a.ui.Note("ended %s that a killed cluster had left behind", counted(int64(n), "process", "processes"))
	}
	return err
}

// stateEvery is how often the state is looked at while it is waited for.
const stateEvery = 20 * time.Millisecond

// await waits until the cluster has come to what is wanted and all of it is ready. ended
// tells that the supervisor has ended; nil: nobody tells.
func (o *clusterOptions) await(ctx context.Context, a *app, version int, ended <-chan error) (*supervise.State, error) {
	line := a.ui.Start("cluster: processes ready", 0)
	defer line.Done()
	for deadline := time.Now().Add(o.wait); ; {
		s, err := supervise.ReadState(o.dir)
		if err == nil {
			ready := 0
			for _, p := range s.Processes {
				if p.Ready {
					ready++
				}
			}
			line.Total(int64(len(s.Processes)))
			line.Set(int64(ready))
			if s.Ready(version) {
				return s, nil
			}
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("cluster: the supervisor ended: %s", supervise.LastLine(filepath.Join(supervise.LogDir(o.dir), "supervisor.log")))
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(stateEvery):
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("cluster: not ready after %v: %s", o.wait, o.slowest())
		}
	}
}

// slowest says what the first process that is not ready last wrote.
func (o *clusterOptions) slowest() string {
	s, err := supervise.ReadState(o.dir)
	if err != nil {
		return err.Error()
	}
	for _, p := range s.Processes {
		if !p.Ready {
			return p.ID + ": " + supervise.LastLine(filepath.Join(supervise.LogDir(o.dir), p.ID+".log"))
		}
	}
	return "see " + supervise.LogDir(o.dir)
}

func newClusterScale(a *app) *cobra.Command {
	var o clusterOptions
	cmd := &cobra.Command{
		Use:   "scale --workers K --dir DIR",
		Short: "change the number of workers of a running cluster",
		Long: "Starts or ends workers of a running cluster, also in the middle of jobs, and returns when those that are wanted are ready. " +
			"Workers that end give their tasks back.",
		Example: "taxon cluster scale --workers 8 --dir c\ntaxon cluster scale --workers 1 --dir c --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.scale(cmd.Context(), a) },
	}
	o.dirFlag(cmd)
	flagGroup(cmd, "Processes", func(f *pflag.FlagSet) {
		intFlag(f, &o.workers, "workers", 0, 0, 1024, "`K` workers")
		o.waitFlag(f)
	})
	require(cmd, "workers")
	return cmd
}

func (o *clusterOptions) scale(ctx context.Context, a *app) error {
	if err := o.needRunning("scale"); err != nil {
		return err
	}
	w, err := supervise.ReadWanted(o.dir)
	if err != nil {
		return err
	}
	w.Workers = o.workers
	w.Version++
	if err := supervise.WriteWanted(o.dir, w); err != nil {
		return err
	}
	if err := supervise.Reload(o.dir); err != nil {
		return err
	}
	s, err := o.await(ctx, a, w.Version, nil)
	if err != nil {
		return err
	}
	return a.printCluster(s)
}

// needRunning refuses a folder without a running cluster.
func (o *clusterOptions) needRunning(verb string) error {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	o.dir = dir
	if _, err := supervise.ReadWanted(o.dir); errors.Is(err, os.ErrNotExist) {
		return usagef("cluster %s: %s: no cluster was ever started here: `taxon cluster up --dir %s` starts one", verb, o.dir, o.dir)
	}
	if !supervise.Running(o.dir) {
		return withStatus(exitFailed, "cluster %s: %s: the cluster does not run: `taxon cluster up --dir %s` starts it again", verb, o.dir, o.dir)
	}
	return nil
}

func newClusterStatus(a *app) *cobra.Command {
	var o clusterOptions
	cmd := &cobra.Command{
		Use:     "status --dir DIR",
		Short:   "what runs of a cluster",
		Long:    "Lists the processes of the cluster in a folder: role, id, process id, address, and how often each was started again.",
		Example: "taxon cluster status --dir c\ntaxon cluster status --dir c --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.status(cmd.Context(), a) },
	}
	o.dirFlag(cmd)
	return cmd
}

// stateWait is how long the supervisor may take to write what has happened.
const stateWait = time.Second

func (o *clusterOptions) status(ctx context.Context, a *app) error {
	if err := o.needRunning("status"); err != nil {
		return err
	}
	for began := time.Now(); ; {
		s, err := supervise.ReadState(o.dir)
		if err != nil {
			return fs.Explain(o.dir, err)
		}
		gone := s.Gone()
		if len(gone) > 0 && time.Since(began) < stateWait {
			if err := pause.For(ctx, stateWait/10); err != nil {
				return err
			}
			continue
		}
		if err := a.printCluster(s); err != nil {
			return err
		}
		for _, p := range gone {
			a.ui.Warn("%s, process %d, has ended since, and the supervisor could not write that down: is the disk full that %s is on? %s says more", p.ID, p.PID, o.dir, supervise.LogDir(o.dir))
		}
		return nil
	}
}

func newClusterDown(a *app) *cobra.Command {
	var o clusterOptions
	cmd := &cobra.Command{
		Use:     "down --dir DIR",
		Short:   "end a cluster; its jobs and data stay in the folder",
		Long:    "Ends all processes of the cluster in a folder, also those that a killed supervisor left behind. Jobs and data stay: `up` on the same folder goes on with them.",
		Example: "taxon cluster down --dir c\ntaxon cluster down --dir c --quiet",
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.down(cmd.Context(), a) },
	}
	o.dirFlag(cmd)
	return cmd
}

// downWait is how long a cluster may take to end in good order.
const downWait = 30 * time.Second

func (o *clusterOptions) down(ctx context.Context, a *app) error {
	err := o.needRunning("down")
	var s *statusError
	if errors.As(err, &s) && s.Code == exitFailed { // it does not run, but may have left something behind
		n, err := supervise.Sweep(o.dir)
		if err == nil && n == 0 {
			a.ui.Note("%s: the cluster does not run", o.dir)
		} else if err == nil {
			a.ui.Note("%s: ended %s that a killed cluster had left behind", o.dir, counted(int64(n), "process", "processes"))
		}
		return err
	}
	if err != nil {
		return err
	}
	before, err := supervise.ReadState(o.dir)
	if err != nil {
		return err
	}
	if err := supervise.End(o.dir); err != nil {
		return err
	}
	for deadline := time.Now().Add(downWait); supervise.Running(o.dir); {
		if err := pause.For(ctx, stateEvery); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			_ = supervise.Kill(o.dir)
			if err := pause.For(ctx, stateEvery); err != nil {
				return err
			}
			_, err := supervise.Sweep(o.dir)
			return err
		}
	}
	a.ui.Note("%s: %s ended", o.dir, counted(int64(len(before.Processes)), "process", "processes"))
	return nil
}

// newClusterSupervise is the supervisor itself, started by up.
func newClusterSupervise(a *app) *cobra.Command {
	var o clusterOptions
	cmd := &cobra.Command{
		Use:     "supervise --dir DIR",
		Short:   "the supervisor that `taxon cluster up` starts",
		Long:    "Keeps the processes of the cluster in a folder running until it is told to end. `taxon cluster up` starts it.",
		Example: "taxon cluster supervise --dir c\ntaxon cluster supervise --dir c 2>supervisor.log",
		Hidden:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			reload := make(chan os.Signal, 1)
			signal.Notify(reload, syscall.SIGHUP)
			defer signal.Stop(reload)
			s := &supervise.Supervisor{Dir: o.dir, Log: a.stderr}
			return s.Run(cmd.Context(), reload)
		},
	}
	o.dirFlag(cmd)
	return cmd
}
