package mapreduce_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	"taxon/internal/app/engine"
	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	"taxon/internal/hadoop/mapreduce"
	"taxon/internal/jobspec"
	rr "taxon/internal/methods/rr/plan"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
	"taxon/worker"
)

// start brings up an engine, on a backend or (nil) embedded, and closes it behind the test.
func start(t *testing.T, j *jobs.Job, b *mapreduce.Backend,
	wrap ...func(worker.Executor) worker.Executor) *engine.Engine {
	t.Helper()
	c := engine.Config{Slots: 300, ShardBytes: 1 << 30, Open: func(context.Context, *taxonv1.Data) (*dataset.Set,
		error) {
		return j.Set, nil
	}}
	if b != nil {
		c.Backend = b
	}
	for _, w := range wrap {
		c.Wrap = w
	}
	e, err := engine.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

func backend(t *testing.T, dir string, r mapreduce.Runner, change func(*mapreduce.Config)) *mapreduce.Backend {
	t.Helper()
	c := mapreduce.Config{Dir: dir, Runner: r, Maps: 3, Reduces: 2, Pause: time.Millisecond}
	if change != nil {
		change(&c)
	}
	b, err := mapreduce.New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// follow watches a job until it has ended; saw is told of each status.
func follow(t *testing.T, e *engine.Engine, job string, saw func(*taxonv1.JobStatus)) *taxonv1.JobStatus {
	t.Helper()
	stream, err := e.Jobs.Watch(context.Background(), &taxonv1.StatusRequest{Job: job})
	if err != nil {
		t.Fatal(err)
	}
	var last *taxonv1.JobStatus
	for {
		st, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return last
		}
		if err != nil {
			t.Fatal(err)
		}
		if last = st; saw != nil {
			saw(st)
		}
	}
}

// weights is the hash of a finished job's weights.
func weights(t *testing.T, e *engine.Engine, spec *taxonv1.JobSpec, st *taxonv1.JobStatus) string {
	t.Helper()
	if st.GetState() != taxonv1.JobState_JOB_STATE_DONE {
		t.Fatalf("the job ended %v: %s", st.GetState(), st.GetError())
	}
	tree, _, err := jobspec.Tree(spec, false)
	if err != nil {
		t.Fatal(err)
	}
	var n jobs.Nodes
	if err := e.StreamWeights(context.Background(), tree.Len(), st, n.Add); err != nil {
		t.Fatal(err)
	}
	return n.Hash()
}

// train runs a job to its end and tells its weights and status.
func train(t *testing.T, e *engine.Engine, spec *taxonv1.JobSpec) (string, *taxonv1.JobStatus) {
	t.Helper()
	if _, err := e.Jobs.Submit(context.Background(), &taxonv1.SubmitRequest{Job: "j", Spec: spec}); err != nil {
		t.Fatal(err)
	}
	st := follow(t, e, "j", nil)
	return weights(t, e, spec, st), st
}

// alike wants a job's weights and certificate to be those of the embedded training.
func alike(t *testing.T, e *engine.Engine, embedded *engine.Engine, spec *taxonv1.JobSpec) {
	t.Helper()
	want, whole := train(t, embedded, spec)
	got, st := train(t, e, spec)
	same(t, got, want, st, whole)
}

func same(t *testing.T, got, want string, st, whole *taxonv1.JobStatus) {
	t.Helper()
	a, b := st.GetCertificate(), whole.GetCertificate()
	if got != want || a.GetObjective() != b.GetObjective() || a.GetDual() != b.GetDual() ||
		st.GetSweep() != whole.GetSweep() {
		t.Errorf("weights equal: %v; sweep %d at %v, embedded %d at %v", got == want, st.GetSweep(), a, whole.GetSweep(), b)
	}
}

// TestSameBytes: every schedule and method gives the bytes of the embedded training.
func TestSameBytes(t *testing.T) {
	for n, change := range []func(*taxonv1.Options, *jobs.Job){
		func(*taxonv1.Options, *jobs.Job) {},
		func(o *taxonv1.Options, j *jobs.Job) { o.Method, j.Structure = "bsvm", nil },
		func(o *taxonv1.Options, _ *jobs.Job) { o.Method = "rr-lr"; o.Set("loss", "logistic") },
		func(o *taxonv1.Options, _ *jobs.Job) { o.Set("schedule", "parity") },
		func(o *taxonv1.Options, _ *jobs.Job) { o.Set("schedule", "jacobi"); o.Set("bias", 0) },
		func(o *taxonv1.Options, _ *jobs.Job) { hierarchicalBayes(o, "hblr-m2", "twoblock") },
		func(o *taxonv1.Options, _ *jobs.Job) { hierarchicalBayes(o, "hblr-m3", "parity") },
		func(o *taxonv1.Options, _ *jobs.Job) { plain(o, "h-svm", "hinge") },
		func(o *taxonv1.Options, _ *jobs.Job) { plain(o, "h-rls", "square") },
		func(o *taxonv1.Options, _ *jobs.Job) { plain(o, "hm3", "margin") },
	} {
		if testing.Short() && n > 1 {
			continue
		}
		d := data{1, 150, 30, 0}
		j := d.job()
		o := jobs.Defaults()
		o.Set("gap", 0.05)
		o.Set("max_sweeps", 4)
		change(o, j)
		t.Run(fmt.Sprintf("%s %s %s", o.Method, o.Value("schedule"), o.Value("loss")), func(t *testing.T) {
			t.Parallel()
			e := start(t, j, backend(t, filepath.Join(t.TempDir(), "state"), d.local(), nil))
			alike(t, e, start(t, j, nil), j.Spec(o))
		})
	}
}

// plain leaves the options of methods without a schedule.
func plain(o *taxonv1.Options, method, loss string) {
	o.Method = method
	o.Set("loss", loss)
	o.Set("schedule", "")
	o.Set("stiffness", "")
	o.Set("momentum", "")
}

// hierarchicalBayes leaves the options that such a method has.
func hierarchicalBayes(o *taxonv1.Options, method, schedule string) {
	o.Method = method
	o.Set("schedule", schedule)
	o.Set("loss", "")
	o.Set("c", "")
	o.Set("gap", "")
	o.Set("stiffness", "")
	o.Set("momentum", "")
}

// TestSoftmax: methods whose maps are rows, or that take many steps a sweep.
func TestSoftmax(t *testing.T) {
	d := data{8, 600, 30, 1}
	tied := jobs.Defaults()
	hierarchicalBayes(tied, "hblr-m1", "twoblock")
	tied.Set("max_sweeps", 2)
	tied.Set("likelihood", "softmax")
	chains := methodtest.Options("corrmnl", "loss", "softmax", "bias", 1, "max_sweeps", 4, "prune", "empty",
		"iterations", 33, "burn_in", 3, "leapfrog", 2)
	for _, o := range []*taxonv1.Options{
		chains,
		methodtest.Options("mlr", "loss", "softmax", "c", 10, "bias", 1, "gap", 1e-4, "max_sweeps", 6,
			"prune", "empty"), tied,
		methodtest.Options("hiermult", "loss", "crammer-singer", "c", 100, "bias", 1, "gap", 1e-3, "max_sweeps", 3,
			"prune", "empty"),
		methodtest.Options("ot", "loss", "hinge", "c", 100, "bias", 1, "gap", 1e-3, "max_sweeps", 3, "prune", "empty"),
	} {
		j := d.job()
		if o.Method != "mlr" {
			j.Structure = data{8, 600, 30, 0}.job().Structure
		}
		e := start(t, j, backend(t, filepath.Join(t.TempDir(), "state"), d.local(), nil))
		alike(t, e, start(t, j, nil), j.Spec(o))
	}
}

// TestJobs: a sweep is one job, as the REDUCE tasks follow the MAP tasks within it.
func TestJobs(t *testing.T) {
	for _, method := range [][2]string{{"rr-svm", "hinge"}, {"rr-lr", "logistic"}} {
		d := data{2, 200, 40, 0}
		var runs, reduced atomic.Int64
		r := counted{d.local(), func(j *mapreduce.Job) {
			runs.Add(1)
			if len(j.Keys) > 0 {
				reduced.Add(1)
			}
		}}
		j := d.job()
		e := start(t, j, backend(t, filepath.Join(t.TempDir(), "state"), r, nil))
		o := jobs.Defaults()
		o.Method = method[0]
		o.Set("loss", method[1])
		o.Set("gap", 1e-6)
		o.Set("max_sweeps", 5)
		_, st := train(t, e, j.Spec(o))
		if runs.Load() != int64(st.GetSweep())+1 || reduced.Load() != int64(st.GetSweep()) {
			t.Errorf("%s: %d jobs, %d with reducers, for %d sweeps and the weights", method[0], runs.Load(), reduced.Load(),
				st.GetSweep())
		}
	}
}

type counted struct {
	*mapreduce.Local
	saw func(*mapreduce.Job)
}

func (c counted) Run(ctx context.Context, j *mapreduce.Job) error {
	c.saw(j)
	return c.Local.Run(ctx, j)
}

// TestAttempts: tasks that run twice, are killed before, while and after they work, and
// finish in any order change nothing.
func TestAttempts(t *testing.T) {
	d := data{3, 200, 40, 0}
	r := d.local()
	var mu sync.Mutex
	n, killed := 0, 0
	r.Between = func(ctx context.Context, kind string, task, attempt int, cmd *exec.Cmd, run func() error) error {
		mu.Lock()
		n++
		turn := n % 4
		mu.Unlock()
		if attempt > 0 {
			return run()
		}
		switch turn {
		case 0: // killed once it has begun to say something, or at its end
			out := cmd.Stderr
			cmd.Stderr = &killer{cmd: cmd, next: out}
			err := run()
			mu.Lock()
			killed++
			mu.Unlock()
			if err == nil {
				err = errors.New("killed as it ended")
			}
			return err
		case 1: // ran to its end, and nobody heard of it
			if err := run(); err != nil {
				return err
			}
			return errors.New("its node is gone")
		}
		return run()
	}
	j := d.job()
	e := start(t, j, backend(t, filepath.Join(t.TempDir(), "state"), r, func(c *mapreduce.Config) { c.Maps = 7 }))
	o := jobs.Defaults()
	o.Set("gap", 1e-4)
	o.Set("max_sweeps", 6)
	alike(t, e, start(t, j, nil), j.Spec(o))
	if killed == 0 {
		t.Error("no task was killed")
	}
}

// killer kills a process when it writes.
type killer struct {
	cmd  *exec.Cmd
	next io.Writer
}

func (k *killer) Write(p []byte) (int, error) {
	_ = k.cmd.Process.Kill()
	return k.next.Write(p)
}

// TestGuard: a step that is done again, as the objective rose, finds the contributions of
// the sweep in the folder, or has them made anew.
func TestGuard(t *testing.T) {
	d := data{4, 150, 30, 0}
	j := d.job()
	o := jobs.Defaults()
	o.Set("gap", 1e-7)
	o.Set("max_sweeps", 6)
	want, whole := train(t, start(t, j, nil, rising), j.Spec(o))
	for _, keep := range []bool{true, false} {
		plain := 0
		dir := filepath.Join(t.TempDir(), "state")
		r := counted{d.local(), func(j *mapreduce.Job) {
			if len(j.Keys) > 0 {
				return
			}
			plain++
			if found, _ := filepath.Glob(filepath.Join(dir, "steps", "*", "*-v-*")); !keep {
				for _, f := range found {
					if err := os.Remove(f); err != nil {
						t.Error(err)
					}
				}
			} else if plain == 1 && len(found) == 0 {
				t.Error("no contributions were kept")
			}
		}}
		e := start(t, j, backend(t, dir, r, nil), rising)
		got, st := train(t, e, j.Spec(o))
		same(t, got, want, st, whole)
		if made := st.GetRemade() > 0; plain < 2 || made == keep {
			t.Errorf("%d jobs without reducers, contributions made again: %v", plain, made)
		}
	}
}

// rising lets the objective rise in sweep 4.
func rising(x worker.Executor) worker.Executor { return &risen{x} }

type risen struct{ worker.Executor }

func (r *risen) Run(ctx context.Context, j *taxonv1.JobResult, l *taxonv1.Lease) (*taxonv1.Sums, worker.Stats, error) {
	sums, stats, err := r.Executor.Run(ctx, j, l)
	var m rr.Map
	if l.GetOp() == rr.OpMap && method.Decode(l.GetParams(), &m) == nil && m.Price && l.GetSweep() == 4 {
		sums.Values[rr.SumPrimal] *= 10
	}
	return sums, stats, err
}

// TestRestart: a driver that ends in mid-training continues from the last whole sweep, and
// what it left half done is gone.
func TestRestart(t *testing.T) {
	d := data{5, 200, 40, 0}
	j := d.job()
	o := jobs.Defaults()
	o.Set("gap", 1e-7)
	o.Set("max_sweeps", 7)
	spec := j.Spec(o)
	want, whole := train(t, start(t, j, nil), spec)
	dir := filepath.Join(t.TempDir(), "state")
	jobsRun := 0
	ctx, stop := context.WithCancel(t.Context())
	r := counted{d.local(), func(*mapreduce.Job) {
		if jobsRun++; jobsRun == 4 {
			stop()
		}
	}}
	first := start(t, j, backend(t, dir, stopping{r, ctx}, nil))
	if _, err := first.Jobs.Submit(t.Context(), &taxonv1.SubmitRequest{Job: "j", Spec: spec}); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := engine.LoadState(filepath.Join(dir, "state"))
	if err != nil || c == nil {
		t.Fatal(c, err)
	}
	second := start(t, j, backend(t, dir, d.local(), nil))
	if _, err := second.Resume(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	sweeps := uint32(0)
	st := follow(t, second, "j", func(st *taxonv1.JobStatus) {
		if sweeps == 0 {
			sweeps = st.GetSweep()
		}
	})
	if sweeps < 2 {
		t.Errorf("it went on behind sweep %d", sweeps)
	}
	same(t, weights(t, second, spec, st), want, st, whole)
	names, err := fs.ReadDirNames(filepath.Join(dir, "steps"))
	if err != nil || len(names) > 9 {
		t.Errorf("steps %v are left (%v)", names, err)
	}
	if names, err := fs.ReadDirNames(filepath.Join(dir, "runs")); err == nil && len(names) > 0 {
		t.Errorf("runs %v are left", names)
	}
}

// stopping is a runner that ends with a context.
type stopping struct {
	counted
	ctx context.Context
}

func (s stopping) Run(ctx context.Context, j *mapreduce.Job) error {
	both, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	return s.counted.Run(both, j)
}

// TestFailures: a job that fails is tried again, a bounded number of times; what the user
// has to fix ends the training at once.
func TestFailures(t *testing.T) {
	d := data{6, 100, 20, 0}
	j := d.job()
	o := jobs.Defaults()
	o.Set("gap", 0.1)
	refuse := fs.Inputf("queue", 0, "does not exist")
	for name, c := range map[string]struct {
		fail  func(n int) error
		want  string
		least int
		most  int
	}{
		"now and then": {func(n int) error {
			if n%2 == 0 {
				return errors.New("lost")
			}
			return nil
		}, "", 2, 100},
		"away for a while": {func(n int) error {
			if n > 1 && n < 10 {
				return refuse
			}
			return nil
		}, "", 10, 100},
		"always":  {func(int) error { return errors.New("no luck") }, "no luck", 3, 3},
		"refused": {func(int) error { return refuse }, "queue: does not exist", 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			b := backend(t, filepath.Join(t.TempDir(), "state"), failing{d.local(), func() error { n++; return c.fail(n) }}, nil)
			e := start(t, j, b)
			spec := j.Spec(o)
			if _, err := e.Jobs.Submit(t.Context(), &taxonv1.SubmitRequest{Job: "j", Spec: spec}); err != nil {
				t.Fatal(err)
			}
			st := follow(t, e, "j", nil)
			if (st.GetState() == taxonv1.JobState_JOB_STATE_DONE) != (c.want == "") || !strings.Contains(st.GetError(), c.want) {
				t.Errorf("the job ended %v: %s", st.GetState(), st.GetError())
			}
			if n < c.least || n > c.most {
				t.Errorf("%d jobs", n)
			}
			if refused := b.Refused(); (refused != nil) != (name == "refused") {
				t.Errorf("refused: %v", refused)
			}
		})
	}
}

type failing struct {
	*mapreduce.Local
	fail func() error
}

func (f failing) Run(ctx context.Context, j *mapreduce.Job) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.Local.Run(ctx, j)
}

// TestCancelled: a cancelled training leaves a checkpoint.
func TestCancelled(t *testing.T) {
	d := data{7, 300, 40, 0}
	j := d.job()
	o := jobs.Defaults()
	o.Set("gap", 1e-9)
	dir := filepath.Join(t.TempDir(), "state")
	e := start(t, j, backend(t, dir, d.local(), nil))
	if _, err := e.Jobs.Submit(t.Context(), &taxonv1.SubmitRequest{Job: "j", Spec: j.Spec(o)}); err != nil {
		t.Fatal(err)
	}
	once := sync.Once{}
	st := follow(t, e, "j", func(st *taxonv1.JobStatus) {
		if st.GetSweep() >= 2 {
			once.Do(func() {
				if _, err := e.Jobs.Cancel(t.Context(), &taxonv1.CancelRequest{Job: "j"}); err != nil {
					t.Error(err)
				}
			})
		}
	})
	if st.GetState() != taxonv1.JobState_JOB_STATE_CANCELLED || st.GetError() != "" {
		t.Errorf("the job ended %v: %s", st.GetState(), st.GetError())
	}
	if c, err := engine.LoadState(filepath.Join(dir, "state")); c == nil || err != nil {
		t.Errorf("checkpoint %v, %v", c, err)
	}
}
