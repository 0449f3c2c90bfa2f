package machine

import (
	"cmp"
	"encoding/json"
	"fmt"

	"taxon/coordinator/method"
)

// snapshotVersion changes with the meaning of the fields below.
const snapshotVersion = 2

// machineSnapshot is the whole state of a machine, as JSON. A worker or shard has the same fields
// as its state, without those that are not journaled.
type machineSnapshot struct {
	Version                        int
	Now                            Tick
	LastEpoch, LastWorker, LastJob uint64
	Workers                        []workerSnapshot
	Shards                         []shardSnapshot `json:",omitempty"`
	Jobs                           []jobSnapshot
	Leases                         []leaseSnapshot
}

// workerSnapshot is the journaled state of a worker.
type workerSnapshot struct {
	ID, Name string
	Slots    uint32
	Memory   uint64 `json:",omitempty"`
	Cores    uint32 `json:",omitempty"`
	Version  string `json:",omitempty"`
	Draining bool   `json:",omitempty"`
}

// shardSnapshot is the journaled state of a shard.
type shardSnapshot struct{ ID, Addr string }

// jobSnapshot is the state of a job between two records.
type jobSnapshot struct {
	Job           json.RawMessage // jobState
	Since         Tick
	Closing       bool // stageSave
	Showing       bool `json:",omitempty"` // stageEvaluate
	Rolling       bool `json:",omitempty"` // stageRollBack
	Digesting     bool `json:",omitempty"` // stageDigest
	ShownAt       Tick `json:",omitempty"` // job.pausedAt
	Idle          idle `json:",omitempty"`
	IdleSince     Tick `json:",omitempty"`
	LastCommitted uint32
	LastAttempts  []uint32
	// Tasks are the tasks of the current step. The rest of the step follows from Job.
	Tasks []taskSnapshot `json:",omitempty"`
	// Again is the queue of lost tasks.
	Again       []uint32 `json:",omitempty"`
	Log         jobLog
	Recomputing []recompute `json:",omitempty"`
}

// stage returns the stage that the job was in.
func (s *jobSnapshot) stage() stage {
	switch {
	case s.Closing:
		return stageSave
	case s.Showing:
		return stageEvaluate
	case s.Rolling:
		return stageRollBack
	case s.Digesting:
		return stageDigest
	}
	return stageTrain
}

// taskSnapshot is the state of a task. See task for its fields.
type taskSnapshot struct {
	State     taskState `json:",omitempty"`
	Attempt   uint32    `json:",omitempty"`
	Committed uint32    `json:",omitempty"`
	Away      uint32    `json:",omitempty"`
	Late      bool      `json:",omitempty"`
	Epoch     uint64    `json:",omitempty"`
	Worker    string    `json:",omitempty"`
	NotBefore Tick      `json:",omitempty"`
	Losses    uint32    `json:",omitempty"`
	Errors    uint32    `json:",omitempty"`
	// Sums are set in a done task alone.
	Sums method.Sums `json:",omitempty"`
	CPU  float64     `json:",omitempty"`
}

// leaseSnapshot is a live lease.
type leaseSnapshot struct {
	Job     string
	Attempt uint32
	Step    uint32
	Task    uint32
	Epoch   uint64
	// Batch is zero if it equals Epoch.
	Batch  uint64 `json:",omitempty"`
	Worker string
}

// Snapshot serialises the machine. It leaves out volatile state (the last signs of life, the times
// of tasks), which affects the order of work and never the results. A job that can't be written
// fails, both in the machine and in the snapshot, and the others continue.
func (m *Machine) Snapshot() []byte {
	s := machineSnapshot{Version: snapshotVersion, Now: m.now,
		LastEpoch: m.lastEpoch, LastWorker: m.lastWorker, LastJob: m.lastJob}
	for _, w := range m.workers {
		s.Workers = append(s.Workers, workerSnapshot{ID: w.id, Name: w.name, Slots: w.slots, Memory: w.memory, Cores: w.cores,
			Version: w.version, Draining: w.draining})
	}
	for _, h := range m.shards {
		s.Shards = append(s.Shards, shardSnapshot{ID: h.id, Addr: h.addr})
	}
	for _, j := range m.jobs {
		js, err := j.snapshot()
		if err != nil {
			m.giveUp(j, err)
			js, _ = j.snapshot()
		}
		s.Jobs = append(s.Jobs, js)
	}
	for _, e := range m.epochs() {
		l := m.leases[e]
		k := leaseSnapshot{Job: l.job.ID, Step: l.step, Attempt: l.attempt, Task: l.task, Epoch: e, Worker: l.worker}
		if l.batch != e {
			k.Batch = l.batch
		}
		s.Leases = append(s.Leases, k)
	}
	out, err := json.Marshal(&s)
	if err != nil {
		// Jobs are serialised already, and nothing else has floats.
		panic(fmt.Sprintf("coordinator: the machine can't be serialised: %v", err))
	}
	return out
}

// snapshot returns the state of a job. It fails if a number in it is not finite.
func (j *job) snapshot() (jobSnapshot, error) {
	if j.foreign != nil {
		return *j.foreign, nil
	}
	state, err := j.encode()
	if err != nil {
		return jobSnapshot{}, err
	}
	s := jobSnapshot{Job: state, Since: j.since, ShownAt: j.pausedAt, Idle: j.idle, IdleSince: j.idleSince,
		Closing: j.stage == stageSave, Showing: j.stage == stageEvaluate, Rolling: j.stage == stageRollBack,
		Digesting:     j.stage == stageDigest,
		LastCommitted: j.lastCommitted, LastAttempts: j.lastAttempts,
		Log: jobLog{Lines: j.log.kept(), Last: j.log.Last}, Recomputing: j.recomputes}
	if j.step == nil {
		return s, nil
	}
	s.Again = j.step.queue.again
	for i := range j.step.tasks {
		t := &j.step.tasks[i]
		k := taskSnapshot{State: t.state, Attempt: t.attempt, Committed: t.committed, Away: t.away, Late: t.late,
			Epoch: t.epoch, Worker: t.worker,
			NotBefore: t.notBefore, Losses: t.losses, Errors: t.errors, CPU: t.cpu}
		if t.state == taskDone {
			k.Sums = t.sums
		}
		s.Tasks = append(s.Tasks, k)
	}
	return s, nil
}

// LoadSnapshot gives a new machine the state of a Snapshot. A job that can't be read fails alone;
// an error means that the whole snapshot is unusable.
func (m *Machine) LoadSnapshot(snapshot []byte) error {
	var s machineSnapshot
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return fmt.Errorf("coordinator snapshot: %w", err)
	}
	if s.Version != snapshotVersion {
		return fmt.Errorf("coordinator snapshot of version %d: this program reads version %d: %w", s.Version, snapshotVersion,
			errOtherVersion)
	}
	m.now, m.clockAt, m.lastEpoch, m.lastWorker, m.lastJob = s.Now, s.Now, s.LastEpoch, s.LastWorker, s.LastJob
	for _, w := range s.Workers {
		m.addWorker(&workerState{id: w.ID, name: w.Name, slots: w.Slots, memory: w.Memory, cores: w.Cores, version: w.Version,
			draining: w.Draining})
	}
	for _, h := range s.Shards {
		m.shards = append(m.shards, &shardState{id: h.ID, addr: h.Addr})
	}
	for _, js := range s.Jobs {
		j, err := m.restoreJob(js)
		if err != nil {
			if j, err = foreignJob(js, err); err != nil {
				return err
			}
		}
		m.jobs = append(m.jobs, j)
		m.byID[j.ID] = j
	}
	for _, l := range s.Leases {
		j := m.find(l.Job)
		switch {
		case j == nil:
			return fmt.Errorf("coordinator snapshot: lease %d is of no job", l.Epoch)
		case j.foreign != nil:
		case j.step == nil:
			j.broken = fmt.Errorf("lease %d is of no task", l.Epoch)
		default:
			if err := m.restoreLease(j, l, s.Now); err != nil {
				j.broken = err
			}
		}
	}
	for _, j := range m.jobs {
		if err := m.checkRestored(j); err != nil && j.broken == nil {
			j.broken = err
		}
	}
	return nil
}

// restoreLease adds a lease from a snapshot.
func (m *Machine) restoreLease(j *job, s leaseSnapshot, now Tick) error {
	l := &lease{job: j, step: s.Step, task: s.Task, attempt: s.Attempt, epoch: s.Epoch, batch: cmp.Or(s.Batch, s.Epoch),
		worker: s.Worker, granted: now}
	switch {
	case l.recomputing():
		if r := j.findRecompute(l.step, l.task); r == nil || r.Epoch != l.epoch {
			return fmt.Errorf("lease %d is of no task that is recomputed", l.epoch)
		}
	case int(l.task) >= len(j.step.tasks) || j.step.tasks[l.task].state != taskRunning:
		return fmt.Errorf("lease %d is of no running task", l.epoch)
	default:
		j.step.tasks[l.task].live++
	}
	m.addLease(l)
	return nil
}

// checkRestored checks that every running task and recomputation of a job has its lease.
func (m *Machine) checkRestored(j *job) error {
	if j.step == nil {
		return nil
	}
	for n := range j.step.tasks {
		if t := &j.step.tasks[n]; t.state == taskRunning && t.live == 0 {
			return fmt.Errorf("task %d runs without a lease", n)
		}
	}
	for _, r := range j.recomputes {
		if past := j.past(r.Step); past == nil || int(r.Task) >= len(past.Attempts) || r.Epoch != 0 &&
			m.leases[r.Epoch] == nil {
			return fmt.Errorf("task %d of step %d can't be recomputed", r.Task, r.Step)
		}
	}
	return nil
}

// restoreJob rebuilds a job from a snapshot.
func (m *Machine) restoreJob(s jobSnapshot) (*job, error) {
	j, err := reviveJob(s.Job)
	if err != nil {
		return nil, err
	}
	j.since, j.pausedAt, j.stage = s.Since, s.ShownAt, s.stage()
	j.idle, j.idleSince = s.Idle, s.IdleSince
	j.lastCommitted, j.lastAttempts, j.log = s.LastCommitted, s.LastAttempts, s.Log
	j.recomputes = s.Recomputing
	if !j.hasStep() {
		return j, nil
	}
	next, more := j.driver.Step()
	if !more {
		return nil, fmt.Errorf("job %s: its snapshot says that it runs, and it has no step to run", j.ID)
	}
	if err := j.plan.CheckStep(&next); err != nil {
		return nil, fmt.Errorf("job %s: %w", j.ID, err)
	}
	j.step = m.newStep(j, next)
	if len(s.Tasks) != len(j.step.tasks) {
		return nil, fmt.Errorf("job %s: its snapshot has %d tasks in step %d, its plan %d", j.ID, len(s.Tasks), j.StepNo,
			len(j.step.tasks))
	}
	for i, k := range s.Tasks {
		t := &j.step.tasks[i]
		*t = task{state: k.State, attempt: k.Attempt, committed: k.Committed, away: k.Away, late: k.Late, epoch: k.Epoch,
			worker:    k.Worker,
			notBefore: k.NotBefore, losses: k.Losses, errors: k.Errors, cpu: k.CPU}
		t.sums = k.Sums
		switch k.State {
		case taskDone:
			j.step.done++
		case taskRunning:
			j.step.live++
		case taskAbandoned:
			j.step.done++
			j.step.abandoned++
		}
	}
	for _, n := range s.Again {
		if int(n) >= len(j.step.tasks) {
			return nil, fmt.Errorf("job %s: its snapshot names task %d of %d", j.ID, n, len(j.step.tasks))
		}
	}
	j.step.queue.again = s.Again
	return j, nil
}

// Recover completes the rebuilding from snapshot and records. Time without a coordinator does not
// count: not as training time, not as silence. It returns again all actions that may not have been
// executed.
func (m *Machine) Recover(now Tick) []Action {
	m.out = nil
	last := m.now
	m.checkClock(last, now)
	m.failBroken(now)
	if m.openJobs() > 0 {
		m.now = now
		m.decide(Record{Kind: recordRecover, Last: last})
	}
	m.lastTick = now
	for _, w := range m.workers {
		w.seen, w.contact = now, contact{at: m.listened}
	}
	for _, s := range m.shards { // they report within a lease, or are down
		s.up, s.seen, s.contact = true, now, contact{at: m.listened}
	}
	m.shardsVersion = max(m.shardsVersion+1, uint64(now))
	for _, l := range m.leases {
		l.contact = contact{at: m.listened}
	}
	for _, j := range m.jobs {
		if j.stage == stageRollBack {
			m.out = append(m.out, LoadJob{Job: j.ID})
			continue
		}
		if j.stage == stageEvaluate { // nothing was dropped since
			m.out = append(m.out, CommitStep{Job: j.ID, Step: j.lastCommitted, Attempts: j.lastAttempts}, j.evaluateWeights())
			continue
		}
		if j.Dropped {
			m.out = append(m.out, DropSteps{Job: j.ID, Before: ^uint32(0)})
			continue
		}
		if j.resumable() {
			m.out = append(m.out, DropSteps{Job: j.ID, Keep: j.keepSteps(), Before: j.StepNo + 1})
			continue
		}
		if j.lastCommitted > 0 && !j.ended() || j.FinalStep > 0 {
			m.out = append(m.out,
				CommitStep{Job: j.ID, Step: j.lastCommitted, Attempts: j.lastAttempts},
				DropSteps{Job: j.ID, Keep: j.keepSteps(), Before: j.StepNo})
		}
		switch {
		case j.stage == stageSave:
			m.out = append(m.out, m.save(j, now, true))
		case j.stage == stageDigest:
			m.out = append(m.out, DigestWeights{Job: j.ID})
		}
	}
	m.now = now
	out := m.out
	m.out = nil
	return out
}
