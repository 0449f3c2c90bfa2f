package machine

import (
	"errors"
	"fmt"
)

// A job whose committed values can't be recomputed goes back to its last checkpoint, or to its
// beginning. Its final bytes are the same, as they never depend on when things were computed.

// rollBack takes a job's tasks back and asks for its last checkpoint.
func (m *Machine) rollBack(j *job, reason string) {
	if j.Futile >= m.limits.MaxRollbacks {
		m.fail(j, fmt.Sprintf("%s; the job has rolled back %d times without getting further: look after the store, then resume the job", reason, j.Futile))
		return
	}
	again := j.Rollbacks > 0 && j.RolledTo == j.progress().Sweep
	m.decide(Record{Kind: recordRollback, Job: j.ID, Reason: clip(reason, maxLineBytes)})
	if again { // not one sweep since the last one: the checkpoint itself lacks values
		m.decide(Record{Kind: recordRolled, Job: j.ID})
		return
	}
	m.out = append(m.out, LoadJob{Job: j.ID})
}

func (m *Machine) applyRollback(j *job, r *Record) {
	j.note(r.At, levelWarn, "rolls back: %s", r.Reason)
	m.revoke(j, r.At)
	j.enter(stageRollBack, r.At)
	j.step, j.recomputes = nil, nil
	j.Rollbacks++
	j.Futile++
	m.out = append(m.out, Changed{})
}

// loaded continues from a job's last checkpoint.
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

// applyRolled puts a job back to a checkpoint's state, or to its beginning. What users have been
// told stays: the trace, the highest committed sweep. Step numbers never fall.
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
	j.driver.Reopen(false)
	j.Values, j.Past, j.CriteriaBefore = back.Values, back.Past, j.rolledCriteria(back)
	if j.StepNo = max(j.StepNo, back.StepNo); planted("number steps anew after a rollback") {
		j.StepNo = back.StepNo
	}
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

// outage handles a task that could not reach the store, or found it full: it is tried again,
// until no task of its job has succeeded for Limits.MaxOutage. Then the job fails, resumable.
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
		reason = fmt.Sprintf("store shards %v are down: start them again with their folders, then resume the job: %s", down, e.Error)
	}
	m.failTask(l, fmt.Sprintf("the store could not be used for %.0f s: %s", away.Seconds(), reason))
	return true
}
