package hadoop

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
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

// yarnCase is a training on a cluster that YARN runs.
type yarnCase struct {
	c     *Cluster
	taxon cli
	job   []string // data and options of the training

}

// newYarnCase starts HDFS and YARN, whose node offers nodeMB MiB, and builds a command that runs on
// any host.
func newYarnCase(t *testing.T, nodeMB int) *yarnCase {
	c := startCluster(t, Options{DataNodes: 2, Replication: 2, YARNOptions: YARNOptions{Services: true, NodeMB: nodeMB}})
	y := &yarnCase{c: c, taxon: buildStatic(t)} // before the cache changes, which is also Go's
	t.Setenv("HADOOP_CONF_DIR", c.Conf())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return y
}

// placed returns the arguments of a small cluster.
func placed(name string, more ...string) []string {
	args := []string{"yarn", "up", "--name", name, "--coordinator-memory", "256MiB", "--lease", "3s", "--snapshot-every",
		"2", "--snapshot-pause", "2s", "--json"}
	for _, flag := range []string{"--worker-memory", "--store-memory"} {
		if !slices.Contains(more, flag) { // a flag that is given twice causes a warning
			args = append(args, flag, "512MiB")
		}
	}
	return append(args, more...)
}

// yarnStatus is the part of the output of `taxon yarn status --json` that the tests use.
type yarnStatus struct {
	State, Coordinator, Address string
	Application, Diagnostics    string
	Epoch                       uint64
	Answers                     bool
	Workers, Stores             int
	Containers                  []struct{ Instance, State string }
}

func (y *yarnCase) status(t *testing.T, name string) (s yarnStatus) {
	t.Helper()
	out, _ := y.taxon.run(t, 0, "yarn", "status", "--name", name, "--json")
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// jobStatus is the part of the output of `taxon status --json` that the tests use.
type jobStatus struct {
	State, Error     string
	Sweep, Rollbacks int
	Report           *struct {
		Sum string `json:"weights_sha256"`
	}
}

// ask returns a job's status. It retries while the coordinator moves.
func (y *yarnCase) ask(t *testing.T, job string) (s jobStatus) {
	t.Helper()
	var last string
	for range 40 {
		cmd := exec.Command(string(y.taxon), "status", job, "--json")
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err == nil {
			if err := json.Unmarshal(out, &s); err != nil {
				t.Fatal(err)
			}
			return s
		}
		last = errs.String()
		time.Sleep(time.Second)
	}
	t.Fatalf("status of %s: %s", job, last)
	return s
}

// reach waits until a job has committed a sweep. A job that ends earlier fails the test, because
// its faults came too late.
func (y *yarnCase) reach(t *testing.T, job string, sweep int) {
	t.Helper()
	for range 2400 {
		s := y.ask(t, job)
		if s.State != "running" && s.State != "waiting" && s.State != "queued" {
			t.Fatalf("%s is %s (%s) before sweep %d", job, s.State, s.Error, sweep)
		}
		if s.Sweep >= sweep {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s does not reach sweep %d", job, sweep)
}

// done waits for a job's end and returns the checksum of its weights.
func (y *yarnCase) done(t *testing.T, job string, limit time.Duration) string {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
		s := y.ask(t, job)
		switch s.State {
		case "done":
			t.Logf("%s done: %d sweeps, %d rollbacks", job, s.Sweep, s.Rollbacks)
			return s.Report.Sum
		case "failed", "cancelled":
			t.Fatalf("%s %s: %s", job, s.State, s.Error)
		}
	}
	t.Fatalf("%s is not done after %v: %+v", job, limit, y.ask(t, job))
	return ""
}

// kill kills the process of a container at once, as a failing host does.
func (y *yarnCase) kill(t *testing.T, program, with string) {
	t.Helper()
	pids, lines, err := y.c.Containers(program)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, with) })
	if i < 0 {
		t.Fatalf("no container runs %s ... %s: %q", program, with, lines)
	}
	if err := syscall.Kill(pids[i], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// scale changes the number of workers and waits until the coordinator has as many.
func (y *yarnCase) scale(t *testing.T, name string, workers int) {
	t.Helper()
	y.taxon.run(t, 0, "yarn", "scale", "--name", name, "--workers", fmt.Sprint(workers))
}

// settle waits until YARN and the coordinator have the given numbers of processes again. YARN's
// containers are known once the service's master is up.
func (y *yarnCase) settle(t *testing.T, name string, workers, stores int) {
	t.Helper()
	var s yarnStatus
	for range 900 {
		if s = y.status(t, name); s.Answers && s.Workers == workers && s.Stores == stores &&
			len(s.Containers) == 1+workers+stores {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatalf("want %d workers and %d stores: %+v", workers, stores, s)
}

// embedded trains in one process, from and to HDFS, and exports. It returns the expected checksums
// of the weights and of the export.
func (y *yarnCase) embedded(t *testing.T) (sum, export string) {
	t.Helper()
	model, out := y.c.URL("/models/embedded"), y.c.URL("/embedded/")
	figures := y.taxon.figures(t, append([]string{"train", "--force", "--out", model}, y.job...)...)
	if err := fs.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	y.taxon.run(t, 0, "export", "--model", model, "--out", out)
	return figures["weights_sha256"].(string), checksum(t, fs.Clean(out))
}

// checksum returns the SHA-256 of the content of a file or of a folder of part files, which may be
// larger than memory.
func checksum(t *testing.T, path string) string {
	t.Helper()
	f, err := fs.Open(t.Context(), fs.Local{}, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := sha256.New()
	if n, err := io.Copy(sum, f); err != nil || n == 0 {
		t.Fatalf("%s: %d bytes, %v", path, n, err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// TestYARN trains on a cluster that YARN runs, that is scaled, and that loses one process of each
// kind.
func TestYARN(t *testing.T) {
	y := newYarnCase(t, 6144)
	gen, set := y.c.URL("/gen"), y.c.URL("/set")
	y.taxon.run(t, 0, "generate", "--like", "wordnet", "--scale", "0.02", "--out", gen)
	y.taxon.run(t, 0, "ingest", "--data", gen+"/train.svm", "--out", set)
	// enough sweeps for all disturbances
	y.job = []string{"--data", set, "--hierarchy", gen + "/hierarchy.txt", "--gap", "1e-12", "--max-sweeps", "100"}
	t.Run("input", func(t *testing.T) { testYarnInput(t, y) })
	sum, export := y.embedded(t)
	elsewhere := y.c.URL("/elsewhere/gw") // the other verbs ask YARN for it
	y.compare(t, []string{"--data-root", set, "--dir", elsewhere}, y.everything(t), sum, export, 12*time.Minute)
	t.Run("down and up", func(t *testing.T) { testDownUp(t, y, set, elsewhere, sum) })
}

// compare trains on a cluster that YARN runs, with disturbances, and compares the weights and the
// bytes of the export with the embedded training's. The cluster keeps running.
func (y *yarnCase) compare(t *testing.T, up []string, steps []disturbance, sum, export string, limit time.Duration) {
	t.Helper()
	y.taxon.run(t, 0, placed("gw", append([]string{"--workers", "2", "--stores", "2"}, up...)...)...)
	t.Cleanup(func() { _ = exec.Command(string(y.taxon), "yarn", "down", "--name", "gw", "--yes").Run() })
	place := y.status(t, "gw").Coordinator
	if info, err := fs.Stat(fs.Dir(place)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder with the keys: %v %v", info, err)
	}
	t.Setenv("TAXON_COORDINATOR", place)
	y.taxon.run(t, 0, append([]string{"submit", "--id", "job", "--replicas", "2"}, y.job...)...)
	for i, s := range steps {
		y.reach(t, "job", i+1)
		began := time.Now()
		s.do()
		t.Logf("sweep %d: %s (%.1f s)", y.ask(t, "job").Sweep, s.what, time.Since(began).Seconds())
	}
	y.settle(t, "gw", 1, 2)
	if got := y.done(t, "job", limit); got != sum {
		t.Errorf("weights %s, embedded %s", got, sum)
	}
	y.taxon.run(t, 0, "export", "--job", "job", "--out", y.c.URL("/exported/"))
	if checksum(t, y.c.URL("/exported")) != export {
		t.Error("the export is not the embedded training's")
	}
}

// disturbance is a change to a cluster. There is one after each sweep of its job.
type disturbance struct {
	what string
	do   func()
}

// some scales the cluster 2 -> 4 -> 1 and kills a worker, the service's master and a data node.
func (y *yarnCase) some(t *testing.T) []disturbance {
	return []disturbance{
		{"2 -> 4 workers", func() { y.scale(t, "gw", 4) }},
		{"a worker", func() { y.kill(t, "taxon", "run worker --instance worker-1") }},
		{"the service's master", func() {
			y.kill(t, "java", "ServiceMaster")
			if s := y.status(t, "gw"); !s.Answers || s.Application == "" || s.Address == "" {
				t.Errorf("without a master: %+v", s) // known values are reported all the same
			}
		}},
		{"a data node", func() { y.c.Kill(DataNode(1)) }},
		{"4 -> 1 workers", func() { y.scale(t, "gw", 1) }},
	}
}

// everything adds to some the coordinator, a store, and YARN's own daemons.
func (y *yarnCase) everything(t *testing.T) []disturbance {
	some := y.some(t)
	return slices.Insert(some, len(some)-1, []disturbance{
		{"the coordinator", func() { y.kill(t, "taxon", "run coordinator") }},
		{"the node manager", func() {
			y.c.Kill(NodeManager)
			if err := y.c.StartDaemon(NodeManager); err != nil {
				t.Fatal(err)
			}
		}},
		{"a store", func() { y.kill(t, "taxon", "run store --instance store-1") }},
		{"the resource manager", func() {
			y.c.Kill(ResourceManager)
			if err := y.c.StartDaemon(ResourceManager); err != nil {
				t.Fatal(err)
			}
			if err := y.c.YARNReady(t.Context()); err != nil {
				t.Fatal(err)
			}
		}},
	}...)
}

// testDownUp checks that a cluster that was shut down in the middle of a job continues from HDFS
// alone. The resource manager has closed its API by then, so that Hadoop's own command is used. The
// job's data are read in place, in HDFS.
func testDownUp(t *testing.T, y *yarnCase, set, dir, sum string) {
	bin := t.TempDir()
	if err := y.c.WriteCommand(filepath.Join(bin, "yarn")); err != nil {
		t.Fatal(err)
	}
	if err := y.c.CloseServiceAPI(t.Context()); err != nil {
		t.Fatal(err)
	}
	y.c.admin(t, "-cp", set, y.c.URL("/other"))
	wantRefused(t, y.taxon, "yarn.webapp.api-service.enable", "yarn", "down", "--name", "gw", "--yarn-command", "no-yarn")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	y.settle(t, "gw", 1, 2) // status by the command
	wantRefused(t, y.taxon, "which is room for", "yarn", "scale", "--name", "gw", "--workers", "4000")
	wantRefused(t, y.taxon, "outside the data roots", append([]string{"submit", "--in-place"},
		replaced(y.job, set, y.c.URL("/other"))...)...)
	y.taxon.run(t, 0, append([]string{"submit", "--id", "second", "--in-place"}, y.job...)...)
	y.reach(t, "second", 4)
	y.taxon.run(t, 0, "yarn", "down", "--name", "gw", "--yes")
	if pids, lines, err := y.c.Containers("taxon"); err != nil || len(pids) > 0 {
		t.Errorf("still running: %q %v", lines, err)
	}
	wantRefused(t, y.taxon, "knows no service gw", "yarn", "status", "--name", "gw")
	wantRefused(t, y.taxon, "give --stores 2 or more", placed("gw", "--stores", "1", "--dir", dir)...)
	y.taxon.run(t, 0, placed("gw", "--workers", "1", "--stores", "2", "--data-root", set, "--dir", dir)...)
	y.scale(t, "gw", 2)
	if got := y.done(t, "second", 12*time.Minute); got != sum {
		t.Errorf("weights %s, embedded %s", got, sum)
	}
	wantRefused(t, y.taxon, "is no cluster's folder, so nothing was ended", "yarn", "down", "--name", "gw", "--purge",
		"--yes", "--dir", y.c.URL("/gen"))
	y.taxon.run(t, 0, "yarn", "down", "--name", "gw", "--purge", "--yes")
	if fs.Exists(dir) {
		t.Error("--purge left the folder")
	}
}

// replaced returns arguments with one replaced by another.
func replaced(args []string, old, by string) []string {
	out := slices.Clone(args)
	out[slices.Index(out, old)] = by
	return out
}

// testYarnInput checks that mistakes end with status 2 and one line, and leave nothing in HDFS or
// YARN.
func testYarnInput(t *testing.T, y *yarnCase) {
	dynamic := filepath.Join(t.TempDir(), "no-program")
	if err := fs.WriteFile(dynamic, []byte("text")); err != nil {
		t.Fatal(err)
	}
	at := func(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }
	for _, c := range []struct {
		want string
		args []string
	}{
		{"queue \"fast\" does not exist: there are default", placed("bad", "--queue", "fast")},
		{"too large for the cluster: its largest node has 6144 MiB", placed("bad", "--worker-memory", "64GiB")},
		{"too large for the cluster: its largest node has 16", placed("bad", "--slots", "512")},
		{"too much for the cluster", placed("bad", "--workers", "4000")},
		{"no resource manager answers at 127.0.0.1:1 ", placed("bad", "--resource-manager", at(1))},
		{"no resource manager", placed("bad", "--resource-manager", at(y.c.WebPort()))},
		{"no resource manager answers", placed("bad", "--resource-manager", at(y.c.DataPort(0)))},
		{"expected http://host:8088", placed("bad", "--resource-manager", "rm:8088")},
		{"no HDFS name node answers", placed("bad", "--dir", "hdfs://127.0.0.1:1/x")},
		{"permission denied", placed("bad", "--dir", strings.Replace(y.c.URL("/bad"), "hdfs://", "hdfs://alice@", 1))},
		{"must be a folder in HDFS", placed("bad", "--dir", "/tmp/x")},
		{"is a file", placed("bad", "--dir", y.c.URL("/gen/train.svm"))},
		{"and is no cluster's folder", placed("bad", "--dir", y.c.URL("/gen"))},
		{"/none", placed("bad", "--data", y.c.URL("/none"))},
		{"does not start on host localhost: yarn run: /proc/nope", placed("bad", "--quiet", "--local", "/proc/nope")},
		{"--name", placed("Bad_Name")},
		{"is no Linux program", placed("bad", "--binary", dynamic)},
		{"no such file", []string{"yarn", "up", "--name", "bad", "--data", y.c.URL("/none")}},
		{"knows no service bad", []string{"yarn", "scale", "--workers", "2", "--name", "bad"}},
		{"knows no service bad", []string{"yarn", "status", "--name", "bad"}},
		{"knows no service bad", []string{"yarn", "down", "--name", "bad"}},
		{"no coordinator has said there where it is", []string{"jobs", "--coordinator", y.c.URL("/nowhere")}},
		{"is not the file in which a coordinator", []string{"jobs", "--coordinator", y.c.URL("/gen/hierarchy.txt")}},
	} {
		wantRefused(t, y.taxon, c.want, c.args...)
	}
	y.c.admin(t, "-safemode", "enter")
	wantRefused(t, y.taxon, "safe mode", placed("bad")...)
	y.c.admin(t, "-safemode", "leave")
	if left, err := y.c.Run(t.Context(), "org.apache.hadoop.fs.FsShell", "-ls", "-R", "/"); err != nil ||
		strings.Contains(left, "bad") {
		t.Errorf("left behind: %s (%v)", left, err)
	}
}

func wantRefused(t *testing.T, taxon cli, want string, args ...string) {
	t.Helper()
	_, errs := taxon.run(t, 2, args...)
	if strings.Count(strings.TrimSpace(errs), "\n") != 0 || !strings.HasPrefix(errs, "taxon: ") || !strings.Contains(errs,
		want) {
		t.Errorf("taxon %s: %q is not one line that says %q", strings.Join(args, " "), errs, want)
	}
}
