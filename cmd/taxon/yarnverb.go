package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method/registry"
	"taxon/internal/cluster/jobs"
	"taxon/internal/fs"
	"taxon/internal/hadoop/yarn"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
)

// newYarnCmd returns the verb yarn, which runs a cluster on YARN.
func newYarnCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "yarn VERB",
		GroupID: groupCluster,
		Short:   "a cluster placed by Hadoop YARN",
		Long: "Runs a coordinator, stores and workers as a service of Hadoop YARN, which places them, restarts what dies, " +
			"and scales them in the middle of jobs. " +
			"The binary, certificates, the coordinator's journal and snapshots are in a folder of HDFS, where the other verbs " +
			"find the cluster too: --coordinator hdfs://.../coordinator. See docs/yarn.md.",
		Example: "taxon yarn up --name wiki --workers 16 --slots 8 --stores 4 --queue research\n" +
			"taxon yarn down --name wiki",
	}
	cmd.AddCommand(newYarnUp(a), newYarnScale(a), newYarnStatus(a), newYarnDown(a), newYarnRun(a))
	return cmd
}

// defaultYarnName is the default name of the service.
const defaultYarnName = "taxon"

// serviceFlags defines the flags that the verbs of `taxon yarn` share. yarnFlags defines the flags
// about YARN itself.
func serviceFlags(cmd *cobra.Command, a *app, o *yarn.Options) {
	o.UI, o.Verb = a.ui, "yarn "+cmd.Name()
	flagGroup(cmd, "Service", func(f *pflag.FlagSet) {
		f.StringVar(&o.Name, "name", defaultYarnName, "`NAME` of the service")
		f.StringVar(&o.Dir, "dir", "", "the cluster's `FOLDER` in HDFS (default: the service's that runs, else "+
			"hdfs:///user/USER/taxon/NAME)")
	})
}

func yarnFlags(cmd *cobra.Command, o *yarn.Options) {
	flagGroup(cmd, "YARN", func(f *pflag.FlagSet) {
		f.StringVar(&o.Manager, "resource-manager", "", "`URL` (http://host:8088) of the resource manager (default: of "+
			"yarn-site.xml in HADOOP_CONF_DIR)")
		f.StringVar(&o.Command, "yarn-command", "yarn", "`COMMAND` of Hadoop's that does it where the resource manager's "+
			"service API is closed")
		f.DurationVar(&o.Wait, "wait", 3*time.Minute, "give up if it is not ready after `TIME`")
	})
}

// yarnError adds the verb and the exit status to an error of package yarn.
func yarnError(verb string, err error) error {
	var p *yarn.Problem
	switch {
	case !errors.As(err, &p):
		return err
	case p.Usage:
		return option.Errorf("%s: %w", verb, err)
	}
	return exitf(exitFailed, "%s: %w", verb, err)
}

// onYarn returns the RunE of a verb that acts on a cluster. With show it prints the cluster
// afterwards.
func onYarn(a *app, show bool, act func(ctx context.Context) (*yarn.Deployment,
	error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		d, err := act(cmd.Context())
		var r *yarn.Report
		if err == nil && show {
			r, err = d.Report(cmd.Context())
		}
		if err != nil || !show {
			return yarnError(verbPath(cmd), err)
		}
		return a.print(r, func() { a.printReport(r) })
	}
}

func newYarnUp(a *app) *cobra.Command {
	var o yarn.UpOptions
	cmd := &cobra.Command{
		Use:   "up --name NAME",
		Short: "start a cluster on YARN, and return when all of it is ready",
		Long: "Copies this binary, certificates and the processes' arguments to a folder in HDFS, launches a service of " +
			"three components there, and returns when coordinator, stores and workers are ready. " +
			"The coordinator's journal and the jobs' snapshots are in the same folder: a cluster that was shut down, or lost " +
			"with its hosts, continues from there. What YARN can't provide is refused before anything is written.",
		Example: "taxon yarn up --name wiki --workers 16 --slots 8 --stores 4 --data hdfs:///data/wiki --hierarchy " +
			"hdfs:///data/tree.txt\n" +
			"taxon yarn up --workers 2 --stores 1 --worker-memory 4GiB --queue research --json",
		RunE: onYarn(a, true, func(ctx context.Context) (*yarn.Deployment, error) { return yarn.Up(ctx, o) }),
	}
	o.Files = fs.Local{In: a.stdin}
	serviceFlags(cmd, a, &o.Options)
	flagGroup(cmd, "Processes", func(f *pflag.FlagSet) {
		intFlag(f, &o.Workers, "workers", 2, 0, 1<<16, "`N` workers")
		intFlag(f, &o.Slots, "slots", 1, 1, 4096, "`N` tasks at a time of each worker, a core each")
		intFlag(f, &o.Stores, "stores", 1, 1, 256, "`N` shards of the store")
		f.DurationVar(&o.Lease, "lease", 10*time.Second, "a process that is silent for `TIME` is taken for lost")
	})
	flagGroup(cmd, "Containers", func(f *pflag.FlagSet) {
		f.StringVar(&o.Data, "data", "", "size the containers by the plan of a training of this data: `PATH`")
		f.StringVar(&o.Hierarchy, "hierarchy", "", "class structure of the data: a `FILE`")
		choiceFlag(f, &o.Method, "method", registry.Names()[0], registry.Names(), "of that training")
		bytesFlag(f, &o.WorkerMemory, "worker-memory", 0, "`SIZE` of a worker's container (default: by the plan, else 4GiB)")
		bytesFlag(f, &o.StoreMemory, "store-memory", 0, "`SIZE` of a store's container (default: by the plan, else 2GiB)")
		bytesFlag(f, &o.CoordinatorMemory, "coordinator-memory", 1<<30, "`SIZE` of the coordinator's container")
		bytesFlag(f, &o.Cache, "cache", 16<<30, "`SIZE` on each host's disk that fetched data sets may take")
		f.StringVar(&o.Local, "local", "", "`DIR` on every host for stores and caches, writable by the containers' user "+
			"(default: YARN's own for the service, which goes with it)")
		f.StringArrayVar(&o.DataRoots, "data-root", nil, "`DIR` below which jobs may name data in place, in HDFS or on "+
			"every host; repeated: several (--data's is one, if it is in HDFS)")
		f.StringVar(&o.Queue, "queue", "", "`QUEUE` of YARN's (default: its default)")
		f.DurationVar(&o.Lifetime, "lifetime", 0, "have YARN end the service after `TIME` (default: never)")
	})
	flagGroup(cmd, "Watching", func(f *pflag.FlagSet) {
		intFlag(f, &o.Metrics, "metrics", 0, 0, 1<<16-1, "`PORT` of the coordinator's page, figures and probes on its "+
			"host; those of store-N are at PORT+1+N, of worker-N behind the stores' (default none)")
	})
	flagGroup(cmd, "Snapshots", func(f *pflag.FlagSet) {
		intFlag(f, &o.SnapshotEvery, "snapshot-every", 0, 0, math.MaxInt32, "`N` sweeps between snapshots in HDFS "+
			"(default: what each job asks for with --x checkpoint-every, 4)")
		f.DurationVar(&o.SnapshotPause, "snapshot-pause", time.Minute, "no two of a job within `TIME`")
	})
	flagGroup(cmd, "Security", func(f *pflag.FlagSet) {
		f.StringVar(&o.Certs, "certs", "", "`DIR` of the authority that makes the cluster's certificates, and of its "+
			"tokens if there are any (default: of the user's configuration)")
		f.BoolVar(&o.Insecure, "insecure", false, "no TLS and no identities, for networks that are protected otherwise")
		f.StringVar(&o.Principal, "principal", "", "Kerberos `PRINCIPAL` of the processes (with --keytab)")
		f.StringVar(&o.Keytab, "keytab", "", "the principal's keytab: a `FILE`")
	})
	yarnFlags(cmd, &o.Options)
	flagGroup(cmd, "YARN", func(f *pflag.FlagSet) {
		f.StringVar(&o.Binary, "binary", "", "static taxon binary `FILE` for the hosts (default: this one)")
	})
	return cmd
}

func newYarnScale(a *app) *cobra.Command {
	var o yarn.Options
	workers := 0
	cmd := &cobra.Command{
		Use:   "scale --workers K --name NAME",
		Short: "change the number of workers of a cluster on YARN",
		Long: "Makes YARN start or end workers, also in the middle of jobs, and returns when the coordinator has as many " +
			"as requested. More workers than the cluster's memory holds are refused. If some have to wait for room, the " +
			"command says so at once. " +
			"Workers that end give their tasks back.",
		Example: "taxon yarn scale --workers 32 --name wiki\ntaxon yarn scale --workers 0 --name wiki --json",
		RunE: onYarn(a, true, func(ctx context.Context) (*yarn.Deployment, error) {
			d, err := yarn.Open(ctx, o)
			if err == nil {
				err = d.Scale(ctx, workers)
			}
			return d, err
		}),
	}
	serviceFlags(cmd, a, &o)
	flagGroup(cmd, "Processes", func(f *pflag.FlagSet) {
		intFlag(f, &workers, "workers", 0, 0, 1<<16, "`K` workers")
	})
	yarnFlags(cmd, &o)
	require(cmd, "workers")
	return cmd
}

func newYarnDown(a *app) *cobra.Command {
	var o yarn.Options
	purge, yes := false, false
	cmd := &cobra.Command{
		Use:   "down --name NAME",
		Short: "end a cluster on YARN; its jobs stay in HDFS",
		Long: "Ends the service. The coordinator's journal and the jobs' snapshots stay in the cluster's folder: `taxon " +
			"yarn up` with the same --name and --dir continues the jobs from their last snapshots. " +
			"--purge removes the folder too, with all jobs. It says what goes and asks, or needs --yes.",
		Example: "taxon yarn down --name wiki\ntaxon yarn down --name wiki --purge --yes",
		RunE: onYarn(a, false, func(ctx context.Context) (*yarn.Deployment, error) {
			d, err := yarn.Open(ctx, o)
			if err == nil {
				if goes := d.Loses(ctx, purge); goes != "" {
					err = a.confirm(yes, "yarn down: "+goes, "End it?")
				}
			}
			if err == nil {
				err = d.Down(ctx, purge)
			}
			return d, err
		}),
	}
	serviceFlags(cmd, a, &o)
	flagGroup(cmd, "What is kept", func(f *pflag.FlagSet) {
		f.BoolVar(&purge, "purge", false, "remove the cluster's folder in HDFS: jobs, snapshots, certificates")
		f.BoolVar(&yes, "yes", false, "do not ask")
	})
	yarnFlags(cmd, &o)
	return cmd
}

func newYarnStatus(a *app) *cobra.Command {
	var o yarn.Options
	cmd := &cobra.Command{
		Use:   "status --name NAME",
		Short: "what YARN and the coordinator say of a cluster",
		Long: "Shows the service's state, its containers with their hosts, where the coordinator is, and how many " +
			"workers and stores it knows.",
		Example: "taxon yarn status --name wiki\ntaxon yarn status --name wiki --json",
		RunE:    onYarn(a, true, func(ctx context.Context) (*yarn.Deployment, error) { return yarn.Open(ctx, o) }),
	}
	serviceFlags(cmd, a, &o)
	yarnFlags(cmd, &o)
	return cmd
}

// printReport prints the state of a cluster as text.
func (a *app) printReport(r *yarn.Report) {
	answers := "does not answer"
	if r.Answers {
		answers = "knows " + format.Counted(int64(r.Workers), "worker", "workers") + " and " + format.Counted(int64(r.Stores),
			"store", "stores")
	}
	where := cmp.Or(r.Address, "nowhere yet")
	fmt.Fprintf(a.stdout, "%s  %s  %s  queue %s\n", r.Name, strings.ToLower(r.State), r.Application, r.Queue)
	fmt.Fprintf(a.stdout, "coordinator at %s (epoch %d) %s\n--coordinator %s\n", where, r.Epoch, answers, r.Coordinator)
	if r.Page != "" {
		fmt.Fprintf(a.stdout, "page at %s\n", r.Page)
	}
	if r.Diagnostics != "" {
		fmt.Fprintln(a.stdout, r.Diagnostics)
	}
	rows := [][]string{{"INSTANCE", "STATE", "HOST", "CONTAINER"}}
	for _, k := range r.Containers {
		rows = append(rows, []string{k.Instance, strings.ToLower(k.State), k.Host, k.Container})
	}
	a.table(rows)
}

// newYarnRun returns the hidden verb that the containers start.
func newYarnRun(a *app) *cobra.Command {
	var instance, file string
	cmd := &cobra.Command{
		Use:   "run ROLE --instance NAME --file FILE",
		Short: "the process that a container of `taxon yarn up` starts",
		Long: "Runs a coordinator, store or worker in a container of YARN's, with the arguments that `taxon yarn up` " +
			"has written to FILE. YARN starts it.",
		Example: "taxon yarn run worker --instance worker-0 --file run.json\ntaxon yarn run store --instance " +
			"store-1 --file run.json",
		Hidden: true,
		Args:   oneArg("ROLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := yarn.ReadRun(file)
			if err != nil {
				return option.Errorf("yarn run: %w", err)
			}
			err = runContainer(cmd, a, r, args[0], instance)
			leaveFailure(cmd.Context(), r.Dir, instance, err)
			return err
		},
	}
	cmd.Flags().StringVar(&instance, "instance", "", "the container's `NAME` in the service")
	cmd.Flags().StringVar(&file, "file", "run.json", "what to run: a `FILE`")
	require(cmd, "instance")
	return cmd
}

// runContainer runs a role's process in the folders of its instance.
func runContainer(cmd *cobra.Command, a *app, r *yarn.Run, role, instance string) error {
	words, temp, err := r.Command(role, instance, os.Getenv)
	if err != nil {
		return option.Errorf("yarn run: %w", err)
	}
	if err := os.Setenv("TMPDIR", temp); err != nil { // the host's own may be small
		return err
	}
	return runRole(cmd, a, role, words)
}

// leaveFailure writes an error to a place where `yarn up` and `scale` find it. The container's log
// is on a host that the user may be unable to see.
func leaveFailure(ctx context.Context, dir, instance string, err error) {
	if err == nil || jobs.IsCancelled(err) || ctx.Err() != nil || dir == "" {
		return
	}
	code, line := describe(ctx, err)
	f := yarn.ContainerFailure{Instance: instance, Host: os.Getenv("NM_HOST"), Error: line, Permanent: code == exitUsage}
	_ = f.Leave(ctx, dir) // otherwise the container's log has it
}

// runRole runs a process's verb with arguments.
func runRole(parent *cobra.Command, a *app, role string, args []string) error {
	process := map[string]verb{yarn.Coordinator: newCoordinatorCmd, yarn.Store: newStoreCmd,
		yarn.Worker: newWorkerCmd}[role](a)
	process.SetContext(parent.Context())
	if err := process.ParseFlags(args); err != nil {
		return option.Errorf("yarn run %s: %s: %w", role, strings.Join(args, " "), err)
	}
	return process.RunE(process, nil)
}
