package mapreduce

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"taxon/internal/data/dataset"
	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/worker"
	"taxon/worker/program"
)

// Task configures a map or reduce task.
type Task struct {
	// State and Run are copied from the Job.
	State, Run string
	// Attempt is part of the names of the task's files. If it is empty, a name is generated.
	Attempt string
	// Cores is the number of the coordinator's tasks that it runs at the same time.
	Cores int
	// Open opens the data.
	Open   func(ctx context.Context, d *taxonv1.Data) (*dataset.Set, error)
	Stdin  io.Reader
	Stdout io.Writer
	// Stderr receives counters and states, which Streaming reads.
	Stderr io.Writer
}

// AttemptVariable is the environment variable in which Hadoop passes the name of the attempt.
const AttemptVariable = "mapreduce_task_attempt_id"

// statusEvery is short enough that Hadoop does not consider a task hung.
const statusEvery = 20 * time.Second

// attempt is a running task.
type attempt struct {
	Task
	dir folder
	job *taxonv1.JobResult
	run *taxonv1.MapReduceRun
	// family is the variable that goes through the shuffle.
	family  string
	values  *values
	trainer *worker.Trainer

	// mu guards the fields below, and Stderr.
	mu   sync.Mutex
	done int
	// total holds the sum of each of the plan's metrics.
	total []float64
}

// begin reads the inputs that all tasks of the run share. The caller must call end.
func (t Task) begin(ctx context.Context, s worker.Store) (*attempt, error) {
	a := &attempt{Task: t, dir: folder(t.State), job: &taxonv1.JobResult{}, run: &taxonv1.MapReduceRun{}}
	if a.Attempt == "" {
		a.Attempt = newID("attempt")
	}
	a.Cores = max(a.Cores, 1)
	a.values = newValues(a.dir)
	if err := readMessage(ctx, a.dir.job(), "job", a.job); err != nil {
		return nil, err
	}
	if err := readMessage(ctx, fs.Join(a.dir.run(t.Run), runFile), "run", a.run); err != nil {
		return nil, err
	}
	a.family = shuffled(a.run.GetReduces(), a.job.GetPlan())
	a.total = make([]float64, len(a.job.GetPlan().GetSums()))
	a.trainer = &worker.Trainer{Store: s, Open: t.Open, NoCache: true}
	return a, nil
}

func (a *attempt) end() { a.values.close() }

// output is the destination of an attempt's values. They take effect together at commit.
type output interface {
	worker.Store
	commit() error
	abort()
}

// try runs an attempt. It does the work, reports to Hadoop that the attempt is alive, and commits.
func (t Task) try(ctx context.Context, out output, work func(context.Context, *attempt) error) error {
	a, err := t.begin(ctx, out)
	if err != nil {
		return err
	}
	defer a.end()
	defer out.abort()
	ctx, stop := context.WithCancel(ctx)
	var alive sync.WaitGroup
	defer alive.Wait()
	defer stop()
	alive.Go(func() { a.live(ctx) })
	if err := work(ctx, a); err != nil {
		return err
	}
	if err := out.commit(); err != nil {
		return err
	}
	a.report()
	return nil
}

// file returns the path of a segment that this attempt writes in a step's folder.
func (a *attempt) file(step uint32, kind string) string {
	return fs.Join(a.dir.step(step), a.Run+"-"+kind+"-"+a.Attempt)
}

// perform runs one of the coordinator's tasks. An error that another attempt may not meet ends this
// attempt. Any other error is the task's result.
func (a *attempt) perform(ctx context.Context, l *taxonv1.Lease) (*taxonv1.ReportRequest, error) {
	sums, stats, err := a.trainer.Run(ctx, a.job, l)
	r := &taxonv1.ReportRequest{Sums: sums, CpuSeconds: stats.CPUSeconds, BytesRead: stats.BytesRead,
		BytesWritten: stats.BytesWritten,
		Lease:        &taxonv1.LeaseId{Job: l.GetJob(), Step: l.GetStep(), Task: l.GetTask(), Attempt: l.GetAttempt()}}
	if err != nil {
		lost := lostRefs(err)
		if ctx.Err() != nil || lost == nil && !program.IsDeterministic(err) {
			return nil, fmt.Errorf("step %d, task %d: %w", l.GetStep(), l.GetTask(), err)
		}
		r.Error, r.Deterministic, r.Lost = err.Error(), program.IsDeterministic(err), lost
	}
	a.count(sums)
	return r, nil
}

// count adds to the counters.
func (a *attempt) count(s *taxonv1.Sums) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done++
	for i := range a.total {
		if i < len(s.GetValues()) {
			a.total[i] += s.Values[i]
		}
	}
}

// report sets Hadoop's counters. The exact values are in the segments. A counter is a whole number,
// so other metrics are counted in millionths.
func (a *attempt) report() {
	a.mu.Lock()
	defer a.mu.Unlock()
	counter := func(name string, n int64) { fmt.Fprintf(a.Stderr, "reporter:counter:taxon,%s,%d\n", name, n) }
	counter("tasks", int64(a.done))
	for i, s := range a.job.GetPlan().GetSums() {
		if s.GetCount() {
			counter(s.GetName(), int64(a.total[i]))
		} else {
			counter(s.GetName()+"_millionths", int64(a.total[i]*1e6))
		}
	}
}

// live reports to Hadoop that the task is working, until ctx ends.
func (a *attempt) live(ctx context.Context) {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			a.mu.Lock()
			fmt.Fprintf(a.Stderr, "reporter:status:%d tasks done\n", a.done)
			a.mu.Unlock()
		}
	}
}

// parseLine parses the leases in a line of input.
func parseLine(line string) ([]*taxonv1.Lease, error) {
	line = line[strings.LastIndexByte(line, '\t')+1:] // after the key, if Streaming sends it
	var out []*taxonv1.Lease
	for text := range strings.FieldsSeq(line) {
		b, err := base64.StdEncoding.DecodeString(text)
		l := &taxonv1.Lease{}
		if err == nil {
			err = proto.Unmarshal(b, l)
		}
		if err != nil {
			return nil, fmt.Errorf("a line of input holds no task: %w", err)
		}
		out = append(out, l)
	}
	return out, nil
}

// lostRefs returns the tasks whose values are lost according to err, each once.
func lostRefs(err error) (refs []*taxonv1.Ref) {
	var places []taxonv1.Place
	for _, k := range store.Lost(err) {
		places = append(places, taxonv1.Place{Step: k.Step, Task: k.Task, Attempt: k.Attempt})
	}
	slices.SortFunc(places, func(a, b taxonv1.Place) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt))
	})
	for _, p := range slices.Compact(places) {
		refs = append(refs, p.Ref())
	}
	return refs
}

// resultError returns the error in a result, in the form in which the task met it.
func resultError(r *taxonv1.ReportRequest) error {
	if r.GetError() == "" {
		return nil
	}
	if len(r.GetLost()) > 0 {
		lost := &store.LostError{Err: fmt.Errorf("%w: %s", store.ErrMissing, r.GetError())}
		for _, p := range r.GetLost() {
			lost.Keys = append(lost.Keys, store.Key{Job: r.GetLease().GetJob(), Step: p.GetStep(), Task: p.GetTask(),
				Attempt: p.GetAttempt(), Name: "lost"})
		}
		return lost
	}
	err := errors.New(r.GetError())
	if r.GetDeterministic() {
		return program.Deterministic(err)
	}
	return err
}

// AttemptName returns Hadoop's name of this process's attempt.
func AttemptName() string { return os.Getenv(AttemptVariable) }
