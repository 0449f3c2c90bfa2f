package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/cluster/jobs"
	taxonfs "taxon/internal/fs"
	"taxon/internal/ui/console"
	"taxon/internal/ui/option"
	"taxon/worker/program"
)

// newTryCmd is a verb with every kind of flag, whose run is up to the test.
func newTryCmd(run func(cmd *cobra.Command) error) verb {
	return func(a *app) *cobra.Command {
		cmd := &cobra.Command{Use: "try", GroupID: groupOther, Short: "try", Example: "taxon try\ntaxon try",
			RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd) }}
		flagGroup(cmd, "Input", func(f *pflag.FlagSet) {
			f.String("data", "", "input")
			f.String("hierarchy", "", "tree")
			f.Int("top", 1, "how many")
			f.Bool("text", false, "text")
			f.Duration("max-time", 0, "cap")
			floatFlag(f, new(float64), "C", 1, "cost", above0)
			floatFlag(f, new(float64), "gap", 0.01, "tolerance", above0to1)
			floatFlag(f, new(float64), "bias", 1, "bias", atLeast0)
			intFlag(f, new(int), "threads", 1, 1, 64, "threads")
			choiceFlag(f, new(string), "loss", "hinge", []string{"hinge", "squared-hinge"}, "loss")
			bytesFlag(f, new(int64), "memory", 0, "bound")
		})
		return cmd
	}
}

// runVerb is execute with one more verb, in the place of one of its name.
func runVerb(ctx context.Context, v verb, args ...string) (code int, stdout, stderr string) {
	var out, errw bytes.Buffer
	more := named{v(&app{}).Name(), v}
	others := slices.DeleteFunc(verbs(), func(o named) bool { return o.name == more.name })
	code = executeVerbs(ctx, append(others, more), args, strings.NewReader(""), &out, &errw)
	return code, out.String(), errw.String()
}

func TestCommandLineErrors(t *testing.T) {
	ok := newTryCmd(func(*cobra.Command) error { return nil })
	for _, c := range []struct{ args, want string }{
		{"tyr", "unknown verb \"tyr\": did you mean `taxon try`?"},
		{"ingset --data x", "unknown verb \"ingset\": did you mean `taxon ingest`?"},
		{"frobnicate", "unknown verb \"frobnicate\": see `taxon help`"},
		{"--quiet frobnicate", "unknown verb \"frobnicate\": see `taxon help`"},
		{"help frobnicate", "unknown verb \"frobnicate\": see `taxon help`"},
		{"--jsno", "unknown flag --jsno: did you mean --json?"},
		{"try --heirarchy x", "try: unknown flag --heirarchy: did you mean --hierarchy?"},
		{"try --c 1", "try: unknown flag --c: did you mean --C?"},
		{"try --frobnicate", "try: unknown flag --frobnicate: see `taxon help try`"},
		{"try -C 1", "try: unknown flag -C: flags have two dashes, see `taxon help try`"},
		{"try --data", "try: flag --data needs a value"},
		{"try file.svm", "try: unexpected argument \"file.svm\": files are named by flags, see `taxon help try`"},
		{"try --C 0", "try: --C 0: must be above 0"},
		{"try --C -1", "try: --C -1: must be above 0"},
		{"try --C NaN", "try: --C NaN: must be a finite number"},
		{"try --C 1e999", "try: --C 1e999: must be a finite number"},
		{"try --C one", "try: --C one: must be a finite number"},
		{"try --C=", "try: --C \"\": must be a finite number"},
		{"try --gap 0", "try: --gap 0: must be above 0 and at most 1"},
		{"try --gap 1.5", "try: --gap 1.5: must be above 0 and at most 1"},
		{"try --bias -0.5", "try: --bias -0.5: must be 0 or more"},
		{"try --threads 0", "try: --threads 0: must be from 1 to 64"},
		{"try --threads 1.5", "try: --threads 1.5: must be a whole number"},
		{"try --top x", "try: --top x: must be a whole number"},
		{"try --text=maybe", "try: --text maybe: must be true or false"},
		{"try --max-time 90", "try: --max-time 90: must be a duration such as 90s, 10m or 2h"},
		{"try --loss hing", "try: --loss hing: did you mean hinge?"},
		{"try --loss logistic", "try: --loss logistic: must be one of hinge, squared-hinge"},
		{"try --memory lots", "try: --memory lots: must be a size such as 512MiB or 4GB"},
		{"try ---data x", "try: malformed flag ---data: see `taxon help try`"},
		{"ingest", "ingest: flags --data and --out are required: see `taxon help ingest`"},
		{"ingest --data x", "ingest: flag --out is required: see `taxon help ingest`"},
		{"completion", "completion: name a shell: bash, zsh, fish or powershell"},
		{"completion bsh", "completion: unknown shell \"bsh\": bash, zsh, fish and powershell are known"},
	} {
		t.Run(c.args, func(t *testing.T) {
			code, stdout, stderr := runVerb(t.Context(), ok, strings.Split(c.args, " ")...)
			if code != exitUsage {
				t.Errorf("exit status %d, want %d", code, exitUsage)
			}
			if want := "taxon: " + c.want + "\n"; stderr != want {
				t.Errorf("stderr\n%swant\n%s", stderr, want)
			}
			if stdout != "" {
				t.Errorf("stdout %q, want nothing", stdout)
			}
		})
	}
}

func TestSubVerbErrors(t *testing.T) {
	group := func(a *app) *cobra.Command {
		cmd := &cobra.Command{Use: "cluster", GroupID: groupCluster}
		up := &cobra.Command{Use: "up", RunE: func(*cobra.Command, []string) error { return nil }}
		flagGroup(up, "Size", func(f *pflag.FlagSet) { f.String("dir", "", "where") })
		require(up, "dir")
		cmd.AddCommand(up, &cobra.Command{Use: "down", RunE: func(*cobra.Command, []string) error { return nil }})
		return cmd
	}
	for _, c := range []struct{ args, want string }{
		{"cluster", "cluster: say which: down, up"},
		{"cluster dwon", "cluster: unknown verb \"dwon\": did you mean `taxon cluster down`?"},
		{"cluster sideways", "cluster: unknown verb \"sideways\": there are down, up"},
		{"cluster up", "cluster up: flag --dir is required: see `taxon help cluster up`"},
		{"cluster up --dri x", "cluster up: unknown flag --dri: did you mean --dir?"},
		{"cluster up x", "cluster up: unexpected argument \"x\": files are named by flags, see `taxon help cluster up`"},
		{"help cluster sideways", "help: cluster has no verb \"sideways\": see `taxon help cluster`"},
		{"help cluster up down", "help: shows one verb at a time: `taxon help cluster up`"},
	} {
		code, stdout, stderr := runVerb(t.Context(), group, strings.Split(c.args, " ")...)
		if want := "taxon: " + c.want + "\n"; code != exitUsage || stderr != want || stdout != "" {
			t.Errorf("%s: exit status %d, stdout %q, stderr %q, want %q", c.args, code, stdout, stderr, want)
		}
	}
	if code, stdout, _ := runVerb(t.Context(), group, "help", "cluster", "up"); code != 0 || !strings.Contains(stdout,
		"--dir string") {
		t.Errorf("help of a sub-verb: exit status %d\n%s", code, stdout)
	}
}

func TestCompletion(t *testing.T) {
	ok := newTryCmd(func(*cobra.Command) error { return nil })
	for args, want := range map[string]string{
		"__complete try --loss s": "squared-hinge\n",
		"__complete tr":           "try\ttry\n",
		"__complete help ver":     "version\tthe version",
		"__complete try --hier":   "--hierarchy\ttree\n",
	} {
		code, stdout, _ := runVerb(t.Context(), ok, strings.Split(args, " ")...)
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("%s: exit status %d, %q lacks %q", args, code, stdout, want)
		}
	}
}

func TestExitStatuses(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	_, notThere := os.Open(missing)
	input := &taxonfs.InputError{Path: "train.svm", Line: 17, Msg: "feature index 0"}
	interrupted, cancel := context.WithCancelCause(t.Context())
	cancel(jobs.ErrInterrupted)
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		code int
		line string
	}{
		{"no error", nil, nil, 0, ""},
		{"a failure", nil, errors.New("store shard 3: checksum mismatch"), 1, "store shard 3: checksum mismatch"},
		{"usage", nil, option.Errorf("--rank needs --pred"), 2, "--rank needs --pred"},
		{"wrapped usage", nil, fmt.Errorf("eval: %w", option.Errorf("no rows")), 2, "eval: no rows"},
		{"input", nil, fmt.Errorf("read: %w", input), 2, "read: train.svm:17: feature index 0"},
		{"missing file", nil, notThere, 2, missing + ": no such file or directory"},
		{"wrapped missing file", nil, fmt.Errorf("%s: %w", missing, notThere), 2, missing + ": no such file or directory"},
		{"unwritable", nil, &fs.PathError{Op: "mkdir", Path: "/out", Err: syscall.EACCES}, 2, "/out: permission denied"},
		{"full disk", nil, &fs.PathError{Op: "write", Path: "m/part", Err: syscall.ENOSPC}, 1,
			"m/part: no space left on device"},
		{"rename", nil, &os.LinkError{Op: "rename", Old: "a", New: "b", Err: syscall.ENOSPC}, 1,
			"b: no space left on device"},
		{"gap", nil, exitf(exitGap, "stopped at 5 sweeps, gap 0.3"), 3, "stopped at 5 sweeps, gap 0.3"},
		{"signal", interrupted, fmt.Errorf("ingest: %w", context.Canceled), 130, "interrupted"},
		{"signal, behind a service", interrupted, fmt.Errorf("train: %w", status.Error(codes.Canceled, "gone")), 130,
			"interrupted"},
		{"signal, worded", interrupted, jobs.Interruptedf("interrupted: resume by running it again"), 130,
			"interrupted: resume by running it again"},
		{"cancelled otherwise", nil, context.Canceled, 1, "context canceled"},
		{"many lines", nil, errors.New("one\n\ttwo\r\n\x1b[31mred"), 1, "one; two; ?[31mred"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			code, _, stderr := runVerb(ctx, newTryCmd(func(*cobra.Command) error { return c.err }), "try")
			want := ""
			if c.line != "" {
				want = "taxon: " + c.line + "\n"
			}
			if code != c.code || stderr != want {
				t.Errorf("exit status %d, stderr %q, want %d, %q", code, stderr, c.code, want)
			}
		})
	}
}

func TestPanicIsOneLine(t *testing.T) {
	code, _, stderr := runVerb(t.Context(), newTryCmd(func(*cobra.Command) error {
		var none []int
		_ = none[len(none)]
		return nil
	}), "try")
	if code != exitFailed {
		t.Errorf("exit status %d, want %d", code, exitFailed)
	}
	if !strings.HasPrefix(stderr, "taxon: internal error: runtime error: index out of range [0] with "+
		"length 0 (errors_test.go:") ||
		!strings.HasSuffix(stderr, "); please report\n") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("stderr %q", stderr)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

func TestFullStandardOutput(t *testing.T) {
	var errw bytes.Buffer
	code := execute(t.Context(), []string{"version"}, strings.NewReader(""), fullDisk{}, &errw)
	if want := "taxon: standard output: the disk is full: free some space and run " +
		"the command again\n"; code != exitFailed || errw.String() != want {
		t.Errorf("exit status %d, stderr %q, want %d, %q", code, errw.String(), exitFailed, want)
	}
}

// Each verb's help holds what the contract promises, and its examples parse.
func TestHelp(t *testing.T) {
	a := &app{ui: console.New(&bytes.Buffer{}), stdout: &bytes.Buffer{}}
	for _, v := range verbs() {
		if got := v.build(a).Name(); got != v.name {
			t.Errorf("verb %s is listed as %s", got, v.name)
		}
	}
	root := newRootCmd(a, verbs())
	for _, cmd := range root.Commands() {
		t.Run(cmd.Name(), func(t *testing.T) {
			var out bytes.Buffer
			writeHelp(&out, console.Style{}, cmd)
			for _, line := range strings.Split(out.String(), "\n") {
				if len([]rune(line)) > console.Width && !strings.Contains(line, "taxon ") {
					t.Errorf("wider than %d columns: %q", console.Width, line)
				}
			}
			if cmd.Long == "" || strings.Contains(strings.TrimSpace(cmd.Long), "\n") {
				t.Error("Long is not one paragraph")
			}
			if cmd.GroupID == "" {
				t.Error("belongs to no group")
			}
			examples := strings.Split(cmd.Example, "\n")
			if len(examples) != 2 {
				t.Errorf("%d examples, want 2", len(examples))
			}
			cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
				if groupOf(f) == otherFlags && f.Name != "help" && root.PersistentFlags().Lookup(f.Name) == nil {
					t.Errorf("flag --%s is in no group", f.Name)
				}
			})
			for _, e := range examples {
				checkExample(t, e)
			}
		})
	}
}

// checkExample parses one example as a command line; pipes and redirections are cut.
func checkExample(t *testing.T, line string) {
	t.Helper()
	if cmd, _, ok := strings.Cut(line, "<("); ok && strings.HasPrefix(cmd, "source") {
		return
	}
	if i := strings.Index(line, "taxon "); i >= 0 {
		line = line[i:]
	}
	if i := strings.IndexAny(line, "|>"); i >= 0 {
		line = line[:i]
	}
	args := strings.Fields(line)[1:]
	root := newRootCmd(&app{ui: console.New(&bytes.Buffer{})}, verbs())
	cmd, rest, err := root.Find(args)
	if err != nil || cmd == root {
		t.Errorf("%q: names no verb: %v", line, err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("%q: %v", line, err)
		return
	}
	if err := checkRequired(cmd); err != nil {
		t.Errorf("%q: %v", line, err)
	}
}

// TestMarkedOptions: a program that asks for it gets options marked, and can name them as its user does.
func TestMarkedOptions(t *testing.T) {
	t.Setenv(envMarkOptions, "1")
	for line, want := range map[string]string{
		"train --data x --out m --method mlr --x schedule=jacobi": "taxon: train: ‹schedule› means nothing to ‹method=mlr›: ",
		"train --data x --out m --C -1":                           "taxon: train: ‹C=-1›: must be above 0\n",
	} {
		t.Setenv(envMarkOptions, "1")
		var errw bytes.Buffer
		if execute(t.Context(), strings.Fields(line), nil, io.Discard, &errw); !strings.HasPrefix(errw.String(), want) {
			t.Errorf("%s: %s", line, errw.String())
		}
		if os.Getenv(envMarkOptions) != "" {
			t.Error("processes that taxon starts mark options too")
		}
	}
}

func TestHelpGoesToStdout(t *testing.T) {
	for _, args := range [][]string{nil, {"help"}, {"--help"}, {"help", "version"}, {"version", "--help"},
		{"completion", "bash"}} {
		var out, errw bytes.Buffer
		code := execute(t.Context(), args, strings.NewReader(""), &out, &errw)
		if code != 0 || out.Len() == 0 || errw.Len() != 0 {
			t.Errorf("%q: exit status %d, %d bytes on stdout, stderr %q", args, code, out.Len(), errw.String())
		}
	}
}

func TestVersion(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}} {
		code, stdout, _ := runVerb(t.Context(), newTryCmd(nil), args...)
		if code != 0 || !strings.HasPrefix(stdout, "taxon ") || !strings.Contains(stdout, "go1.") {
			t.Errorf("%q: exit status %d, stdout %q", args, code, stdout)
		}
	}
	code, stdout, _ := runVerb(t.Context(), newTryCmd(nil), "version", "--json")
	var r versionReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 || r.Go == "" || len(r.Kernels) == 0 {
		t.Errorf("exit status %d, %v, %+v", code, err, r)
	}
}

// A kernel that is not there is found before any work is done.
func TestUnknownKernel(t *testing.T) {
	t.Setenv(program.KernelVariable, "mmx")
	code, stdout, stderr := runVerb(t.Context(), newTryCmd(nil), "version")
	if code != 2 || stdout != "" || !strings.HasPrefix(stderr, `taxon: TAXON_KERNEL: unknown kernel "mmx"`) ||
		strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestSignals(t *testing.T) {
	killed := make(chan struct{}, 1)
	ctx, stop := withSignals(t.Context(), func() {
		select {
		case killed <- struct{}{}:
		default:
		}
	})
	defer stop()
	began := time.Now()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), jobs.ErrInterrupted) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
	select {
	case <-killed:
		t.Error("killed at the first signal")
	default:
	}
	again := time.NewTicker(signalsApart / 4)
	defer again.Stop()
	for {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		select {
		case <-killed:
			if took := time.Since(began); took < signalsApart {
				t.Errorf("killed %v after the first signal: a doubled one counts once", took)
			}
			return
		case <-again.C:
		}
	}
}

// TestEndsWithStdin: a process whose caller holds its standard input goes on while it does,
// whatever is written there, and ends as at a signal when the caller is gone.
func TestEndsWithStdin(t *testing.T) {
	r, w := io.Pipe()
	ctx := endsWith(t.Context(), r, func() {})
	if _, err := w.Write([]byte("still here")); err != nil { // it returns when all has been read
		t.Fatal(err)
	}
	if err := ctx.Err(); err != nil {
		t.Errorf("it ended while its caller was there: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), jobs.ErrInterrupted) {
		t.Errorf("cause %v", context.Cause(ctx))
	}
}

// TestAllViolationsAtOnce: values that flags can't have, options that the method lacks, and
// flags that exclude each other are told together, a line each: on the command line and in a
// job file, with its lines. What depends on a method that is not known is not told.
func TestAllViolationsAtOnce(t *testing.T) {
	job := writeText(t, "job.yaml", "data: [x]\ngap: 2\nmethod: td\nseed: -1\nanchor: 0.1\n")
	bad := writeText(t, "bad.yaml", "metod: td\nC: -1\nanchor: 0.1\nloss: logistic\n")
	unfit := writeText(t, "unfit.yaml", "data: [x]\ntolerance: 3\nschedule: foo\nC: -1\nmethod: td\n")
	vars := map[string]string{"JOB": job, "BAD": bad, "UNFIT": unfit}
	fits := " means nothing to --method td: leave it out, or use one of rr-svm, rr-lr"
	for line, want := range map[string][]string{
		"train --data x --out o1 --gap 0 --max-sweeps -1 --max-time -1 --seed -1 --threads -1": {
			"train: --gap 0: must be above 0 and at most 1", "train: --max-sweeps -1: must be a whole number, 0 or more",
			"train: --max-time -1: must be 0 or more", "train: --seed -1: must be a whole number, 0 or more",
			"train: --threads -1: must be from 0 to 32767"},
		"train --data x --data y --out o1 --method td --x anchor=0.1 --x colouring=dsatur --C -1": {
			"train: --C -1: must be above 0", "train: --x anchor" + fits, "train: --x colouring" + fits},
		"train --data x --out o1 --x tolerance=3 --C -1 --method td --x schedule=foo": {
			"train: --C -1: must be above 0", "train: --x schedule" + fits, "train: --x tolerance means nothing to " +
				"--method td: " +
				"leave it out, or use one of hblr-m1"},
		"submit --data x --method mlr --x schedule=foo": {"submit: --x schedule means nothing to --method mlr: leave it " +
			"out, or use one of rr-svm"},
		"train --data x --out o1 --method tdd --x tolerance=3": {"train: --method tdd: did you mean td?",
			"train: --x tolerance=3: must be above 0 and at most 1"},
		"train --out o1 --job $UNFIT": {unfit + ":4: train: --C -1: must be above 0",
			"train: --x schedule" + fits, "train: --x tolerance means nothing to --method td"},
		"train --data x --out o1 --C -1 --hierarchy h --graph g --C -2": {
			"train: --C -1: must be above 0", "train: --C -2: must be above 0",
			"train: --hierarchy and --graph: a training has one structure; give one of them"},
		"train --data x --out o1 --loss logistic --C -1 --method tdd": {"train: --C -1: must be above 0",
			"train: --method tdd: did you mean td?"},
		"train --data x --out o1 --graph= --hierarchy= --test s3://x": {`train: --hierarchy "": name a file`,
			`train: --graph "": name a file`, "train: --test s3://x: s3://"},
		"train --data x --out o1 --metod td --C -1": {"train: unknown flag --metod: " +
			"did you mean --method?"},
		"train --data x --out o1 --C -1 --metod td --x anchor=1": {"train: --C -1: must be above 0",
			"train: unknown flag --metod: did you mean --method?"},
		"submit --data x --C -1 --replicas 9 --method td --x anchor=1": {
			"submit: --C -1: must be above 0", "submit: --replicas 9: must be from 1 to 8", "submit: --x anchor" + fits},
		"tune --data - --out o1 --folds 1 --C 0": {
			"tune: --folds 1: must be from 2 to 100", "tune: --C 0: must be above 0", "tune: --data -: a search that is gone " +
				"on with reads the data again: give a file"},
		"train --out o1 --job $JOB": {job + ":2: train: --gap 2: must be " +
			"above 0 and at most 1", job + ":4: train: --seed -1: must be a whole number, 0 or more", "train: --x " +
			"anchor" + fits},
		"train --out o1 --job $BAD": {bad + `:1: unknown flag "metod": did you mean method?`,
			bad + ":2: train: --C -1: must be above 0"},
		"train --out o1 --job $JOB --loss logistic --threads none": {"train: --threads none: must be a whole number"},
	} {
		code, _, stderr := runTaxon(t, "", line, vars)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		if code != exitUsage || len(lines) != len(want) {
			t.Errorf("%s: exit status %d, %q, want %q", line, code, lines, want)
			continue
		}
		for i, l := range lines {
			if !strings.HasPrefix(strings.TrimPrefix(l, "taxon: "), want[i]) {
				t.Errorf("%s: %q, want %q", line, l, want[i])
			}
		}
	}
}
