package machine

// A job that can do nothing does not use up its time: no worker takes its tasks, shards are away, or the
// store takes no values. Its clock stops with the record of that (recordIdle, or of an attempt that was lost
// as the store was away), and runs again from the next task that is handed out, or that ends well.

// idle says why a job's clock stands.
type idle uint8

const (
	notIdle   idle = iota
	idleTasks      // no task can be handed out
	idleStore      // an attempt could not use the store: the clock runs again when a task ends well
)

// stopClock stops the job's clock.
func (j *job) stopClock(why idle, at Tick) {
	if j.idle == notIdle {
		j.idleSince = at
	}
	j.idle = max(j.idle, why)
}

// startClock lets the clock go on.
func (j *job) startClock(at Tick) {
	if j.idle == notIdle {
		return
	}
	j.since += at - j.idleSince
	j.Idle += at - j.idleSince
	j.idle, j.idleSince = notIdle, 0
}

// idleAt is how long the job could do nothing so far.
func (j *job) idleAt(now Tick) Tick {
	if j.idle == notIdle {
		return j.Idle
	}
	return j.Idle + now - j.idleSince
}

// checkIdle stops the clock of a job that has tasks and can hand out none. Tasks that are with workers
// hardly end while shards are away; if one does, the clock runs until the next look.
func (m *Machine) checkIdle(j *job) {
	if j.idle == notIdle && j.step != nil && (m.blocked(j) != nil || len(j.batches) == 0 && !m.anyFit(j)) {
		m.decide(Record{Kind: recordIdle, Job: j.ID, Reason: m.waitsFor(j)})
	}
}
