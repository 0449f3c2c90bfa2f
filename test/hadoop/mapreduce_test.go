package hadoop

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"taxon/internal/fs"
)

// buildStatic builds the command as the machines of a cluster need it.
func buildStatic(t *testing.T) cli {
	t.Helper()
	t.Setenv("CGO_ENABLED", "0")
	return buildCommand(t)
}

// TestMapReduce trains by Hadoop's own local runner and on YARN, with one mapper killed, and
// compares with the bytes of the embedded training. Then it makes the mistakes that users make.
func TestMapReduce(t *testing.T) {
	c := startCluster(t, Options{DataNodes: 1, Replication: 1, YARNOptions: YARNOptions{YARN: true, NodeMB: 4096,
		Cores: 8}})
	taxon := buildStatic(t)
	mapred, err := c.Mapred()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HADOOP_CONF_DIR", c.Conf())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	taxon.run(t, 0, "generate", "--like", "wordnet", "--scale", "0.01", "--out", filepath.Join(dir, "gen"))
	taxon.run(t, 0, "ingest", "--data", filepath.Join(dir, "gen/train.svm"), "--out", c.URL("/set"))
	work := mapReduceTest{cluster: c, taxon: taxon, mapred: mapred, train: []string{"train", "--data", c.URL("/set"),
		"--hierarchy", filepath.Join(dir, "gen/hierarchy.txt")}}
	t.Run("local", func(t *testing.T) { work.local(t) })
	t.Run("yarn", func(t *testing.T) { work.yarn(t) })
	t.Run("name node", func(t *testing.T) { work.nameNode(t) })
	t.Run("input", func(t *testing.T) { work.input(t) })
	t.Run("resume", func(t *testing.T) { work.resume(t) })
	if left, err := c.Run(t.Context(), "org.apache.hadoop.fs.FsShell", "-ls", "/"); err != nil || strings.Contains(left,
		"/state") {
		t.Errorf("left behind: %s (%v)", left, err)
	}
}

type mapReduceTest struct {
	cluster *Cluster
	taxon   cli
	mapred  string
	train   []string
}

// embedded returns the checksum of the weights of a training in one process.
func (m *mapReduceTest) embedded(t *testing.T, args ...string) any {
	t.Helper()
	return m.taxon.figures(t, m.with(append(args, "--out", filepath.Join(t.TempDir(), "model"))...)...)["weights_sha256"]
}

func (m *mapReduceTest) with(args ...string) []string {
	return append(append([]string{}, m.train...), args...)
}

// engine are the flags of the engine, with settings of its jobs, a line each.
func (m *mapReduceTest) engine(t *testing.T, settings string, args ...string) []string {
	t.Helper()
	if !strings.Contains(settings, "mapred:") {
		settings += "\nmapred: " + m.mapred
	}
	return m.with(append(args, "--engine", "mapreduce", "--hadoop-conf", hadoopConf(t, settings))...)
}

// hadoopConf is a file of settings, a line each.
func hadoopConf(t *testing.T, settings string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hadoop.yaml")
	put(t, path, []byte(settings+"\n"))
	return path
}

func (m *mapReduceTest) local(t *testing.T) {
	short := []string{"--max-sweeps", "1"}
	got := m.taxon.figures(t, append(m.engine(t, "runner: hadoop", short...), "--out",
		filepath.Join(t.TempDir(), "model"))...)
	if want := m.embedded(t, short...); got["weights_sha256"] != want {
		t.Errorf("weights %v, embedded %v", got["weights_sha256"], want)
	}
}

// onYARN are the settings of small jobs on YARN.
const onYARN = "runner: yarn\nmap-tasks: 2"

// yarn trains with everything in HDFS, and kills the first mapper that it sees.
func (m *mapReduceTest) yarn(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	killed := make(chan bool, 1)
	go func() { killed <- killMapper(ctx, m.cluster) }()
	got := m.taxon.figures(t, append(m.engine(t, onYARN, "--max-sweeps", "2"), "--out",
		m.cluster.URL("/models/yarn"))...)
	stop()
	if !<-killed {
		t.Error("no mapper was seen to be killed")
	}
	if want := m.embedded(t, "--max-sweeps", "2"); got["weights_sha256"] != want {
		t.Errorf("weights %v, embedded %v", got["weights_sha256"], want)
	}
	nothingBut(t, m.cluster.URL("/models"), "yarn")
	exported := filepath.Join(t.TempDir(), "w.txt")
	m.taxon.run(t, 0, "export", "--model", m.cluster.URL("/models/yarn"), "--out", exported)
	if info, err := os.Stat(exported); err != nil || info.Size() == 0 {
		t.Errorf("export: %v", err)
	}
}

// nameNode stops the name node twice: between two jobs, and while a mapper works.
func (m *mapReduceTest) nameNode(t *testing.T) {
	out := m.cluster.URL("/models/again")
	cmd := exec.Command(string(m.taxon), append(m.engine(t, onYARN, "--max-sweeps", "3", "--out", out), "--json")...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.awaitFile(t, out+".train/mapreduce/state")
	m.cluster.Kill("namenode")
	m.cluster.restart(t, "namenode", 5*time.Second)()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	if !withMapper(ctx, m.cluster, func(int) bool { m.cluster.Kill("namenode"); return true }) {
		t.Error("no mapper was seen")
	}
	m.cluster.restart(t, "namenode", 5*time.Second)()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	t.Logf("the driver said: %s", stderr.String())
	var report map[string]any
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if want := m.embedded(t, "--max-sweeps", "3"); report["weights_sha256"] != want {
		t.Errorf("weights %v, embedded %v", report["weights_sha256"], want)
	}
	nothingBut(t, m.cluster.URL("/models"), "again", "yarn")
	if err := fs.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
}

// awaitFile waits until a file exists.
func (m *mapReduceTest) awaitFile(t *testing.T, path string) {
	t.Helper()
	for range 2400 {
		if fs.Exists(path) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not appear", path)
}

// killMapper kills the first mapper on a cluster with kill -9.
func killMapper(ctx context.Context, c *Cluster) bool {
	return withMapper(ctx, c, func(pid int) bool { return syscall.Kill(pid, syscall.SIGKILL) == nil })
}

// withMapper calls do as soon as a mapper runs on a cluster.
func withMapper(ctx context.Context, c *Cluster, do func(pid int) bool) bool {
	for ctx.Err() == nil {
		pids, lines, err := c.Containers("taxon")
		if err != nil {
			return false
		}
		if i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, " mapreduce-task map ") }); i >= 0 {
			return do(pids[i])
		}
		time.Sleep(2 * time.Millisecond)
	}
	return false
}

// input checks that mistakes end with status 2 and one line, and leave no files.
func (m *mapReduceTest) input(t *testing.T) {
	// the log then has neither a job's id nor the reason for its refusal
	t.Setenv("HADOOP_ROOT_LOGGER", "WARN,console")
	nobody := t.TempDir()
	if err := os.CopyFS(nobody, os.DirFS(m.cluster.Conf())); err != nil {
		t.Fatal(err)
	}
	site := filepath.Join(nobody, "yarn-site.xml")
	text, err := os.ReadFile(site)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(site, bytes.ReplaceAll(text, []byte(m.cluster.at("rm")), []byte("127.0.0.1:1")),
		0o666); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(m.mapred)
	if err != nil {
		t.Fatal(err)
	}
	lost := filepath.Join(t.TempDir(), "mapred")
	if err := os.WriteFile(lost, bytes.ReplaceAll(script, []byte(m.cluster.Conf()+":"), []byte(nobody+":")),
		0o777); err != nil {
		t.Fatal(err)
	}
	state := m.cluster.URL("/state")
	for _, k := range []struct {
		want, settings string
	}{
		{"queue nope: does not exist", "queue: nope\nstate: " + state},
		{"task-memory", "task-memory: 20G\nstate: " + state},
		{"task-cores", "task-cores: 400\nstate: " + state},
		// Hadoop itself refuses this one
		{"would have 300 cores", "mapreduce.map.cpu.vcores: 300\nstate: " + state},
		{"nobody answers there", "mapred: " + lost + "\nstate: " + state},
		{"no HDFS name node answers", "state: hdfs://127.0.0.1:1/state"},
		{"permission denied", "state: " + strings.Replace(state, "hdfs://", "hdfs://alice@", 1)},
		{"do not see", ""},
		{"can't run Hadoop's command", "mapred: /nowhere/mapred\nstate: " + state},
	} {
		out := filepath.Join(t.TempDir(), "model")
		_, errs := m.taxon.run(t, 2, m.engine(t, "runner: yarn\n"+k.settings, "--out", out, "--max-sweeps", "1",
			"--quiet")...)
		if errs = strings.TrimSpace(errs); strings.Contains(errs, "\n") || !strings.HasPrefix(errs, "taxon: ") ||
			!strings.Contains(errs, k.want) {
			t.Errorf("%v: %q, want one line that says %q", k.settings, errs, k.want)
		}
		nothingBut(t, filepath.Dir(out))
		if fs.Exists(state) {
			t.Errorf("%v: %s was left behind", k.settings, state)
		}
	}
}

// resume kills the driver (-9) after a sweep. The same command must continue there.
func (m *mapReduceTest) resume(t *testing.T) {
	args := append(m.engine(t, "runner: processes", "--gap", "1e-6", "--max-sweeps", "6", "--out",
		m.cluster.URL("/models/again")), "--json")
	cmd := exec.Command(string(m.taxon), args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m.awaitFile(t, m.cluster.URL("/models/again.train/mapreduce/state"))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if fs.Exists(m.cluster.URL("/models/again/manifest.json")) {
		t.Fatal("it finished before it could be killed")
	}
	out, _ := m.taxon.run(t, 0, args...)
	var report map[string]any
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if want := m.embedded(t, "--gap", "1e-6", "--max-sweeps", "6"); report["weights_sha256"] != want {
		t.Errorf("weights %v, embedded %v", report["weights_sha256"], want)
	}
}
