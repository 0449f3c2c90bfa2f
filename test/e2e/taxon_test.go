package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"taxon/test/command"
)

// bin is the folder of the command under test, which is built once. data, tree, otherData and
// weights (of data's instances) are the problem that all tests train. smallData and smallTree are a
// smaller one for slow methods.
var bin, data, tree, otherData, weights, smallData, smallTree string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "taxon-e2e")
	if err != nil {
		log.Print(err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin, data, tree, otherData = filepath.Join(dir, "bin"), filepath.Join(dir, "data.svm"), filepath.Join(dir, "tree.txt"),
		filepath.Join(dir, "other.svm")
	weights = filepath.Join(dir, "weights.txt")
	smallData, smallTree = filepath.Join(dir, "few.svm"), filepath.Join(dir, "few.txt")
	instances, structure := problem(1500, 200, 1200)
	smaller, smallerTree := problem(400, 60, 300)
	for path, text := range map[string]string{data: instances, tree: structure, otherData: instances + "n5 1:1\n",
		weights:   strings.Repeat("0.5\n2\n1\n", 500),
		smallData: smaller, smallTree: smallerTree} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			log.Print(err)
			return 1
		}
	}
	if _, err := command.Build(bin); err != nil {
		log.Print(err)
		return 1
	}
	return m.Run()
}

// problem generates documents over a ternary tree. Each has some of the features of every node on
// its path, and noise. 1,500 of them over 200 nodes train for about a second.
func problem(rows, nodes, features int) (instances, structure string) {
	r := rand.New(rand.NewPCG(5, 5))
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
			row[r.IntN(features)] = r.Float64()
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

// result is the result of a finished process.
type result struct {
	code           int // -1 if a signal ended it
	stdout, stderr string
}

// process is a running command.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

// deadline bounds any single command. A test whose command exceeds it fails.
const deadline = 2 * time.Minute

func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(filepath.Join(bin, "taxon"), args...)}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) wait() result {
	p.t.Helper()
	late := time.AfterFunc(deadline, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	_ = p.cmd.Wait() // the exit status has the result
	return result{p.cmd.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
}

func taxon(t *testing.T, args ...string) result {
	t.Helper()
	return start(t, args...).wait()
}

// training returns the arguments of the standard training into out.
func training(out string, more ...string) []string {
	return append([]string{"train", "--data", data, "--hierarchy", tree, "--out", out, "--gap", "1e-3", "--json",
		"--quiet"}, more...)
}

// often makes a training checkpoint after every sweep.
var often = []string{"--x", "checkpoint-every=1", "--x", "checkpoint-seconds=0.001"}

// report is the part of the output of `train --json` that the tests use.
type report struct {
	Sweeps        int
	Gap           float64
	StoppedBy     string `json:"stopped_by"`
	WeightsSHA256 string `json:"weights_sha256"`
}

// trained returns the report of a command, which must have succeeded.
func trained(t *testing.T, r result) report {
	t.Helper()
	var rep report
	if r.code != 0 {
		t.Fatalf("exit status %d: %s", r.code, r.stderr)
	}
	if err := json.Unmarshal([]byte(r.stdout), &rep); err != nil {
		t.Fatalf("%v in %q", err, r.stdout)
	}
	return rep
}

var warnings = regexp.MustCompile(`(?m)^taxon: warning: .*\n`)

// refused checks that a command ended with the status and, after warnings, one line that contains
// the words.
func refused(t *testing.T, r result, code int, words ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit status %d, want %d: %s", r.code, code, r.stderr)
	}
	if lines := warnings.ReplaceAllString(r.stderr, ""); strings.Count(lines, "\n") != 1 || !strings.HasPrefix(lines,
		"taxon: ") {
		t.Errorf("not one line of error: %q", r.stderr)
	}
	for _, w := range words {
		if !strings.Contains(r.stderr, w) {
			t.Errorf("%q does not say %q", r.stderr, w)
		}
	}
}

// names lists the names in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// onlyModel checks that the folder of the model contains nothing else.
func onlyModel(t *testing.T, out string) {
	t.Helper()
	if all := names(t, filepath.Dir(out)); !slices.Equal(all, []string{filepath.Base(out)}) {
		t.Errorf("left beside the model: %v", all)
	}
}

// appears waits until a file exists, or the process has ended.
func (p *process) appears(path string) {
	p.t.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	p.t.Fatalf("%s did not appear", path)
}

// reference caches the result of undisturbed for all tests.
var reference struct {
	report
	took time.Duration
}

// undisturbed returns the report of the reference training, with one thread and one shard, and its
// duration.
func undisturbed(t *testing.T) (report, time.Duration) {
	t.Helper()
	if reference.took == 0 {
		began, out := time.Now(), filepath.Join(t.TempDir(), "model")
		reference.report = trained(t, taxon(t, training(out, "--threads", "1")...))
		onlyModel(t, out)
		reference.took = time.Since(began)
	}
	return reference.report, reference.took
}

// sweeps reads a trace and checks that it has each sweep once, in order, with its keys.
func sweeps(t *testing.T, model string) int {
	t.Helper()
	f, err := os.Open(filepath.Join(model, "trace.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	count := 0
	for d := json.NewDecoder(f); ; count++ {
		var row map[string]any
		if err := d.Decode(&row); err == io.EOF {
			return count
		} else if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"sweep", "phase", "objective", "dual", "gap", "seconds"} {
			if _, ok := row[key]; !ok {
				t.Errorf("trace of sweep %d lacks %q", count+1, key)
			}
		}
		if row["sweep"] != float64(count+1) {
			t.Errorf("trace has sweep %v behind sweep %d", row["sweep"], count)
		}
	}
}
