package machine

import (
	"fmt"
	"slices"

	taxonv1 "taxon/proto/taxon/v1"
)

// maxGone bounds the workers that are remembered after they left or were lost.
const maxGone = 64

// Describe is what workers and exports need of a job: specification, plan, and the shards that
// its values lie on.
func (m *Machine) Describe(id string) (*taxonv1.JobResult, error) {
	shards, replicas, err := m.JobShards(id)
	if err != nil {
		return nil, err
	}
	j := m.find(id)
	return &taxonv1.JobResult{Spec: j.spec, Plan: j.message(), Shards: shards, Replicas: replicas}, nil
}

// State is what a checkpoint of a job would hold now, and the steps whose values its next step
// would read.
func (m *Machine) State(id string) (state []byte, steps []uint32, err error) {
	j, err := m.known(id)
	if err != nil {
		return nil, nil, err
	}
	if j.Dropped {
		return nil, nil, fmt.Errorf("job %s: its values are gone", id)
	}
	return j.encode(), j.Values.latest(), nil
}

// Jobs lists all jobs in order of submission.
func (m *Machine) Jobs(now Tick) []*taxonv1.JobInfo {
	now = max(now, m.now)
	out := make([]*taxonv1.JobInfo, 0, len(m.jobs))
	queued := uint32(0)
	for _, j := range m.jobs {
		i := &taxonv1.JobInfo{
			Job: j.ID, Name: j.Name, State: j.State, Sweep: j.Committed, Certificate: certificateMessage(j.progress().Certificate), Phase: j.phase(),
			GapWanted: j.spec.GetOptions().GetGap(), SubmittedUnixMs: j.Submitted.Milliseconds(), StartedUnixMs: j.Started.Milliseconds(),
			EndedUnixMs: j.Ended.Milliseconds(), EtaSeconds: j.eta(now), Error: j.Error, Resumable: j.resumable(), Exportable: j.exportable(), Kept: m.kept(j),
		}
		if j.State == taxonv1.JobState_JOB_STATE_QUEUED {
			queued++
			i.QueuePosition = queued
		}
		out = append(out, i)
	}
	return out
}

// queuePosition counts from 1 for the job that starts next; 0: not queued.
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

// resumable says whether a job that was cancelled, or failed, or whose weights are lost, can go on.
func (j *job) resumable() bool {
	stopped := j.State == taxonv1.JobState_JOB_STATE_CANCELLED || j.State == taxonv1.JobState_JOB_STATE_FAILED
	return (stopped || j.State == taxonv1.JobState_JOB_STATE_DONE && j.Lost) && !j.Dropped
}

// exportable says whether a job's final weights are in the store.
func (j *job) exportable() bool {
	return j.State == taxonv1.JobState_JOB_STATE_DONE && j.FinalStep > 0 && !j.Dropped && !j.Lost
}

// Workers lists the registered workers in order of registration, behind the last ones
// that went.
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
		// A slot holds a second batch while it reports the one that it has computed, or is about
		// to begin with it: a worker computes no more than its slots.
		i.Running = min(running[w.id], w.slots)
		out = append(out, i)
	}
	return out
}

func (w *workerState) info() *taxonv1.WorkerInfo {
	state := taxonv1.MemberState_MEMBER_STATE_UP
	if w.draining {
		state = taxonv1.MemberState_MEMBER_STATE_DRAINING
	}
	return &taxonv1.WorkerInfo{Worker: w.id, Name: w.name, Slots: w.slots, State: state,
		SeenUnixMs: w.seen.Milliseconds(), MemoryBytes: w.memory, TasksDone: w.done}
}

// noteGone remembers a worker that went.
func (m *Machine) noteGone(w *workerState, silent bool) {
	i := w.info()
	i.State = taxonv1.MemberState_MEMBER_STATE_LEFT
	if silent {
		i.State = taxonv1.MemberState_MEMBER_STATE_LOST
	}
	m.gone = append(m.gone, i)
	if len(m.gone) > maxGone {
		m.gone = slices.Delete(m.gone, 0, 1)
	}
}

// namedWorker finds a worker by its name, which somebody chose, if only one has it, else by
// id: where workers are named w1, w2, ... the two are easily mistaken for each other.
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
