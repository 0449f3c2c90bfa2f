package coordinator

// When max_seconds are used up in the midst of a sweep, what nobody has begun is left out,
// and what is there is priced: the job ends with a certificate of the weights that it has by
// then. It overruns by the tasks that are under way, one pass over the data for each
// terminal without any epochs, the sums of the internals, and the writing of the weights.
//
// By the step that is under way:
//
//	solve of a priced sweep   tasks that nobody has only price; the sweep ends as it would
//	solve of another, set     they are left out, and their blocks stay as they were; then all
//	                          terminals are priced at the internals that they were solved at
//	reduce of another         its ranges are left out, its result is dropped; as above
//	guard                     dropped: the certificate of its sweep is known
//	all others                go on: they are what the job ends with
//
// Which tasks these are depends on the clock, so it is journaled by one record: whoever
// replays it finds the same tasks waiting.

// applyTimeUp shortens the step under way, and closes it if nothing of it is left to wait for.
func (m *Machine) applyTimeUp(j *job, r *Record) {
	j.note(r.At, levelInfo, "the time is up: what is there is priced, and the job ends")
	cut, left := j.outer.cuts(), j.outer.leaves()
	j.outer.Force, j.outer.Short = true, true
	s := j.step
	if s == nil { // of a foreign journal: it is decided while a step is under way
		return
	}
	for n := range s.tasks {
		t := &s.tasks[n]
		switch {
		case t.state != taskWaiting:
		case cut:
			t.cut = true
		case left:
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
	if j.outer.StoppedBy != stoppedByTime || !j.outer.Certified {
		return nil
	}
	var best *traceRecord
	least := float64(betterShare * j.outer.Last.Gap)
	for n := range j.Trace {
		if c := j.Trace[n].Certificate; c != nil && !c.PrimalOnly && c.Gap < least {
			best, least = &j.Trace[n], c.Gap
		}
	}
	return best
}

// cuts lists, ascending, the tasks of a step that only price.
func (s *step) cuts() (out []uint32) {
	for n := range s.tasks {
		if s.tasks[n].cut {
			out = append(out, uint32(n))
		}
	}
	return out
}

// cuts says whether tasks of the step under way can price without solving.
func (o *outer) cuts() bool { return o.Stage == stageSolve && o.Price }

// leaves says whether tasks of the step under way can be left out.
func (o *outer) leaves() bool {
	switch o.Stage {
	case stageSolve, stageReduce:
		return !o.Price
	case stageSet, stageGuard:
		return true
	}
	return false
}

// shorten has a job whose time is up, and that stands between two steps, solve nothing more.
func (o *outer) shorten() {
	switch {
	case !o.Short:
	case o.Stage == stageSolve, o.Stage == stageSet, o.Stage == stageReduce && !o.Price:
		o.priceNow()
	}
}

// priceNow goes to the pricing of the terminals as they are, in a sweep that is not priced so far.
func (o *outer) priceNow() {
	o.Stage, o.Price = stagePrice, true
	o.Primal, o.Dual, o.Inner = 0, 0, 0
}
