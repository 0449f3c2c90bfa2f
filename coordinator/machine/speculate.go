package machine

import "slices"

// stragglerFactor: a task that takes so many times what its step's finished tasks took,
// scaled by its cost, gets a second attempt when a slot idles. Three is MapReduce's habit
// of waiting until the rest is done, and far from the spread of equal blocks (below two).
const stragglerFactor = 3

// pace is how long the finished tasks of a part of a step took, a unit of cost.
type pace struct {
	times  []float64 // seconds a unit, in order of ending
	median float64
	known  int     // length of times that median is of
	cpu    float64 // seconds of the finished ones
	units  float64 // and their costs
}

// unit is the cost that a task's time is divided by; costs that are not known are equal.
func (s *step) unit(n uint32) float64 {
	if c := s.cost[n]; c > 0 {
		return c
	}
	return 1
}

// finished notes the time of a finished task, and the CPU's share of it.
func (s *step) finished(n uint32, seconds, cpu float64) {
	part, _ := s.part(n)
	p := &part.pace
	p.cpu += cpu
	p.units += s.unit(n)
	p.times = append(p.times, seconds/s.unit(n))
}

// patience is how long an attempt may run before a second one is worth a slot; ok is false
// while no task of its part has finished.
func (s *step) patience(n uint32, floor Tick) (limit Tick, ok bool) {
	part, _ := s.part(n)
	p := &part.pace
	if len(p.times) == 0 {
		return 0, false
	}
	if p.known != len(p.times) {
		sorted := slices.Clone(p.times)
		slices.Sort(sorted)
		p.median, p.known = sorted[len(sorted)/2], len(sorted)
	}
	return max(Tick(float64(stragglerFactor*float64(p.median*s.unit(n)))*float64(second)), floor), true
}

// straggles says whether a lease's task may have a second attempt, by another worker.
func (m *Machine) straggles(l *lease) bool {
	s := l.job.step
	if s == nil || !l.job.running() || l.step != s.number || s.tasks[l.task].live != 1 {
		return false
	}
	limit, ok := s.patience(l.task, m.limits.Straggler)
	// A second attempt would wait for a shard that is away just as long.
	return ok && m.now-l.granted > limit && len(m.away(l.job)) == 0
}

// speculate gives a worker for which nothing waits a second attempt at the task that is
// longest overdue. First to commit wins; the other is told that it lost at its renewal.
func (m *Machine) speculate(worker string) {
	var best *lease
	for _, l := range m.leases { // the choice does not depend on the order
		if l.worker != worker && (best == nil || l.granted < best.granted || l.granted == best.granted && l.epoch < best.epoch) && m.straggles(l) {
			best = l
		}
	}
	if best != nil && m.suits(best.job, m.worker(worker)) {
		m.handOut(best.job, best.step, best.task, worker, 0)
	}
}

// wakeIdle wakes idle workers once for each task that straggles.
func (m *Machine) wakeIdle() {
	if len(m.workers) < 2 {
		return
	}
	for _, l := range m.leases {
		if !l.woken && m.straggles(l) {
			l.woken = true
			m.out = append(m.out, Wake{})
		}
	}
}

// revokeDuplicates takes away the other attempts at a task that is done.
func (m *Machine) revokeDuplicates(j *job, step, task uint32) {
	for _, l := range m.leases {
		if l.job == j && l.step == step && l.task == task {
			m.endLease(l, m.now)
		}
	}
}
