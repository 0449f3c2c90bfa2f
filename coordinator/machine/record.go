package machine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Record is one transition of the machine, as the journal holds it. The machine changes its lasting
// state by apply(record) alone, so replaying the records of a journal rebuilds it. Kind decides
// which fields are used; a comment that begins with kinds names those that use the field.
type Record struct {
	Kind     recordKind
	At       Tick
	Job      string      `json:",omitempty"`
	Worker   string      `json:",omitempty"`
	Name     string      `json:",omitempty"`
	Owner    string      `json:",omitempty"` // submit, restore: the submitter, if known
	Slots    uint32      `json:",omitempty"`
	Memory   uint64      `json:",omitempty"`
	Cores    uint32      `json:",omitempty"` // of a worker's host
	Version  string      `json:",omitempty"` // of a worker's taxon
	Step     uint32      `json:",omitempty"`
	Task     uint32      `json:",omitempty"`
	Epoch    uint64      `json:",omitempty"`
	Batch    uint64      `json:",omitempty"` // grant: see lease.batch; 0 means Epoch
	Sums     method.Sums `json:",omitempty"`
	CPU      float64     `json:",omitempty"`
	Read     uint64      `json:",omitempty"` // done: bytes from the store
	Written  uint64      `json:",omitempty"` // done: bytes to the store
	Loss     loss        `json:",omitempty"`
	Reason   string      `json:",omitempty"`
	Last     Tick        `json:",omitempty"` // recover, clock: last time before the restart
	Payload  []byte      `json:",omitempty"` // submit: JobSpec; restore: jobState
	Shards   []string    `json:",omitempty"` // submit, restore: shards of the job's values
	Replicas uint32      `json:",omitempty"` // submit: copies of each value
	Asked    bool        `json:",omitempty"` // discard: a user asked for it
	By       string      `json:",omitempty"` // identity of the caller, if there is one

	Lost     []taxonv1.Place `json:",omitempty"` // missing: values of past steps
	Criteria *StopCriteria   `json:",omitempty"` // resume: the criteria that change
	Failed   *failedTask     `json:",omitempty"` // fail: the task that failed
	Digest   *Digest         `json:",omitempty"` // digested

	// submit: the plan, if it was made already; nil when replayed
	prepared *prepared
	// restore: the job, if it was read already; nil when replayed
	restored *job
}

// recordKind names a transition.
type recordKind string

const (
	recordSubmit    recordKind = "submit"    // Job queued with the specification Payload
	recordRestore   recordKind = "restore"   // Job queued to continue from the state Payload
	recordStart     recordKind = "start"     // Job runs; its next step is laid out
	recordRegister  recordKind = "register"  // Worker joined
	recordGone      recordKind = "gone"      // Worker was silent, or left (Reason is empty)
	recordGrant     recordKind = "grant"     // Task granted to Worker under Epoch
	recordDone      recordKind = "done"      // Task's attempt under Epoch committed
	recordLost      recordKind = "lost"      // Task's attempt under Epoch lost: it waits again
	recordFail      recordKind = "fail"      // Job failed with Reason
	recordTimeUp    recordKind = "timeup"    // Job has used up its max_seconds
	recordCancel    recordKind = "cancel"    // Job stops; its checkpoint is being written
	recordCancelOK  recordKind = "cancelled" // Job is cancelled
	recordMissing   recordKind = "missing"   // Task's attempt under Epoch found the values Lost missing
	recordRollback  recordKind = "rollback"  // Job waits until its last checkpoint is loaded
	recordRolled    recordKind = "rolled"    // Job continues from Payload, or from its beginning
	recordForget    recordKind = "forget"    // the ended Job is no longer known
	recordNote      recordKind = "note"      // Reason is added to the Job's log
	recordDiscard   recordKind = "discard"   // the ended Job's values are dropped for Reason
	recordResume    recordKind = "resume"    // the ended Job is queued again
	recordDrain     recordKind = "drain"     // Worker gets no more tasks
	recordShard     recordKind = "shard"     // store shard Worker is at address Name
	recordUnshard   recordKind = "unshard"   // store shard Worker is no longer known
	recordWeights   recordKind = "weights"   // the weights of the finished Job are lost
	recordEvaluated recordKind = "evaluated" // Job's weights were evaluated; a Reason ends it
	recordDigested  recordKind = "digested"  // Job's weights have Digest, or are lost
	recordClock     recordKind = "clock"     // the time is At; see checkClock for Last
	recordIdle      recordKind = "idle"      // Job waits for Reason, and its clock stops
	recordRecover   recordKind = "recover"   // the coordinator is back after Last
)

// loss says how an attempt was lost.
type loss uint8

const (
	lossReturned loss = iota // the worker returned it unfinished; not counted
	lossExpired              // its lease expired, or its worker is lost
	lossError                // its worker reported an error that may be transient
	lossValue                // a value that it reads is missing
	lossAway                 // the store could not be reached
)

// decide journals a transition and applies it. A transition that can't be applied is refused and
// not journaled, because every later replay would fail on it.
func (m *Machine) decide(r Record) {
	r.At = m.now
	out, records := m.out, m.records
	m.out = append(m.out, Persist{Record: r})
	m.records++
	m.tellRecord(&r)
	before := len(m.out)
	if err := m.apply(&r); err != nil {
		m.out, m.records = append(out, Refused{Err: err}), records
		return
	}
	for _, a := range m.out[before:] {
		if e, ok := a.(Ended); ok {
			m.tellEnd(e.Job, r.By)
		}
	}
}

// apply makes one transition. It returns an error if the record does not fit the state, which
// means that the journal belongs to another machine.
func (m *Machine) apply(r *Record) error {
	m.clockAt = r.At
	switch r.Kind {
	case recordSubmit, recordRestore:
		return m.applySubmit(r)
	case recordRegister:
		m.lastWorker++
		m.addWorker(&workerState{id: r.Worker, name: r.Name, slots: r.Slots, memory: r.Memory, cores: r.Cores,
			version: r.Version, seen: r.At, contact: m.contactAtRecord()})
		return nil
	case recordDrain:
		w := m.worker(r.Worker)
		if w == nil {
			return fmt.Errorf("record drain names worker %q, which is not registered", r.Worker)
		}
		w.draining = true
		return nil
	case recordShard:
		m.applyShard(r)
		return nil
	case recordUnshard:
		return m.applyUnshard(r)
	case recordGone:
		return m.applyGone(r)
	case recordRecover:
		m.applyRecover(r)
		return nil
	case recordClock:
		m.applyClock(r)
		return nil
	}
	j := m.find(r.Job)
	if j == nil {
		return fmt.Errorf("record %s names job %q, which does not exist", r.Kind, r.Job)
	}
	switch r.Kind {
	case recordStart:
		j.State, j.since, j.savedAt = taxonv1.JobState_JOB_STATE_RUNNING, r.At, r.At
		j.Started = cmp.Or(j.Started, r.At)
		j.lastDone = r.At
		j.used, j.Digest = m.leastUsed(j), nil
		j.note(r.At, levelInfo, "started")
		m.startSteps(j, r.At)
	case recordGrant:
		return m.applyGrant(j, r)
	case recordDone:
		return m.applyDone(j, r)
	case recordLost:
		return m.applyLost(j, r)
	case recordFail:
		j.Failed = r.Failed
		m.failJob(j, r.Reason, r.At)
	case recordNote:
		j.note(r.At, levelWarn, "%s", r.Reason)
	case recordMissing:
		return m.applyMissing(j, r)
	case recordRollback:
		m.applyRollback(j, r)
	case recordRolled:
		return m.applyRolled(j, r)
	case recordWeights:
		m.applyWeights(j, r)
	case recordDigested:
		m.applyDigested(j, r)
	case recordForget:
		m.forget(j.ID)
	case recordTimeUp:
		m.applyTimeUp(j, r)
	case recordIdle:
		j.note(r.At, levelWarn, "waits for %s", r.Reason)
		j.stopClock(idleTasks, r.At)
		m.out = append(m.out, Changed{})
	case recordResume:
		return j.applyResume(r)
	case recordDiscard:
		m.out = append(m.out, DropSteps{Job: j.ID, Before: ^uint32(0)}, Changed{})
		if j.Discarded = r.Asked; r.Reason != "" {
			j.note(r.At, levelInfo, "its values are dropped: %s", r.Reason)
		}
		return j.compact()
	case recordEvaluated:
		if j.stage != stageEvaluate {
			return fmt.Errorf("job %s: record evaluated, but nothing was to be evaluated", j.ID)
		}
		j.enter(stageTrain, r.At)
		if r.Reason != "" {
			j.note(r.At, levelInfo, "the measure on held-out rows stands still: the job ends")
			j.Early, j.TimeUp = true, true
			j.driver.TimeUp(true)
		}
		m.closeStep(j, r.At)
	case recordCancel:
		m.revoke(j, r.At)
		j.enter(stageSave, r.At)
		j.note(r.At, levelInfo, "cancelled; its checkpoint is being written")
		j.step, j.recomputes = nil, nil
	case recordCancelOK:
		m.endJob(j, taxonv1.JobState_JOB_STATE_CANCELLED, r.At)
	default:
		return fmt.Errorf("record of unknown kind %q: %w", r.Kind, errUnknownKind)
	}
	return nil
}

func (m *Machine) applySubmit(r *Record) error {
	j := r.restored
	var err error
	switch {
	case j != nil:
	case r.Kind == recordRestore:
		if j, err = reviveJob(r.Payload); err != nil {
			return err
		}
	default:
		p := r.prepared
		if p == nil {
			if p, err = prepareBytes(r.Payload); err != nil {
				return fmt.Errorf("job %s: %w", r.Job, err)
			}
		}
		if j, err = newJob(r.Job, p); err != nil {
			return err
		}
		j.Name, j.Owner, j.Replicas, j.Submitted = r.Name, r.Owner, r.Replicas, r.At
	}
	j.State = taxonv1.JobState_JOB_STATE_QUEUED
	j.Error, j.Failed, j.Shards, j.Ended, j.Uncounted = "", nil, r.Shards, 0, 0
	if r.Kind == recordRestore {
		if r.Replicas > 0 { // zero in records of SubmitCheckpoint
			j.Replicas, j.Owner = r.Replicas, r.Owner
			m.supersede(j)
		}
		j.note(r.At, levelInfo, "queued, from a checkpoint at sweep %d", j.Committed)
	} else {
		j.note(r.At, levelInfo, "queued: %d terminals of %d nodes, %s", j.plan.Terminals, j.plan.Nodes, j.plan)
	}
	m.lastJob++
	m.jobs = append(m.jobs, j)
	m.byID[j.ID] = j
	return nil
}

func (m *Machine) applyGone(r *Record) error {
	at := slices.IndexFunc(m.workers, func(w *workerState) bool { return w.id == r.Worker })
	if at < 0 {
		return fmt.Errorf("record gone names worker %q, which is not registered", r.Worker)
	}
	w := m.workers[at]
	m.workers = slices.Delete(m.workers, at, at+1)
	delete(m.workerByID, w.id)
	lost := r.Reason != "" && !w.draining // one that was told to go is no loss
	m.noteGone(w, lost)
	how := lossReturned
	if r.Reason != "" {
		how = lossExpired
	}
	if lost {
		for _, j := range m.jobs {
			if j.running() {
				j.WorkersLost++
				j.log.add(logLine{At: r.At, Level: levelWarn, Text: "lost worker " + w.name + ": " + r.Reason,
					Sweep: j.progress().Sweep, Worker: w.id})
			}
		}
	}
	for _, e := range m.epochs() {
		if l := m.leases[e]; l.worker == r.Worker {
			m.loseTask(l, how, r.Reason, r.At)
		}
	}
	return nil
}

func (m *Machine) applyRecover(r *Record) {
	for _, j := range m.jobs {
		if j.State == taxonv1.JobState_JOB_STATE_RUNNING {
			why := j.idle
			j.startClock(r.Last)
			j.Spent = j.spentAt(r.Last)
			j.since, j.savedAt, j.pausedAt = r.At, r.At, r.At
			if why != notIdle {
				j.stopClock(why, r.At)
			}
		}
	}
}

func (m *Machine) applyGrant(j *job, r *Record) error {
	l := &lease{job: j, step: r.Step, task: r.Task, epoch: r.Epoch, batch: cmp.Or(r.Batch, r.Epoch),
		worker: r.Worker, granted: r.At, contact: m.contactAtRecord()}
	switch again := j.findRecompute(r.Step, r.Task); {
	case again != nil && j.past(r.Step) != nil:
		again.Epoch, l.attempt = r.Epoch, j.past(r.Step).Attempts[r.Task]
	case j.step == nil || j.step.number != r.Step || int(r.Task) >= len(j.step.tasks) ||
		j.step.tasks[r.Task].state >= taskDone:
		return fmt.Errorf("job %s: record grant names task %d of step %d, which is not under way", j.ID, r.Task, r.Step)
	default:
		t := &j.step.tasks[r.Task]
		if t.state == taskRunning {
			j.Speculated++
			j.log.add(logLine{At: r.At, Level: levelInfo, Text: "straggles: a second attempt is handed out",
				Sweep: j.progress().Sweep,
				Step:  r.Step, Task: r.Task, Attempt: t.attempt + 1, Worker: r.Worker})
		} else {
			j.step.live++
		}
		t.state, t.epoch, t.worker = taskRunning, r.Epoch, r.Worker
		t.attempt++
		t.live++
		l.attempt = t.attempt
	}
	m.lastEpoch = r.Epoch
	if j.idle == idleTasks {
		j.startClock(r.At)
	}
	m.addLease(l)
	return nil
}

func (m *Machine) applyDone(j *job, r *Record) error {
	l := m.leases[r.Epoch]
	if l == nil || l.job != j || l.task != r.Task || len(r.Sums) != len(j.plan.Sums) {
		return fmt.Errorf("job %s: record done of task %d has no lease %d", j.ID, r.Task, r.Epoch)
	}
	j.BytesRead += r.Read
	j.BytesWritten += r.Written
	j.CPUSeconds += r.CPU
	j.awaySince, j.awayWhy = 0, ""
	j.startClock(r.At)
	j.lastDone = r.At
	if w := m.worker(l.worker); w != nil {
		w.done++
	}
	if l.recomputing() {
		m.recomputed(j, l, r.At)
		return nil
	}
	s := j.step
	t := &s.tasks[r.Task]
	s.finished(r.Task, (r.At - l.granted).Seconds(), r.CPU)
	m.endLease(l, resultDone, r.At)
	if t.live > 1 {
		m.revokeDuplicates(j, l.step, l.task)
	}
	t.state, t.sums, t.cpu, t.live = taskDone, r.Sums, r.CPU, 0
	t.committed, t.epoch, t.worker = l.attempt, l.epoch, l.worker
	s.live--
	s.done++
	j.noteRun(t, r.Task)
	m.out = append(m.out, Changed{})
	if s.done == len(s.tasks) {
		m.commitStep(j, r.At)
	}
	return nil
}

func (m *Machine) applyLost(j *job, r *Record) error {
	l := m.leases[r.Epoch]
	if l == nil || l.job != j {
		return fmt.Errorf("job %s: record lost has no lease %d", j.ID, r.Epoch)
	}
	m.loseTask(l, r.Loss, r.Reason, r.At)
	if r.Loss == lossAway {
		j.stopClock(idleStore, r.At)
	}
	return nil
}

// loseTask takes a task back from its attempt. The task waits again, with a back-off that doubles
// with each loss after the first.
func (m *Machine) loseTask(l *lease, how loss, reason string, at Tick) {
	if l.recomputing() {
		m.loseRecompute(l, how, at)
		return
	}
	s := l.job.step
	t := &s.tasks[l.task]
	m.endLease(l, how.result(), at)
	switch how {
	case lossExpired:
		t.losses++
	case lossError:
		t.errors++
	case lossAway:
		t.away++
	}
	if t.live--; t.live > 0 { // the other attempt continues
		return
	}
	s.live--
	t.state, t.notBefore = taskWaiting, at
	if n := t.losses + t.errors + t.away; how != lossReturned && how != lossValue {
		l.job.Retried++
		l.job.noteTask(at, levelWarn, l, "tried again: "+reason)
		if n > 1 || how == lossError || how == lossAway {
			t.notBefore += min(m.limits.Backoff<<min(n-1, 20), m.limits.MaxBackoff)
		}
	}
	s.queue.again = append(s.queue.again, l.task)
	m.out = append(m.out, Changed{}, Wake{})
}

// noteRun records how long a task took, and which worker has its state in cache.
func (j *job) noteRun(t *task, n uint32) {
	if p, i := j.step.part(n); p.Timed {
		j.lastRuns[p.Items][i] = history{t.cpu, t.worker}
	}
}

// commitStep commits the finished step and closes it, at once or after an evaluation of the
// weights that it wrote.
func (m *Machine) commitStep(j *job, at Tick) {
	s := j.step
	attempts := make([]uint32, len(s.tasks))
	for n := range s.tasks {
		attempts[n] = s.tasks[n].committed
	}
	m.out = append(m.out, CommitStep{Job: j.ID, Step: s.number, Attempts: attempts})
	j.lastCommitted, j.lastAttempts = s.number, attempts
	if s.Show && m.limits.Evaluations {
		j.enter(stageEvaluate, at)
		m.out = append(m.out, j.evaluateWeights(), Changed{})
		return
	}
	m.closeStep(j, at)
}

// closeStep applies the results of the finished step to the job and lays out the next one.
func (m *Machine) closeStep(j *job, at Tick) {
	s := j.step
	sums := make([]method.Sums, len(s.tasks))
	for n := range s.tasks {
		sums[n] = s.tasks[n].sums
	}
	result, err := j.commit(sums)
	j.step = nil
	if err != nil {
		m.failJob(j, fmt.Sprintf("sweep %d: %v", s.Sweep, err), at)
		return
	}
	j.Values = j.published(s, result, s.place)
	if m.limits.KeepInputs {
		j.keepPast(s, j.lastAttempts)
		m.dropRecomputes(j, at)
	}
	if s.Emit {
		j.FinalStep, j.FinalAttempts = s.number, j.lastAttempts
	}
	if result.SweepDone {
		j.logSweep(s, result, at)
	}
	m.openStep(j, at)
	m.out = append(m.out, DropSteps{Job: j.ID, Keep: j.keepSteps(), Before: j.StepNo})
	if result.SweepDone {
		m.checkpoint(j, at)
	}
}

// commit passes a step's figures to the driver. If that fails, or if its state is no longer finite,
// the driver keeps its earlier state, so that the job can be saved, and resumed when the cause is
// removed.
func (j *job) commit(sums []method.Sums) (method.Outcome, error) {
	before := j.driver.State()
	result, err := j.driver.Commit(sums)
	if err == nil && !method.Finite(j.driver) {
		err = method.ErrNotFinite
	}
	if err != nil {
		if d, bad := j.method.Driver(j.spec, j.plan, before); bad == nil {
			j.driver = d
		}
	}
	return result, err
}

// published returns the job's values as they are after a step is committed: place(n), where task n
// wrote, becomes the newest version, and each older version moves back by one. It does not change
// the job.
func (j *job) published(s *step, result method.Outcome, place func(n uint32) taxonv1.Place) values {
	out := maps.Clone(j.Values)
	for k := range s.parts {
		p := &s.parts[k]
		for _, name := range p.Writes {
			family := j.plan.Variable(name)
			if slices.Contains(result.Drop, name) || family.Whole && s.abandoned > 0 {
				continue
			}
			next := slices.Clone(out[name][0])
			for i := range p.Count {
				if n := p.begin + i; s.tasks[n].state != taskAbandoned {
					next[p.First+i] = place(n)
				}
			}
			out[name] = append([]places{next}, out[name][:family.Versions-1]...)
		}
	}
	for _, name := range result.Forget {
		last := len(out[name]) - 1
		out[name] = append(slices.Clone(out[name][:last]), make(places, len(out[name][last])))
	}
	return out
}

// logSweep adds a committed sweep to the job's trace and log.
func (j *job) logSweep(s *step, result method.Outcome, at Tick) {
	sweep := s.Sweep
	if sweep <= j.Committed { // it was committed before a rollback
		return
	}
	line := traceRecord{Sweep: sweep, Phase: cmp.Or(result.Phase, s.Phase), Seconds: j.spentAt(at).Seconds()}
	if result.Certified {
		line.Certificate = j.progress().Certificate
	}
	j.Committed, j.Futile = sweep, 0
	j.Trace = append(j.Trace, line)
	j.SweepRead, j.SweepWritten = j.BytesRead-j.ReadBefore, j.BytesWritten-j.WrittenBefore
	j.ReadBefore, j.WrittenBefore = j.BytesRead, j.BytesWritten
	text := fmt.Sprintf("sweep %d committed", sweep)
	if c := line.Certificate; c != nil {
		text += fmt.Sprintf(": objective %.8g, gap %.3g", c.Objective, c.Gap)
	}
	j.log.add(logLine{At: at, Level: levelInfo, Text: text, Sweep: sweep, Step: s.number})
}

// openStep lays out the driver's next step, or ends the job.
func (m *Machine) openStep(j *job, at Tick) {
	m.out = append(m.out, Changed{}, Wake{})
	next, more := j.driver.Next()
	if !more {
		m.trained(j, at)
		return
	}
	if err := j.plan.CheckStep(&next); err != nil {
		m.failJob(j, fmt.Sprintf("sweep %d: %v", next.Sweep, err), at)
		return
	}
	j.StepNo++
	j.step = m.newStep(j, next)
}

// failJob ends a job with an error. It keeps the values of the last committed step, so that the
// job can be resumed when the cause is removed.
func (m *Machine) failJob(j *job, reason string, at Tick) {
	if f := j.Failed; f != nil {
		j.log.add(logLine{At: at, Level: levelError, Text: "failed at " + f.where() + ": " + reason, Sweep: f.Sweep,
			Step: f.Step,
			Task: f.Task, Attempt: f.Attempt, Worker: f.Worker})
	} else {
		j.note(at, levelError, "failed: %s", reason)
	}
	m.endJob(j, taxonv1.JobState_JOB_STATE_FAILED, at)
	j.Error = reason
}

// endJob ends a job and lets the next one start. It drops what the current step has written. Step
// numbers are never used again, so later writes of its attempts are never read.
func (m *Machine) endJob(j *job, state taxonv1.JobState, at Tick) {
	m.revoke(j, at)
	j.enter(stageTrain, at)
	j.Spent = j.spentAt(at)
	j.State, j.step, j.Ended, j.Uncounted = state, nil, at, 0
	j.recomputes, j.awaySince, j.awayWhy = nil, 0, ""
	switch state {
	case taxonv1.JobState_JOB_STATE_DONE:
		j.Past, j.Recomputes = nil, nil
		j.note(at, levelInfo, "done")
		if b := j.betterSweep(); b != nil {
			j.note(at, levelWarn, "the weights have gap %.3g, and sweep %d had %.3g: the time was up in the midst of a later "+
				"one, a little more does better",
				j.progress().Certificate.Gap, b.Sweep, b.Certificate.Gap)
		}
	case taxonv1.JobState_JOB_STATE_CANCELLED:
		j.note(at, levelInfo, "cancelled")
		fallthrough
	case taxonv1.JobState_JOB_STATE_FAILED:
		m.out = append(m.out, DropSteps{Job: j.ID, Keep: j.keepSteps(), Before: j.StepNo + 1})
	}
	m.out = append(m.out, Ended{Job: j.ID, State: state}, Changed{}, Wake{})
}
