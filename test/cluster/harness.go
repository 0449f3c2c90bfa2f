// Package cluster tests clusters of real processes: the command's verbs, from `taxon cluster up` to
// the exported weights. test/chaos uses its harness, too.
package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"taxon/test/command"
)

// Bench is a folder with the command and a problem to train.
type Bench struct {
	Bin, Data, Tree string
	// Deadline bounds any single command or job. A test whose command exceeds it fails.
	Deadline time.Duration

	embedded *embedded
}

// embedded holds the results of Bench.Embedded, by its flags.
type embedded struct {
	sync.Mutex
	digest map[string]string
}

// NewBench builds the command and generates the problem in a new folder. The caller removes the
// folder.
func NewBench(rows, nodes int) (*Bench, string, error) {
	dir, err := os.MkdirTemp("", "taxon-cluster")
	if err != nil {
		return nil, "", err
	}
	b := &Bench{Data: filepath.Join(dir, "data.svm"), Tree: filepath.Join(dir, "tree.txt"), Deadline: deadline,
		embedded: &embedded{digest: map[string]string{}}}
	data, tree := problem(rows, nodes)
	for path, text := range map[string]string{b.Data: data, b.Tree: tree} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, dir, err
		}
	}
	b.Bin, err = command.Build(dir)
	return b, dir, err
}

// problem generates documents over a ternary tree. Each has some of the features of every node on
// its path, and noise.
func problem(rows, nodes int) (data, tree string) {
	features := 6 * nodes
	r := rand.New(rand.NewPCG(7, 7))
	var b, s strings.Builder
	own := make([][]int, nodes)
	for n := range own {
		own[n] = r.Perm(features)[:8]
		if n > 0 {
			fmt.Fprintf(&s, "n%d n%d\n", (n-1)/3, n)
		}
	}
	for range rows {
		n := r.IntN(nodes)
		row := map[int]float64{}
		for m := n; ; m = (m - 1) / 3 {
			for range 3 {
				row[own[m][r.IntN(8)]] = 1 + r.Float64()
			}
			if m == 0 {
				break
			}
		}
		for range 12 {
			row[r.IntN(features)] = 0.1 + r.Float64()
		}
		norm, indices := 0.0, []int{}
		for f, v := range row {
			indices = append(indices, f)
			norm += v * v
		}
		slices.Sort(indices)
		fmt.Fprintf(&b, "n%d", n)
		for _, f := range indices {
			fmt.Fprintf(&b, " %d:%.4f", f+1, row[f]/math.Sqrt(norm))
		}
		b.WriteByte('\n')
	}
	return b.String(), s.String()
}

// deadline is the initial Deadline of a Bench.
const deadline = 2 * time.Minute

// Result is the result of a finished command.
type Result struct {
	Code           int // -1 if a signal ended it
	Stdout, Stderr string
}

// Run runs the command with an additional environment variable, unless env is "".
func (b *Bench) Run(t testing.TB, env string, args ...string) Result {
	t.Helper()
	cmd := exec.Command(b.Bin, args...)
	if env != "" {
		cmd.Env = append(os.Environ(), env)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(b.Deadline, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait() // the exit status has the result
	return Result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// Must runs a command that must succeed.
func (b *Bench) Must(t testing.TB, env string, args ...string) Result {
	t.Helper()
	r := b.Run(t, env, args...)
	if r.Code != 0 {
		t.Fatalf("taxon %s: status %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r
}

// Long returns further flags of a job that must not be finished before a fault.
func Long(sweeps int) []string { return []string{"--gap", "1e-12", "--max-sweeps", fmt.Sprint(sweeps)} }

// Job returns the flags of the standard training. Without a gap, the method's own tolerance
// applies.
func (b *Bench) Job(gap string) []string {
	flags := []string{"--data", b.Data, "--hierarchy", b.Tree, "--quiet"}
	if gap != "" {
		flags = append(flags, "--gap", gap)
	}
	return flags
}

// Embedded trains in one process, once for all tests, and returns the digest of the weights.
func (b *Bench) Embedded(t testing.TB, gap string, flags ...string) string {
	t.Helper()
	b.embedded.Lock()
	defer b.embedded.Unlock()
	key := strings.Join(append(b.Job(gap), flags...), " ")
	if sha, ok := b.embedded.digest[key]; ok {
		return sha
	}
	args := append([]string{"train", "--json", "--out", filepath.Join(t.TempDir(), "model")}, b.Job(gap)...)
	r := b.Must(t, "", append(args, flags...)...)
	var report struct {
		SHA string `json:"weights_sha256"`
	}
	Decode(t, r.Stdout, &report)
	if len(report.SHA) != 64 {
		t.Fatalf("train --json has no digest:\n%s", r.Stdout)
	}
	b.embedded.digest[key] = report.SHA
	return report.SHA
}

// Decode decodes the JSON document that a command printed.
func Decode(t testing.TB, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
}

// State is the output of `taxon cluster status --json`.
type State struct {
	Coordinator string
	Processes   []Process
}

// Process is a process of a cluster.
type Process struct {
	Role, ID, Addr string
	PID, Restarts  int
}

// Cluster is a running cluster of processes.
type Cluster struct {
	*Bench
	Dir string
	env string
}

// Join returns a cluster whose processes the test starts itself.
func (b *Bench) Join(coordinator string) *Cluster {
	return &Cluster{Bench: b, env: "TAXON_COORDINATOR=" + coordinator}
}

// Process starts a command that runs until the end of the test, and returns the address on which it
// reports to be ready.
func (b *Bench) Process(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(b.Bin, args...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			data, _ := os.ReadFile(log.Name())
			t.Logf("%s:\n%s", strings.Join(args, " "), data[max(0, len(data)-2000):])
		}
		log.Close()
	})
	late := time.AfterFunc(b.Deadline, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	_, rest, found := strings.Cut(line, "ready on ")
	if err != nil || !found {
		t.Fatalf("taxon %s is not ready: %q, %v", strings.Join(args, " "), line, err)
	}
	addr, _, _ := strings.Cut(strings.TrimSpace(rest), ",")
	return addr
}

// Up starts a cluster, which is stopped at the end of the test. No process may then remain.
func (b *Bench) Up(t testing.TB, workers, stores int, flags ...string) *Cluster {
	t.Helper()
	return b.UpIn(t, filepath.Join(t.TempDir(), "cluster"), workers, stores, flags...)
}

// UpIn is like Up, in a given folder.
func (b *Bench) UpIn(t testing.TB, dir string, workers, stores int, flags ...string) *Cluster {
	t.Helper()
	c := &Cluster{Bench: b, Dir: dir}
	args := append([]string{"cluster", "up", "--json", "--quiet", "--dir", c.Dir, "--workers", fmt.Sprint(workers),
		"--stores", fmt.Sprint(stores)}, flags...)
	r := b.Run(t, "", args...)
	t.Cleanup(func() {
		if t.Failed() {
			c.showLogs(t)
		}
		c.Down(t)
	})
	if r.Code != 0 {
		t.Fatalf("cluster up: status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	var s State
	Decode(t, r.Stdout, &s)
	if len(s.Processes) != 1+stores+workers {
		t.Fatalf("%d processes are up:\n%s", len(s.Processes), r.Stdout)
	}
	c.env = "TAXON_COORDINATOR=" + s.Coordinator
	return c
}

// Down stops the cluster and checks that no process remains.
func (c *Cluster) Down(t testing.TB) {
	t.Helper()
	r := c.Run(t, "", "cluster", "down", "--dir", c.Dir)
	if r.Code != 0 {
		t.Errorf("cluster down: status %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		// the system may take a moment to remove them
		out, _ := exec.Command("pgrep", "-f", c.Dir).Output()
		if len(out) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("processes are left of %s: %s", c.Dir, out)
			return
		}
	}
}

// showLogs prints the end of each log.
func (c *Cluster) showLogs(t testing.TB) {
	logs, _ := filepath.Glob(filepath.Join(c.Dir, "logs", "*"))
	for _, path := range logs {
		data, err := os.ReadFile(path)
		if err == nil {
			t.Logf("%s:\n%s", filepath.Base(path), data[max(0, len(data)-2000):])
		}
	}
}

// Taxon runs a verb that calls the cluster and must succeed.
func (c *Cluster) Taxon(t testing.TB, args ...string) Result {
	t.Helper()
	return c.Must(t, c.env, args...)
}

// Try runs a verb that calls the cluster.
func (c *Cluster) Try(t testing.TB, args ...string) Result {
	t.Helper()
	return c.Run(t, c.env, args...)
}

// Quick is like Try, but waits for a limited time. The code is -1 if the verb has not ended by
// then.
func (c *Cluster) Quick(t testing.TB, d time.Duration, args ...string) Result {
	t.Helper()
	b := *c.Bench
	b.Deadline = d
	return b.Run(t, c.env, args...)
}

// State returns the processes of the cluster.
func (c *Cluster) State(t testing.TB) State {
	t.Helper()
	var s State
	Decode(t, c.Must(t, "", "cluster", "status", "--json", "--dir", c.Dir).Stdout, &s)
	return s
}

// Process returns the process with an id.
func (c *Cluster) Process(t testing.TB, id string) Process {
	t.Helper()
	for _, p := range c.State(t).Processes {
		if p.ID == id {
			return p
		}
	}
	t.Fatalf("there is no process %s", id)
	return Process{}
}

// Signal sends a signal to a process. A process that has just ended is ignored.
func (p Process) Signal(s syscall.Signal) {
	if p.PID > 0 {
		_ = syscall.Kill(p.PID, s)
	}
}

// Submit submits the standard training and returns the job's id.
func (c *Cluster) Submit(t testing.TB, gap string, more ...string) string {
	t.Helper()
	var d struct{ Job string }
	Decode(t, c.Taxon(t, append(append([]string{"submit", "--json"}, c.Job(gap)...), more...)...).Stdout, &d)
	return d.Job
}

// Status is the output of `taxon status --json`.
type Status struct {
	Job, State, Phase, Error string
	Sweep, Rollbacks         uint32
	Gap                      *float64
	Tasks                    struct{ Done, Running, Waiting, Retried uint32 }
	Lost                     uint32   `json:"workers_lost"`
	ETA                      *float64 `json:"eta_seconds"`
	WaitsFor                 string   `json:"waits_for"`
	Report                   *struct {
		SHA   string `json:"weights_sha256"`
		Nodes int
	}
}

// Status returns the state of a job.
func (c *Cluster) Status(t testing.TB, job string) Status {
	t.Helper()
	var s Status
	Decode(t, c.Taxon(t, "status", job, "--json").Stdout, &s)
	return s
}

// Await polls a job until it has ended, and calls each for every answer. Committed progress must
// not be taken back.
func (c *Cluster) Await(t testing.TB, job string, each func(Status)) Status {
	t.Helper()
	last := Status{}
	for end := time.Now().Add(c.Deadline); ; {
		s := c.Status(t, job)
		if s.Sweep < last.Sweep && s.Rollbacks == last.Rollbacks {
			t.Fatalf("status went back from sweep %d to %d", last.Sweep, s.Sweep)
		}
		last = s
		switch s.State {
		case "done", "failed", "cancelled":
			return s
		}
		if each != nil {
			each(s)
		}
		if time.Now().After(end) {
			t.Fatalf("job %s does not end: %+v", job, s)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Done awaits a job and checks its digest.
func (c *Cluster) Done(t testing.TB, job, want string, each func(Status)) Status {
	t.Helper()
	s := c.Await(t, job, each)
	if s.State != "done" || s.Report == nil || s.Report.SHA != want {
		t.Fatalf("job %s ended as %+v, want digest %s\n%s", job, s, want, c.Try(t, "logs", job).Stdout)
	}
	return s
}
