package machine

// addLease adds a live lease.
func (m *Machine) addLease(l *lease) {
	m.leases[l.epoch] = l
	m.timeline.begin(l, len(m.workers))
	if l.job.batches == nil {
		l.job.batches = map[uint64]int{}
	}
	l.job.batches[l.batch]++
}

// endLease removes a live lease. A batch counts as one slot, however many tasks it holds.
func (m *Machine) endLease(l *lease, result string, at Tick) {
	m.timeline.end(l, result, at)
	if !planted("keep lost leases") || !m.silent(&l.contact) {
		delete(m.leases, l.epoch)
	}
	if l.job.batches[l.batch]--; l.job.batches[l.batch] == 0 {
		delete(l.job.batches, l.batch)
		l.job.used += (at - l.granted).Seconds()
	}
}

// revoke removes all live leases of a job.
func (m *Machine) revoke(j *job, at Tick) {
	for _, l := range m.leases {
		if l.job == j {
			m.endLease(l, resultRevoked, at)
		}
	}
}
