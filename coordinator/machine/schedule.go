package machine

import (
	"cmp"
	"fmt"
	"slices"
)

// drain stops granting tasks to a worker. It may finish those that it has.
func (m *Machine) drain(e Drain) error {
	w, err := m.namedWorker(e.Worker)
	if err != nil {
		return err
	}
	if !w.draining {
		m.decide(Record{Kind: recordDrain, Worker: w.id, By: e.By})
	}
	m.out = append(m.out, Registered{Worker: w.id}, Wake{})
	return nil
}

// leastUsed returns the usage that a new job starts with: the least of the jobs in flight, so that
// it has no more rights than they have.
func (m *Machine) leastUsed(but *job) float64 {
	least, found := but.used, false
	for _, j := range m.jobs {
		if j != but && j.inFlight() && (!found || j.used < least) {
			least, found = j.used, true
		}
	}
	return least
}

// grant gives a worker a task, or up to most short ones. Among the running jobs with a waiting task
// it takes the one that holds the fewest slots, then the one that has used the fewest slot-seconds,
// then the oldest. So each job has its share of the slots or, where slots are fewer than jobs, its
// share over time. A job that waits for a shard gets no slot. If no task waits, a straggler may get
// a second attempt. With ahead set the slot still has work, and it gets only what the other slots
// can spare (see spare).
func (m *Machine) grant(worker string, most uint32, ahead bool) {
	w := m.worker(worker)
	if w.draining {
		return
	}
	var few [8]*job
	candidates := few[:0]
	for _, j := range m.jobs {
		if j.running() && (len(j.recomputes) > 0 || j.step.done+j.step.live < len(j.step.tasks)) && m.mayRun(j, w) &&
			m.blocked(j) == nil {
			candidates = append(candidates, j)
		}
	}
	slices.SortStableFunc(candidates, func(a, b *job) int {
		return cmp.Or(len(a.batches)-len(b.batches), cmp.Compare(a.used, b.used))
	})
	for _, j := range candidates {
		if ahead && (len(j.recomputes) > 0 || !j.step.spare(m.slots())) {
			continue
		}
		if len(j.recomputes) > 0 { // others may need the recomputed values
			if r := j.dueRecompute(m.now); r != nil {
				m.handOut(j, r.Step, r.Task, worker, 0)
				return
			}
			continue
		}
		s := j.step
		n, ok := s.queue.pop(worker, s.fresh,
			func(t uint32) bool { return s.tasks[t].state == taskWaiting && s.tasks[t].notBefore <= m.now })
		if !ok {
			continue
		}
		m.handOut(j, s.number, n, worker, 0)
		if s.tasks[n].attempt == 1 { // a task that was lost once goes alone: it may be the cause
			m.handOutMore(j, n, worker, most)
		}
		return
	}
	if len(m.workers) > 1 && !ahead {
		m.speculate(worker)
	}
}

// handOut leases a task of the current step or of a past one to a worker. The lease joins the batch
// given; a batch of 0 makes it the first of its own.
func (m *Machine) handOut(j *job, number, n uint32, worker string, batch uint64) {
	epoch := m.lastEpoch + 1
	m.decide(Record{Kind: recordGrant, Job: j.ID, Worker: worker, Step: number, Task: n, Epoch: epoch, Batch: batch})
	s := j.step
	if number != s.number {
		s = j.past(number).step()
		s.tasks[n].epoch = epoch
	}
	m.out = append(m.out, Grant{Lease: s.lease(j, n)})
}

// epochs lists the epochs of the live leases, ascending.
func (m *Machine) epochs() []uint64 {
	out := make([]uint64, 0, len(m.leases))
	for e := range m.leases {
		out = append(out, e)
	}
	slices.Sort(out)
	return out
}

// time handles what follows from time alone: silent workers, expired leases, the end of back-offs,
// and jobs whose time is up.
func (m *Machine) time() {
	for _, w := range slices.Clone(m.workers) {
		if m.silent(&w.contact) {
			m.decide(Record{Kind: recordGone, Worker: w.id, Reason: "silent"})
		}
	}
	m.loseSilentShards()
	for _, e := range m.epochs() {
		if l := m.leases[e]; l != nil && m.silent(&l.contact) {
			m.decide(Record{Kind: recordLost, Job: l.job.ID, Step: l.step, Task: l.task,
				Epoch: e, Loss: lossExpired, Reason: "lease expired"})
		}
	}
	for _, j := range m.jobs {
		if !j.running() {
			continue
		}
		if limit := j.run.MaxSeconds; limit > 0 && !j.TimeUp && j.spentAt(m.now).Seconds() >= limit {
			m.decide(Record{Kind: recordTimeUp, Job: j.ID})
		}
		m.checkIdle(j)
		m.checkLosses(j)
		if j.running() {
			m.checkStores(j)
		}
	}
	m.wakeIdle()
	m.retire()
}

// checkLosses fails a job if one of its tasks loses every worker that takes it. It wakes waiting
// requests if the back-off of a task is over.
func (m *Machine) checkLosses(j *job) {
	if j.step == nil { // its time was up, or it has failed
		return
	}
	for _, r := range j.recomputes {
		if r.Losses > m.limits.MaxLosses {
			m.rollBack(j, fmt.Sprintf("task %d of step %d, which is run again to make a lost value, lost its worker %d times",
				r.Task, r.Step, r.Losses))
			return
		}
		if r.Epoch == 0 && r.NotBefore <= m.now {
			m.out = append(m.out, Wake{})
		}
	}
	for _, n := range j.step.queue.again {
		t := &j.step.tasks[n]
		if t.losses > m.limits.MaxLosses {
			m.fail(j, fmt.Sprintf("step %d (%s), task %d lost its worker %d times: look at the workers' memory and logs",
				j.step.number, j.step.Phase, n, t.losses))
			return
		}
		if t.notBefore <= m.now {
			m.out = append(m.out, Wake{})
		}
	}
}

// These constants determine how much work a batch has. The calls around a task (report, lease,
// writes to the store) cost some milliseconds of CPU; a batch makes them once.
const (
	// batchSeconds bounds the work of a batch. A killed worker loses this much, and other slots may
	// wait this long.
	batchSeconds = 0.1
	// minSeconds is the least work of a batch near the end of a step. Slots may end this far apart.
	minSeconds = 0.01
)

// handOutMore gives a worker more tasks after the first one, while tasks are short and enough are
// left for the other slots. Results do not depend on it, because each task is computed and
// committed separately.
func (m *Machine) handOutMore(j *job, first uint32, worker string, most uint32) {
	s, batch := j.step, m.lastEpoch
	part, _ := s.part(first)
	op := part.Op
	for n := min(most, s.batch(first, m.slots())); n > 1; n-- {
		t, ok := s.queue.popFresh(worker, s.fresh)
		if !ok {
			return
		}
		m.handOut(j, s.number, t, worker, batch)
		if p, _ := s.part(t); p.Op != op {
			return
		}
	}
}

// batch returns the number of tasks like the first one that a slot should take together. It is half
// of a slot's share of the waiting tasks, so that batches become smaller towards the end of a step.
// It amounts to at least minSeconds of work if a slot's share has that much, and to at most
// batchSeconds. It is 1 while no times are known.
func (s *step) batch(first uint32, slots int) uint32 {
	each, known := s.expects(first)
	if !known {
		return 1
	}
	share := float64(len(s.tasks)-s.done-s.live) / float64(max(slots, 1))
	n := share / 2
	if each > 0 {
		n = min(max(n, min(share, minSeconds/each)), batchSeconds/each)
	}
	return uint32(max(n, 1))
}

// expects returns the expected CPU time of a task in seconds, from the step's finished tasks or
// from the item's last task.
func (s *step) expects(n uint32) (seconds float64, known bool) {
	p, _ := s.part(n)
	if p.pace.units > 0 {
		return p.pace.cpu / p.pace.units * s.unit(n), true
	}
	return s.cost[n], p.timed
}

// spare reports whether tasks of a step may go to a slot that still has work: they are short, and
// at least two per slot are waiting. So no slot idles while another holds tasks that it has not
// begun.
func (s *step) spare(slots int) bool {
	if len(s.tasks)-s.done-s.live < 2*slots {
		return false
	}
	finished, seconds := 0, 0.0
	for k := range s.parts {
		finished += len(s.parts[k].pace.times)
		seconds += s.parts[k].pace.cpu
	}
	return finished > 0 && seconds <= batchSeconds*float64(finished)
}

// stragglerFactor is how many times as long as the finished tasks of its step, scaled by cost, a
// task must take before an idle slot may run a second attempt. It is far above the spread of equal
// blocks. As in MapReduce, second attempts thus begin when most of the step is done.
const stragglerFactor = 3

// pace is the time that the finished tasks of a part took per unit of cost.
type pace struct {
	// times are seconds per unit, in order of ending.
	times []float64
	// median is the median of the first known entries of times.
	median float64
	known  int // length of times that median is of
	// cpu is the CPU seconds of the finished tasks, and units the sum of their costs.
	cpu   float64
	units float64 // and their costs
}

// unit returns the cost that a task's time is divided by. Unknown costs count as equal.
func (s *step) unit(n uint32) float64 {
	if c := s.cost[n]; c > 0 {
		return c
	}
	return 1
}

// finished records the time of a finished task, and its CPU time, in seconds.
func (s *step) finished(n uint32, seconds, cpu float64) {
	part, _ := s.part(n)
	p := &part.pace
	p.cpu += cpu
	p.units += s.unit(n)
	p.times = append(p.times, seconds/s.unit(n))
}

// speculateAfter returns how long an attempt may run before a second one is worth a slot. ok is
// false while no task of its part has finished.
func (s *step) speculateAfter(n uint32, floor Tick) (limit Tick, ok bool) {
	part, _ := s.part(n)
	p := &part.pace
	if len(p.times) == 0 {
		return 0, false
	}
	if p.known != len(p.times) {
		sorted := slices.Clone(p.times)
		slices.Sort(sorted)
		p.median, p.known = sorted[len(sorted)/2], len(sorted)
	}
	return max(Tick(float64(stragglerFactor*float64(p.median*s.unit(n)))*float64(second)), floor), true
}

// straggles reports whether a lease's task may have a second attempt, by another worker.
func (m *Machine) straggles(l *lease) bool {
	s := l.job.step
	if s == nil || !l.job.running() || l.step != s.number || s.tasks[l.task].live != 1 {
		return false
	}
	limit, ok := s.speculateAfter(l.task, m.limits.Straggler)
	// A second attempt would wait for a shard that is away just as long.
	return ok && m.now-l.granted > limit && len(m.away(l.job)) == 0
}

// speculate gives a worker for which no task waits a second attempt at the longest-running
// straggler. The first attempt to commit wins, and the worker of the other one learns it when it
// renews its lease.
func (m *Machine) speculate(worker string) {
	var best *lease
	for _, l := range m.leases { // the choice does not depend on the order
		if l.worker != worker && (best == nil || l.granted < best.granted || l.granted == best.granted &&
			l.epoch < best.epoch) && m.straggles(l) {
			best = l
		}
	}
	if best != nil && m.mayRun(best.job, m.worker(worker)) {
		m.handOut(best.job, best.step, best.task, worker, 0)
	}
}

// wakeIdle wakes idle workers once for each task that straggles.
func (m *Machine) wakeIdle() {
	if len(m.workers) < 2 {
		return
	}
	for _, l := range m.leases {
		if !l.woken && m.straggles(l) {
			l.woken = true
			m.out = append(m.out, Wake{})
		}
	}
}

// revokeDuplicates ends the other attempts at a task that is done.
func (m *Machine) revokeDuplicates(j *job, step, task uint32) {
	for _, l := range m.leases {
		if l.job == j && l.step == step && l.task == task {
			m.endLease(l, resultRevoked, m.now)
		}
	}
}
