package machine

import (
	"cmp"
	"fmt"
	"slices"
)

// drain lets a worker finish what it has and gives it no more.
func (m *Machine) drain(id string) error {
	w, err := m.namedWorker(id)
	if err != nil {
		return err
	}
	if !w.draining {
		m.decide(Record{Kind: recordDrain, Worker: w.id})
	}
	m.out = append(m.out, Registered{Worker: w.id}, Wake{})
	return nil
}

// leastUsed is what a job that starts begins with: no more rights than the others have.
func (m *Machine) leastUsed(but *job) float64 {
	least, found := but.used, false
	for _, j := range m.jobs {
		if j != but && j.inFlight() && (!found || j.used < least) {
			least, found = j.used, true
		}
	}
	return least
}

// grant hands a worker a task, or several short ones, at most so many. It takes the running
// job that holds the fewest slots and has a task waiting; among equals the one that has used
// the fewest slot-seconds, then the oldest. So each job has its share of the slots, over time
// also where there are fewer slots than jobs. If nothing waits, a straggler may get a second
// attempt. With ahead the slot has work still, and gets only what others can spare (see spare).
// A job that waits for a shard gets no slot.
func (m *Machine) grant(worker string, most uint32, ahead bool) {
	w := m.worker(worker)
	if w.draining {
		return
	}
	var few [8]*job
	candidates := few[:0]
	for _, j := range m.jobs {
		if j.running() && (len(j.recomputes) > 0 || j.step.done+j.step.live < len(j.step.tasks)) && m.suits(j, w) && m.blocked(j) == nil {
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
		if len(j.recomputes) > 0 { // others may need what is made again
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
		if s.tasks[n].attempt == 1 { // what was lost once goes alone: it may be to blame
			m.handOutMore(j, n, worker, most)
		}
		return
	}
	if len(m.workers) > 1 && !ahead {
		m.speculate(worker)
	}
}

// handOut leases a task of the step under way, or of a past one, to a worker: with those
// of a batch, or (0) as the first one of its own.
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

// epochs lists the live leases' epochs, ascending.
func (m *Machine) epochs() []uint64 {
	out := make([]uint64, 0, len(m.leases))
	for e := range m.leases {
		out = append(out, e)
	}
	slices.Sort(out)
	return out
}

// time handles what follows from the time alone: silent workers, expired leases, tasks whose
// back-off is over, jobs whose time is up.
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
		if limit := j.spec.GetOptions().GetMaxSeconds(); limit > 0 && !j.TimeUp && j.spentAt(m.now).Seconds() >= limit {
			m.decide(Record{Kind: recordTimeUp, Job: j.ID})
		}
		m.checkLosses(j)
		if j.running() {
			m.checkStores(j)
		}
	}
	m.wakeIdle()
	m.retire()
}

// checkLosses fails a job whose task loses every worker it goes to, and wakes askers for
// tasks whose back-off is over.
func (m *Machine) checkLosses(j *job) {
	if j.step == nil { // its time was up, or it has failed
		return
	}
	for _, r := range j.recomputes {
		if r.Losses > m.limits.MaxLosses {
			m.rollBack(j, fmt.Sprintf("task %d of step %d, which is run again to make a lost value, lost its worker %d times", r.Task, r.Step, r.Losses))
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
