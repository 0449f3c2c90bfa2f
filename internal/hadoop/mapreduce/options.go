package mapreduce

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"taxon/coordinator/footprint"
	"taxon/coordinator/method/registry"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/hadoop/yarn"
	taxonv1 "taxon/proto/taxon/v1"
)

// These are the names of the runners.
const (
	// RunnerAuto is YARN if mapred-site.xml in HADOOP_CONF_DIR says so, and processes otherwise.
	RunnerAuto      = "auto"
	RunnerProcesses = "processes"
	RunnerHadoop    = "hadoop"
	RunnerYARN      = "yarn"
)

// Runners lists the names.
var Runners = []string{RunnerAuto, RunnerProcesses, RunnerHadoop, RunnerYARN}

// Options say what runs a training's jobs and how large their tasks are. A zero field leaves the
// choice to the runner.
type Options struct {
	// Runner is one of the names above.
	Runner string
	// State is the folder for data kept between sweeps. If it is empty, it is next to the model.
	State string
	// Mapred is Hadoop's command mapred. If it is empty, it is taken from HADOOP_HOME, or else from
	// the PATH.
	Mapred string
	// Queue is YARN's queue.
	Queue string
	// Properties are further properties of the jobs, NAME=VALUE.
	Properties []string
	// Memory is the size of a task's container without its JVM, in bytes. Zero means an estimate.
	Memory int64
	// Cores is the number of cores of a task.
	Cores int
	// Maps and Reduces are the numbers of tasks of a job.
	Maps, Reduces int
}

// Check returns an error for options that can't work, and replaces auto by a runner. Errors that
// name no path are about options, here and below.
func (o *Options) Check() error {
	if o.Runner == RunnerAuto {
		o.Runner = RunnerProcesses
		if conf := os.Getenv("HADOOP_CONF_DIR"); conf != "" {
			framework, err := Property(filepath.Join(conf, "mapred-site.xml"), "mapreduce.framework.name")
			if err != nil {
				return err
			}
			if framework == RunnerYARN {
				o.Runner = RunnerYARN
			}
		}
	}
	if o.Runner != RunnerYARN && o.Queue != "" {
		return fs.Inputf("", 0, "queue %s: only YARN has queues: set runner: yarn in ‹hadoop-conf›", o.Queue)
	}
	return nil
}

// StateDir returns the state folder of a training with the working folder keep.
func (o *Options) StateDir(keep string) (string, error) {
	dir := cmp.Or(o.State, fs.Join(keep, "mapreduce"))
	if o.Runner == RunnerYARN && !fs.Shared(dir) {
		return "", fs.Inputf("", 0, "runner yarn: the cluster's machines do not see %s: set "+
			"state: hdfs://host:port/folder in ‹hadoop-conf›, or give ‹out› there", dir)
	}
	return fs.Abs(dir)
}

// NewRunner returns the chosen runner, for a training with a number of threads on this machine, and
// with its ingested data and its state in the given folders. The tasks run this program.
func (o *Options) NewRunner(ctx context.Context, spec *taxonv1.JobSpec, data, state string,
	threads int) (Runner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	tasks := max(threads/o.Cores, 1)
	if o.Runner == RunnerProcesses {
		return &Local{Threads: tasks, Command: func(kind string, j *Job) []string {
			return TaskCommand(self, kind, j, data,
				o.Cores)
		}}, nil
	}
	command, err := o.command()
	if err != nil {
		return nil, err
	}
	s := &Streaming{Mapred: command, YARN: o.Runner == RunnerYARN, Binary: self, Data: data, Queue: o.Queue,
		Properties: o.Properties, Memory: uint64(o.Memory), Cores: o.Cores, Tasks: tasks}
	if s.YARN {
		s.Tasks, s.User = yarnTasks, hadoopUser(state)
		if err := CheckBinary(self); err != nil {
			return nil, err
		}
	}
	if s.Memory == 0 {
		p, err := registry.Prepare(spec)
		if err != nil {
			return nil, err
		}
		s.Memory = footprint.Needs(p.Estimate, uint32(o.Cores))
	}
	if s.YARN {
		return s, s.fits(ctx)
	}
	return s, nil
}

// yarnTasks bounds a job's map tasks if the cluster's size is unknown.
const yarnTasks = 64

// command returns Hadoop's command mapred.
func (o *Options) command() ([]string, error) {
	if o.Mapred != "" {
		return strings.Fields(o.Mapred), nil
	}
	if home := os.Getenv("HADOOP_HOME"); home != "" {
		if path, err := exec.LookPath(filepath.Join(home, "bin", "mapred")); err == nil {
			return []string{path}, nil
		}
	}
	path, err := exec.LookPath("mapred")
	if err != nil {
		return nil, fs.Inputf("", 0, "runner %s needs Hadoop's command mapred: put it on the PATH, set HADOOP_HOME, or "+
			"name it as mapred in ‹hadoop-conf›", o.Runner)
	}
	return []string{path}, nil
}

// hadoopUser returns the user as whom the tasks on a cluster act in HDFS.
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

// askLimit bounds the time for questions to the resource manager before the first job.
const askLimit = 5 * time.Second

// fits returns an error for a task's container that no host of the cluster can provide, as far as
// the resource manager's pages show. Hadoop itself refuses the others later.
func (s *Streaming) fits(ctx context.Context) error {
	c, _, err := yarn.NewClient("", s.User)
	if errors.Is(err, yarn.ErrNotConfigured) {
		return nil
	}
	if err != nil {
		return fs.Inputf("", 0, "%w", err)
	}
	ask, done := context.WithTimeout(ctx, askLimit)
	defer done()
	k, err := c.Cluster(ask)
	if err != nil || k.Nodes == 0 {
		return ctx.Err()
	}
	return checkContainer(s.ContainerMB(), max(s.Cores, 1), k.MaxMiB, k.MaxCores)
}

// Property reads a property from one of Hadoop's configuration files. It is empty if it is not set,
// or if there is no such file.
func Property(path, name string) (string, error) {
	b, err := vfs.ReadFile(vfs.OS, path)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fs.Explain(path, err)
	}
	conf := yarn.Conf{}
	if err := conf.Parse(b); err != nil {
		return "", fs.Inputf(path, 0, "is no Hadoop configuration: %w", err)
	}
	return conf[name], nil
}

// CheckBinary returns an error for a program whose libraries other machines may lack.
func CheckBinary(path string) error {
	if static, err := yarn.IsStatic(path); err != nil || static {
		// A program for another system has unknown needs.
		return nil
	}
	return fs.Inputf(path, 0, "this binary is linked with libraries of this machine, which a cluster's machines may "+
		"lack: build it with CGO_ENABLED=0")
}

// Runner runs MapReduce jobs.
type Runner interface {
	// Run runs a job to its end. When ctx ends it returns soon, and nothing of the job is left
	// running. An fs.InputError is for the user to correct.
	Run(ctx context.Context, j *Job) error
	// Slots returns the approximate number of tasks that run at the same time.
	Slots() int
	// Fixed returns the approximate time before a task begins to work, in seconds. Jobs are divided
	// into tasks that take a multiple of it.
	Fixed() float64
}

// Killer is a Runner whose jobs outlive its process.
type Killer interface {
	// Kill kills the job with an id that Job.Started was called with, if it is still running.
	Kill(ctx context.Context, id string)
}

// Job is a MapReduce job. It has a map task for each line of a file, and reducers.
type Job struct {
	Name string
	// State is the state folder.
	State string
	// Run is the name of the job's folder in the folder runs of State.
	Run   string
	Lines []string
	// Keys are the shuffle keys, one for each task of the next step. If there are none, the job has
	// only map tasks.
	Keys     [][]byte
	Reducers int
	// Started is called with the id under which the job runs elsewhere.
	Started func(id string)
	// Moved is called with the progress of the job as text: map 40%, reduce 0%. A nil Moved is not
	// called.
	Moved func(text string)
}

// Input returns the path of the file of lines.
func (j *Job) Input() string { return folder(j.State).join("runs", j.Run, linesFile) }
