package machine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Status describes a job at a time. It leaves out the trace records up to the sweep after.
func (m *Machine) Status(id string, now Tick, after uint32) (*taxonv1.JobStatus, error) {
	j, err := m.known(id)
	if err != nil {
		return nil, err
	}
	now = max(now, m.now)
	p := j.progress()
	s := &taxonv1.JobStatus{
		Job: j.ID, State: j.State, Sweep: j.Committed, Phase: j.phase(), Certificate: certificateMessage(p.Certificate),
		Tasks: j.counts(), WorkersLost: j.WorkersLost, Error: j.Error, IdleSeconds: j.idleAt(now).Seconds(),
		StoppedBy: j.stoppedBy(), Seconds: j.spentAt(now).Seconds(), CpuSeconds: j.CPUSeconds,
		FinalStep: j.FinalStep, FinalAttempts: j.FinalAttempts, Nodes: uint32(j.plan.Nodes),
		Terminals: uint32(j.plan.Terminals),
		BytesRead: j.BytesRead, BytesWritten: j.BytesWritten, SweepBytesRead: j.SweepRead, SweepBytesWritten: j.SweepWritten,
		QueuePosition: m.queuePosition(j), SubmittedUnixMs: j.Submitted.Milliseconds(),
		StartedUnixMs: j.Started.Milliseconds(),
		EndedUnixMs:   j.Ended.Milliseconds(), Replicas: max(j.Replicas, 1), Resumable: j.resumable(), Name: j.Name,
		Owner:      j.Owner,
		Speculated: j.Speculated, Remade: j.Recomputed, Rollbacks: j.Rollbacks, Failed: j.Failed.message(j.Error),
		Options: j.spec.GetOptions(), Instances: j.spec.GetData().GetInstances(),
		Terms: j.spec.GetData().GetTerms(), Features: j.spec.GetData().GetFeatures(),
		Report: p.Report,
	}
	s.WaitsFor, s.Kept = m.waitsFor(j), m.kept(j)
	s.ProgressUnixMs = cmp.Or(j.lastDone, j.since).Milliseconds()
	l := m.eta(j, now)
	s.EtaSeconds, s.EtaLowSeconds, s.EtaHighSeconds = l.likely, l.low, l.high
	if j.Digest != nil && j.State == taxonv1.JobState_JOB_STATE_DONE {
		s.WeightsSha256, s.Nonzeros = j.Digest.WeightsSHA256, j.spec.GetData().GetNonzeros()
	}
	if b := j.betterSweep(); b != nil && j.State == taxonv1.JobState_JOB_STATE_DONE {
		s.Better = b.message()
	}
	for n := range j.CriteriaBefore {
		s.CapsBefore = append(s.CapsBefore, j.CriteriaBefore[n].message())
	}
	for _, r := range j.Trace {
		if r.Sweep > after {
			s.Trace = append(s.Trace, r.message())
		}
	}
	return s, nil
}

// PhaseDigest is the phase of a job whose weights are complete and are being digested.
const PhaseDigest = "digest"

// phase returns what a job is doing, in one word.
func (j *job) phase() string {
	switch {
	case j.stage == stageSave:
		return "checkpoint"
	case j.stage == stageRollBack:
		return "rollback"
	case j.stage == stageDigest:
		return PhaseDigest
	case len(j.recomputes) > 0:
		return "recompute"
	case j.step != nil:
		return j.step.Phase
	case j.State == taxonv1.JobState_JOB_STATE_QUEUED:
		return "queued"
	}
	return "end"
}

// waitsFor says what a running job waits for. It is empty if the job does not wait.
func (m *Machine) waitsFor(j *job) string {
	if j.stage == stageDigest && m.blocked(j) != nil {
		return "the digest of its weights, for which store shards are away: " + strings.Join(m.blocked(j), ", ")
	}
	if j.stage == stageDigest && j.awayWhy != "" {
		return "the digest of its weights, which can't be made yet: " + j.awayWhy
	}
	if !j.running() {
		return ""
	}
	if away := m.blocked(j); away != nil {
		return "store shards that are away: " + strings.Join(away, ", ")
	}
	switch {
	case m.anyFit(j) && j.awayWhy != "":
		return "the store, which a task could not use: " + j.awayWhy
	case m.anyFit(j):
		return ""
	case m.slots() > 0:
		return "a worker that can do its tasks: none that is up can, `taxon logs` says why"
	}
	return "a worker: none is up"
}

// counts returns the numbers of tasks of the current step.
func (j *job) counts() *taxonv1.TaskCounts {
	c := &taxonv1.TaskCounts{Retried: j.Retried}
	if s := j.step; s != nil {
		c.Done, c.Running = uint32(s.done), uint32(s.live)
		c.Waiting = uint32(len(s.tasks) - s.done - s.live)
	}
	return c
}

// certificateMessage returns a certificate as a message, or nil for nil.
func certificateMessage(c *method.Certificate) *taxonv1.Certificate {
	switch {
	case c == nil:
		return nil
	case c.PrimalOnly:
		return &taxonv1.Certificate{Objective: c.Objective, PrimalOnly: true, Kind: cmp.Or(c.Kind, method.Stationarity)}
	}
	return &taxonv1.Certificate{Objective: c.Objective, Dual: c.Dual, Gap: c.Gap, Kind: cmp.Or(c.Kind, method.Gap)}
}

// message returns the trace record as a message.
func (r *traceRecord) message() *taxonv1.SweepRecord {
	s := &taxonv1.SweepRecord{Sweep: r.Sweep, Phase: r.Phase, Seconds: r.Seconds}
	s.Certificate = certificateMessage(r.Certificate)
	return s
}

// maxGone bounds the workers that are remembered after they left or were lost.
const maxGone = 64

// Describe returns what workers and exports need of a job: its specification, its plan, and the
// shards that its values lie on.
func (m *Machine) Describe(id string) (*taxonv1.JobResult, error) {
	shards, replicas, err := m.JobShards(id)
	if err != nil {
		return nil, err
	}
	j := m.find(id)
	return &taxonv1.JobResult{Spec: j.spec, Plan: j.message(), Shards: shards, Replicas: replicas}, nil
}

// State returns the state of a job as a checkpoint would hold it now, and the steps whose values
// its next step would read.
func (m *Machine) State(id string) (state []byte, steps []uint32, err error) {
	j, err := m.known(id)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case j.Dropped:
		return nil, nil, fmt.Errorf("job %s: its values are gone", id)
	case j.foreign != nil:
		return nil, nil, errors.New(j.Error)
	}
	state, err = j.encode()
	return state, j.Values.latest(), err
}

// Jobs describes all jobs in order of submission.
func (m *Machine) Jobs(now Tick) []*taxonv1.JobInfo {
	now = max(now, m.now)
	out := make([]*taxonv1.JobInfo, 0, len(m.jobs))
	queued := uint32(0)
	for _, j := range m.jobs {
		l := m.eta(j, now)
		i := &taxonv1.JobInfo{
			Job: j.ID, Name: j.Name, Owner: j.Owner, State: j.State, Sweep: j.Committed,
			Certificate: certificateMessage(j.progress().Certificate), Phase: j.phase(),
			GapWanted: j.run.Gap, SubmittedUnixMs: j.Submitted.Milliseconds(),
			StartedUnixMs: j.Started.Milliseconds(),
			EndedUnixMs:   j.Ended.Milliseconds(), EtaSeconds: l.likely, EtaLowSeconds: l.low, EtaHighSeconds: l.high,
			Waits: m.waitsFor(j) != "",
			Error: j.Error, Resumable: j.resumable(), Exportable: j.exportable(), Kept: m.kept(j),
		}
		if !j.Dropped {
			i.CopiesThere, i.Copies = m.copiesThere(j)
		}
		if j.State == taxonv1.JobState_JOB_STATE_QUEUED {
			queued++
			i.QueuePosition = queued
		}
		out = append(out, i)
	}
	return out
}

// queuePosition returns the job's place in the queue. It is 1 for the job that starts next, and 0
// for a job that is not queued.
func (m *Machine) queuePosition(j *job) uint32 {
	if j.State != taxonv1.JobState_JOB_STATE_QUEUED {
		return 0
	}
	n := uint32(1)
	for _, k := range m.jobs {
		if k == j {
			break
		}
		if k.State == taxonv1.JobState_JOB_STATE_QUEUED {
			n++
		}
	}
	return n
}

// resumable reports whether a job that was cancelled, that failed, or whose weights are lost can
// continue.
func (j *job) resumable() bool {
	stopped := j.State == taxonv1.JobState_JOB_STATE_CANCELLED || j.State == taxonv1.JobState_JOB_STATE_FAILED
	return (stopped || j.State == taxonv1.JobState_JOB_STATE_DONE && j.Lost) && !j.Dropped && j.foreign == nil
}

// exportable reports whether a job's final weights are in the store.
func (j *job) exportable() bool {
	return j.State == taxonv1.JobState_JOB_STATE_DONE && j.FinalStep > 0 && !j.Dropped && !j.Lost
}

// Workers describes the workers that left last, and then the registered ones in order of
// registration.
func (m *Machine) Workers() []*taxonv1.WorkerInfo {
	running := map[string]uint32{} // batches
	seen := map[uint64]bool{}
	for _, l := range m.leases {
		if !seen[l.batch] {
			seen[l.batch] = true
			running[l.worker]++
		}
	}
	out := slices.Clone(m.gone)
	for _, w := range m.workers {
		i := w.info()
		// A slot holds a second batch while it reports the one that it has computed. A worker
		// computes at most as many tasks as it has slots.
		i.Running = min(running[w.id], w.slots)
		out = append(out, i)
	}
	return out
}

// info describes the worker as a message.
func (w *workerState) info() *taxonv1.WorkerInfo {
	state := taxonv1.MemberState_MEMBER_STATE_UP
	if w.draining {
		state = taxonv1.MemberState_MEMBER_STATE_DRAINING
	}
	return &taxonv1.WorkerInfo{Worker: w.id, Name: w.name, Slots: w.slots, State: state,
		SeenUnixMs: w.seen.Milliseconds(), MemoryBytes: w.memory, Cores: w.cores, TasksDone: w.done, Version: w.version}
}

// noteGone remembers a worker that has left or was lost.
func (m *Machine) noteGone(w *workerState, silent bool) {
	i := w.info()
	i.State = taxonv1.MemberState_MEMBER_STATE_LEFT
	if silent {
		i.State = taxonv1.MemberState_MEMBER_STATE_LOST
	}
	m.gone = append(m.gone, i)
	if len(m.gone) > maxGone {
		delete(m.timeline.workers, m.gone[0].Worker)
		m.gone = slices.Delete(m.gone, 0, 1)
	}
}

// namedWorker finds a worker by its name, if only one worker has that name, and otherwise by its
// id. The name comes first because names such as w1 and w2 are easily confused with ids.
func (m *Machine) namedWorker(id string) (*workerState, error) {
	var found *workerState
	for _, w := range m.workers {
		if w.name != id {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: several workers are named %s: use an id (%s, %s, ...)", ErrBadMember, id, found.id, w.id)
		}
		found = w
	}
	if found == nil {
		found = m.worker(id)
	}
	if found == nil {
		return nil, fmt.Errorf("worker %s: %w", id, ErrUnknownMember)
	}
	return found, nil
}
