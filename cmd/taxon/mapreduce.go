package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster/jobs"
	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/internal/hadoop/mapreduce"
	"taxon/internal/hadoop/mapreduce/driver"
	"taxon/internal/model"
	"taxon/internal/ui/console"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// Engines of --engine.
const (
	engineEmbedded  = "embedded"
	engineMapReduce = "mapreduce"
)

// mapReduceOptions are the flags of the MapReduce engine.
type mapReduceOptions struct {
	mapreduce.Options
	engine         string
	drive, driveID string // of a driver that submit has started
}

// on says whether the training runs as MapReduce jobs.
func (o *mapReduceOptions) on() bool { return o.engine == engineMapReduce }

func (o *mapReduceOptions) flags(cmd *cobra.Command, def string, engines ...string) {
	flagGroup(cmd, "MapReduce", func(f *pflag.FlagSet) {
		choiceFlag(f, &o.engine, "engine", def, engines, "what runs the tasks; mapreduce: each sweep is a MapReduce job")
		choiceFlag(f, &o.Runner, "runner", mapreduce.RunnerAuto, []string{mapreduce.RunnerAuto, mapreduce.RunnerProcesses,
			mapreduce.RunnerHadoop, mapreduce.RunnerYARN},
			"processes of this machine, Hadoop's own local runner, or a YARN cluster; auto: YARN where mapred-site.xml in "+
				"HADOOP_CONF_DIR says so, else processes")
		f.StringVar(&o.State, "state", "", "`DIR` for the state between two sweeps (default: next to the model); with "+
			"YARN an hdfs:// path")
		f.StringVar(&o.Mapred, "mapred", "", "Hadoop's `COMMAND` mapred (default: of HADOOP_HOME, else on the PATH)")
		f.StringVar(&o.Queue, "queue", "", "YARN's `QUEUE` for the jobs")
		f.StringArrayVar(&o.Properties, "hadoop-property", nil, "a further property `NAME=VALUE` of the jobs; repeated")
		bytesFlag(f, &o.Memory, "task-memory", 0, "`SIZE` of a task's container, its JVM's 400 MiB aside "+
			"(default: estimated)")
		intFlag(f, &o.Cores, "task-cores", 1, 1, 1024, "`N` cores of a task")
		intFlag(f, &o.Maps, "map-tasks", 0, 0, 100_000, "`N` map tasks of a job; 0: as many as the work needs, on YARN at "+
			"most 64, else at most one a core")
		f.StringVar(&o.drive, "drive", "", "`DIR` in which to say where the driver answers")
		f.StringVar(&o.driveID, "drive-id", "train", "`ID` of the job")
		for _, name := range []string{"drive", "drive-id"} {
			f.Lookup(name).Hidden = true // for submit
		}
		intFlag(f, &o.Reduces, "reduce-tasks", 0, 0, 100_000, "`N` reduce tasks of a job; 0: half as many as the job has "+
			"map tasks; never more than feature ranges")
	})
}

// checkMapReduce is check, and also refuses flags without a meaning for the engine.
func (o *trainOptions) checkMapReduce(verb string) error {
	if o.mr.on() && o.Store == "badger" {
		return option.Errorf("%s: --store badger: leave it out with --engine mapreduce, whose values are in the state folder",
			verb)
	}
	return o.mr.check(verb)
}

// check refuses combinations that can't work, and decides what auto means.
func (o *mapReduceOptions) check(verb string) error {
	if o.on() {
		return driver.AboutOptions(verb, o.Check())
	}
	if name := o.Given(); name != "" {
		return option.Errorf("%s: --%s: is for --engine mapreduce: add that, or leave this out", verb, name)
	}
	return nil
}

// engineCluster is submit's other engine: coordinator, stores and workers.
const engineCluster = "cluster"

// notForMapReduce are flags of submit that have a meaning only on taxon's own cluster.
var notForMapReduce = []string{"coordinator", "replicas", "in-place", "name"}

// submitMapReduce starts a driver that outlives this process, and prints its address. With --wait
// the driver is this process.
func submitMapReduce(cmd *cobra.Command, a *app, o *submitOptions) error {
	for _, name := range notForMapReduce {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			return option.Errorf("submit: --%s: leave it out with --engine mapreduce, which needs no coordinator", name)
		}
	}
	t := &o.train
	if len(t.Data) == 0 || t.Out == "" {
		return option.Errorf("submit: --engine mapreduce needs --data and --out: the model appears there " +
			"when the job is done")
	}
	t.mr.engine, t.Stores, t.Cutoff = engineMapReduce, 1, "none"
	if o.wait {
		return runTrain(cmd.Context(), a, t)
	}
	if err := option.Join(t.Validate("submit"), t.checkMapReduce("submit")); err != nil {
		return err
	}
	if err := model.Replaceable(t.Out); err != nil {
		return err
	}
	if oneStdin("submit", "--data", append([]string{fs.Stdin}, t.Data...)...) != nil {
		return option.Errorf("submit: standard input ends with this command: give files, or add --wait")
	}
	return startDriver(cmd, a, o)
}

// startDriver starts the driver and waits until Hadoop has taken its first job.
func startDriver(cmd *cobra.Command, a *app, o *submitOptions) error {
	dir, err := driver.Dir(o.train.Out)
	if err != nil {
		return err
	}
	if o.id == "" {
		o.id = "job-" + strings.ToLower(rand.Text()[:8])
	}
	args := append([]string{"train", "--quiet", "--drive", dir, "--drive-id", o.id}, trainArguments(cmd)...)
	d, err := driver.Start(cmd.Context(), dir, args)
	var early *driver.EarlyEnd
	switch {
	case errors.As(err, &early) && early.Status == exitUsage:
		_ = fs.RemoveOwn(dir)
		return option.Errorf("%s", early.Line)
	case early != nil:
		return exitf(exitFailed, "submit: %w", err)
	case err != nil:
		return err
	}
	log, _ := os.ReadFile(d.Log) // the driver has read the data by now
	for line := range strings.Lines(string(log)) {
		if w, ok := strings.CutPrefix(line, console.WarningLead); ok {
			a.ui.Warn("%s", w)
		}
	}
	if a.json {
		return a.printJSON(d)
	}
	_, err = fmt.Fprintln(a.stdout, d.Job)
	a.ui.Note("its driver is process %d, its log %s; `taxon status %s --coordinator %s` asks it", d.PID, d.Log, d.Job,
		d.Coordinator)
	return err
}

// trainArguments are the given flags that train has too. Flags that have another meaning there
// are left out.
func trainArguments(cmd *cobra.Command) (out []string) {
	train := newTrainCmd(&app{}, &trainOptions{})
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if train.Flags().Lookup(f.Name) == nil || f.Name == "engine" {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			out = append(out, "--"+f.Name+"="+v)
		}
	})
	return append(out, "--engine="+engineMapReduce, "--cutoff=none")
}

// driverGone is the error of a call to a driver that has ended. nil: there was none, or it is
// alive.
func driverGone(ctx context.Context, verb, addr string) error {
	e, err := driver.Gone(ctx, addr)
	switch {
	case e == nil:
		return err
	case e.Document == nil:
		return exitf(exitFailed, "%s: %w", verb, e)
	}
	return option.Errorf("%s: %w", verb, e)
}

// showEnded prints how a job ended if its driver has ended regularly. Any other error is returned
// unchanged.
func showEnded(a *app, job string, err error) error {
	var e *driver.Ended
	var doc jobs.Status
	if !errors.As(err, &e) || e.Job != job || json.Unmarshal(e.Document, &doc) != nil {
		return err
	}
	doc.Error = option.Flags(doc.Error)
	if a.json {
		return a.printJSON(doc)
	}
	row := func(name, format string, args ...any) {
		fmt.Fprintf(a.stdout, "  %-12s%s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintln(a.stdout, a.style.Bold(job))
	row("state", "%s; its driver has ended", doc.State)
	row("sweep", "%d", doc.Sweep)
	if r := doc.Report; r != nil {
		row("stopped by", "%s", r.StoppedBy)
		row("weights", "sha256 %s", r.WeightsSHA256)
	}
	if doc.State == "done" {
		row("model", "%s", e.Out)
	} else {
		row("continue", "the same `taxon submit` continues from the last whole sweep")
	}
	row("log", "%s", e.Log)
	if doc.Error != "" {
		row("error", "%s", format.OneLine(doc.Error))
	}
	return nil
}

// newMapReduceTaskCmd is what a map or reduce task starts.
func newMapReduceTaskCmd(a *app) *cobra.Command {
	var t mapreduce.Task
	data := ""
	cmd := &cobra.Command{
		Use:     "mapreduce-task KIND --state DIR --run ID --data DIR",
		GroupID: groupOther,
		Short:   "a map or reduce task of `train --engine mapreduce`",
		Long: "Runs a map or reduce task: input on standard input, output for the shuffle on standard output, the rest " +
			"in the state folder. Hadoop starts it for `train --engine mapreduce`.",
		Example: "taxon mapreduce-task map --state model.train/mapreduce --run s1-0a1b2c3d4e --data data " +
			"< lines > records\n" +
			"taxon mapreduce-task reduce --state model.train/mapreduce --run s1-0a1b2c3d4e --data data < records",
		Hidden: true,
		Args:   oneArg("KIND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.Attempt = mapreduce.AttemptName()
			t.Stdin, t.Stdout, t.Stderr = a.stdin, a.stdout, a.stderr
			t.Open = func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return dataset.Open(data) }
			switch args[0] {
			case "map":
				return t.Tell(t.Map(cmd.Context()))
			case "reduce":
				return t.Tell(t.Reduce(cmd.Context()))
			}
			return option.Errorf("mapreduce-task: %q: give map or reduce", args[0])
		},
	}
	flagGroup(cmd, "Task", func(f *pflag.FlagSet) {
		f.StringVar(&t.State, "state", "", "the state folder: a `DIR`")
		f.StringVar(&t.Run, "run", "", "`ID` of the job's folder in it")
		f.StringVar(&data, "data", "", "`DIR` of the ingested data")
		intFlag(f, &t.Cores, "cores", 1, 1, 1024, "`N` tasks of the coordinator's at a time")
	})
	require(cmd, "state", "run", "data")
	return cmd
}
