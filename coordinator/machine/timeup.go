package machine

import "taxon/coordinator/method"

// A job's time (max_seconds) is up in the midst of a step. Which tasks wait then depends on the
// clock, so one record says when it was: a replay finds the same tasks waiting.

// applyTimeUp shortens the step under way, and closes it if no task of it is left to wait for.
func (m *Machine) applyTimeUp(j *job, r *Record) {
	j.note(r.At, levelInfo, "the time is up: what is there is priced, and the job ends")
	j.TimeUp = true
	late := j.driver.TimeUp(true)
	s := j.step
	if s == nil { // of a foreign journal: it is decided while a step is under way
		return
	}
	for n := range s.tasks {
		t := &s.tasks[n]
		switch {
		case t.state != taskWaiting:
		case late == method.LateShort:
			p, _ := s.part(uint32(n))
			t.late = p.Late != nil
		case late == method.LateLeave:
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

// betterShare is the share of the last gap below which an earlier gap is worth telling:
// certificates go up and down a little.
const betterShare = 0.9

// betterSweep is the sweep with the least gap of a job whose time was up, if the final weights
// have a larger one; nil: there is none. The sweep that was cut short has moved the weights, and
// the sweeps that would have followed are missing.
func (j *job) betterSweep() *traceRecord {
	p := j.progress()
	if p.StoppedBy != method.StoppedByMaxTime || p.Certificate == nil {
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
