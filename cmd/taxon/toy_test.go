package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	"taxon/coordinator/method/registry"
	"taxon/internal/app/tune"
	"taxon/internal/cluster/jobs"
	mlr "taxon/internal/methods/mlr/plan"
	"taxon/internal/model"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/worker/program"
)

// toy is a method with options of its own, which trains as mlr does. No file but this one
// knows it.
type toy struct {
	mlr.Method
	mu   sync.Mutex
	seen []toyOptions // of each driver made
	stop func()       // called when the second sweep is done; nil: nothing
	// stopped holds the tasks back behind it.
	stopped atomic.Bool
}

type toyOptions struct {
	C      float64 `option:"C"`
	Heat   float64 `option:"heat"`
	Shape  string  `option:"shape"`
	Layers uint32  `option:"toy-layers"`
}

func (*toy) Name() string { return "toy" }

// About implements method.Method.
func (*toy) About() string { return "weights of the weather" }

func (*toy) Options() []method.Option {
	return append(mlr.Method{}.Options(),
		method.Option{Name: "heat", Common: true, Kind: method.Float, Default: "0.5", Range: method.Range{Most: 10},
			Group: method.GroupMethod, Help: "how hot: a `NUMBER`", Report: true, Grid: []string{"0.5", "5"}},
		method.Option{Name: "shape", Kind: method.Choice, Choices: []string{"round", "square"}, Group: method.GroupMethod,
			Help: "its shape (default: as it fits)"},
		method.Option{Name: "toy-layers", Kind: method.Int, Default: "3", Range: method.WholeFrom0, Group: method.GroupPath,
			Help: "`N` layers"})
}

func (m *toy) Driver(spec *taxonv1.JobSpec, plan *method.Plan, s method.State) (method.Driver, error) {
	var o toyOptions
	if err := method.ReadOptions(spec.GetOptions(), m.Options(), &o); err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.seen = append(m.seen, o)
	m.mu.Unlock()
	d, err := m.Method.Driver(spec, plan, s)
	return &toyDriver{d, m}, err
}

type toyDriver struct {
	method.Driver
	toy *toy
}

func (d *toyDriver) Commit(sums []method.Sums) (method.Outcome, error) {
	out, err := d.Driver.Commit(sums)
	if d.toy.stop != nil && out.SweepDone && d.Progress().Sweep > 2 {
		d.toy.stopped.Store(true)
		d.toy.stop()
	}
	return out, err
}

type toyProgram struct {
	program.Method
	toy *toy
}

func (toyProgram) Name() string { return "toy" }

func (p toyProgram) Open(j *program.Job) (program.Program, error) {
	open, err := p.Method.Open(j)
	return toyRun{open, p.toy}, err
}

// toyRun runs no task once stop was called, so that a training can't end before it hears of it.
type toyRun struct {
	program.Program
	toy *toy
}

func (r toyRun) Run(ctx context.Context, task *program.Task) (method.Sums, error) {
	if r.toy.stopped.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.Program.Run(ctx, task)
}

// TestMethodWithItsOwnOptions: a method needs nothing but its declaration for its options to be
// flags, or options of --x, with help, keys of a job file, part of the job and of the model, and compared when a
// training is continued.
func TestMethodWithItsOwnOptions(t *testing.T) {
	base, err := program.Lookup("mlr")
	if err != nil {
		t.Fatal(err)
	}
	m := &toy{}
	t.Cleanup(registry.Add(m))
	t.Cleanup(program.Add(toyProgram{base, m}))
	t.Chdir(toyFiles(t))
	run := func(ctx context.Context, line string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		code := execute(ctx, strings.Fields(line), strings.NewReader(""), &stdout, &stderr)
		writesFlags(t, []string{line}, stdout.String()+stderr.String())
		return code, stdout.String(), stderr.String()
	}

	_, help, _ := run(t.Context(), "help train --all")
	for _, want := range []string{"--heat NUMBER         how hot: a NUMBER (toy) (default 0.5)", "--x shape=round|square",
		"toy          weights of the weather", "--x toy-layers=N      N layers (toy) (default 3)"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help lacks %q:\n%s", want, help)
		}
	}
	for line, want := range map[string][]string{
		"--method toy --x schedule=parity --x stiffness=full --loss hinge --text --zero-based": {
			"train: --loss hinge: --method toy has softmax: leave it out, or use --method rr-svm, bsvm, td",
			"train: --x schedule means nothing to --method toy: leave it out, or use one of rr-svm, rr-lr, hblr-m1",
			"train: --x stiffness means nothing to --method toy", "train: --text has no indices: leave out --zero-based"},
		"--heat 1 --method td --x prior-shift=0.1 --warm-start x": {"--heat means nothing to --method td: leave it " +
			"out, or use one of toy", "--x prior-shift means nothing to --method td", "--warm-start means nothing"},
		"--method toy --heat 11":      {"train: --heat 11: must be from 0 to 10"},
		"--method toy --x shape=rund": {"train: --x shape=rund: did you mean round?"},
		"--method toy --x toy-layers=1.5": {"train: --x toy-layers=1.5: must be a " +
			"whole number, 0 or more"},
		"--x toy-layers=1.5": {"--x toy-layers means nothing to --method rr-svm: leave it " +
			"out, or use one of toy"},
	} {
		code, _, stderr := run(t.Context(), "train --data train.svm --out none "+line)
		if lines := strings.Split(strings.TrimSpace(stderr), "\n"); code != exitUsage || len(lines) != len(want) {
			t.Errorf("%s: exit status %d: %s", line, code, stderr)
		}
		for _, w := range want {
			if !strings.Contains(stderr, w) {
				t.Errorf("%s: %s\nlacks %q", line, stderr, w)
			}
		}
	}

	job := "data: train.svm\nmethod: toy\nheat: 0.25\nshape: square # as told\ngap: 1e-6\n"
	if err := os.WriteFile("job.yaml", []byte(job), 0o666); err != nil {
		t.Fatal(err)
	}
	const train = "train --job job.yaml --quiet --out "
	if code, _, stderr := run(t.Context(), train+"whole"); code != exitDone {
		t.Fatal(stderr)
	}
	asked := toyOptions{C: 1, Heat: 0.25, Shape: "square", Layers: 3}
	if len(m.seen) == 0 || m.seen[0] != asked {
		t.Errorf("the driver saw %+v, want %+v", m.seen, asked)
	}
	man, err := model.ReadManifest("whole")
	if err != nil {
		t.Fatal(err)
	}
	own := man.Options.Own
	if string(own["heat"]) != "0.25" || string(own["shape"]) != `"square"` || string(own["toy_layers"]) != "3" ||
		own["schedule"] != nil || own["epochs"] != nil {
		t.Errorf("the manifest has %s", own)
	}
	var report map[string]any
	_, stdout, _ := run(t.Context(), train+"whole --json")
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || report["heat"] != 0.25 ||
		report["loss"] != "softmax" || report["C"] != 1.0 || report["schedule"] != nil || report["shape"] != nil {
		t.Errorf("the report is %s (%v)", stdout, err)
	}
	if _, words, _ := run(t.Context(), "info whole"); !strings.Contains(words, "toy, softmax, C 1, bias "+
		"1, heat 0.25, seed 0") {
		t.Errorf("info says %s", words)
	}
	other := "other options (heat 0.25, not 0.75)"
	if code, _, stderr := run(t.Context(), train+"whole --heat 0.75"); code != exitUsage || !strings.Contains(stderr,
		other) {
		t.Errorf("exit status %d: %s", code, stderr)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	m.stop = func() { cancel(jobs.ErrInterrupted) }
	if code, _, stderr := run(ctx, train+"half"); code != exitInterrupted {
		t.Fatalf("exit status %d: %s", code, stderr)
	}
	m.stop = nil
	m.stopped.Store(false)
	if code, _, stderr := run(t.Context(), train+"half --heat 0.75"); code != exitUsage || !strings.Contains(stderr,
		other) {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	m.seen = nil
	if code, _, stderr := run(t.Context(), train+"half"); code != exitDone {
		t.Fatal(stderr)
	}
	on, err := model.ReadManifest("half")
	if err != nil || on.Report.WeightsSHA256 != man.Report.WeightsSHA256 || !slices.Contains(m.seen, asked) {
		t.Errorf("gone on to %s (%v), want %s; the driver saw %+v", on.Report.WeightsSHA256, err, man.Report.WeightsSHA256,
			m.seen)
	}

	for name, want := range map[string]string{"heat": "‹heat=11›: must be from 0 to 10",
		"hat": "no method of this version"} {
		if err := registry.Check(methodtest.Options("toy", name, 11)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a job with %s: %v", name, err)
		}
	}
	toySearched(t, m, run)
}

// toySearched: tune tries the values of the method's own option that are declared, or told, goes
// on with such a search, and writes a job file that train takes.
func toySearched(t *testing.T, m *toy, run func(context.Context, string) (int, string, string)) {
	t.Helper()
	for list, want := range map[string][]string{"": {"0.5", "5"}, " --heat 7,0.25,0.250": {"0.25", "7"}} {
		m.seen = nil
		search := "tune --data train.svm --method toy --C 1 --folds 2 --x shape=square --exhaustive " +
			"--quiet --json --out tuned" + want[0] + list
		code, stdout, stderr := run(t.Context(), search)
		var r tune.Table
		if err := json.Unmarshal([]byte(stdout), &r); code != exitDone || err != nil || len(r.Points) != len(want) {
			t.Fatalf("exit status %d, %v: %s%s", code, err, stdout, stderr)
		}
		for i, p := range r.Points {
			if p.Values["heat"] != want[i] {
				t.Errorf("point %d is %v, want a heat of %s", i, p.Point, want[i])
			}
			heat, _ := strconv.ParseFloat(want[i], 64)
			if !slices.Contains(m.seen, toyOptions{C: 1, Heat: heat, Shape: "square", Layers: 3}) {
				t.Errorf("no driver was made with a heat of %s: %v", want[i], m.seen)
			}
		}
		if !strings.Contains(stdout, `"heat": `+want[1]) {
			t.Errorf("the table has no heat of %s: %s", want[1], stdout)
		}
		job, err := os.ReadFile(r.JobFile)
		if err != nil || !strings.Contains(string(job), "heat: "+r.Options.Values["heat"]+"\n") ||
			!strings.Contains(string(job), "shape: square\n") {
			t.Errorf("the job file is %s (%v)", job, err)
		}
		m.seen = nil
		if _, again, _ := run(t.Context(), search); again != stdout || slices.ContainsFunc(m.seen,
			func(o toyOptions) bool { return o.C != 0 }) {
			t.Errorf("the second run trained %v and gave %s, the first %s", m.seen, again, stdout)
		}
		if code, _, stderr := run(t.Context(), strings.Replace(search, "square", "round", 1)); code != exitUsage ||
			!strings.Contains(stderr, "with other options") {
			t.Errorf("another shape: exit status %d: %s", code, stderr)
		}
		m.seen = nil
		if code, _, stderr := run(t.Context(), "train --quiet --job "+r.JobFile+" --out by"+want[0]); code != exitDone {
			t.Errorf("train by the job file: %s", stderr)
		}
		if len(m.seen) == 0 || m.seen[0].Shape != "square" || strconv.FormatFloat(m.seen[0].Heat, 'g', -1,
			64) != r.Options.Values["heat"] {
			t.Errorf("the job file trains %v", m.seen)
		}
	}
	if code, _, stderr := run(t.Context(), "tune --data train.svm --out none --heat 11 --method toy"); code != exitUsage ||
		!strings.Contains(stderr, "--heat 11: must be from 0 to 10") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
	if code, _, stderr := run(t.Context(), "tune --data train.svm --out none --heat 1 --method td"); code != exitUsage ||
		!strings.Contains(stderr, "--heat means nothing to --method td: leave it out, or use one of toy") {
		t.Errorf("exit status %d: %s", code, stderr)
	}
}

// toyFiles makes a file of one label an instance, in a folder of their own.
func toyFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	for i := range 120 {
		b.WriteString([]string{"a 1:1 2:0.5", "b 2:1 3:0.25", "c 3:1 1:0.125"}[i%3] + " " + []string{"4:1", "5:0.5", "6:0.75",
			"7:1"}[i*i%4] + "\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "train.svm"), []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}
