package coordinator

import (
	"cmp"
	"slices"

	taxonv1 "taxon/proto/taxon/v1"
)

// taskState is where a task of the step under way stands. All transitions are in record.go.
type taskState uint8

const (
	taskWaiting taskState = iota // no live attempt; may be handed out from notBefore on
	taskRunning                  // one attempt holds a lease, or two: see speculate.go
	taskDone                     // one attempt is committed; nothing changes any more
	taskLeft                     // the time was up before anybody had it: nobody will
)

// task is one task of the step under way.
type task struct {
	state     taskState
	attempt   uint32 // number of attempts handed out
	committed uint32 // the attempt that counts; 0: none yet
	epoch     uint64 // fencing epoch of that attempt, or of the last one handed out
	worker    string // that ran it
	live      uint32 // attempts that hold a lease
	notBefore Tick   // back-off after a loss
	losses    uint32 // attempts that vanished
	away      uint32 // attempts that could not reach the store
	errors    uint32 // attempts that reported an error which need not come again
	cut       bool   // it only prices: the time was up before anybody had it
	sums      Sums
	cpu       float64
}

// step is the step under way of a job.
type step struct {
	spec   stepSpec
	number uint32
	first  uint32 // block of task 0
	maps   uint32 // tasks below it are MAPs of blocks first.., the others REDUCEs of ranges 0..
	tasks  []task
	done   int
	live   int // tasks that are running
	left   int // of those done: taskLeft
	queue  queue
	from   sources
	in     inputs
	cost   []float64 // of each task, in units of its kind; 0: not known
	timed  [2]bool   // by kind: cost is the CPU seconds of the last time
	pace   pace
}

// sources are the places that a step's tasks read from.
type sources struct{ dual, x, xPrev places }

// inputs are the references of a step's tasks, compiled once and shared by all leases.
type inputs struct {
	x, xPrev, v *taxonv1.Refs
}

// newStep lays out the tasks of the step that j.outer stands at: MAPs in block order,
// then REDUCEs in range order. They read what was committed before the step.
func newStep(j *job, alive func(worker string) bool, slots int) *step {
	spec := j.outer.step()
	s := &step{spec: spec, number: j.StepNo, from: sources{j.Dual, j.X, j.XPrev}}
	ranges := uint32(0)
	if spec.Map != taxonv1.TaskKind_TASK_KIND_UNSPECIFIED {
		s.first, s.maps = blocksOf(j.plan, spec.Set)
	}
	if spec.Reduce != taxonv1.TaskKind_TASK_KIND_UNSPECIFIED {
		ranges = uint32(len(j.X))
	}
	s.in = compile(spec, s.from)
	s.tasks = make([]task, s.maps+ranges)
	s.cost = s.costs(j)
	s.queue = newQueue(s.cost, s.homes(j, alive), slots)
	return s
}

// compile writes the references that a step's tasks have in common.
func compile(spec stepSpec, from sources) (in inputs) {
	if spec.Map != taxonv1.TaskKind_TASK_KIND_UNSPECIFIED {
		in.x, in.xPrev = taxonv1.NewRefs(from.x), taxonv1.NewRefs(from.xPrev)
	}
	if spec.Reduce == taxonv1.TaskKind_TASK_KIND_REDUCE {
		in.v = taxonv1.NewRefs(from.dual)
	}
	return in
}

// blocksOf returns the first block and the number of blocks of a set; set -1: all blocks.
// The plan numbers blocks set by set.
func blocksOf(plan *taxonv1.Plan, set int) (first, n uint32) {
	if set < 0 {
		return 0, uint32(len(plan.BlockSet))
	}
	lo, _ := slices.BinarySearch(plan.BlockSet, uint32(set))
	hi, _ := slices.BinarySearch(plan.BlockSet, uint32(set)+1)
	return uint32(lo), uint32(hi - lo)
}

// item is the block or range of a task.
func (s *step) item(task uint32) (isMap bool, item uint32) {
	if task < s.maps {
		return true, s.first + task
	}
	return false, task - s.maps
}

// costs estimates the tasks' lengths: seconds of the last time where all blocks have
// been measured, else the plan's figures; ranges cost 0 until measured.
func (s *step) costs(j *job) []float64 {
	block := j.blockSeconds
	s.timed = [2]bool{!slices.Contains(block, 0), !slices.Contains(j.rangeSeconds, 0)}
	if !s.timed[0] {
		block = j.plan.BlockCost
	}
	out := make([]float64, len(s.tasks))
	for t := range out {
		if isMap, i := s.item(uint32(t)); isMap {
			out[t] = block[i]
		} else {
			out[t] = j.rangeSeconds[i]
		}
	}
	return out
}

// homes names the worker that ran each task's block or range last, if it is still there.
func (s *step) homes(j *job, alive func(string) bool) []string {
	out := make([]string, len(s.tasks))
	for t := range out {
		isMap, i := s.item(uint32(t))
		w := ""
		if isMap {
			w = j.blockWorker[i]
		} else {
			w = j.rangeWorker[i]
		}
		if w != "" && alive(w) {
			out[t] = w
		}
	}
	return out
}

// lease writes the lease of a task's last attempt.
func (s *step) lease(j *job, n uint32) *taxonv1.Lease {
	t := &s.tasks[n]
	l := &taxonv1.Lease{
		Job: j.ID, Step: s.number, Task: n, Attempt: t.attempt, Epoch: t.epoch, Sweep: s.spec.Sweep,
	}
	isMap, i := s.item(n)
	seed := j.spec.GetOptions().GetSeed()
	if isMap {
		l.Kind = s.spec.Map
		l.Map = &taxonv1.MapTask{
			Block: i, Epochs: s.spec.Epochs, InnerGap: s.spec.InnerGap, InnerShare: s.spec.InnerShare, Price: s.spec.Price,
			Dual: s.from.dual[i].Ref(), X: s.in.x, XPrev: s.in.xPrev, Beta: s.spec.Beta,
			Seed: taskSeed(seed, i, s.spec.Sweep), Band: s.spec.Band, Precise: s.spec.Precise,
		}
		switch {
		case t.cut:
			l.Map.Epochs, l.Map.InnerGap, l.Map.InnerShare = 0, 0, 0
		case s.spec.Epochs > 0:
			l.Map.MaxEpochs = s.spec.MaxEpochs
		}
		return l
	}
	l.Kind = s.spec.Reduce
	l.Reduce = &taxonv1.ReduceTask{
		Range: i, Rule: s.spec.Rule, Set: uint32(max(s.spec.Set, 0)), Damping: s.spec.Damping,
		Certify: s.spec.Certify, V: s.in.v, X: taxonv1.NewRefs(s.from.x[i : i+1]),
		XPrev: taxonv1.NewRefs(s.from.xPrev[i : i+1]), Beta: s.spec.Beta,
		Seed: taskSeed(^seed, i, s.spec.Sweep),
	}
	return l
}

// place is where the committed attempt of a task wrote.
func (s *step) place(n uint32) taxonv1.Place {
	if planted("read the last attempt") {
		return taxonv1.Place{Step: s.number, Task: n, Attempt: s.tasks[n].attempt}
	}
	return taxonv1.Place{Step: s.number, Task: n, Attempt: s.tasks[n].committed}
}

// queue hands out the tasks of a step: first those that came back, then one that the
// asking worker ran last, then one without a home, then any; each list in newQueue's order.
// It may hold tasks that are no longer waiting; they are skipped.
type queue struct {
	again []uint32            // tasks that came back, in that order
	home  map[string][]uint32 // by worker
	free  []uint32            // without a home
	all   []uint32
}

const (
	longShare = 4 // a task of more than this part of a slot's share of a step is long
	fillers   = 4 // tasks a slot that fill the step's end
)

// newQueue orders the tasks for so many slots, so that a step ends even: first, longest
// first, those that are long beside a slot's share of the step; last, again longest first,
// the shortest few a slot; the others, mostly nearly all, in the plan's order. Neighbours in
// the plan share ancestors, whose vectors a worker that takes them one after the other
// does not lay out again.
func newQueue(cost []float64, home []string, slots int) queue {
	q := queue{home: map[string][]uint32{}, all: make([]uint32, len(cost))}
	total := 0.0
	for t, c := range cost {
		q.all[t] = uint32(t)
		total += c
	}
	long := total / float64(longShare*max(slots, 1))
	short := -1.0
	if last := fillers * slots; slots > 1 && last < len(cost) {
		short = slices.Sorted(slices.Values(cost))[last]
	}
	level := func(t uint32) float64 {
		if c := cost[t]; c > long || c < short {
			return c
		}
		return long
	}
	slices.SortStableFunc(q.all, func(a, b uint32) int { return cmp.Compare(level(b), level(a)) })
	for _, t := range q.all {
		if w := home[t]; w != "" {
			q.home[w] = append(q.home[w], t)
		} else {
			q.free = append(q.free, t)
		}
	}
	return q
}

// fresh says whether a task was never handed out.
func (s *step) fresh(t uint32) bool {
	return s.tasks[t].state == taskWaiting && s.tasks[t].attempt == 0
}

// pop takes the next task for a worker. fresh tells a task that was never handed out and
// due one that came back and may go out again. Amortised O(1) and the tasks in back-off.
func (q *queue) pop(worker string, fresh, due func(uint32) bool) (uint32, bool) {
	for i, t := range q.again {
		if due(t) {
			q.again = slices.Delete(q.again, i, i+1)
			return t, true
		}
	}
	return q.popFresh(worker, fresh)
}

// popFresh is pop but for those that came back.
func (q *queue) popFresh(worker string, fresh func(uint32) bool) (uint32, bool) {
	home := q.home[worker]
	for _, list := range []*[]uint32{&home, &q.free, &q.all} {
		for len(*list) > 0 {
			t := (*list)[0]
			*list = (*list)[1:]
			if fresh(t) {
				q.home[worker] = home
				return t, true
			}
		}
	}
	q.home[worker] = home
	return 0, false
}
