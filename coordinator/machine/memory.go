package machine

import (
	"errors"
	"fmt"
	"math"

	"taxon/internal/human"
)

// ErrTooLarge is wrapped by the refusal of a job that does not fit the memory given.
var ErrTooLarge = errors.New("the job does not fit")

// fits says whether a worker has the memory for a task of a job; one that did not tell its
// memory always has. What it would keep of blocks counts when the job is submitted, not
// here: where workers leave, the others go on.
func (m *Machine) fits(j *job, w *workerState) bool {
	return w.memory == 0 || j.estimate.Needs(w.slots, 0) <= w.memory
}

// warnOfMemory notes in the logs of jobs that a worker which joins gets none of their tasks.
func (m *Machine) warnOfMemory(w *workerState) {
	for _, j := range m.jobs {
		if !j.ended() && !m.fits(j, w) {
			m.decide(Record{Kind: recordNote, Job: j.ID, Reason: fmt.Sprintf("worker %s gets no tasks of this job: its %d slots need %s, it has %s",
				w.name, w.slots, atLeast(j.estimate.Needs(w.slots, 0)), atMost(w.memory))})
		}
	}
}

// tooLarge refuses a job that no registered worker, or not the stores together, can hold,
// with the numbers that would do. Who has not told its memory, or has not joined yet, may.
func (m *Machine) tooLarge(p *prepared, replicas uint32) error {
	best, all := uint64(0), uint32(m.slots())
	for _, w := range m.workers {
		if w.memory == 0 || p.estimate.Needs(w.slots, all) <= w.memory {
			best = 0
			break
		}
		best = max(best, w.memory)
	}
	if best > 0 {
		each := p.estimate.Needs(2, all) - p.estimate.Needs(1, all)
		return fmt.Errorf("%w the workers: a worker needs %s and %s for each slot (%s), garbage included; the largest has %s: "+
			"start workers with %s", ErrTooLarge, atLeast(p.estimate.Needs(1, all)-each), atLeast(each),
			p.estimate.SlotHolds, atMost(best), p.estimate.Fitting(best, all))
	}
	need, have := p.estimate.StoreJob*uint64(max(replicas, 1)), uint64(0)
	for _, s := range m.shards {
		if !s.up {
			continue
		}
		if s.heard.Capacity == 0 {
			return nil
		}
		have += s.heard.Capacity - min(s.heard.Bytes, s.heard.Capacity)
	}
	if have > 0 && need > have {
		return fmt.Errorf("%w the store: it needs about %s, the shards that are up have %s left: start more shards, or ask for fewer replicas",
			ErrTooLarge, atLeast(need), atMost(have))
	}
	return nil
}

// atLeast is a need, rounded up, and atMost what there is, rounded down: what does not
// suffice does not look as if it did.
func atLeast(n uint64) string { return human.BytesRounded(n, math.Ceil) }
func atMost(n uint64) string  { return human.BytesRounded(n, math.Floor) }
