package machine

// checkpoint saves a running job at a committed sweep if both checkpoint_sweeps sweeps and
// Limits.CheckpointEvery have passed since the last checkpoint.
func (m *Machine) checkpoint(j *job, at Tick) {
	every := m.limits.CheckpointSweeps
	if every == 0 {
		every = j.run.CheckpointSweeps
	}
	if !m.limits.Checkpoints || !j.running() || j.Committed-j.savedSweep < every ||
		at-j.savedAt < m.limits.CheckpointEvery {
		return
	}
	j.savedSweep, j.savedAt = j.Committed, at
	m.out = append(m.out, m.save(j, at, false))
}

// save returns the action that saves a job as it is now.
func (m *Machine) save(j *job, at Tick, final bool) SaveJob {
	spent := j.Spent
	j.Spent = j.spentAt(at)
	state, _ := j.encode() // the driver is finite: see commit
	j.Spent = spent
	return SaveJob{Job: j.ID, Sweep: j.Committed, State: state, Keep: j.keepSteps(), Final: final}
}
