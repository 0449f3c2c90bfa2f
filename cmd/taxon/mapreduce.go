package main

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/internal/hadoop/mapreduce"
	"taxon/internal/hadoop/mapreduce/driver"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// These are the values of --engine.
const (
	engineEmbedded  = "embedded"
	engineMapReduce = "mapreduce"
)

// mapReduceOptions are the flags of the MapReduce engine, and the settings of --hadoop-conf.
type mapReduceOptions struct {
	mapreduce.Options
	engine string
	conf   string // path of --hadoop-conf; "": none
}

// on reports whether the training runs as MapReduce jobs.
func (o *mapReduceOptions) on() bool { return o.engine == engineMapReduce }

func (o *mapReduceOptions) flags(cmd *cobra.Command) {
	o.Options = mapreduce.Options{Runner: mapreduce.RunnerAuto, Cores: 1}
	flagGroup(cmd, "MapReduce", func(f *pflag.FlagSet) {
		choiceFlag(f, &o.engine, "engine", engineEmbedded, []string{engineEmbedded, engineMapReduce},
			"what runs the tasks: this process, or a MapReduce job per sweep")
		f.StringVar(&o.conf, "hadoop-conf", "", "settings of the MapReduce jobs: a `FILE` of lines `name: value` (queue, "+
			"task-memory, Hadoop properties)")
	})
}

// settings defines what a file of --hadoop-conf may set besides properties of Hadoop.
func (o *mapReduceOptions) settings() *pflag.FlagSet {
	f := pflag.NewFlagSet("hadoop-conf", pflag.ContinueOnError)
	choiceFlag(f, &o.Runner, "runner", o.Runner, mapreduce.Runners, "")
	f.StringVar(&o.State, "state", "", "")
	f.StringVar(&o.Mapred, "mapred", "", "")
	f.StringVar(&o.Queue, "queue", "", "")
	bytesFlag(f, &o.Memory, "task-memory", 0, "")
	intFlag(f, &o.Cores, "task-cores", o.Cores, 1, 1024, "")
	intFlag(f, &o.Maps, "map-tasks", 0, 0, 100_000, "")
	intFlag(f, &o.Reduces, "reduce-tasks", 0, 0, 100_000, "")
	return f
}

// read takes the settings from the file of --hadoop-conf. It reports all mistakes together.
func (o *mapReduceOptions) read(ctx context.Context) error {
	if o.conf == "" || !o.on() {
		return nil
	}
	data, err := fs.ReadBounded(ctx, o.conf, maxJobFile)
	if err != nil {
		return err
	}
	if bytes.Contains(data, []byte("<configuration")) {
		return fs.Inputf(o.conf, 0, "this is Hadoop's own configuration, which is read from the folder in HADOOP_CONF_DIR: "+
			"give lines `name: value`")
	}
	lines, err := parseSettings(o.conf, data)
	if err != nil {
		return err
	}
	f := o.settings()
	var names []string
	f.VisitAll(func(s *pflag.Flag) { names = append(names, s.Name) })
	var errs []error
	for _, l := range lines {
		wrong := func(format string, args ...any) {
			errs = append(errs, fs.Inputf(o.conf, l.line, l.name+": "+format, args...))
		}
		s, bad := f.Lookup(l.name), (*pflag.InvalidValueError)(nil)
		switch {
		case len(l.values) != 1:
			wrong("give one value")
		case s == nil && strings.Contains(l.name, "."):
			o.Properties = append(o.Properties, l.name+"="+l.values[0])
		case s == nil && format.Nearest(l.name, names) != "":
			wrong("unknown setting: did you mean %s?", format.Nearest(l.name, names))
		case s == nil:
			wrong("unknown setting: there are %s, and Hadoop's properties, whose names have a dot", strings.Join(names, ", "))
		case errors.As(f.Set(l.name, l.values[0]), &bad):
			wrong("%s: %s", format.QuoteIfNeeded(l.values[0]), valueProblem(bad))
		}
	}
	if errs == nil && o.State != "" {
		o.State, err = fs.Canonical(besideFile(o.conf, o.State))
		errs = append(errs, err)
	}
	return option.Join(errs...)
}

// checkMapReduce refuses combinations that can't work, and decides what auto means.
func (o *trainOptions) checkMapReduce() error {
	switch {
	case o.mr.on() && o.Store == "badger":
		return option.Errorf("train: --x store=badger: leave it out with --engine mapreduce, whose values are in the state " +
			"folder")
	case o.mr.on():
		return driver.AboutOptions("train", o.mr.Check())
	case o.mr.conf != "":
		return option.Errorf("train: --hadoop-conf: is for --engine mapreduce: add that, or leave this out")
	}
	return nil
}

// newMapReduceTaskCmd returns the hidden verb that a map or reduce task runs.
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
