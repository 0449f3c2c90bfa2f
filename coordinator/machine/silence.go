package machine

// A worker or shard that is silent for the time of a lease is lost. So is a lease that is not
// renewed for that time.
//
// The clock of silence counts only time in which the coordinator could hear others. A stopped
// coordinator hears nobody, and its Time events come late. So at most Limits.MaxSilenceStep of
// the time between two of them counts: what was sent meanwhile is heard before the lease ends. A
// slow journal changes nothing, because calls are heard before they wait for it.
//
// A caller that waits for an answer is not silent. A worker learns its id and its leases only
// when their records are durable.

// contact is the time of a member's last sign of life, on the clock of Machine.listening.
type contact struct {
	at     Tick
	record uint64 // while this record is not durable, the caller waits for its answer; 0: none
}

// listening is how long this machine could hear others so far.
func (m *Machine) listening() Tick {
	gap := m.now - m.lastTick
	if !planted("standing still is silence") {
		gap = min(gap, m.limits.MaxSilenceStep)
	}
	return m.listened + gap
}

// contactAtRecord is the contact of a caller whose answer waits for the last record.
func (m *Machine) contactAtRecord() contact { return contact{m.listening(), m.records} }

// contactNow is the contact of a caller.
func (m *Machine) contactNow() contact { return contact{at: m.listening()} }

// tick moves the clock of silence forward; pending is that of the Time event.
func (m *Machine) tick(pending uint64) {
	if pending == 0 || !planted("nobody is silent while the journal is written") {
		m.listened = m.listening()
	}
	m.lastTick = m.now
	m.durable = m.records - min(pending, m.records)
}

// silent says whether a member was silent for a lease. It is called after tick.
func (m *Machine) silent(p *contact) bool {
	if p.record > m.durable && !planted("waiting for the journal is silence") {
		p.at = m.listened
	}
	return m.listened-p.at >= m.limits.Lease
}
