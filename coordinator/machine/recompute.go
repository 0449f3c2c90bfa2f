package machine

import (
	"errors"
	"fmt"
	"slices"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Values that the store has lost are recomputed. The bytes that a task writes follow from what it
// reads. So the committed attempt runs once more under its own number, and writes the same values.
// The store acknowledges those that it still has without change. For this a job keeps the layout of
// the steps that it refers to and, with Limits.KeepInputs, what their tasks read. If that is lost
// too, the job rolls back.

const (
	// maxRecomputes bounds how often one task is recomputed. A store that keeps losing
	// acknowledged values is broken.
	maxRecomputes = 5
	// maxLost bounds the lost values of a report.
	maxLost = 4096
)

// pastStep is the layout of a committed step: what is needed to run one of its tasks again.
type pastStep struct {
	Number uint32
	Step   method.Step
	// From holds the places of the values that its tasks read.
	From     values
	Attempts []uint32
	// Late lists the tasks that were late; see task.late.
	Late []uint32 `json:",omitempty"`
}

// recompute is a task of a past step that runs again.
type recompute struct {
	Step, Task uint32
	// Epoch is the epoch of the live lease. It is zero while the task waits.
	Epoch     uint64 `json:",omitempty"`
	NotBefore Tick   `json:",omitempty"`
	Losses    uint32 `json:",omitempty"`
	Errors    uint32 `json:",omitempty"`
}

// past returns the past step of a number, or nil if it is not kept.
func (j *job) past(number uint32) *pastStep {
	for i := range j.Past {
		if j.Past[i].Number == number {
			return &j.Past[i]
		}
	}
	return nil
}

// valid reports whether a past step that was read from a journal fits the plan.
func (p *pastStep) valid(plan *method.Plan) bool {
	tasks := uint64(0)
	for _, t := range p.Step.Tasks {
		tasks += uint64(t.Count)
		if uint64(t.First)+uint64(t.Count) > uint64(plan.List(t.Items).Count) {
			return false
		}
		for _, r := range t.Reads {
			family, versions := plan.Variable(r.Value), p.From[r.Value]
			if family == nil || r.Back < 0 || r.Back >= len(versions) || len(versions[r.Back]) != plan.List(family.Items).Count {
				return false
			}
		}
	}
	return uint64(len(p.Attempts)) == tasks && !slices.ContainsFunc(p.Late,
		func(n uint32) bool { return uint64(n) >= tasks })
}

// step returns the past step in the form that leases are written from.
func (p *pastStep) step() *step {
	s := layOut(p.Step, p.Number, p.From)
	for n, attempt := range p.Attempts {
		s.tasks[n].attempt = attempt
	}
	for _, n := range p.Late {
		s.tasks[n].late = true
	}
	return s
}

// keepPast keeps a step that is being closed, and drops past steps that nothing refers to any more.
func (j *job) keepPast(s *step, attempts []uint32) {
	j.Past = append(j.Past, pastStep{Number: s.number, Step: s.Step, From: s.from, Attempts: attempts,
		Late: s.lateTasks()})
	used := j.referred()
	j.Past = slices.DeleteFunc(j.Past, func(p pastStep) bool { return !slices.Contains(used, p.Number) })
}

// findRecompute returns the recomputation of a task, or nil if there is none.
func (j *job) findRecompute(step, task uint32) *recompute {
	for i := range j.recomputes {
		if r := &j.recomputes[i]; r.Step == step && r.Task == task {
			return r
		}
	}
	return nil
}

// recomputeLost handles a report of lost values. They are recomputed if all of them can be;
// otherwise the job rolls back.
func (m *Machine) recomputeLost(l *lease, e Report) {
	j := l.job
	lost := lostValues(e, j)
	slices.SortFunc(lost, func(a, b taxonv1.Place) int {
		if a.Step != b.Step {
			return int(int64(a.Step) - int64(b.Step))
		}
		return int(int64(a.Task) - int64(b.Task))
	})
	lost = slices.Compact(lost)
	for _, p := range lost {
		past := j.past(p.Step)
		if past == nil || int(p.Task) >= len(past.Attempts) || past.Attempts[p.Task] != p.Attempt ||
			j.Recomputes[recomputeKey(p.Step, p.Task)] >= maxRecomputes {
			m.rollBack(j, fmt.Sprintf("the store has lost a value of step %d, task %d, attempt %d, and what "+
				"it was made from: %s", p.Step, p.Task, p.Attempt, e.Error))
			return
		}
	}
	m.decide(Record{Kind: recordMissing, Job: j.ID, Step: l.step, Task: l.task, Epoch: l.epoch,
		Reason: clip(e.Error, maxLineBytes), Lost: lost})
}

// lostValues returns the values of committed steps among those that a report calls lost. No task
// can recompute the others, such as uploaded data; losing them is an ordinary error.
func lostValues(e Report, j *job) []taxonv1.Place {
	lost := slices.Clone(e.Lost[:min(len(e.Lost), maxLost)])
	return slices.DeleteFunc(lost, func(p taxonv1.Place) bool { return p.Step == 0 || p.Step >= j.StepNo })
}

// recomputeKey returns the key of a task in jobState.Recomputes.
func recomputeKey(step, task uint32) uint64 { return uint64(step)<<32 | uint64(task) }

// applyMissing queues the tasks that made lost values, before all others.
func (m *Machine) applyMissing(j *job, r *Record) error {
	l := m.leases[r.Epoch]
	if l == nil || l.job != j {
		return fmt.Errorf("job %s: record missing has no lease %d", j.ID, r.Epoch)
	}
	j.noteTask(r.At, levelWarn, l, fmt.Sprintf("lost values are recomputed (%d): %s", len(r.Lost), r.Reason))
	m.loseTask(l, lossValue, r.Reason, r.At)
	for _, p := range r.Lost {
		if j.past(p.Step) == nil {
			return fmt.Errorf("job %s: record missing names step %d, which is not kept", j.ID, p.Step)
		}
		if j.findRecompute(p.Step, p.Task) == nil {
			j.recomputes = append(j.recomputes, recompute{Step: p.Step, Task: p.Task})
			if j.Recomputes == nil {
				j.Recomputes = map[uint64]uint32{}
			}
			j.Recomputes[recomputeKey(p.Step, p.Task)]++
		}
	}
	return nil
}

// dropRecomputes drops recomputations of steps that nothing refers to any more. The current step
// was finished without them, by attempts that had read the values before they were lost.
func (m *Machine) dropRecomputes(j *job, at Tick) {
	j.recomputes = slices.DeleteFunc(j.recomputes, func(r recompute) bool {
		if j.past(r.Step) != nil {
			return false
		}
		if l := m.leases[r.Epoch]; l != nil {
			m.endLease(l, resultRevoked, at)
		}
		return true
	})
}

// dueRecompute returns the recomputation to grant next: the last one that is due, because those
// before it may need its values.
func (j *job) dueRecompute(now Tick) *recompute {
	for i := len(j.recomputes) - 1; i >= 0; i-- {
		if r := &j.recomputes[i]; r.Epoch == 0 && r.NotBefore <= now {
			return r
		}
	}
	return nil
}

// recomputed ends a recomputation: the store has the value again.
func (m *Machine) recomputed(j *job, l *lease, at Tick) {
	m.endLease(l, resultDone, at)
	j.recomputes = slices.DeleteFunc(j.recomputes, func(r recompute) bool { return r.Step == l.step && r.Task == l.task })
	j.Recomputed++
	m.out = append(m.out, Changed{}, Wake{})
}

// loseRecompute makes a recomputation whose attempt was lost wait again, with a back-off.
func (m *Machine) loseRecompute(l *lease, how loss, at Tick) {
	m.endLease(l, how.result(), at)
	r := l.job.findRecompute(l.step, l.task)
	if r == nil {
		return
	}
	r.Epoch, r.NotBefore = 0, at
	switch how {
	case lossExpired:
		r.Losses++
	case lossError:
		r.Errors++
	}
	if how != lossReturned {
		r.NotBefore += min(m.limits.Backoff<<min(r.Losses+r.Errors, 20), m.limits.MaxBackoff)
	}
	m.out = append(m.out, Wake{})
}

// A job whose committed values can't be recomputed returns to its last checkpoint, or to its
// beginning. Its final bytes are the same, because they never depend on when things were
// computed.

// rollBack revokes a job's tasks and asks for its last checkpoint.
func (m *Machine) rollBack(j *job, reason string) {
	if j.Futile >= m.limits.MaxRollbacks {
		m.fail(j, fmt.Sprintf("%s; the job has rolled back %d times without getting further: look after the store, "+
			"then resume the job", reason, j.Futile))
		return
	}
	again := j.Rollbacks > 0 && j.RolledTo == j.progress().Sweep
	m.decide(Record{Kind: recordRollback, Job: j.ID, Reason: clip(reason, maxLineBytes)})
	if again {
		// no sweep since the last rollback, so the checkpoint itself lacks values
		m.decide(Record{Kind: recordRolled, Job: j.ID})
		return
	}
	m.out = append(m.out, LoadJob{Job: j.ID})
}

// applyRollback stops the current step of a job that waits for its checkpoint.
func (m *Machine) applyRollback(j *job, r *Record) {
	j.note(r.At, levelWarn, "rolls back: %s", r.Reason)
	m.revoke(j, r.At)
	j.enter(stageRollBack, r.At)
	j.step, j.recomputes = nil, nil
	j.Rollbacks++
	j.Futile++
	m.out = append(m.out, Changed{})
}

// loaded continues a job from its last checkpoint.
func (m *Machine) loaded(e Loaded) {
	j := m.find(e.Job)
	if j == nil || j.stage != stageRollBack { // cancelled meanwhile
		return
	}
	if e.Err != "" {
		m.fail(j, "its last checkpoint can't be read: "+e.Err)
		return
	}
	if len(e.State) > 0 {
		back, err := reviveJob(e.State)
		if err == nil && back.ID != j.ID {
			err = fmt.Errorf("it is of job %s", back.ID)
		} else if err == nil && !sameSpec(back.Spec, j.Spec) {
			err = errors.New("it is of another job of this id")
		}
		if err != nil {
			m.fail(j, fmt.Sprintf("its last checkpoint can't be used: %v", err))
			return
		}
	}
	m.decide(Record{Kind: recordRolled, Job: j.ID, Payload: e.State})
}

// applyRolled resets a job to a checkpoint's state, or to its beginning. It keeps what users have
// seen, the trace and the highest committed sweep. Step numbers never decrease.
func (m *Machine) applyRolled(j *job, r *Record) error {
	var back *job
	var err error
	if len(r.Payload) > 0 {
		back, err = reviveJob(r.Payload)
	} else {
		back, err = newJob(j.ID, j.prepared)
	}
	if err != nil {
		return err
	}
	if j.driver, err = j.method.Driver(j.spec, j.plan, back.driver.State()); err != nil {
		return err
	}
	j.driver.TimeUp(j.TimeUp)
	j.driver.Resume(false)
	j.Values, j.Past, j.CriteriaBefore = back.Values, back.Past, j.rolledCriteria(back)
	j.StepNo = max(j.StepNo, back.StepNo)
	j.FinalStep, j.FinalAttempts, j.Recomputes = 0, nil, nil
	j.lastCommitted, j.lastAttempts = 0, nil
	j.Lost = false
	j.enter(stageTrain, r.At)
	j.RolledTo = j.progress().Sweep
	j.note(r.At, levelWarn, "goes on behind sweep %d", j.RolledTo-1)
	m.openStep(j, r.At)
	m.out = append(m.out, DropSteps{Job: j.ID, Keep: j.keepSteps(), Before: j.StepNo})
	return nil
}

// outage handles a report that the store is away or full. It returns false while the task may be
// tried again. When no task of the job has succeeded for Limits.MaxOutage, it fails the job, which
// can be resumed, and returns true.
func (m *Machine) outage(l *lease, e Report) bool {
	j := l.job
	away := m.listening() - j.awaySince
	if j.awaySince == 0 {
		j.awaySince, away = m.listening(), 0
	}
	j.awayWhy = e.Error
	if away < m.limits.MaxOutage {
		return false
	}
	reason := e.Error
	if down := m.away(j); len(down) > 0 {
		reason = fmt.Sprintf("store shards %v are down: start them again with their folders, then resume the job: %s", down,
			e.Error)
	}
	m.failTask(l, fmt.Sprintf("the store could not be used for %.0f s: %s", away.Seconds(), reason))
	return true
}
