package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"taxon/internal/cluster/client"
	"taxon/internal/cluster/jobs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// clientVerb makes a verb that calls a cluster.
func clientVerb(a *app, cmd *cobra.Command, run func(ctx context.Context, c *client.Client,
	args []string) error) *cobra.Command {
	o := &clientOptions{}
	cmd.GroupID = groupCluster
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.Verb = verbPath(cmd)
		c, err := o.dial(cmd.Context(), a)
		if err != nil {
			return err
		}
		defer c.Close()
		return c.Fail(run(cmd.Context(), c, args))
	}
	o.flags(cmd)
	return cmd
}

// table prints rows in columns.
func (a *app) table(rows [][]string) {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		for i, cell := range r {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, format.OneLine(cell))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

func newJobsCmd(a *app) *cobra.Command {
	var state string
	var limit int
	cmd := clientVerb(a, &cobra.Command{
		Use:   "jobs",
		Short: "list a cluster's jobs",
		Long: "Lists the jobs of a cluster in order of submission, also ended ones that the coordinator still keeps. " +
			"VALUES says until when the values of an ended job are kept " +
			"(see --keep-jobs and --keep-days of `taxon coordinator`). They are its weights, and what it could be resumed from.",
		Example: "taxon jobs --coordinator 127.0.0.1:7070\ntaxon jobs --state running --limit 10 --json",
	}, func(ctx context.Context, c *client.Client, _ []string) error {
		r, err := c.Jobs.ListJobs(ctx, &taxonv1.ListJobsRequest{})
		if err != nil {
			return err
		}
		lines := []jobs.Line{}
		rows := [][]string{{"JOB", "STATE", "SWEEP", "GAP", "ETA", "VALUES", "NAME"}}
		for _, j := range r.GetJobs() {
			l := jobs.LineOf(j)
			l.Error = option.Flags(l.Error)
			if state != "" && l.State != state {
				continue
			}
			gap := "-"
			if l.Gap != nil {
				gap = format.Gap(*l.Gap)
			}
			eta := cmp.Or(format.Between(j.GetEtaLowSeconds(), j.GetEtaHighSeconds()), "-")
			lines = append(lines, l)
			rows = append(rows, []string{l.Job, l.State, fmt.Sprint(l.Sweep), gap, eta, jobs.ValuesText(j), l.Name})
		}
		if n := len(lines); limit > 0 && n > limit {
			lines, rows = lines[n-limit:], append(rows[:1], rows[1+n-limit:]...)
		}
		return a.printTable(lines, rows, "no jobs")
	})
	flagGroup(cmd, "Which", func(f *pflag.FlagSet) {
		choiceFlag(f, &state, "state", "", jobs.States(), "only jobs in this state")
		intFlag(f, &limit, "limit", 0, 0, math.MaxInt32, "only the last `N`; 0: all")
	})
	return cmd
}

func newWorkersCmd(a *app) *cobra.Command {
	var all bool
	cmd := clientVerb(a, &cobra.Command{
		Use:   "workers",
		Short: "list a cluster's workers",
		Long: "Lists the workers of a cluster: their slots, how many of these compute now, and the tasks done. --all " +
			"also shows the last ones that left or were lost.",
		Example: "taxon workers --coordinator 127.0.0.1:7070\ntaxon workers --all --json",
	}, func(ctx context.Context, c *client.Client, _ []string) error {
		r, err := c.Jobs.Workers(ctx, &taxonv1.WorkersRequest{})
		if err != nil {
			return err
		}
		lines := []jobs.Worker{}
		rows := [][]string{{"WORKER", "NAME", "STATE", "SLOTS", "RUNNING", "DONE", "VERSION"}}
		for _, w := range r.GetWorkers() {
			l := jobs.WorkerOf(w)
			if !all && l.State != "up" && l.State != "draining" {
				continue
			}
			lines = append(lines, l)
			rows = append(rows, []string{l.Worker, l.Name, l.State, fmt.Sprint(l.Slots), fmt.Sprint(l.Running),
				fmt.Sprint(l.TasksDone), l.Version})
		}
		return a.printTable(lines, rows, "no workers")
	})
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.BoolVar(&all, "all", false, "also the last workers that left or were lost")
	})
	return cmd
}

func newCancelCmd(a *app) *cobra.Command {
	var discard, yes bool
	cmd := clientVerb(a, &cobra.Command{
		Use:   "cancel JOB",
		Short: "cancel a job; it stays resumable unless discarded",
		Long: "Cancels a job. Its values stay in the store, so that `taxon resume JOB` continues from there. --discard " +
			"deletes them. For a finished job --discard deletes the weights: it asks first, or needs --yes.",
		Example: "taxon cancel job-1 --coordinator 127.0.0.1:7070\ntaxon cancel job-1 --discard",
		Args:    oneArg("JOB"),
	}, func(ctx context.Context, c *client.Client, args []string) error {
		st, what, err := c.Cancel(ctx, args[0], discard, a.confirmer(yes))
		if err != nil {
			return err
		}
		return a.printNote(statusOf(st), "%s: %s", st.GetJob(), what)
	})
	flagGroup(cmd, "What is kept", func(f *pflag.FlagSet) {
		f.BoolVar(&discard, "discard", false, "drop the job's values: it can't be resumed")
	})
	yesFlag(cmd, &yes)
	return cmd
}

func newRmCmd(a *app) *cobra.Command {
	var yes bool
	cmd := clientVerb(a, &cobra.Command{
		Use:   "rm JOB",
		Short: "delete a job's values in the store, including its weights",
		Long: "Cancels a job if it still runs, and deletes its values: its weights and what it could be resumed from. " +
			"It is `taxon cancel --discard`. For a finished job it asks first, or needs --yes.",
		Example: "taxon rm job-1 --coordinator 127.0.0.1:7070\ntaxon rm job-1 --yes",
		Args:    oneArg("JOB"),
	}, func(ctx context.Context, c *client.Client, args []string) error {
		st, what, err := c.Cancel(ctx, args[0], true, a.confirmer(yes))
		if err != nil {
			return err
		}
		return a.printNote(statusOf(st), "%s: %s", st.GetJob(), what)
	})
	yesFlag(cmd, &yes)
	return cmd
}

func newResumeCmd(a *app) *cobra.Command {
	var gap, seconds float64
	var sweeps int
	var cmd *cobra.Command
	cmd = clientVerb(a, &cobra.Command{
		Use:   "resume JOB",
		Short: "continue a cancelled, failed or capped job",
		Long: "Queues a cancelled or failed job again. It continues from its last committed step. With another --gap, " +
			"--max-sweeps or --max-time a finished job continues too, if its weights are still there. " +
			"Its gap is certified like any other, but its weights may differ in their bytes from those of a job that had " +
			"these limits from the start.",
		Example: "taxon resume job-1 --coordinator 127.0.0.1:7070\ntaxon resume job-1 --max-sweeps 40 --json",
		Args:    oneArg("JOB"),
	}, func(ctx context.Context, c *client.Client, args []string) error {
		r := &taxonv1.ResumeRequest{Job: args[0]}
		if cmd.Flags().Changed("gap") {
			r.Gap = &gap
		}
		if cmd.Flags().Changed("max-sweeps") {
			n := uint32(sweeps)
			r.MaxSweeps = &n
		}
		if cmd.Flags().Changed("max-time") {
			r.MaxSeconds = &seconds
		}
		st, err := c.Jobs.Resume(ctx, r)
		if err != nil {
			return err
		}
		return a.printNote(statusOf(st), "%s: %s, resumes after sweep %d", st.GetJob(), jobs.StateName(st.GetState()),
			st.GetSweep())
	})
	flagGroup(cmd, "Stopping", func(f *pflag.FlagSet) {
		floatFlag(f, &gap, "gap", 0, "stop at this certified relative gap from now on (default: as before)", above0to1)
		intFlag(f, &sweeps, "max-sweeps", 0, 0, math.MaxInt32, "stop after `N` sweeps in all, 0 for no cap "+
			"(default: as before)")
		floatFlag(f, &seconds, "max-time", 0, "stop after `S` seconds of training in all, 0 for no cap (default: as before)",
			atLeast0)
	})
	return cmd
}

func newDrainCmd(a *app) *cobra.Command {
	return clientVerb(a, &cobra.Command{
		Use:   "drain WORKER",
		Short: "remove a worker after its tasks",
		Long: "Removes a worker from the cluster, given its name or, if no worker has that name, its id (see `taxon " +
			"workers`). It finishes its tasks, gets no more, and ends.",
		Example: "taxon drain w3 --coordinator 127.0.0.1:7070\ntaxon drain worker-2",
		Args:    oneArg("WORKER"),
	}, func(ctx context.Context, c *client.Client, args []string) error {
		w, err := c.Jobs.Drain(ctx, &taxonv1.DrainRequest{Worker: args[0]})
		if err != nil {
			return err
		}
		return a.printNote(jobs.WorkerOf(w), "%s (%s): %s, %s to finish", w.GetWorker(), w.GetName(),
			jobs.MemberState(w.GetState()), format.Counted(int64(w.GetRunning()), "task", "tasks"))
	})
}

func newLogsCmd(a *app) *cobra.Command {
	var follow bool
	cmd := clientVerb(a, &cobra.Command{
		Use:   "logs JOB",
		Short: "what happened to a job",
		Long: "Prints the log of a job, oldest line first: workers lost, tasks repeated, sweeps committed, why it " +
			"failed. Times are in UTC. With --json each line is a document.",
		Example: "taxon logs job-1 --coordinator 127.0.0.1:7070\ntaxon logs job-1 --follow --json",
		Args:    oneArg("JOB"),
	}, func(ctx context.Context, c *client.Client, args []string) error {
		return c.Logs(ctx, args[0], follow, a.printLog)
	})
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.BoolVar(&follow, "follow", false, "keep printing until the job has ended")
	})
	return cmd
}

func (a *app) printLog(l *taxonv1.LogLine) error {
	l.Text = option.Flags(l.Text)
	if a.json {
		return a.printLine(jobs.LogLineOf(l))
	}
	where := ""
	if l.GetAttempt() > 0 {
		where = fmt.Sprintf("  (step %d, task %d, attempt %d)", l.GetStep(), l.GetTask(), l.GetAttempt())
	}
	at := time.UnixMilli(l.GetUnixMs()).UTC()
	_, err := fmt.Fprintf(a.stdout, "%s  %-5s %s%s\n", at.Format("2006-01-02 15:04:05.000"), l.GetLevel(),
		format.OneLine(l.GetText()), where)
	return err
}

// restoreOptions holds the flags of restore.
type restoreOptions struct {
	clientOptions
	from     string
	job      string
	replicas int
}

func newRestoreCmd(a *app) *cobra.Command {
	var o restoreOptions
	cmd := &cobra.Command{
		Use:     "restore --from DIR",
		GroupID: groupCluster,
		Short:   "restore a job from its snapshot on a cluster",
		Long: "Copies a job from a snapshot, made by a coordinator's --snapshots, to a cluster: its data, its values and " +
			"the job itself. The cluster continues it, to the same weights byte for byte. " +
			"It may be a new cluster, with any number of shards, or the job's own, if the job has failed there, was cancelled " +
			"or has lost its weights. Then the shards that are up replace the lost ones.",
		Example: "taxon restore --from snapshots --coordinator 127.0.0.1:7070\n" +
			"taxon restore --from /mnt/backup/snapshots --job nightly --replicas 2",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.dial(cmd.Context(), a)
			if err != nil {
				return err
			}
			defer c.Close()
			r, err := c.Restore(cmd.Context(), o.from, o.job, o.replicas)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(statusOf(r.Status))
			}
			a.ui.Note("%s resumes after sweep %d, over %s", r.Job, r.Sweep, format.Counted(int64(r.Shards), "shard", "shards"))
			_, err = fmt.Fprintln(a.stdout, r.Job)
			return err
		},
	}
	flagGroup(cmd, "Snapshot", func(f *pflag.FlagSet) {
		f.StringVar(&o.from, "from", "", "the `DIR` of snapshots, or of one")
		f.StringVar(&o.job, "job", "", "`ID` of the job (default: the only one there)")
		intFlag(f, &o.replicas, "replicas", 0, 0, 8, "`N` copies of each value (default: as many as it had)")
	})
	o.flags(cmd)
	require(cmd, "from")
	return cmd
}

// onTerminal reports whether stdin and stderr are a terminal, so that the user can be asked.
func onTerminal(in io.Reader, out io.Writer) bool {
	from, ok := in.(*os.File)
	to, too := out.(*os.File)
	return ok && too && term.IsTerminal(int(from.Fd())) && term.IsTerminal(int(to.Fd()))
}

// confirm asks before an action that cannot be undone. why describes the loss. Without a terminal
// it requires --yes. After an error the command must stop.
func (a *app) confirm(yes bool, why, question string) error {
	if yes {
		return nil
	}
	if !a.terminal {
		return option.Errorf("%s: give --yes if that is meant", why)
	}
	fmt.Fprintf(a.stderr, "%s. %s [y/N] ", why, question)
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil && answer == "" {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return option.Errorf("%s: nothing was done", why)
	}
	return nil
}

// confirmer returns a function that asks before an action that cannot be undone, unless yes is set.
func (a *app) confirmer(yes bool) client.Confirm {
	return func(why, question string) error { return a.confirm(yes, why, question) }
}
