// Command replay trains once, records the core time of every task, and replays the tasks on a
// simulated cluster with more and more cores. It shows how far a job scales, and what limits it
// first.
//
//	go run ./test/bench/replay -data DIR
//	go run ./test/bench/replay -data DIR -links 1gbit,100mbit   # as root: predicted and measured
//
// DIR/wordnet-freq holds train.svm.xz and tree.txt. Each core is a worker of one slot. A step's
// tasks go to the first idle worker, which prefers those whose item it had last (the coordinator
// assigns runs of tasks, which balances equally well). A step begins when the previous one is
// complete. A worker reads the values that it has not written itself. -task is the cost of a task
// for its core in addition to computing (leasing, decoding, waiting for the store's sync), and
// -step is the time between two steps.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"taxon/internal/app/engine"
	follow "taxon/internal/cluster/jobs"
	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	_ "taxon/internal/methods/all"
	rr "taxon/internal/methods/rr/plan"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/test/jobs"
	"taxon/worker"
)

func main() {
	data := flag.String("data", os.Getenv("TAXON_DATA"), "`folder` of the data sets (default $TAXON_DATA)")
	set := flag.String("set", "wordnet-freq", "data set within it")
	gap := flag.Float64("gap", 1e-2, "relative gap to stop at")
	task := flag.Duration("task", time.Millisecond, "what a task costs beside computing")
	step := flag.Duration("step", 8*time.Millisecond, "what lies between two steps")
	links := flag.String("links", "", "also train on four hosts (network namespaces; as root) behind links of these "+
		"`rates`, as in 1gbit,100mbit, and compare")
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
	if err := compare(ctx, steps, filepath.Join(*data, *set), strings.Split(*links, ","), task.Seconds(), step.Seconds(),
		*gap, *runs); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

// recorder records the time, reads and writes of the tasks, which run one after the other. No value
// is kept in decoded form, so that every read appears in the store's requests, as for another
// worker.
type recorder struct {
	worker.Executor
	store   worker.Store
	mu      sync.Mutex
	tasks   map[[2]uint32]*taken // tasks by step and number
	now     *taken
	numbers map[store.Key]int
	groups  bool // blocks read internals by groups
}

// taken holds a task's time on a core, and its values.
type taken struct {
	step, task    uint32
	item          item
	seconds       float64
	read, written []value
}

// item is the item of a task. The worker that had it last takes its next task.
type item struct{ list, number uint32 }

// value is a value in the store.
type value struct {
	number int
	bytes  uint64
	kept   bool // its worker keeps it decoded and does not read it

	// shared marks the internals' vectors, which a worker reads once for all its blocks.
	shared bool
}

// wrap inserts the recorder between the engine's trainer and its store. Final weights go to the
// store, as on a cluster.
func (r *recorder) wrap(x worker.Executor) worker.Executor {
	t := x.(*worker.Trainer)
	r.Executor, r.store = t, t.Store
	t.Store, t.Weights = r, nil
	return r
}

// Run implements worker.Executor.
func (r *recorder) Run(ctx context.Context, job *taxonv1.JobResult,
	l *taxonv1.Lease) (*taxonv1.Sums, worker.Stats, error) {
	r.mu.Lock()
	r.now = &taken{step: l.GetStep(), task: l.GetTask(), item: item{l.GetItems(), l.GetItem()}}
	r.tasks[[2]uint32{l.GetStep(), l.GetTask()}] = r.now
	r.mu.Unlock()
	sums, stats, err := r.Executor.Run(ctx, job, l)
	r.now.seconds = stats.CPUSeconds
	return sums, stats, err
}

// Get implements worker.Store.
func (r *recorder) Get(ctx context.Context, keys []store.Key) ([][]byte, error) {
	data, err := r.store.Get(ctx, keys)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, d := range data {
		v := r.value(keys[i], d)
		v.shared = v.shared && r.now.item.list == rr.Blocks
		r.now.read = append(r.now.read, v)
	}
	return data, err
}

// Put implements worker.Store. The values of a batch arrive after all its tasks have run.
func (r *recorder) Put(ctx context.Context, values []store.Value) error {
	r.mu.Lock()
	for _, v := range values {
		t := r.tasks[[2]uint32{v.Key.Step, v.Key.Task}]
		t.written = append(t.written, r.value(v.Key, v.Data))
	}
	r.mu.Unlock()
	return r.store.Put(ctx, values)
}

// value numbers a value. The caller holds mu. Internals are marked as shared if all blocks read the
// same.
func (r *recorder) value(k store.Key, data []byte) value {
	n, ok := r.numbers[k]
	if !ok {
		n = len(r.numbers)
		r.numbers[k] = n
	}
	family, group, _ := strings.Cut(k.Name, "/")
	internals := family == rr.X
	r.groups = r.groups || internals && group != "0"
	return value{number: n, bytes: uint64(len(data)), kept: !internals || !r.groups, shared: internals}
}

// step holds the tasks of a step, in task order, and the values that each worker with one of its
// blocks reads.
type step struct {
	tasks  []taken
	shared []value
}

// steps lists the recorded tasks step by step.
func (r *recorder) steps() (out []step) {
	for _, key := range slices.SortedFunc(maps.Keys(r.tasks), func(a, b [2]uint32) int {
		return slices.Compare(a[:],
			b[:])
	}) {
		t := *r.tasks[key]
		if len(out) == 0 || t.step != out[len(out)-1].tasks[0].step {
			out = append(out, step{})
		}
		s := &out[len(out)-1]
		own := []value{}
		for _, v := range t.read {
			if v.shared {
				s.shared = append(s.shared, v)
			} else {
				own = append(own, v)
			}
		}
		t.read = own
		s.tasks = append(s.tasks, t)
	}
	return out
}

// record trains on one thread.
func record(ctx context.Context, dir string, gap float64) ([]step, error) {
	j, err := load(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer j.Set.Close()
	o := jobs.Defaults()
	o.Set("c", 1)
	o.Set("gap", gap)
	r := &recorder{tasks: map[[2]uint32]*taken{}, numbers: map[store.Key]int{}}
	e, err := engine.Start(engine.Config{Slots: 1, Shards: 1, ShardBytes: 1 << 40, NoCache: true, Wrap: r.wrap,
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

// load ingests the data into a temporary folder, which can be removed once the set is mapped.
func load(ctx context.Context, from string) (*jobs.Job, error) {
	dir, err := os.MkdirTemp("", "taxon-replay")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "data")
	if _, err := dataset.Ingest(ctx, dataset.Options{Paths: []string{filepath.Join(from, "train.svm.xz")},
		Out: out}); err != nil {
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
