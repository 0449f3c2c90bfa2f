package mapreduce

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"taxon/coordinator/footprint"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
)

// Streaming runs jobs by Hadoop Streaming: on a YARN cluster, or with Hadoop's own runner in one
// process of this machine.
type Streaming struct {
	// Mapred is Hadoop's command `mapred`, with arguments to put before its own.
	Mapred []string
	// YARN reports that the tasks run on a cluster, where they find program and data in the state
	// folder.
	YARN bool
	// Binary is the task program. It must be static, because the cluster's machines have other
	// libraries.
	Binary string
	// Data is the folder of the ingested data, on this machine or in HDFS.
	Data string
	// Queue is the cluster's queue. If it is empty, it is the default queue.
	Queue string
	// Properties are further properties, NAME=VALUE.
	Properties []string
	// Memory is the memory of a task without its JVM, in bytes.
	Memory uint64
	// Cores is the number of cores of a task.
	Cores int
	// Tasks is the number of tasks that may run at the same time.
	Tasks int
	// User is the user to act as in HDFS if tasks run as somebody else. It is empty otherwise.
	User string
	mu   sync.Mutex
	// shipped is the state folder to which program and data were copied.
	shipped string
	// answered reports that a job has run.
	answered bool
}

const (
	// streamingFixed is the time before a task begins to work, in seconds. Most of it is the start
	// of a JVM.
	streamingFixed = 3
	// heapBytes is the JVM's share of a task's memory.
	heapBytes = 400 << 20
	// killTime bounds the time for killing a job.
	killTime = 30 * time.Second
	// waitDelay is how long children of Hadoop's command may keep its output open.
	waitDelay = 5 * time.Second
)

// These are the names of files in the state folder and beside the tasks.
const (
	binaryName = "taxon"
	dataName   = "data"
)

// Slots implements Runner.
func (s *Streaming) Slots() int { return max(s.Tasks, 1) }

// Fixed implements Runner.
func (s *Streaming) Fixed() float64 { return streamingFixed }

// Run implements Runner.
func (s *Streaming) Run(ctx context.Context, j *Job) error {
	if strings.ContainsAny(j.State, " \t'\"\\") {
		return fs.Inputf(j.State, 0, "Hadoop Streaming takes no blanks or quotes in a state folder's path: choose another")
	}
	if err := s.ship(ctx, j.State); err != nil {
		return err
	}
	argv := append(slices.Clone(s.Mapred), "streaming")
	argv = append(argv, s.arguments(j)...)
	said := &commandOutput{job: j}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	// Without these it may not print the job's id and the reason of a failure.
	cmd.Env = append(os.Environ(), "HADOOP_ROOT_LOGGER=INFO,console", "HADOOP_LOGLEVEL=INFO")
	cmd.Stderr = said
	cmd.Cancel = func() error { // its children do not end with it
		if id := said.id(); id != "" {
			s.Kill(context.WithoutCancel(ctx), id)
		}
		return cmd.Process.Kill()
	}
	cmd.WaitDelay = waitDelay
	if err := cmd.Start(); err != nil {
		return fs.Inputf(s.Mapred[0], 0, "can't run Hadoop's command mapred: name it as mapred in ‹hadoop-conf›: %w", err)
	}
	err := cmd.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		return explain(said, s.failure(ctx, j), err)
	}
	s.answered = true
	return nil
}

// Kill implements Killer.
func (s *Streaming) Kill(ctx context.Context, id string) {
	if !jobID.MatchString(id) || strings.HasPrefix(id, localJob) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	argv := append(slices.Clone(s.Mapred), "job", "-kill", id)
	_ = exec.CommandContext(ctx, argv[0], argv[1:]...).Run() // it may have ended
}

// failure returns the error that a task of the job left. It returns nil if no task left one.
func (s *Streaming) failure(ctx context.Context, j *Job) string {
	dir := folder(j.State).run(j.Run)
	names, err := fs.ReadDirNames(dir)
	if err != nil {
		return ""
	}
	for _, n := range names {
		if !strings.HasPrefix(n, failedPrefix) {
			continue
		}
		if b, err := fs.ReadFile(ctx, fs.Join(dir, n)); err == nil {
			return string(b)
		}
	}
	return ""
}

// ship copies program and data to a place where a cluster's tasks see them, once. Hadoop caches
// them on the nodes as long as they do not change.
func (s *Streaming) ship(ctx context.Context, state string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.YARN || s.shipped == state {
		return nil
	}
	if err := shipFile(ctx, s.Binary, fs.Join(state, binaryName)); err != nil {
		return err
	}
	if !fs.Shared(s.Data) {
		if err := shipFolder(ctx, s.Data, fs.Join(state, dataName)); err != nil {
			return err
		}
	}
	s.shipped = state
	return nil
}

// shipFile copies a file unless one of the same size is there.
func shipFile(_ context.Context, from, to string) error {
	in, err := vfs.OS.Open(from)
	if err != nil {
		return fs.Explain(from, err)
	}
	defer in.Close()
	if a, err := in.Stat(); err == nil {
		if b, err := fs.Stat(to); err == nil && a.Size() == b.Size() && !b.ModTime().Before(a.ModTime()) {
			return nil
		}
	}
	out, err := fs.CreateFile(to)
	if err != nil {
		return err
	}
	defer out.Abort()
	if _, err := io.Copy(out, bufio.NewReaderSize(in, 1<<20)); err != nil {
		return fs.Explain(to, err)
	}
	return out.Commit()
}

// shipFolder copies the files of a folder unless the folder is there. The copy appears atomically.
func shipFolder(ctx context.Context, from, to string) error {
	if fs.Exists(to) {
		return nil
	}
	out, err := fs.CreateDir(to, false)
	if err != nil {
		return err
	}
	defer out.Abort()
	entries, err := vfs.OS.ReadDir(from)
	if err != nil {
		return fs.Explain(from, err)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !e.Type().IsRegular() {
			continue
		}
		if err := vfs.OS.Link(filepath.Join(from, e.Name()), out.Join(e.Name())); err == nil {
			continue
		}
		if err := shipFile(ctx, filepath.Join(from, e.Name()), out.Join(e.Name())); err != nil {
			return err
		}
	}
	return out.Commit()
}

// arguments returns the arguments of Hadoop Streaming, with Hadoop's options first.
func (s *Streaming) arguments(j *Job) []string {
	dir := folder(j.State).run(j.Run)
	var out []string
	define := func(name string, value any) { out = append(out, "-D", fmt.Sprintf("%s=%v", name, value)) }
	framework := "local"
	if s.YARN {
		framework = "yarn"
	}
	define("mapreduce.framework.name", framework)
	define("mapreduce.job.name", j.Name)
	define("mapreduce.job.reduces", j.reduces())
	define("mapreduce.job.maps", len(j.Lines))
	define("mapreduce.input.lineinputformat.linespermap", 1)
	define("stream.map.input.ignoreKey", true)
	define("stream.map.output", "rawbytes")
	define("stream.reduce.input", "rawbytes")
	define("mapreduce.task.io.sort.mb", 64)
	define("mapreduce.job.jvm.numtasks", 1)
	if s.Queue != "" {
		define("mapreduce.job.queuename", s.Queue)
	}
	if s.YARN {
		s.cluster(define)
	}
	for _, p := range s.Properties {
		out = append(out, "-D", p)
	}
	if s.YARN {
		data := s.Data
		if !fs.Shared(data) {
			data = fs.Join(j.State, dataName)
		}
		out = append(out, "-files", hadoopURI(fs.Join(j.State, binaryName))+"#"+binaryName+","+hadoopURI(data)+"#"+dataName)
	}
	out = append(out, "-inputformat", "org.apache.hadoop.mapred.lib.NLineInputFormat",
		"-outputformat", "org.apache.hadoop.mapred.lib.NullOutputFormat",
		"-input", hadoopURI(j.Input()), "-output", hadoopURI(fs.Join(dir, "out")),
		"-mapper", s.task("map", j))
	if j.reduces() > 0 {
		out = append(out, "-reducer", s.task("reduce", j))
	}
	if s.YARN {
		out = append(out, "-cmdenv", fmt.Sprintf("GOMEMLIMIT=%dMiB", footprint.HeapLimit(int64(s.Memory))>>20))
	}
	if s.YARN && s.User != "" {
		out = append(out, "-cmdenv", "HADOOP_USER_NAME="+s.User)
	}
	return out
}

// ContainerMB returns the size of a task's container in MiB.
func (s *Streaming) ContainerMB() int64 { return int64((s.Memory + heapBytes + 1<<20 - 1) >> 20) }

// cluster defines the properties of a job on YARN.
func (s *Streaming) cluster(define func(name string, value any)) {
	mb := s.ContainerMB()
	for _, kind := range []string{"map", "reduce"} {
		define("mapreduce."+kind+".memory.mb", mb)
		define("mapreduce."+kind+".cpu.vcores", max(s.Cores, 1))
	}
	define("mapreduce.job.heap.memory-mb.ratio", strconv.FormatFloat(float64(heapBytes>>20)/float64(mb), 'f', 4, 64))
	if !s.answered { // do not wait for a cluster that never answered
		define("yarn.resourcemanager.connect.max-wait.ms", 10000)
		define("yarn.resourcemanager.connect.retry-interval.ms", 1000)
		define("ipc.client.connect.max.retries", 3)
		define("ipc.client.connect.retry.interval", 500)
	}
}

// task returns the command line of a task. Streaming splits it at blanks.
func (s *Streaming) task(kind string, j *Job) string {
	binary, data := s.Binary, s.Data
	if s.YARN {
		binary, data = "./"+binaryName, dataName
	}
	return strings.Join(TaskCommand(binary, kind, j, data, s.Cores), " ")
}

// TaskCommand returns the command line of a map or reduce task.
func TaskCommand(binary, kind string, j *Job, data string, cores int) []string {
	return []string{binary, "mapreduce-task", kind, "--state", j.State, "--run", j.Run, "--data", data, "--cores",
		strconv.Itoa(max(cores, 1))}
}

// localJob is the prefix of job ids of Hadoop's local runner. These jobs end with its process.
const localJob = "job_local"

// reduces returns the number of reduce tasks.
func (j *Job) reduces() int {
	if len(j.Keys) == 0 {
		return 0
	}
	return j.Reducers
}

// hadoopURI returns a path in Hadoop's form: without a user, and absolute if local.
func hadoopURI(path string) string {
	if rest, ok := strings.CutPrefix(path, fs.Scheme); ok {
		host, file, _ := strings.Cut(rest, "/")
		return fs.Scheme + host[strings.LastIndexByte(host, '@')+1:] + "/" + file
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return "file://" + path
}

var (
	jobID   = regexp.MustCompile(`^job_\w+$`)
	running = regexp.MustCompile(`\bRunning job: (job_\w+)`)
	moved   = regexp.MustCompile(`\bmap (\d+)% reduce (\d+)%`)
)

// commandOutput parses the output of Hadoop's command.
type commandOutput struct {
	job *Job
	// rest is an incomplete line.
	rest []byte

	mu    sync.Mutex
	jobID string
	// lines are the last lines.
	lines []string
}

const keptLines = 400

// Write implements io.Writer.
func (s *commandOutput) Write(p []byte) (int, error) {
	s.rest = append(s.rest, p...)
	for {
		line, rest, ok := bytes.Cut(s.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		s.rest = rest
		if text := strings.TrimSpace(string(line)); text != "" {
			s.line(text)
		}
	}
}

func (s *commandOutput) line(line string) {
	s.mu.Lock()
	if len(s.lines) == keptLines {
		s.lines = slices.Delete(s.lines, 0, 1)
	}
	s.lines = append(s.lines, line)
	m := running.FindStringSubmatch(line)
	if m != nil {
		s.jobID = m[1]
	}
	s.mu.Unlock()
	if m != nil && s.job.Started != nil && !strings.HasPrefix(m[1], localJob) {
		s.job.Started(m[1])
	}
	if m := moved.FindStringSubmatch(line); m != nil && s.job.Moved != nil {
		s.job.Moved(fmt.Sprintf("map %s%%, reduce %s%%", m[1], m[2]))
	}
}

func (s *commandOutput) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobID
}
