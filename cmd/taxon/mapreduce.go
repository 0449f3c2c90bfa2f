package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/exit"
	"taxon/internal/mapreduce"
	"taxon/internal/mapreduce/driver"
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
		choiceFlag(f, &o.Runner, "runner", mapreduce.RunnerAuto, []string{mapreduce.RunnerAuto, mapreduce.RunnerProcesses, mapreduce.RunnerHadoop, mapreduce.RunnerYARN},
			"processes of this machine, Hadoop's own local runner, or a YARN cluster; auto: YARN where mapred-site.xml in HADOOP_CONF_DIR says so, else processes")
		f.StringVar(&o.State, "state", "", "`DIR` of what lies between two sweeps (default: beside the model); with YARN an hdfs:// path")
		f.StringVar(&o.Mapred, "mapred", "", "Hadoop's `COMMAND` mapred (default: of HADOOP_HOME, else on the PATH)")
		f.StringVar(&o.Queue, "queue", "", "YARN's `QUEUE` for the jobs")
		f.StringArrayVar(&o.Properties, "hadoop-property", nil, "a further property `NAME=VALUE` of the jobs; repeated")
		bytesFlag(f, &o.Memory, "task-memory", 0, "`SIZE` of a task's container, its JVM's 400 MiB aside (default: estimated)")
		intFlag(f, &o.Cores, "task-cores", 1, 1, 1024, "`N` cores of a task")
		intFlag(f, &o.Maps, "map-tasks", 0, 0, 100_000, "`N` map tasks of a job; 0: as many as the work needs, on YARN at most 64, else at most one a core")
		f.StringVar(&o.drive, "drive", "", "`DIR` in which to say where the driver answers")
		f.StringVar(&o.driveID, "drive-id", "train", "`ID` of the job")
		for _, name := range []string{"drive", "drive-id"} {
			f.Lookup(name).Hidden = true // for submit
		}
		intFlag(f, &o.Reduces, "reduce-tasks", 0, 0, 100_000, "`N` reduce tasks of a job; 0: half as many as the job has map tasks; never more than feature ranges")
	})
}

// checkMapReduce is check, and refuses what means nothing to the engine.
func (o *trainOptions) checkMapReduce(verb string) error {
	if o.mr.on() && o.Store == "badger" {
		return exit.Usagef("%s: --store badger: leave it out with --engine mapreduce, whose values lie in the state folder", verb)
	}
	return o.mr.check(verb)
}

// check refuses what can't work, and settles what auto means.
func (o *mapReduceOptions) check(verb string) error {
	if o.on() {
		return driver.AboutOptions(verb, o.Check())
	}
	if name := o.Given(); name != "" {
		return exit.Usagef("%s: --%s: is for --engine mapreduce: add that, or leave this out", verb, name)
	}
	return nil
}
