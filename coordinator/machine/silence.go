package machine

// Whoever is silent for a lease is lost, and so is a lease that nobody renews. Silence is
// measured in time for which the coordinator could hear. A process that was stopped hears
// nobody: Time comes late then, and of the time between two of them no more than Limits.Gap
// counts. Whatever was sent meanwhile is heard before the rest of the lease is over. A journal
// that is slow is no such excuse, as calls are heard before they wait for it. But who waits
// for an answer is not silent: a worker learns its id, and its leases, when they are durable.

// pulse is when somebody was heard last, by the time for which the coordinator could hear.
type pulse struct {
	at Tick
	// record is the number of the record of which there is no answer yet as long as it is not
	// durable; 0: all is answered.
	record uint64
}

// listening is for how long this machine could hear others, until now.
func (m *Machine) listening() Tick {
	gap := m.now - m.struck
	if !planted("standing still is silence") {
		gap = min(gap, m.limits.Gap)
	}
	return m.listened + gap
}

// told is the pulse of somebody whom the last record is about.
func (m *Machine) told() pulse { return pulse{m.listening(), m.records} }

// heard is the pulse of somebody who calls.
func (m *Machine) heard() pulse { return pulse{at: m.listening()} }

// strike lets the clock strike; pending is that of Time.
func (m *Machine) strike(pending uint64) {
	if pending == 0 || !planted("nobody is silent while the journal is written") {
		m.listened = m.listening()
	}
	m.struck = m.now
	m.durable = m.records - min(pending, m.records)
}

// silent says whether somebody was silent for a lease. The clock has just struck.
func (m *Machine) silent(p *pulse) bool {
	if p.record > m.durable && !planted("waiting for the journal is silence") {
		p.at = m.listened
	}
	return m.listened-p.at >= m.limits.Lease
}
