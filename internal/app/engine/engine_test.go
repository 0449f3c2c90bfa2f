package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"taxon/internal/data/dataset"
	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
	"taxon/worker"
	"taxon/worker/program"
)

// TestMain checks that Close leaves no goroutine behind, in any test.
func TestMain(m *testing.M) {
	// heaps are small here: the collector would run all the time
	debug.SetGCPercent(400)
	goleak.VerifyTestMain(m)
}

// start brings up an engine for a job's data and closes it behind the test.
func start(t *testing.T, j *jobs.Job, c Config) *Engine {
	t.Helper()
	c.Open = func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return j.Set, nil }
	c.ShardBytes = 1 << 30
	e, err := Start(c)
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

// follow watches a job until it has ended; saw is told of each status.
func follow(t *testing.T, e *Engine, job string, saw func(*taxonv1.JobStatus)) *taxonv1.JobStatus {
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
		last = st
		if saw != nil {
			saw(st)
		}
	}
}

// weights reads a finished job's weights.
func weights(t *testing.T, e *Engine, spec *taxonv1.JobSpec, st *taxonv1.JobStatus) string {
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
	if len(n.Columns) != tree.Len() {
		t.Fatalf("weights of %d nodes, the tree has %d", len(n.Columns), tree.Len())
	}
	return n.Hash()
}

func submit(t *testing.T, e *Engine, spec *taxonv1.JobSpec) {
	t.Helper()
	if _, err := e.Jobs.Submit(context.Background(), &taxonv1.SubmitRequest{Job: "j", Spec: spec}); err != nil {
		t.Fatal(err)
	}
}

// train runs a job to its end.
func train(t *testing.T, j *jobs.Job, spec *taxonv1.JobSpec, c Config) (string, *taxonv1.JobStatus) {
	t.Helper()
	e := start(t, j, c)
	submit(t, e, spec)
	st := follow(t, e, "j", nil)
	return weights(t, e, spec, st), st
}

// TestSameWeights: the weights depend on data, options and seed alone, for every schedule
// and method: not on slots, shards or what the store is made of.
func TestSameWeights(t *testing.T) {
	j := jobs.Small(1, 150, 30)
	for n, change := range []func(*taxonv1.Options){
		func(*taxonv1.Options) {},
		func(o *taxonv1.Options) { o.Set("stiffness", "full"); o.Set("loss", "squared-hinge") },
		func(o *taxonv1.Options) { o.Set("schedule", "parity") },
		func(o *taxonv1.Options) { o.Set("schedule", "colour"); o.Set("bias", 0) },
		func(o *taxonv1.Options) { o.Set("schedule", "jacobi") },
		func(o *taxonv1.Options) { o.Set("prune", "none"); o.Set("momentum", "none") },
	} {
		if testing.Short() && n > 2 {
			continue
		}
		o := jobs.Defaults()
		o.Set("gap", 0.05)
		o.Set("max_sweeps", 16)
		change(o)
		t.Run(fmt.Sprintf("%s %s %s", o.Value("schedule"), o.Value("loss"), o.Value("prune")), func(t *testing.T) {
			spec := j.Spec(o)
			want, st := train(t, j, spec, Config{Slots: 1, Shards: 1})
			if g := st.GetCertificate().GetGap(); g < 0 || g > 0.5 || st.GetCertificate().GetObjective() <= 0 {
				t.Errorf("certificate %+v", st.GetCertificate())
			}
			for _, c := range []Config{{Slots: 3, Shards: 5}, {Slots: 2, Shards: 2, BadgerDir: t.TempDir()}} {
				got, again := train(t, j, spec, c)
				if got != want {
					t.Errorf("%d slots, %d shards: other weights", c.Slots, c.Shards)
				}
				if again.GetCertificate().GetObjective() != st.GetCertificate().GetObjective() ||
					again.GetSweep() != st.GetSweep() {
					t.Errorf("%d slots, %d shards: %v, want %v", c.Slots, c.Shards, again.GetCertificate(), st.GetCertificate())
				}
			}
		})
	}
}

// TestFlat: without a hierarchy each class is its own problem.
func TestFlat(t *testing.T) {
	j := jobs.Small(2, 200, 30)
	j.Structure = nil
	o := jobs.Defaults()
	o.Method = "bsvm"
	spec := j.Spec(o)
	a, st := train(t, j, spec, Config{Slots: 1, Shards: 1})
	b, _ := train(t, j, spec, Config{Slots: 2, Shards: 3})
	if a != b || st.GetStoppedBy() != "gap" || st.GetCertificate().GetGap() > 1e-3 {
		t.Errorf("weights equal: %v; %s at %v", a == b, st.GetStoppedBy(), st.GetCertificate())
	}
}

// TestSeeds: another seed takes another path to within the gap of the same optimum.
func TestSeeds(t *testing.T) {
	j := jobs.Small(3, 200, 30)
	o := jobs.Defaults()
	a, sa := train(t, j, j.Spec(o), Config{})
	other := jobs.Defaults()
	other.Set("seed", 2)
	b, sb := train(t, j, j.Spec(other), Config{})
	if a == b {
		t.Error("two seeds give equal bits")
	}
	pa, pb := sa.GetCertificate(), sb.GetCertificate()
	if pa.GetObjective() < pb.GetDual() || pb.GetObjective() < pa.GetDual() {
		t.Errorf("certificates contradict one another: %v, %v", pa, pb)
	}
}

// interrupted trains until a checkpoint is there, cancels, and returns the folder.
func interrupted(t *testing.T, j *jobs.Job, spec *taxonv1.JobSpec) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "checkpoint")
	e := start(t, j, Config{Slots: 2, Shards: 3, Checkpoints: func(string) string { return dir }, CheckpointEvery: 1,
		Spent: func() float64 { return 12.5 }})
	submit(t, e, spec)
	cancelled := false
	st := follow(t, e, "j", func(st *taxonv1.JobStatus) {
		if _, err := os.Stat(dir); err == nil && !cancelled {
			cancelled = true
			if _, err := e.Jobs.Cancel(context.Background(), &taxonv1.CancelRequest{Job: "j"}); err != nil {
				t.Error(err)
			}
		}
	})
	if st.GetState() != taxonv1.JobState_JOB_STATE_CANCELLED {
		t.Fatalf("the job ended %v before it could be interrupted", st.GetState())
	}
	return dir
}

// checkpointed interrupts a job that is far from its end: its gap cannot be reached.
func checkpointed(t *testing.T) (*jobs.Job, *taxonv1.JobSpec, string) {
	t.Helper()
	j := jobs.Small(4, 400, 60)
	o := jobs.Defaults()
	o.Set("gap", 1e-7)
	o.Set("max_sweeps", 60)
	o.Set("checkpoint_sweeps", 1)
	spec := j.Spec(o)
	return j, spec, interrupted(t, j, spec)
}

// TestResume: interrupted and resumed, over other shards and slots, gives the bytes that
// an undisturbed run gives.
func TestResume(t *testing.T) {
	j, spec, dir := checkpointed(t)
	want, whole := train(t, j, spec, Config{Slots: 1, Shards: 1})
	c, err := LoadCheckpoint(dir)
	if err != nil || c == nil {
		t.Fatal(c, err)
	}
	if c.Spent != 12.5 {
		t.Errorf("the checkpoint tells of %g s of CPU, want 12.5", c.Spent)
	}
	e := start(t, j, Config{Slots: 3, Shards: 2})
	job, err := e.Resume(context.Background(), c)
	if err != nil || job != "j" {
		t.Fatal(job, err)
	}
	st := follow(t, e, job, nil)
	if got := weights(t, e, spec, st); got != want {
		t.Error("a resumed training gives other weights")
	}
	if st.GetSweep() != whole.GetSweep() || st.GetCertificate().GetDual() != whole.GetCertificate().GetDual() {
		t.Errorf("resumed: sweep %d, %v; whole: sweep %d, %v", st.GetSweep(), st.GetCertificate(), whole.GetSweep(),
			whole.GetCertificate())
	}
}

// TestDamagedCheckpoint names the folder and says what to do; no checkpoint is no error.
func TestDamagedCheckpoint(t *testing.T) {
	j, _, dir := checkpointed(t)
	if c, err := LoadCheckpoint(filepath.Join(dir, "nothing")); c != nil || err != nil {
		t.Errorf("no checkpoint: %v, %v", c, err)
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 4; return b }
	cut := func(b []byte) []byte { return b[:len(b)*2/3] }
	none := func([]byte) []byte { return nil }
	const valuesFile = "part-00000"
	for name, c := range map[string]struct {
		file   string
		damage func([]byte) []byte
	}{
		"state flipped": {stateFile, flip}, "state cut": {stateFile, cut}, "state empty": {stateFile, none},
		"spent flipped": {spentFile, flip}, "manifest flipped": {"manifest", flip}, "manifest cut": {"manifest", cut},
		"state lost": {stateFile, nil}, "manifest lost": {"manifest", nil},
		"values lost":    {valuesFile, nil},
		"state longer":   {stateFile, func(b []byte) []byte { return append(b, 'x') }},
		"values flipped": {valuesFile, flip}, "values cut": {valuesFile, cut}, "values empty": {valuesFile, none},
	} {
		t.Run(name, func(t *testing.T) {
			work := filepath.Join(t.TempDir(), "checkpoint")
			if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(work, c.file)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if c.damage == nil {
				err = os.Remove(path)
			} else {
				err = os.WriteFile(path, c.damage(b), 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
			cp, err := LoadCheckpoint(work)
			if c.file == valuesFile && err == nil {
				e := start(t, j, Config{})
				_, err = e.Resume(context.Background(), cp)
			}
			if err == nil || !strings.Contains(err.Error(), work) || !strings.Contains(err.Error(), "‹force") {
				t.Errorf("%v, want an error that names %s and ‹force›", err, work)
			}
		})
	}
}

// TestFailingExecutor: a deterministic error fails the job with its text; others are
// tried again, a bounded number of times.
func TestFailingExecutor(t *testing.T) {
	t.Parallel() // it waits for retries, mostly
	j := jobs.Small(5, 100, 20)
	spec := j.Spec(jobs.Defaults())
	broken := program.Deterministic(errors.New("this cannot work"))
	for name, c := range map[string]struct {
		fail  func(n int64) error
		state taxonv1.JobState
	}{
		"deterministic": {func(int64) error { return broken }, taxonv1.JobState_JOB_STATE_FAILED},
		"now and then": {func(n int64) error {
			if n%7 == 3 {
				return errors.New("this time not")
			}
			return nil
		}, taxonv1.JobState_JOB_STATE_DONE},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told atomic.Int64
			e := start(t, j, Config{Slots: 2, Failed: func(error) { told.Add(1) },
				Wrap: func(x worker.Executor) worker.Executor { return &failing{Executor: x, fail: c.fail} }})
			submit(t, e, spec)
			st := follow(t, e, "j", nil)
			if st.GetState() != c.state {
				t.Fatalf("the job ended %v: %s", st.GetState(), st.GetError())
			}
			if st.GetState() == taxonv1.JobState_JOB_STATE_FAILED && !strings.Contains(st.GetError(), "this cannot work") {
				t.Errorf("error %q", st.GetError())
			}
			if told.Load() == 0 {
				t.Error("nobody was told")
			}
		})
	}
}

// failing lets some tasks fail before they run.
type failing struct {
	worker.Executor
	n    atomic.Int64
	fail func(n int64) error
}

func (f *failing) Run(ctx context.Context, j *taxonv1.JobResult,
	l *taxonv1.Lease) (*taxonv1.Sums, worker.Stats, error) {
	if err := f.fail(f.n.Add(1)); err != nil {
		return nil, worker.Stats{}, err
	}
	return f.Executor.Run(ctx, j, l)
}

// TestCloseInMidJob ends everything, whatever is under way.
func TestCloseInMidJob(t *testing.T) {
	j := jobs.Small(6, 300, 40)
	running := make(chan struct{}, 1000)
	e, err := Start(Config{Slots: 3, Shards: 2, ShardBytes: 1 << 30,
		Open: func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return j.Set, nil },
		Wrap: func(x worker.Executor) worker.Executor {
			return &failing{Executor: x, fail: func(int64) error { running <- struct{}{}; return nil }}
		}})
	if err != nil {
		t.Fatal(err)
	}
	submit(t, e, j.Spec(jobs.Defaults()))
	for range 5 {
		<-running
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestStartFails cleanly where a shard cannot be opened.
func TestStartFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(Config{Shards: 2, BadgerDir: file}); err == nil {
		t.Error("a file served as a folder of shards")
	}
}

// TestShardFull: a store without room fails the job with words, it does not hang.
func TestShardFull(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for retries")
	}
	t.Parallel()
	j := jobs.Small(7, 300, 40)
	e, err := Start(Config{ShardBytes: 5000, Open: func(context.Context, *taxonv1.Data) (*dataset.Set,
		error) {
		return j.Set, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	submit(t, e, j.Spec(jobs.Defaults()))
	st := follow(t, e, "j", nil)
	if st.GetState() != taxonv1.JobState_JOB_STATE_FAILED || !strings.Contains(st.GetError(), "raise the memory budget") {
		t.Errorf("the job ended %v: %s", st.GetState(), st.GetError())
	}
}
