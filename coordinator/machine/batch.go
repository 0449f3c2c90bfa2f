package machine

// What the tasks of a batch should take together. The calls around a task (report, lease,
// writes to the store) cost some milliseconds of CPU; a batch makes them once.
const (
	batchSeconds = 0.1  // at most: a worker that is killed loses so much, and other slots may wait so long
	leastSeconds = 0.01 // at least, near the end of a step: slots may end so far apart
)

// handOutMore gives a worker more tasks with the first one, while tasks are short and enough
// are left for the other slots. Results do not depend on it: each task is computed and committed
// on its own.
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

// batch is how many tasks like the first one a slot should take together: half a slot's share of
// those that wait, so batches become smaller towards the step's end. It is at least leastSeconds
// of work, if a slot's share is so much, and at most batchSeconds. It is 1 while no times are
// known.
func (s *step) batch(first uint32, slots int) uint32 {
	each, known := s.expects(first)
	if !known {
		return 1
	}
	share := float64(len(s.tasks)-s.done-s.live) / float64(max(slots, 1))
	n := share / 2
	if each > 0 {
		n = min(max(n, min(share, leastSeconds/each)), batchSeconds/each)
	}
	return uint32(max(n, 1))
}

// expects is how many CPU seconds a task should take, by what the step's finished ones
// took, or by its own last time.
func (s *step) expects(n uint32) (seconds float64, known bool) {
	p, _ := s.part(n)
	if p.pace.units > 0 {
		return p.pace.cpu / p.pace.units * s.unit(n), true
	}
	return s.cost[n], p.timed
}

// spare says whether tasks of a step may go to a slot that has work still: they are short, and
// so many wait that each slot can have two. So no slot idles while another one holds tasks that
// it has not begun.
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
