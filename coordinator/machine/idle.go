package machine

// A job that can do nothing does not use up its time: no worker takes its tasks, shards are away,
// or the store refuses writes. Its clock stops with a record (recordIdle, or the loss of an attempt
// that could not reach the store). It runs again when the next task is granted or succeeds.

// idle says why a job's clock stands.
type idle uint8

const (
	// notIdle means that the clock runs.
	notIdle idle = iota
	// idleTasks means that no task can be granted.
	idleTasks
	// idleStore means that an attempt could not use the store. The clock runs again when a task succeeds.
	idleStore
)

// stopClock stops the job's clock. A clock that stands already keeps its time of stopping.
func (j *job) stopClock(why idle, at Tick) {
	if j.idle == notIdle {
		j.idleSince = at
	}
	j.idle = max(j.idle, why)
}

// startClock lets the job's clock run again.
func (j *job) startClock(at Tick) {
	if j.idle == notIdle {
		return
	}
	j.since += at - j.idleSince
	j.Idle += at - j.idleSince
	j.idle, j.idleSince = notIdle, 0
}

// idleAt returns for how long the job could do nothing up to now.
func (j *job) idleAt(now Tick) Tick {
	if j.idle == notIdle {
		return j.Idle
	}
	return j.Idle + now - j.idleSince
}

// checkIdle stops the clock of a job that has tasks and can grant none. Tasks that workers hold
// rarely end while shards are away; if one does, the clock runs until the next check.
func (m *Machine) checkIdle(j *job) {
	if j.idle == notIdle && j.step != nil && (m.blocked(j) != nil || len(j.batches) == 0 && !m.anyFit(j)) {
		m.decide(Record{Kind: recordIdle, Job: j.ID, Reason: m.waitsFor(j)})
	}
}
