package machine

import "taxon/coordinator/method"

// Which tasks nobody has when max_seconds are used up depends on the clock, so it is
// journaled by one record: whoever replays it finds the same tasks waiting.

// applyTimeUp shortens the step under way, and closes it if nothing of it is left to wait for.
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
			t.cut = p.Late != nil
		case late == method.LateLeave:
			t.state = taskLeft
			s.done++
			s.left++
		}
	}
	m.out = append(m.out, Changed{})
	if s.done == len(s.tasks) {
		m.commitStep(j, r.At)
	}
}

// betterShare is what an earlier gap has to be below, as a share of the last one, to be
// worth a word: certificates go up and down a little.
const betterShare = 0.9

// better is the sweep of the least gap of a job whose time was up, if that is below the gap of
// the weights: the sweep that was cut short had moved them, and was to be followed by others.
// nil: there is none.
func (j *job) better() *traceRecord {
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

// cuts lists, ascending, the tasks of a step that were late.
func (s *step) cuts() (out []uint32) {
	for n := range s.tasks {
		if s.tasks[n].cut {
			out = append(out, uint32(n))
		}
	}
	return out
}
