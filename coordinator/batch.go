package coordinator

// batchSeconds is what the tasks of a batch should take together. The calls around a task
// (report, lease, writes to the store) cost some milliseconds of CPU in four processes;
// a batch makes them once. What it takes bounds by how much a step can end uneven, and
// what a worker that is killed loses.
const batchSeconds = 0.05

// handOutMore gives a worker more tasks along with a first one, while they are short and
// enough are left for the other slots. Results do not depend on it: each task is computed
// and committed on its own.
func (m *Machine) handOutMore(j *job, first uint32, worker string, most uint32) {
	s, batch := j.step, m.lastEpoch
	for n := min(most, s.batch(first, m.slots())); n > 1; n-- {
		t, ok := s.queue.popFresh(worker, s.fresh)
		if !ok {
			return
		}
		m.handOut(j, s.number, t, worker, batch)
		if s.kindOf(t) != s.kindOf(first) {
			return
		}
	}
}

// batch is how many tasks like the first one a slot should take together: as many as take
// batchSeconds, by what the step's finished tasks took, but of the waiting ones only half
// a slot's share, so that the last ones go out singly. 1 while nothing is known.
func (s *step) batch(first uint32, slots int) uint32 {
	k := s.kindOf(first)
	if s.pace.units[k] == 0 {
		return 1
	}
	share := float64((len(s.tasks) - s.done - s.live) / (2 * max(slots, 1)))
	if each := s.pace.cpu[k] / s.pace.units[k] * s.unit(first); each > 0 {
		share = min(share, batchSeconds/each)
	}
	return uint32(max(share, 1))
}

// spare says whether tasks of a step may go to a slot that works on others still: they are
// short, and enough wait for every slot to have two. So no slot waits for what another one
// has and has not begun.
func (s *step) spare(slots int) bool {
	if len(s.tasks)-s.done-s.live < 2*slots {
		return false
	}
	finished, seconds := 0, 0.0
	for k := range s.pace.took {
		finished += len(s.pace.took[k])
		seconds += s.pace.cpu[k]
	}
	return finished > 0 && seconds <= batchSeconds*float64(finished)
}
