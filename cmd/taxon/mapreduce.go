package main

import (
	"context"
	"errors"
	"math"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator/machine"
	"taxon/internal/engine"
	"taxon/internal/exit"
	"taxon/internal/fs"
	"taxon/internal/mapreduce"
	"taxon/internal/mapreduce/driver"
	"taxon/internal/model"
	"taxon/internal/train"
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
	if o.mr.on() && o.store == "badger" {
		return exit.Usagef("%s: --store badger: leave it out with --engine mapreduce, whose values lie in the state folder", verb)
	}
	return o.mr.check(verb)
}

// check refuses what can't work, and settles what auto means.
func (o *mapReduceOptions) check(verb string) error {
	if o.on() {
		return aboutOptions(verb, o.Check())
	}
	if name := o.Given(); name != "" {
		return exit.Usagef("%s: --%s: is for --engine mapreduce: add that, or leave this out", verb, name)
	}
	return nil
}

// aboutOptions puts the verb before an error of its options, which names no path.
func aboutOptions(verb string, err error) error {
	var in *fs.InputError
	if errors.As(err, &in) && in.Path == "" {
		return exit.Usagef("%s: %w", verb, err)
	}
	return err
}

// stateDir is the state folder of a training whose working folder is keep.
func (o *mapReduceOptions) stateDir(keep string) (string, error) {
	dir, err := o.StateDir(keep)
	return dir, aboutOptions("train", err)
}

// mapReduceRun has a training's tasks run as MapReduce jobs: a train.Elsewhere.
type mapReduceRun struct {
	a       *app
	o       *trainOptions
	state   string
	backend *mapreduce.Backend
	driving driver.Driver // told how it goes, where somebody has submitted it
	done    func()        // removes the data's copy; nil: there is none
}

// State is the state folder.
func (m *mapReduceRun) State(keep string) (_ string, err error) {
	m.state, err = m.o.mr.stateDir(keep)
	return m.state, err
}

// Configure prepares the engine's backend: a state folder and a runner.
func (m *mapReduceRun) Configure(ctx context.Context, t *train.Training, from *engine.Checkpoint, c *engine.Config) (job string, err error) {
	o := &m.o.mr
	job = "train"
	if o.drive != "" {
		job = o.driveID
	}
	m.driving.Dir, m.driving.Job, m.driving.Out = o.drive, job, m.o.out
	data, err := m.data(ctx, t.Dir)
	if err != nil {
		return "", err
	}
	runner, err := o.NewRunner(ctx, t.Spec, data, m.state, model.Threads(m.o.threads))
	if err != nil {
		return "", aboutOptions("train", err)
	}
	m.backend, err = mapreduce.New(ctx, mapreduce.Config{Dir: m.state, Runner: runner, Maps: o.Maps, Reduces: o.Reduces, Note: m.a.ui.Warn, Accepted: m.driving.Accepted})
	if err != nil {
		return "", err
	}
	if from == nil { // what a run left that did not come to a checkpoint
		if err := m.backend.Resumed(nil); err != nil {
			return "", err
		}
	}
	plan, err := machine.NewPlan(t.Spec)
	if err != nil {
		return "", err
	}
	c.Backend, c.Slots = m.backend, slotsFor(plan)
	c.Failed = func(err error) { // but for what was said of a whole job
		if !mapreduce.WasTold(err) {
			m.a.ui.Warn("%v", err)
		}
	}
	return job, nil
}

func (m *mapReduceRun) Refused() error                 { return m.backend.Refused() }
func (m *mapReduceRun) Started(e *engine.Engine) error { return m.driving.Listen(e.RegisterJobs) }
func (m *mapReduceRun) Resumed(job string)             { m.driving.Rename(job) }
func (m *mapReduceRun) Saw(st *taxonv1.JobStatus)      { m.driving.Saw(st) }

// Ended removes the data's copy, and says how it went to whoever has submitted the training.
func (m *mapReduceRun) Ended(report *model.Report, err error) {
	if m.done != nil {
		m.done()
	}
	m.driving.End(endedDocument(report, err))
}

// data is the folder of the data as the tasks see it: where it is, absolute, or a copy of
// this machine's.
func (m *mapReduceRun) data(ctx context.Context, dir string) (_ string, err error) {
	if fs.IsRemote(dir) && m.o.mr.Runner == mapreduce.RunnerYARN {
		return dir, nil
	}
	if dir, m.done, err = fs.Fetch(ctx, dir); err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// slots are as many as a step can have tasks: all of them are handed out at once.
func slotsFor(plan *taxonv1.Plan) int {
	n := uint64(0)
	for _, list := range plan.GetItems() {
		n += uint64(list.GetCount())
	}
	return int(min(n, math.MaxInt32))
}
