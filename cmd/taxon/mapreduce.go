package main

import (
	"context"
	"math"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/coordinator"
	"taxon/coordinator/method/registry"
	"taxon/internal/engine"
	"taxon/internal/fs"
	"taxon/internal/mapreduce"
	"taxon/internal/model"
	"taxon/internal/train"
	"taxon/internal/yarn"
	taxonv1 "taxon/proto/taxon/v1"
)

// Engines of --engine, and runners of --runner.
const (
	engineEmbedded  = "embedded"
	engineMapReduce = "mapreduce"

	runnerAuto      = "auto"
	runnerProcesses = "processes"
	runnerHadoop    = "hadoop"
	runnerYARN      = "yarn"
)

// mapReduceOptions are the flags of the MapReduce engine.
type mapReduceOptions struct {
	engine     string
	runner     string
	state      string
	mapred     string
	queue      string
	properties []string
	memory     int64
	cores      int
	maps       int
	reduces    int

	drive, driveID string // of a driver that submit has started
}

// on says whether the training runs as MapReduce jobs.
func (o *mapReduceOptions) on() bool { return o.engine == engineMapReduce }

func (o *mapReduceOptions) flags(cmd *cobra.Command, def string, engines ...string) {
	flagGroup(cmd, "MapReduce", func(f *pflag.FlagSet) {
		choiceFlag(f, &o.engine, "engine", def, engines, "what runs the tasks; mapreduce: each sweep is a MapReduce job")
		choiceFlag(f, &o.runner, "runner", runnerAuto, []string{runnerAuto, runnerProcesses, runnerHadoop, runnerYARN},
			"processes of this machine, Hadoop's own local runner, or a YARN cluster; auto: YARN where mapred-site.xml in HADOOP_CONF_DIR says so, else processes")
		f.StringVar(&o.state, "state", "", "`DIR` of what lies between two sweeps (default: beside the model); with YARN an hdfs:// path")
		f.StringVar(&o.mapred, "mapred", "", "Hadoop's `COMMAND` mapred (default: of HADOOP_HOME, else on the PATH)")
		f.StringVar(&o.queue, "queue", "", "YARN's `QUEUE` for the jobs")
		f.StringArrayVar(&o.properties, "hadoop-property", nil, "a further property `NAME=VALUE` of the jobs; repeated")
		bytesFlag(f, &o.memory, "task-memory", 0, "`SIZE` of a task's container, its JVM's 400 MiB aside (default: estimated)")
		intFlag(f, &o.cores, "task-cores", 1, 1, 1024, "`N` cores of a task")
		intFlag(f, &o.maps, "map-tasks", 0, 0, 100_000, "`N` map tasks of a job; 0: as many as the work needs, on YARN at most 64, else at most one a core")
		f.StringVar(&o.drive, "drive", "", "`DIR` in which to say where the driver answers")
		f.StringVar(&o.driveID, "drive-id", "train", "`ID` of the job")
		for _, name := range []string{"drive", "drive-id"} {
			f.Lookup(name).Hidden = true // for submit
		}
		intFlag(f, &o.reduces, "reduce-tasks", 0, 0, 100_000, "`N` reduce tasks of a job; 0: half as many as the job has map tasks; never more than feature ranges")
	})
}

// ignored is a flag that was given, and that means nothing without --engine mapreduce; "":
// none was.
func (o *mapReduceOptions) ignored() string {
	for _, f := range []struct {
		given bool
		name  string
	}{
		{o.runner != runnerAuto && o.runner != "", "runner"}, {o.state != "", "state"}, {o.mapred != "", "mapred"}, {o.queue != "", "queue"},
		{len(o.properties) > 0, "hadoop-property"}, {o.memory > 0, "task-memory"}, {o.cores > 1, "task-cores"},
		{o.maps > 0, "map-tasks"}, {o.reduces > 0, "reduce-tasks"},
	} {
		if f.given {
			return f.name
		}
	}
	return ""
}

// checkMapReduce is check, and refuses what means nothing to the engine.
func (o *trainOptions) checkMapReduce(verb string) error {
	if o.mr.on() && o.store == "badger" {
		return usagef("%s: --store badger: leave it out with --engine mapreduce, whose values lie in the state folder", verb)
	}
	return o.mr.check(verb)
}

// check refuses what can't work, and settles what auto means.
func (o *mapReduceOptions) check(verb string) error {
	if !o.on() {
		if name := o.ignored(); name != "" {
			return usagef("%s: --%s: is for --engine mapreduce: add that, or leave this out", verb, name)
		}
		return nil
	}
	for _, p := range o.properties {
		if name, _, ok := strings.Cut(p, "="); !ok || name == "" {
			return usagef("%s: --hadoop-property %q: give NAME=VALUE", verb, p)
		}
	}
	if o.runner == runnerAuto {
		o.runner = runnerProcesses
		if conf := os.Getenv("HADOOP_CONF_DIR"); conf != "" {
			framework, err := mapreduce.Property(filepath.Join(conf, "mapred-site.xml"), "mapreduce.framework.name")
			if err != nil {
				return err
			}
			if framework == runnerYARN {
				o.runner = runnerYARN
			}
		}
	}
	if o.runner != runnerYARN && o.queue != "" {
		return usagef("%s: --queue: only YARN has queues: add --runner yarn", verb)
	}
	return nil
}

// stateDir is the state folder of a training whose working folder is keep.
func (o *mapReduceOptions) stateDir(keep string) (string, error) {
	dir := o.state
	if dir == "" {
		dir = fs.Join(keep, "mapreduce")
	}
	if o.runner == runnerYARN && !fs.IsRemote(dir) {
		return "", usagef("train: --runner yarn: the cluster's machines do not see %s: add --state hdfs://host:port/folder, or give --out there", dir)
	}
	if fs.IsRemote(dir) {
		return fs.Clean(dir), nil
	}
	return filepath.Abs(dir)
}

// mapReduceRun has a training's tasks run as MapReduce jobs: a train.Elsewhere.
type mapReduceRun struct {
	a       *app
	o       *trainOptions
	state   string
	backend *mapreduce.Backend
	driving *driving // nil: nobody has submitted it
	done    func()   // removes the data's copy; nil: there is none
}

// State is the state folder.
func (m *mapReduceRun) State(keep string) (_ string, err error) {
	m.state, err = m.o.mr.stateDir(keep)
	return m.state, err
}

// Configure prepares the engine's backend: a state folder and a runner.
func (m *mapReduceRun) Configure(ctx context.Context, t *train.Training, from *engine.Checkpoint, c *engine.Config) (job string, err error) {
	o := &m.o.mr
	mc := mapreduce.Config{Dir: m.state, Maps: o.maps, Reduces: o.reduces, Note: m.a.ui.Warn}
	job = "train"
	if o.drive != "" {
		job = o.driveID
		m.driving = &driving{dir: o.drive, id: job, out: m.o.out}
		mc.Accepted = m.driving.accepted
	}
	if mc.Runner, err = m.runner(ctx, t); err != nil {
		return "", err
	}
	if m.backend, err = mapreduce.New(ctx, mc); err != nil {
		return "", err
	}
	if from == nil { // what a run left that did not come to a checkpoint
		if err := m.backend.Resumed(nil); err != nil {
			return "", err
		}
	}
	plan, err := coordinator.NewPlan(t.Spec)
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

func (m *mapReduceRun) Refused() error { return m.backend.Refused() }

func (m *mapReduceRun) Started(e *engine.Engine) error {
	if m.driving == nil {
		return nil
	}
	return m.driving.listen(e)
}

func (m *mapReduceRun) Resumed(job string)        { m.driving.rename(job) }
func (m *mapReduceRun) Saw(st *taxonv1.JobStatus) { m.driving.saw(st) }

// Ended removes the data's copy, and says how it went to whoever has submitted the training.
func (m *mapReduceRun) Ended(report *model.Report, err error) {
	if m.done != nil {
		m.done()
	}
	if m.driving != nil {
		m.driving.end(report, err)
	}
}

// data is the folder of the data as the tasks see it: where it is, absolute, or a copy of
// this machine's.
func (m *mapReduceRun) data(ctx context.Context, dir string) (_ string, err error) {
	if fs.IsRemote(dir) && m.o.mr.runner == runnerYARN {
		return dir, nil
	}
	if dir, m.done, err = fs.Fetch(ctx, dir); err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}

// runner is what --runner names.
func (m *mapReduceRun) runner(ctx context.Context, t *train.Training) (mapreduce.Runner, error) {
	o := &m.o.mr
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	data, err := m.data(ctx, t.Dir)
	if err != nil {
		return nil, err
	}
	tasks := max(workers(m.o.threads)/o.cores, 1)
	if o.runner == runnerProcesses {
		return &mapreduce.Local{Threads: tasks, Command: func(kind string, j *mapreduce.Job) []string {
			return mapreduce.TaskCommand(self, kind, j, data, o.cores)
		}}, nil
	}
	command, err := o.command()
	if err != nil {
		return nil, err
	}
	s := &mapreduce.Streaming{Mapred: command, YARN: o.runner == runnerYARN, Binary: self, Data: data, Queue: o.queue,
		Properties: o.properties, Memory: uint64(o.memory), Cores: o.cores, Tasks: tasks}
	if s.YARN {
		s.Tasks, s.User = yarnTasks, hadoopUser(m.state)
		if err := mapreduce.CheckBinary(self); err != nil {
			return nil, err
		}
	}
	if s.Memory == 0 {
		p, err := registry.Prepare(t.Spec)
		if err != nil {
			return nil, err
		}
		s.Memory = p.Estimate.Worker(uint32(o.cores))
	}
	if s.YARN {
		return s, checkTask(ctx, s)
	}
	return s, nil
}

// askLimit bounds what is asked of the resource manager before the first job.
const askLimit = 5 * time.Second

// checkTask refuses a task's container that no host of the cluster can give, as far as the
// resource manager's pages can be read: what they do not tell Hadoop refuses later.
func checkTask(ctx context.Context, s *mapreduce.Streaming) error {
	conf, err := yarn.ReadConf(confDir())
	if err != nil {
		return usagef("train: %w", err)
	}
	c := &yarn.Client{User: s.User}
	if c.URLs, err = conf.ResourceManagers(); err != nil {
		return nil
	}
	if conf.Kerberos() {
		c.Negotiate, c.User = fs.Negotiate, ""
	}
	ask, done := context.WithTimeout(ctx, askLimit)
	defer done()
	k, err := c.Cluster(ask)
	if err != nil || k.Nodes == 0 {
		return ctx.Err()
	}
	return mapreduce.CheckContainer(s.ContainerMB(), max(s.Cores, 1), k.MaxMiB, k.MaxCores)
}

// yarnTasks bounds the map tasks of a job on a cluster of unknown size.
const yarnTasks = 64

// command is Hadoop's command mapred.
func (o *mapReduceOptions) command() ([]string, error) {
	if o.mapred != "" {
		return strings.Fields(o.mapred), nil
	}
	if home := os.Getenv("HADOOP_HOME"); home != "" {
		if path, err := exec.LookPath(filepath.Join(home, "bin", "mapred")); err == nil {
			return []string{path}, nil
		}
	}
	path, err := exec.LookPath("mapred")
	if err != nil {
		return nil, usagef("train: --runner %s needs Hadoop's command mapred: put it on the PATH, set HADOOP_HOME, or name it with --mapred", o.runner)
	}
	return []string{path}, nil
}

// hadoopUser is who the tasks on a cluster act as in HDFS.
func hadoopUser(state string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(state, fs.Scheme), "/")
	if name, _, ok := strings.Cut(host, "@"); ok {
		return name
	}
	if name := os.Getenv("HADOOP_USER_NAME"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// slots are as many as a step can have tasks: all of them are handed out at once.
func slotsFor(plan *taxonv1.Plan) int {
	n := uint64(0)
	for _, list := range plan.GetItems() {
		n += uint64(list.GetCount())
	}
	return int(min(n, math.MaxInt32))
}
