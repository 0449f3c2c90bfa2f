// Command overhead measures the cost of the runtime: it runs the same training, task for task, once
// on the embedded engine (coordinator, store, messages, worker) and once by calling mapper and
// reducer directly, in one process, one after the other.
//
//	go run ./test/bench/overhead -data DIR
//
// DIR/wordnet-freq holds train.svm.xz and tree.txt. The direct run executes the tasks that the
// engine scheduled, with their parameters, and fails unless every figure and every weight is the
// same. The time includes loading the job on both sides, but not ingest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"taxon/internal/app/engine"
	follow "taxon/internal/cluster/jobs"
	"taxon/internal/data/dataset"
	"taxon/internal/data/taxonomy"
	"taxon/internal/fs"
	"taxon/internal/jobspec"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/direct"
	"taxon/test/jobs"
)

// settings holds the parameters of the measurement.
type settings struct {
	set     string // folder with train and tree
	train   string
	tree    string
	options *taxonv1.Options
	slots   int
	runs    int
}

func main() {
	s := settings{options: jobs.Defaults()}
	data := flag.String("data", os.Getenv("TAXON_DATA"), "`folder` of the data sets (default $TAXON_DATA)")
	set := flag.String("set", "wordnet-freq", "data set within it")
	flag.StringVar(&s.train, "train", "train.svm.xz", "instances within the set")
	flag.StringVar(&s.tree, "tree", "tree.txt", "structure within the set")
	s.options.Set("gap", 1e-2)
	s.options.Set("max_sweeps", 30)
	for name, help := range map[string]string{"loss": "hinge or squared-hinge", "C": "weight of the losses",
		"schedule": "twoblock, parity, colour or jacobi", "gap": "relative gap to stop at",
		"max-sweeps": "sweeps to stop after"} {
		key := strings.ReplaceAll(name, "-", "_")
		flag.Func(strings.ToLower(name), help+" (default "+s.options.Value(key)+")", func(value string) error {
			s.options.Set(key, value)
			return nil
		})
	}
	flag.IntVar(&s.slots, "slots", 1, "tasks that run at a time, on both sides")
	flag.IntVar(&s.runs, "runs", 3, "times each side is run, taking turns")
	flag.Parse()
	s.set = filepath.Join(*data, *set)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *data, s); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, data string, s settings) error {
	if data == "" {
		return errors.New("name the data with -data DIR or TAXON_DATA=DIR")
	}
	j, err := load(ctx, s)
	if err != nil {
		return err
	}
	defer j.Set.Close()
	fmt.Printf("%s: %d instances, %d labels, %s, %s, C = %s, %d slots, %d CPUs\n\n", filepath.Base(s.set),
		j.Set.Matrix.Rows,
		len(j.Set.Labels), s.options.Value("schedule"), s.options.Value("loss"), s.options.Value("c"), s.slots,
		runtime.NumCPU())
	fmt.Printf("%-8s %10s %10s %12s %8s %8s\n", "", "wall s", "CPU s", "page faults", "sweeps", "gap")
	var walls, cpus []float64
	for range s.runs {
		r, hash, through, err := throughEngine(ctx, j, s)
		if err != nil {
			return err
		}
		alone, err := directly(ctx, j, r, hash, s.slots)
		if err != nil {
			return err
		}
		walls, cpus = append(walls, through.wall/alone.wall), append(cpus, through.cpu/alone.cpu)
	}
	fmt.Printf("\nengine / direct, median of %d pairs (least to most): wall %s, CPU %s (same sums, same weights)\n",
		s.runs, spread(walls), spread(cpus))
	return nil
}

// spread formats the median of some ratios with the least and the largest.
func spread(ratios []float64) string {
	slices.Sort(ratios)
	n := len(ratios)
	return fmt.Sprintf("%.3f (%.3f to %.3f)", (ratios[(n-1)/2]+ratios[n/2])/2, ratios[0], ratios[n-1])
}

// load ingests the data into a temporary folder, which can be removed once the set is mapped.
func load(ctx context.Context, s settings) (*jobs.Job, error) {
	dir, err := os.MkdirTemp("", "taxon-overhead")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "data")
	if _, err := dataset.Ingest(ctx, dataset.Options{Paths: []string{filepath.Join(s.set, s.train)},
		Out: out}); err != nil {
		return nil, err
	}
	j := &jobs.Job{}
	if j.Set, err = dataset.Open(out); err != nil {
		return nil, err
	}
	f, err := fs.Open(ctx, fs.Local{}, filepath.Join(s.set, s.tree))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if j.Structure, _, err = taxonomy.Read(f, f.Name()); err != nil {
		return nil, err
	}
	j.Structure = j.Structure.FirstParent()
	return j, nil
}

// cost is the cost of one run.
type cost struct{ wall, cpu, faults float64 }

// measure times f. It first collects garbage and returns the memory to the system, so that each
// side has to request its own memory: the first touch of the pages is a part of the cost.
func measure(f func() error) (cost, error) {
	debug.FreeOSMemory()
	start, before := time.Now(), used()
	err := f()
	after := used()
	return cost{time.Since(start).Seconds(), after.cpu - before.cpu, after.faults - before.faults}, err
}

// used returns the cost of the process so far.
func used() cost {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return cost{}
	}
	return cost{cpu: float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9, faults: float64(u.Minflt)}
}

// throughEngine trains on an embedded engine and records its tasks.
func throughEngine(ctx context.Context, j *jobs.Job, s settings) (*direct.Recorder, string, cost, error) {
	spec := j.Spec(s.options)
	tree, _, err := jobspec.Tree(spec, false)
	if err != nil {
		return nil, "", cost{}, err
	}
	r := &direct.Recorder{}
	e, err := engine.Start(engine.Config{Slots: s.slots, Shards: 1, ShardBytes: 1 << 40, Wrap: r.Wrap,
		Open: func(context.Context, *taxonv1.Data) (*dataset.Set, error) { return j.Set, nil }})
	if err != nil {
		return nil, "", cost{}, err
	}
	var st *taxonv1.JobStatus
	took, err := measure(func() error {
		st, err = train(ctx, e, spec)
		return err
	})
	var n jobs.Nodes
	if err == nil {
		err = e.StreamWeights(ctx, tree.Len(), st, n.Add)
	}
	if err = errors.Join(err, e.Close()); err != nil {
		return nil, "", cost{}, err
	}
	fmt.Printf("%-8s %10.2f %10.2f %12.0f %8d %8.2g\n", "engine", took.wall, took.cpu, took.faults, st.GetSweep(),
		st.GetCertificate().GetGap())
	return r, n.Hash(), took, nil
}

func train(ctx context.Context, e *engine.Engine, spec *taxonv1.JobSpec) (*taxonv1.JobStatus, error) {
	if _, err := e.Jobs.Submit(ctx, &taxonv1.SubmitRequest{Job: "overhead", Spec: spec}); err != nil {
		return nil, err
	}
	st, err := follow.Watch(ctx, e.Jobs, "overhead", 0, func(*taxonv1.JobStatus) error { return nil })
	if err == nil && st.GetState() != taxonv1.JobState_JOB_STATE_DONE {
		err = fmt.Errorf("the job ended %v: %s", st.GetState(), st.GetError())
	}
	return st, err
}

// directly replays the tasks that r has recorded.
func directly(ctx context.Context, j *jobs.Job, r *direct.Recorder, hash string, slots int) (cost, error) {
	steps := r.Steps()
	var n *jobs.Nodes
	took, err := measure(func() error {
		replay, err := direct.New(r.Job(), j.Set)
		if err != nil {
			return err
		}
		n, err = replay.Run(ctx, steps, slots)
		return err
	})
	if err != nil {
		return cost{}, err
	}
	if n.Hash() != hash {
		return cost{}, errors.New("the direct run gives other weights than the engine")
	}
	fmt.Printf("%-8s %10.2f %10.2f %12.0f\n", "direct", took.wall, took.cpu, took.faults)
	return took, nil
}
