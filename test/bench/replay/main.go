// Command replay trains once, notes what every task took of a core, and plays the tasks
// again on a simulated cluster of more and more cores: how far a job's speed goes, and
// what stops it first.
//
//	go run ./test/bench/replay -data DIR
//	go run ./test/bench/replay -data DIR -links 1gbit,100mbit   # as root: predicted and measured
//
// DIR/wordnet-freq holds train.svm.xz and tree.txt. A step's tasks go to the core that is
// free first, in order, as the coordinator hands them out; a step begins when the one
// before it is done. -task is what a task costs its core beside computing (leasing,
// fetching, waiting for the store's sync), -step what lies between two steps.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"taxon/internal/dataset"
	"taxon/internal/engine"
	"taxon/internal/fs"
	follow "taxon/internal/jobs"
	"taxon/internal/taxonomy"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/jobs"
	"taxon/worker"
)

func main() {
	data := flag.String("data", os.Getenv("TAXON_DATA"), "`folder` of the data sets (default $TAXON_DATA)")
	set := flag.String("set", "wordnet-freq", "data set within it")
	gap := flag.Float64("gap", 1e-2, "relative gap to stop at")
	task := flag.Duration("task", time.Millisecond, "what a task costs beside computing")
	step := flag.Duration("step", 8*time.Millisecond, "what lies between two steps")
	links := flag.String("links", "", "also train on four hosts (network namespaces; as root) behind links of these `rates`, as in 1gbit,100mbit, and compare")
	runs := flag.Int("runs", 3, "such trainings of each rate")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	steps, err := record(ctx, filepath.Join(*data, *set), *gap)
	if err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
	fmt.Print(report(steps, costs{task: task.Seconds(), between: step.Seconds()}, []int{1, 2, 8, 64, 512}))
	if *links == "" {
		return
	}
	if err := compare(ctx, steps, filepath.Join(*data, *set), strings.Split(*links, ","), task.Seconds(), step.Seconds(), *gap, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

// recorder notes what the tasks took.
type recorder struct {
	worker.Executor
	mu    sync.Mutex
	tasks []taken
}

// taken is a task's time on a core.
type taken struct {
	step, task uint32
	seconds    float64
	read       uint64
	written    uint64
}

func (r *recorder) wrap(x worker.Executor) worker.Executor {
	r.Executor = x
	return r
}

// Run implements worker.Executor.
func (r *recorder) Run(ctx context.Context, job *taxonv1.JobResult, l *taxonv1.Lease) (*taxonv1.Sums, worker.Stats, error) {
	sums, stats, err := r.Executor.Run(ctx, job, l)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.tasks = append(r.tasks, taken{l.GetStep(), l.GetTask(), stats.CPUSeconds, stats.BytesRead, stats.BytesWritten})
	}
	return sums, stats, err
}

// steps lists the tasks' times, step by step, in task order.
func (r *recorder) steps() (out [][]taken) {
	slices.SortFunc(r.tasks, func(a, b taken) int { return cmp.Or(cmp.Compare(a.step, b.step), cmp.Compare(a.task, b.task)) })
	for i, t := range r.tasks {
		if i == 0 || t.step != r.tasks[i-1].step {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], t)
	}
	return out
}

// record trains on one thread.
func record(ctx context.Context, dir string, gap float64) ([][]taken, error) {
	j, err := load(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer j.Set.Close()
	o := jobs.Defaults()
	o.C, o.Gap = 1, gap
	r := &recorder{}
	e, err := engine.Start(engine.Config{Slots: 1, Shards: 1, ShardBytes: 1 << 40, Wrap: r.wrap,
		Open: func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return j.Set, nil }})
	if err != nil {
		return nil, err
	}
	err = train(ctx, e, j.Spec(o))
	if err = errors.Join(err, e.Close()); err != nil {
		return nil, err
	}
	return r.steps(), nil
}

// load ingests the data into a temporary folder, which may go once the set is mapped.
func load(ctx context.Context, from string) (*jobs.Job, error) {
	dir, err := os.MkdirTemp("", "taxon-replay")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "data")
	if _, err := dataset.Ingest(ctx, dataset.Options{Paths: []string{filepath.Join(from, "train.svm.xz")}, Out: out}); err != nil {
		return nil, err
	}
	j := &jobs.Job{}
	if j.Set, err = dataset.Open(out); err != nil {
		return nil, err
	}
	f, err := fs.Open(ctx, fs.Local{}, filepath.Join(from, "tree.txt"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	j.Structure, _, err = taxonomy.Read(f, f.Name())
	return j, err
}

func train(ctx context.Context, e *engine.Engine, spec *taxonv1.JobSpec) error {
	if _, err := e.Jobs.Submit(ctx, &taxonv1.SubmitRequest{Job: "replay", Spec: spec}); err != nil {
		return err
	}
	last, err := follow.Watch(ctx, e.Jobs, "replay", 0, func(*taxonv1.JobStatus) error { return nil })
	if err != nil {
		return err
	}
	if last.GetState() != taxonv1.JobState_JOB_STATE_DONE {
		return fmt.Errorf("the job ended %v: %s", last.GetState(), last.GetError())
	}
	return nil
}
