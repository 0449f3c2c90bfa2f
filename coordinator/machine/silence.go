package machine

// A worker or shard that is silent for the time of a lease is lost. So is a lease that is not
// renewed for that time.
//
// Silence is measured on a clock that counts only time in which the coordinator could hear others.
// A stopped coordinator hears nobody, and its Time events are late. So at most
// Limits.MaxSilenceStep of the time between two of them counts, and calls that were sent meanwhile
// are handled before a lease expires. A slow journal has no influence, because calls are counted
// as heard before they wait for it.
//
// A caller that waits for an answer is not silent: a worker learns its id and its leases only when
// their records are durable.

// contact is the time of a member's last sign of life, on the clock of Machine.listening.
type contact struct {
	at Tick
	// record is the number of the record that the member's answer waits for. While it is not
	// durable, the member is not silent. Zero means that no answer is waiting.
	record uint64
}

// listening returns for how long this machine could hear others so far.
func (m *Machine) listening() Tick {
	return m.listened + min(m.now-m.lastTick, m.limits.MaxSilenceStep)
}

// contactAtRecord returns the contact of a caller whose answer waits for the last record.
func (m *Machine) contactAtRecord() contact { return contact{m.listening(), m.records} }

// contactNow returns the contact of a caller that is heard now.
func (m *Machine) contactNow() contact { return contact{at: m.listening()} }

// tick moves the clock of silence forward. pending is the field Pending of the Time event.
func (m *Machine) tick(pending uint64) {
	m.listened = m.listening()
	m.lastTick = m.now
	m.durable = m.records - min(pending, m.records)
}

// silent reports whether a member was silent for the time of a lease. It must be called after tick.
func (m *Machine) silent(p *contact) bool {
	if p.record > m.durable {
		p.at = m.listened
	}
	return m.listened-p.at >= m.limits.Lease
}
