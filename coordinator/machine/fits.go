package machine

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"taxon/coordinator/footprint"
	"taxon/internal/ui/format"
)

// ErrTooLarge is wrapped by the refusal of a job that does not fit the memory of the workers or of
// the store.
var ErrTooLarge = errors.New("the job does not fit")

// fits reports whether a worker has the memory for tasks of a job in all its slots. A worker whose
// memory is unknown has.
func (m *Machine) fits(j *job, w *workerState) bool {
	return w.memory == 0 || footprint.Needs(j.estimate, w.slots) <= w.memory
}

// warnOfMemory notes in the logs of jobs that a joining worker is too small for their tasks.
func (m *Machine) warnOfMemory(w *workerState) {
	for _, j := range m.jobs {
		if !j.ended() && !m.fits(j, w) {
			m.decide(Record{Kind: recordNote, Job: j.ID, Reason: fmt.Sprintf("worker %s gets no tasks of this job: "+
				"its %s %s, it has %s",
				w.name, format.Counted(int64(w.slots), "slot needs", "slots need"), atLeast(footprint.Needs(j.estimate, w.slots)),
				atMost(w.memory))})
		}
	}
}

// checkFits refuses a job if no registered worker can hold it, or if the stores together can't. The
// error says what would suffice. Processes that have not joined yet, or whose memory is unknown,
// may be large enough.
func (m *Machine) checkFits(p *prepared, replicas uint32) error {
	best := uint64(0)
	for _, w := range m.workers {
		if w.memory == 0 || footprint.Needs(p.estimate, w.slots) <= w.memory {
			best = 0
			break
		}
		best = max(best, w.memory)
	}
	if best > 0 {
		each := footprint.Needs(p.estimate, 2) - footprint.Needs(p.estimate, 1)
		return fmt.Errorf("%w the workers: a worker needs %s and %s for each slot (%s), garbage included; "+
			"the largest has %s: "+
			"start workers with %s", ErrTooLarge, atLeast(footprint.Needs(p.estimate, 1)-each), atLeast(each),
			p.estimate.SlotHolds, atMost(best), footprint.Fitting(p.estimate, best))
	}
	need, have := p.estimate.StoreJob*uint64(max(replicas, 1)), uint64(0)
	for _, s := range m.shards {
		if !s.up {
			continue
		}
		if s.lastReport.Capacity == 0 {
			return nil
		}
		have += s.lastReport.Capacity - min(s.lastReport.Bytes, s.lastReport.Capacity)
	}
	if have > 0 && need > have {
		return fmt.Errorf("%w the store: it needs about %s, the shards that are up have %s left: start more shards, or "+
			"ask for fewer replicas",
			ErrTooLarge, atLeast(need), atMost(have))
	}
	return nil
}

// atLeast formats a requirement in bytes, rounded up, and atMost what is available, rounded down.
// So too little never looks like enough.
func atLeast(n uint64) string { return format.BytesRounded(n, math.Ceil) }
func atMost(n uint64) string  { return format.BytesRounded(n, math.Floor) }

// A worker may be unable to run a job's tasks although others can: its cache is too small for the
// data, or it does not see the data's folder. Such a worker gets no more of the job's tasks. The
// job fails only if no worker can run its first task.

// unfit handles a report that a worker can't run a job's tasks.
func (m *Machine) unfit(l *lease, e Report) {
	j, w := l.job, m.worker(l.worker)
	if j.unfit == nil {
		j.unfit = map[string]bool{}
	}
	if !j.unfit[w.id] {
		j.unfit[w.id] = true
		m.decide(Record{Kind: recordNote, Job: j.ID, Reason: clip(fmt.Sprintf("worker %s gets no tasks of this job, as "+
			"it can't do them: %s", w.name, e.Error), maxLineBytes)})
	}
	if j.Committed == 0 && j.step.done == 0 && j.step.number == 1 && !m.anyFit(j) {
		m.failTask(l, e.Error)
		return
	}
	m.decide(Record{Kind: recordLost, Job: j.ID, Step: l.step, Task: l.task, Epoch: l.epoch, Loss: lossReturned,
		Reason: e.Error})
}

// anyFit reports whether some worker may run a job's tasks.
func (m *Machine) anyFit(j *job) bool {
	return slices.ContainsFunc(m.workers, func(w *workerState) bool { return !w.draining && m.mayRun(j, w) })
}

// mayRun reports whether a worker may get tasks of a job.
func (m *Machine) mayRun(j *job, w *workerState) bool { return !j.unfit[w.id] && m.fits(j, w) }
