package machine

import (
	"cmp"
	"slices"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// taskState is the state of a task of the current step. All transitions are in record.go.
type taskState uint8

const (
	// taskWaiting means that no attempt is live; the task may be granted from notBefore on.
	taskWaiting taskState = iota
	// taskRunning means that one attempt holds a lease, or two if the first straggles (see speculate).
	taskRunning
	// taskDone means that one attempt is committed, and nothing changes any more.
	taskDone
	// taskAbandoned means that the job's time was up before a worker had the task, and it is left out.
	taskAbandoned
)

// task is one task of the current step.
type task struct {
	state taskState
	// attempt is the number of attempts granted so far.
	attempt uint32
	// committed is the number of the attempt that counts. It is zero while there is none.
	committed uint32
	// epoch is the fencing epoch of that attempt or, before, of the one granted last; worker is the
	// id of its worker.
	epoch  uint64
	worker string // that ran it
	// live is the number of attempts that hold a lease.
	live uint32
	// notBefore is the end of the back-off after a loss.
	notBefore Tick
	// losses, away and errors count the attempts that vanished, that could not reach the store, and
	// that reported a possibly transient error.
	losses uint32
	away   uint32 // attempts that could not reach the store
	errors uint32 // attempts that reported an error which need not come again
	// late says that the time was up before a worker had the task, so that it runs with Tasks.Late
	// in place of its parameters.
	late bool
	sums method.Sums
	cpu  float64
}

// step is the current step of a job.
type step struct {
	method.Step
	number uint32
	// parts are the tasks of Step.Tasks, one part after the other.
	parts []part
	// from holds the places of the values that the tasks read.
	from  values
	tasks []task
	// done counts the tasks that are done or abandoned, abandoned only the latter, and live those
	// that are running.
	done      int
	live      int // tasks that are running
	abandoned int // of those done: taskAbandoned
	queue     queue
	// cost is the cost of each task in units of its part. Zero means unknown.
	cost []float64
}

// part is what the tasks of one entry of Step.Tasks have in common.
type part struct {
	*method.Tasks
	// begin is the number of its first task.
	begin uint32
	// inputs are the inputs by Reads that are the same for all tasks. An entry is nil if each task
	// has its own.
	inputs []*taxonv1.Input
	// timed says that cost holds the CPU seconds of the items' last tasks.
	timed bool
	pace  pace
}

// newStep lays out the tasks of a step, part by part in the order of their items, and queues them.
// The tasks read what was committed before the step.
func (m *Machine) newStep(j *job, next method.Step) *step {
	s := layOut(next, j.StepNo, j.Values)
	s.cost = s.costs(j)
	long, workers := longFrom(s.cost, m.slots()), m.workersOf(j)
	s.queue = newQueue(s.cost, long, s.homes(j, workers, long), workers)
	return s
}

// layOut returns a step that reads the values given. The step has no queue.
func layOut(next method.Step, number uint32, from values) *step {
	s := &step{Step: next, number: number, from: values{}}
	tasks := uint32(0)
	for k := range next.Tasks {
		t := &next.Tasks[k]
		p := part{Tasks: t, begin: tasks, inputs: make([]*taxonv1.Input, len(t.Reads))}
		for i, r := range t.Reads {
			s.from[r.Value] = from[r.Value]
			if r.All {
				p.inputs[i] = &taxonv1.Input{Value: r.Value, Back: uint32(r.Back), All: true,
					Refs: taxonv1.NewRefs(from[r.Value][r.Back])}
			}
		}
		s.parts = append(s.parts, p)
		tasks += t.Count
	}
	s.tasks = make([]task, tasks)
	return s
}

// part returns the part that a task belongs to, and the item that the task is about.
func (s *step) part(task uint32) (p *part, item uint32) {
	k := len(s.parts) - 1
	for task < s.parts[k].begin {
		k--
	}
	p = &s.parts[k]
	return p, p.First + task - p.begin
}

// costs estimates the cost of each task. If all items of a list have been measured it is the CPU
// seconds of the item's last task, otherwise the plan's figure, or 0 if the plan has none.
func (s *step) costs(j *job) []float64 {
	out := make([]float64, 0, len(s.tasks))
	for k := range s.parts {
		p := &s.parts[k]
		took, planned := j.lastRuns[p.Items], j.plan.Items[p.Items].Cost
		p.timed = !slices.ContainsFunc(took, func(h history) bool { return h.seconds == 0 })
		for i := range p.Count {
			if planned != nil && !p.timed {
				out = append(out, planned[p.First+i])
			} else {
				out = append(out, took[p.First+i].seconds)
			}
		}
	}
	return out
}

// homes returns for each task the index of the worker that the task is meant for, or -1 for any
// worker. Workers take consecutive items of a part in the plan's order, in proportion to their
// slots and the tasks' costs, so that each needs few of the values that neighbouring items share.
// Long tasks do not fit into such shares: they stay with the worker that ran the item last.
func (s *step) homes(j *job, workers []*workerState, long float64) []int {
	slots, of := 0.0, map[string]int{}
	for k, w := range workers {
		slots += float64(w.slots)
		of[w.id] = k
	}
	out := make([]int, len(s.tasks))
	for k := range s.parts {
		p := &s.parts[k]
		all, sum, until, at := 0.0, 0.0, 0.0, -1
		for i := range p.Count {
			if n := p.begin + i; s.cost[n] <= long {
				all += s.unit(n)
			}
		}
		for i := range p.Count {
			n := p.begin + i
			if s.cost[n] > long {
				out[n] = -1
				if w, ok := of[j.lastRuns[p.Items][p.First+i].worker]; ok {
					out[n] = w
				}
				continue
			}
			c := s.unit(n)
			for at+1 < len(workers) && sum+c/2 >= until {
				at++
				until += all * float64(workers[at].slots) / slots
			}
			sum += c
			out[n] = at
		}
	}
	return out
}

// lease returns the lease of a task's last attempt.
func (s *step) lease(j *job, n uint32) *taxonv1.Lease {
	t := &s.tasks[n]
	p, item := s.part(n)
	l := &taxonv1.Lease{
		Job: j.ID, Step: s.number, Task: n, Attempt: t.attempt, Epoch: t.epoch, Sweep: s.Sweep,
		Op: p.Op, Items: uint32(p.Items), Item: item, Params: p.Params, Emit: s.Emit || s.Show,
		Seed: taskSeed(j.run.Seed, p.Items, item, s.Sweep),
	}
	if t.late {
		l.Params = p.Late
	}
	for i, r := range p.Reads {
		in := p.inputs[i]
		if in == nil {
			in = &taxonv1.Input{Value: r.Value, Back: uint32(r.Back),
				Refs: taxonv1.NewRefs(s.from[r.Value][r.Back][item : item+1])}
		}
		l.Inputs = append(l.Inputs, in)
	}
	return l
}

// place returns where the committed attempt of a task wrote.
func (s *step) place(n uint32) taxonv1.Place {
	return taxonv1.Place{Step: s.number, Task: n, Attempt: s.tasks[n].committed}
}

// queue orders the tasks of a step for a worker that asks. Lost tasks are first, then those that
// are meant for no worker, for this worker, and for the workers after it. Each list is in
// newQueue's order. It may hold tasks that are no longer waiting; they are skipped.
type queue struct {
	// again are the lost tasks, in the order of their losses.
	again []uint32
	// free are the tasks that are meant for no worker.
	free []uint32
	// lists are the tasks by the worker that they are meant for, and of maps a worker's id to its
	// list.
	lists [][]uint32
	of    map[string]int // a worker's list
}

const (
	// longShare defines a long task: its cost is above 1/longShare of a slot's share of the step.
	longShare = 4
	// fillersPerSlot is the number of short tasks per slot that are kept for the end of a step, to
	// even out when the slots finish.
	fillersPerSlot = 4
)

// longFrom returns the cost above which a task is long.
func longFrom(cost []float64, slots int) float64 {
	total := 0.0
	for _, c := range cost {
		total += c
	}
	return total / float64(longShare*max(slots, 1))
}

// newQueue adds each task to the list of its home. Tasks without a home are free.
func newQueue(cost []float64, long float64, homes []int, workers []*workerState) queue {
	q := queue{lists: make([][]uint32, len(workers)), of: map[string]int{}}
	for t, w := range homes {
		if w < 0 {
			q.free = append(q.free, uint32(t))
		} else {
			q.lists[w] = append(q.lists[w], uint32(t))
		}
	}
	all := 0
	for _, w := range workers {
		all += int(w.slots)
	}
	for k, w := range workers {
		q.of[w.id] = k
		arrange(q.lists[k], cost, long, int(w.slots), all)
	}
	arrange(q.free, cost, long, all, all)
	return q
}

// arrange orders tasks so that the given number of slots, out of all, finish a step at about the
// same time. Long tasks come first, longest first. The shortest few per slot come last, longest
// first. The others, usually nearly all, keep the plan's order, because neighbours in the plan
// share ancestors whose vectors a worker then need not lay out again.
func arrange(tasks []uint32, cost []float64, long float64, slots, all int) {
	short := -1.0
	if last := fillersPerSlot * slots; all > 1 && last < len(tasks) {
		sorted := make([]float64, len(tasks))
		for k, t := range tasks {
			sorted[k] = cost[t]
		}
		slices.Sort(sorted)
		short = sorted[last]
	}
	level := func(t uint32) float64 {
		if c := cost[t]; c > long || c < short {
			return c
		}
		return long
	}
	slices.SortStableFunc(tasks, func(a, b uint32) int { return cmp.Compare(level(b), level(a)) })
}

// fresh reports whether a task was never granted.
func (s *step) fresh(t uint32) bool {
	return s.tasks[t].state == taskWaiting && s.tasks[t].attempt == 0
}

// pop takes the next task for a worker. fresh recognises a task that was never granted, and due a
// lost one that may be granted again. It takes amortised O(1) plus the number of tasks in back-off.
func (q *queue) pop(worker string, fresh, due func(uint32) bool) (uint32, bool) {
	for i, t := range q.again {
		if due(t) {
			q.again = slices.Delete(q.again, i, i+1)
			return t, true
		}
	}
	return q.popFresh(worker, fresh)
}

// popFresh is pop without the lost tasks.
func (q *queue) popFresh(worker string, fresh func(uint32) bool) (uint32, bool) {
	if t, ok := popFrom(&q.free, fresh); ok {
		return t, true
	}
	at := q.of[worker]
	for n := range q.lists {
		if t, ok := popFrom(&q.lists[(at+n)%len(q.lists)], fresh); ok {
			return t, true
		}
	}
	return 0, false
}

// popFrom takes a list's first fresh task.
func popFrom(list *[]uint32, fresh func(uint32) bool) (uint32, bool) {
	for len(*list) > 0 {
		t := (*list)[0]
		if *list = (*list)[1:]; fresh(t) {
			return t, true
		}
	}
	return 0, false
}

// mix is the finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection whose output bits each
// depend on all input bits.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// taskSeed returns the seed of a task on an item of a list in a sweep. Neither step nor attempt enters: a
// task that runs again draws the same numbers, on whichever worker.
func taskSeed(job uint64, list int, item, sweep uint32) uint64 {
	return mix(mix(job) ^ uint64(list)<<60 ^ uint64(item)<<32 ^ uint64(sweep))
}

// Lookahead describes a job's current step and the step after it.
type Lookahead struct {
	// Step is the number of the current step. It is zero if there is none.
	Step uint32
	// Waiting and Running are the numbers of its tasks that no worker has and that a worker has.
	Waiting int
	Running int // its tasks that a worker has
	// Next are the leases of the step after it, if its parameters do not depend on the current
	// step. They assume that each task is committed under its present attempt, and have no epoch.
	Next []*taxonv1.Lease
	// Again says that the next step may run a second time, from the same values.
	Again bool
}

// Lookahead describes a job's current step. It changes nothing.
func (m *Machine) Lookahead(id string) (Lookahead, error) {
	j, err := m.known(id)
	if err != nil || !j.running() || j.step == nil {
		return Lookahead{}, err
	}
	s := j.step
	a := Lookahead{Step: s.number, Waiting: len(s.tasks) - s.done - s.live, Running: s.live}
	a.Next, a.Again = j.lookahead()
	return a, nil
}

// lookahead lays out the next step as closeStep will, on copies.
func (j *job) lookahead() (next []*taxonv1.Lease, again bool) {
	d, ok := j.driver.(method.Lookahead)
	if !ok {
		return nil, false
	}
	after, again, known := d.Ahead()
	if !known {
		return nil, false
	}
	s := layOut(after, j.StepNo+1, j.published(j.step, method.Outcome{}, func(n uint32) taxonv1.Place {
		t := &j.step.tasks[n]
		return taxonv1.Place{Step: j.step.number, Task: n, Attempt: max(t.committed, t.attempt)}
	}))
	for n := range s.tasks {
		s.tasks[n].attempt = 1
		next = append(next, s.lease(j, uint32(n)))
	}
	return next, again
}

// When a job's time (max_seconds) is up in the middle of a step, the clock decides which tasks
// still wait. One record notes the moment, so that a replay finds the same tasks waiting.

// applyTimeUp shortens the current step, and closes it if none of its tasks is left to wait for.
func (m *Machine) applyTimeUp(j *job, r *Record) {
	j.note(r.At, levelInfo, "the time is up: what is there is priced, and the job ends")
	j.TimeUp = true
	late := j.driver.TimeUp(true)
	s := j.step
	if s == nil { // of a foreign journal: the record is decided during a step
		return
	}
	for n := range s.tasks {
		t := &s.tasks[n]
		switch {
		case t.state != taskWaiting:
		case late == method.RunReduced:
			p, _ := s.part(uint32(n))
			t.late = p.Late != nil
		case late == method.Skip:
			t.state = taskAbandoned
			s.done++
			s.abandoned++
		}
	}
	m.out = append(m.out, Changed{})
	if s.done == len(s.tasks) {
		m.commitStep(j, r.At)
	}
}

// betterShare is how much smaller an earlier gap must be to be worth mentioning. Certificates
// fluctuate a little.
const betterShare = 0.9

// betterSweep returns the sweep with the least gap of a job whose time was up, if its final weights
// have a larger gap, and otherwise nil. The shortened sweep has moved the weights, and the sweeps
// that would have made up for that are missing.
func (j *job) betterSweep() *traceRecord {
	p := j.progress()
	if j.stoppedBy() != method.StoppedByMaxTime || p.Certificate == nil {
		return nil
	}
	var best *traceRecord
	least := float64(betterShare * p.Certificate.Gap)
	for n := range j.Trace {
		if c := j.Trace[n].Certificate; c != nil && !c.PrimalOnly && c.Gap < least {
			best, least = &j.Trace[n], c.Gap
		}
	}
	return best
}

// lateTasks lists, ascending, the tasks of a step that were late.
func (s *step) lateTasks() (out []uint32) {
	for n := range s.tasks {
		if s.tasks[n].late {
			out = append(out, uint32(n))
		}
	}
	return out
}
