package mapreduce

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"taxon/internal/fs"
	taxonv1 "taxon/proto/taxon/v1"
)

const (
	// overFixed is the least ratio of a task's work to its start-up time.
	overFixed = 5
	// visitSeconds is the assumed cost of a visit of a nonzero before any measurement.
	visitSeconds = 1e-9
	// firstPasses is the number of passes over its data that a task is then assumed to make. A task
	// that emits makes a tenth of a pass.
	firstPasses = 5
)

// runJob runs the tasks of a batch as one job. If the next step's tasks are known and read the
// output of these tasks, the job runs them, too.
func (e *executor) runJob(ctx context.Context, batch []*waiter) (map[taskID]*taxonv1.ReportRequest, error) {
	b := e.backend
	slices.SortFunc(batch, func(x, y *waiter) int { return cmp.Compare(x.lease.GetTask(), y.lease.GetTask()) })
	first := batch[0]
	if err := b.writeJob(ctx, first.job); err != nil {
		return nil, err
	}
	run := e.plan(batch)
	id := newID(fmt.Sprintf("s%d", first.lease.GetStep()))
	defer func() { _ = fs.RemoveAll(b.dir.run(id)) }()
	j := &Job{State: b.config.Dir, Run: id, Keys: run.Keys,
		Name:  fmt.Sprintf("taxon %s sweep %d", first.lease.GetJob(), first.lease.GetSweep()),
		Lines: b.lines(batch, first.job.GetPlan())}
	j.Reducers = b.reducers(len(run.Keys), len(j.Lines))
	elsewhere := ""
	j.Moved = func(text string) { b.config.Moved(elsewhere, text) }
	j.Started = func(job string) {
		elsewhere = job
		b.config.Began(j.Name, job)
		_ = fs.WriteFile(fs.Join(b.dir.run(id), idFile), []byte(job))
	}
	if err := b.prepare(j, first.lease.GetStep(), run); err != nil {
		return nil, err
	}
	if err := b.config.Runner.Run(ctx, j); err != nil {
		return nil, err
	}
	found, err := b.collect(ctx, id, first.lease.GetStep(), run)
	if err != nil {
		return nil, err
	}
	b.measure(batch, found)
	e.keepPredicted(run, found)
	return found, nil
}

// plan decides what follows the batch's tasks in the same job: the next step's tasks, if they are
// known and the only values of these tasks that they read belong to one variable that is divided by
// their items. These values also go into the state folder if a later step may read them: always if
// no reducer follows, and otherwise if the next step may be run again.
func (e *executor) plan(batch []*waiter) *taxonv1.MapReduceRun {
	first := batch[0].lease
	run := &taxonv1.MapReduceRun{Job: first.GetJob(), Keep: true}
	a, err := e.ahead(first.GetJob())
	if err != nil || a.Step != first.GetStep() || !follows(batch, a.Next, batch[0].job.GetPlan()) {
		return run
	}
	run.Reduces, run.Keep = a.Next, a.Again
	run.Keys = shuffleKeys(len(a.Next), e.backend.reducers(len(a.Next), len(batch)))
	return run
}

// follows reports whether a step's tasks can be the reducers of a batch.
func follows(batch []*waiter, next []*taxonv1.Lease, plan *taxonv1.Plan) bool {
	family := shuffled(next, plan)
	if family == "" {
		return false
	}
	here := map[taxonv1.Place]bool{}
	for _, w := range batch {
		here[taxonv1.Place{Step: w.lease.GetStep(), Task: w.lease.GetTask(), Attempt: w.lease.GetAttempt()}] = true
	}
	for n, l := range next {
		if l.GetItems() != next[0].GetItems() || int(l.GetItem()) != n {
			return false
		}
		for _, in := range l.GetInputs() {
			if in.GetAll() && n > 0 {
				continue // the same for all items
			}
			shuffled := in.GetAll() && in.GetValue() == family
			for _, p := range in.GetRefs().Expand() {
				if here[p] != shuffled {
					return false
				}
			}
		}
	}
	return true
}

// shuffled returns the variable that goes through the shuffle. Each of the tasks reads the part for
// its own item from the values of all items. The name is empty if there is no such variable or more
// than one.
func shuffled(next []*taxonv1.Lease, plan *taxonv1.Plan) (family string) {
	if len(next) == 0 {
		return ""
	}
	for _, f := range plan.GetFamilies() {
		reads := func(in *taxonv1.Input) bool { return in.GetAll() && in.GetValue() == f.GetName() }
		if f.GetBy() == next[0].GetItems() && slices.ContainsFunc(next[0].GetInputs(), reads) {
			if family != "" {
				return ""
			}
			family = f.GetName()
		}
	}
	return family
}

// keepPredicted retains the results of the next step's tasks until the coordinator asks for them.
func (e *executor) keepPredicted(run *taxonv1.MapReduceRun, found map[taskID]*taxonv1.ReportRequest) {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.predicted)
	for _, l := range run.GetReduces() {
		id := taskID{l.GetStep(), l.GetTask()}
		if r := found[id]; r != nil && r.GetError() == "" {
			e.predicted[id] = &predicted{l, r}
		}
	}
}

// writeJob writes the part of the input that all tasks read, once.
func (b *Backend) writeJob(ctx context.Context, r *taxonv1.JobResult) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written == r {
		return nil
	}
	old := &taxonv1.JobResult{}
	if err := readMessage(ctx, b.dir.job(), "job", old); err != nil || !proto.Equal(old, r) {
		if err := writeMessage(b.dir.job(), "job", r); err != nil {
			return err
		}
	}
	b.written = r
	return nil
}

// prepare writes a run's inputs.
func (b *Backend) prepare(j *Job, step uint32, run *taxonv1.MapReduceRun) error {
	dir := b.dir.run(j.Run)
	if err := fs.MkdirAll(dir); err != nil {
		return fs.Explain(dir, err)
	}
	dirs := []string{b.dir.step(step)}
	if len(run.GetReduces()) > 0 {
		dirs = append(dirs, b.dir.step(run.Reduces[0].GetStep()))
	}
	for _, d := range dirs {
		if err := fs.MkdirAll(d); err != nil {
			return fs.Explain(d, err)
		}
	}
	if err := writeMessage(fs.Join(dir, runFile), "run", run); err != nil {
		return err
	}
	return fs.WriteFile(j.Input(), []byte(strings.Join(j.Lines, "\n")+"\n"))
}

// lines divides a batch, in task order, into runs of about equal cost, one per map task.
// Neighbouring tasks of the plan share inputs.
func (b *Backend) lines(batch []*waiter, plan *taxonv1.Plan) []string {
	cost, total := b.costs(batch, plan)
	n := b.config.Maps
	if n == 0 {
		n = int(math.Ceil(total / max(overFixed*b.config.Runner.Fixed(), 1e-9)))
		n = min(n, b.config.Runner.Slots())
	}
	n = min(max(n, 1), len(batch))
	var out []string
	var line []string
	sum := 0.0
	for i, w := range batch {
		if data, err := proto.Marshal(w.lease); err == nil {
			line = append(line, base64.StdEncoding.EncodeToString(data))
		}
		sum += cost[i]
		left := len(batch) - 1 - i
		if sum >= total*float64(len(out)+1)/float64(n) || left < n-len(out) {
			out = append(out, strings.Join(line, " "))
			line = nil
		}
	}
	if line != nil {
		out = append(out, strings.Join(line, " "))
	}
	return out
}

// costs returns the tasks' expected durations in seconds, and their sum. A duration is the one that
// was measured last time or, if there is none, the planned one. The durations determine how the
// work is divided and do not affect results.
func (b *Backend) costs(batch []*waiter, plan *taxonv1.Plan) (cost []float64, total float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cost = make([]float64, len(batch))
	for i, w := range batch {
		cost[i] = 1e-3
		item, emit := itemOf(w.lease), w.lease.GetEmit()
		if list := plan.GetItems(); int(item.list) < len(list) && int(item.item) < len(list[item.list].GetCost()) {
			cost[i] = visitSeconds * list[item.list].Cost[item.item]
			if emit {
				cost[i] /= 10
			} else {
				cost[i] *= firstPasses
			}
		}
		if last := b.seconds[item]; last > 0 && !emit {
			cost[i] = last
		}
		total += cost[i]
	}
	return cost, total
}

// item identifies the item of a task.
type item struct{ list, item uint32 }

func itemOf(l *taxonv1.Lease) item { return item{l.GetItems(), l.GetItem()} }

// reducers returns the number of reduce tasks for a number of items and map tasks.
func (b *Backend) reducers(items, maps int) int {
	n := b.config.Reduces
	if n == 0 {
		n = (maps + 1) / 2
	}
	return min(n, items)
}
