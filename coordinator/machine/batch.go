package machine

// What the tasks of a batch should take together. The calls around a task (report, lease,
// writes to the store) cost some milliseconds of CPU in four processes and wake a hundred
// threads; a batch makes them once.
const (
	batchSeconds = 0.1  // at most: what a worker that is killed loses, and its slots wait for
	leastSeconds = 0.01 // of the last ones: by how much a step may end uneven
)

// handOutMore gives a worker more tasks along with a first one, while they are short and
// enough are left for the other slots. Results do not depend on it: each task is computed
// and committed on its own.
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

// batch is how many tasks like the first one a slot should take together: of the waiting
// ones half a slot's share, so that batches become smaller towards the step's end, but not
// less than leastSeconds while there is a share of that, and not more than batchSeconds. 1
// while nothing is known.
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

// spare says whether tasks of a step may go to a slot that works on others still: they are
// short, and enough wait for every slot to have two. So no slot waits for what another one
// has and has not begun.
func (s *step) spare(slots int) bool {
	if len(s.tasks)-s.done-s.live < 2*slots {
		return false
	}
	finished, seconds := 0, 0.0
	for k := range s.parts {
		finished += len(s.parts[k].pace.took)
		seconds += s.parts[k].pace.cpu
	}
	return finished > 0 && seconds <= batchSeconds*float64(finished)
}
