package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/method/registry"
	"taxon/internal/cluster/client"
	"taxon/internal/cluster/jobs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// newStatusCmd returns the verb status, which shows a job.
func newStatusCmd(a *app) *cobra.Command {
	var o clientOptions
	var watch bool
	cmd := &cobra.Command{
		Use:     "status JOB",
		GroupID: groupCluster,
		Short:   "how far a job is",
		Long: "Shows a job's state (queued, running, done, failed, cancelled, discarded), phase, last committed sweep, " +
			"gap, tasks of the step under way, " +
			"attempts that were repeated, workers lost, and when it will probably be done. --watch follows it to its end. " +
			"With --json it is one document, with --watch a line a change.",
		Example: "taxon status job-1 --coordinator 127.0.0.1:7070\n" +
			"taxon status job-1 --watch",
		Args: oneArg("JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.dial(cmd.Context(), a)
			if err != nil {
				return err
			}
			defer c.Close()
			return showStatus(cmd.Context(), a, c, args[0], watch)
		},
	}
	flagGroup(cmd, "Output", func(f *pflag.FlagSet) {
		f.BoolVar(&watch, "watch", false, "follow the job to its end")
	})
	o.flags(cmd)
	return cmd
}

// statusOf converts a status to the document of the command line.
func statusOf(st *taxonv1.JobStatus) jobs.Status {
	d := jobs.StatusOf(st)
	d.Error = option.Flags(d.Error)
	return d
}

// showStatus shows a job's status, once or until the job ends.
func showStatus(ctx context.Context, a *app, c *client.Client, job string, watch bool) error {
	if !watch {
		st, err := c.Status(ctx, job)
		if err != nil {
			return err
		}
		return a.print(statusOf(st), func() { printStatus(a, st) })
	}
	last := ""
	st, err := c.Watch(ctx, job, func(st *taxonv1.JobStatus) error {
		if a.json {
			return a.printLine(statusOf(st))
		}
		if line := jobs.StatusLine(st); line != last {
			last = line
			_, err := fmt.Fprintln(a.stdout, line)
			return err
		}
		return nil
	})
	if err != nil || a.json {
		return err
	}
	printStatus(a, st)
	return nil
}

// printStatus prints a status as text.
func printStatus(a *app, st *taxonv1.JobStatus) {
	row := func(name, text string, args ...any) {
		fmt.Fprintf(a.stdout, "  %-12s%s\n", name, format.OneLine(fmt.Sprintf(text, args...)))
	}
	title := st.GetJob()
	if st.GetName() != "" {
		title += " (" + st.GetName() + ")"
	}
	fmt.Fprintf(a.stdout, "%s\n", a.style.Bold(format.OneLine(title)))
	state := jobs.Doing(st)
	if n := st.GetQueuePosition(); n > 0 {
		state += fmt.Sprintf(", %d in the queue", n)
	}
	if st.GetResumable() {
		state += ", can be resumed"
	}
	row("state", "%s", state)
	if w := st.GetWaitsFor(); w != "" {
		row("waits for", "%s", format.OneLine(w))
	}
	if k := st.GetKept(); k != nil && !k.GetDiscarded() {
		row("values", "%s", jobs.KeptText(k))
	}
	if st.GetOwner() != "" {
		row("owner", "%s", format.OneLine(st.GetOwner()))
	}
	for _, at := range []struct {
		name   string
		unixMS int64
	}{{"submitted", st.GetSubmittedUnixMs()}, {"started", st.GetStartedUnixMs()}, {"ended", st.GetEndedUnixMs()}} {
		if at.unixMS > 0 {
			row(at.name, "%s", time.UnixMilli(at.unixMS).UTC().Format("2006-01-02 15:04:05 UTC"))
		}
	}
	row("method", "%s", jobs.MethodText(st))
	row("sweep", "%d, phase %s", st.GetSweep(), st.GetPhase())
	if c := st.GetCertificate(); c != nil && !c.GetPrimalOnly() {
		row("gap", "%.3g of %.3g (objective %.9g, dual %.9g)", c.GetGap(), registry.Number(st.GetOptions(), "gap"),
			c.GetObjective(), c.GetDual())
	}
	t := st.GetTasks()
	row("tasks", "%d done, %d with workers, %d waiting; %s, %d given to a second worker as they took long", t.GetDone(),
		t.GetRunning(), t.GetWaiting(),
		format.Counted(int64(t.GetRetried()), "attempt repeated", "attempts repeated"), st.GetSpeculated())
	row("faults", "%s, %s to an earlier sweep, %s again", format.Counted(int64(st.GetWorkersLost()), "worker lost",
		"workers lost"),
		format.Counted(int64(st.GetRollbacks()), "rollback", "rollbacks"), format.Counted(int64(st.GetRemade()),
			"lost value computed", "lost values computed"))
	row("bytes", "%s read, %s written; last sweep %s and %s", format.Bytes(int64(st.GetBytesRead())),
		format.Bytes(int64(st.GetBytesWritten())),
		format.Bytes(int64(st.GetSweepBytesRead())), format.Bytes(int64(st.GetSweepBytesWritten())))
	took := format.Seconds(st.GetSeconds()) + " of work, " + format.Seconds(st.GetCpuSeconds()) + " of CPU"
	if idle := st.GetIdleSeconds(); idle > 0 {
		took += ", " + format.Seconds(idle) + " waiting besides"
	}
	if left := jobs.ETA(st); left != "" {
		took += ", ETA " + left
	}
	row("time", "%s", took)
	for _, c := range jobs.CapsBefore(st) {
		row("before", "%s", option.Flags(c.String()))
	}
	if st.GetStoppedBy() != "" {
		row("stopped by", "%s", st.GetStoppedBy())
	}
	if b := jobs.BetterOf(st); b != nil {
		row("better", "gap %.3g at sweep %d, %s: `taxon resume %s --max-time S` continues", b.Gap, b.Sweep, midst,
			st.GetJob())
	}
	if st.GetWeightsSha256() != "" {
		row("weights", "sha256 %s", st.GetWeightsSha256())
	}
	if f := st.GetFailed(); f != nil {
		row("failed at", "%s", jobs.FailedAt(f))
	}
	if st.GetError() != "" {
		row("error", "%s", format.OneLine(option.Flags(st.GetError())))
	}
}

// printLine writes v as a JSON document on one line.
func (a *app) printLine(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s\n", format.SafeJSON(data))
	return err
}
