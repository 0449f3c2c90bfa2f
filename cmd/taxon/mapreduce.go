package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/data/dataset"
	"taxon/internal/hadoop/mapreduce"
	"taxon/internal/hadoop/mapreduce/driver"
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
	engine string
}

// on says whether the training runs as MapReduce jobs.
func (o *mapReduceOptions) on() bool { return o.engine == engineMapReduce }

func (o *mapReduceOptions) flags(cmd *cobra.Command) {
	flagGroup(cmd, "MapReduce", func(f *pflag.FlagSet) {
		choiceFlag(f, &o.engine, "engine", engineEmbedded, []string{engineEmbedded, engineMapReduce}, "what runs the tasks; mapreduce: each sweep is a MapReduce job")
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
		intFlag(f, &o.Reduces, "reduce-tasks", 0, 0, 100_000, "`N` reduce tasks of a job; 0: half as many as the job has "+
			"map tasks; never more than feature ranges")
	})
}

// checkMapReduce refuses combinations that can't work, and decides what auto means.
func (o *trainOptions) checkMapReduce() error {
	switch name := o.mr.Given(); {
	case o.mr.on() && o.Store == "badger":
		return option.Errorf("train: --store badger: leave it out with --engine mapreduce, whose values are in the state " +
			"folder")
	case o.mr.on():
		return driver.AboutOptions("train", o.mr.Check())
	case name != "":
		return option.Errorf("train: --%s: is for --engine mapreduce: add that, or leave this out", name)
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
