package machine

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

	taxonv1 "taxon/proto/taxon/v1"
)

// A snapshot of a job can be restored on another cluster than its own, with any number of
// shards: its state names values by step, task and attempt, never by shard. On its own cluster
// it replaces the job there, if that has failed or was cancelled. So a job whose shard is lost
// for good continues on the others.

// SavedState is what a checkpoint's state says of its job.
type SavedState struct {
	Job      string
	Spec     *taxonv1.JobSpec
	Sweep    uint32   // highest committed
	Replicas uint32   // copies of each value that it had; 0: one
	Keep     []uint32 // the steps whose values it refers to, ascending
}

// ReadState reads the state of a SaveJob action. One of another version is refused. Pure.
func ReadState(state []byte) (*SavedState, error) {
	s, err := readState(state)
	if err != nil {
		return nil, err
	}
	out := &SavedState{Job: s.ID, Spec: &taxonv1.JobSpec{}, Sweep: s.Committed, Replicas: s.Replicas, Keep: (&job{jobState: s}).keepSteps()}
	if err := proto.Unmarshal(s.Spec, out.Spec); err != nil {
		return nil, fmt.Errorf("job %s: specification: %w", s.ID, err)
	}
	return out, nil
}

// SameJob says whether two states are of one job, as it was submitted once.
func SameJob(a, b []byte) bool {
	var one, other jobState
	if json.Unmarshal(a, &one) != nil || json.Unmarshal(b, &other) != nil {
		return false
	}
	return one.ID == other.ID && one.Submitted == other.Submitted && sameSpec(one.Spec, other.Spec)
}

// restore queues a job that continues from a state whose values lie on the shards named.
func (m *Machine) restore(e Restore) error {
	if e.revived == nil {
		var err error
		if e, _, err = e.Prepare(); err != nil {
			return err
		}
	}
	j := e.revived
	if j.Dropped {
		return fmt.Errorf("job %s: %w", j.ID, ErrNotResumable)
	}
	if err := m.checkReplace(j); err != nil {
		return err
	}
	if err := m.checkFull(); err != nil {
		return err
	}
	if err := m.checkFits(j.prepared, e.Replicas); err != nil {
		return err
	}
	if err := m.checkShards(e.Shards, e.Replicas); err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	m.decide(Record{Kind: recordRestore, Job: j.ID, Payload: e.State, Shards: e.Shards, Replicas: max(e.Replicas, 1), restored: j})
	m.out = append(m.out, Submitted{Job: j.ID})
	return nil
}

// checkReplace says why a restored job may not take the place of one that is there.
func (m *Machine) checkReplace(j *job) error {
	switch old := m.find(j.ID); {
	case old == nil:
	case !sameSpec(old.Spec, j.Spec) && !old.Dropped:
		return fmt.Errorf("job %s: %w", j.ID, ErrJobExists)
	case !old.ended():
		return fmt.Errorf("job %s: %w: it is on its way here: cancel it first", j.ID, ErrNotResumable)
	case old.State == taxonv1.JobState_JOB_STATE_DONE && !old.Lost && !old.Dropped:
		return fmt.Errorf("job %s: %w: it is done here", j.ID, ErrNotResumable)
	}
	return nil
}

// checkShards checks the shards that a restored job's values lie on.
func (m *Machine) checkShards(ids []string, replicas uint32) error {
	seen := map[string]bool{}
	for _, id := range ids {
		if s := m.shard(id); s == nil || !s.up {
			return fmt.Errorf("store shard %.64q is not up: restore again: %w", id, ErrNoShards)
		}
		if seen[id] {
			return fmt.Errorf("store shard %.64q is named twice: %w", id, ErrBadMember)
		}
		seen[id] = true
	}
	switch n := max(replicas, 1); {
	case len(ids) == 0:
		return ErrNoShards
	case int(n) > len(ids):
		return errFewShards(int(n), len(ids))
	}
	return nil
}

// supersede takes over what users have been told of a job whose place j takes, and the
// numbers of its steps: none is used twice.
func (m *Machine) supersede(j *job) {
	old := m.find(j.ID)
	if old == nil {
		return
	}
	j.StepNo = max(j.StepNo, old.StepNo)
	j.Committed = max(j.Committed, old.Committed)
	j.Rollbacks = old.Rollbacks + 1
	j.Retried, j.WorkersLost = max(j.Retried, old.Retried), max(j.WorkersLost, old.WorkersLost)
	if len(old.Trace) > len(j.Trace) {
		j.Trace = old.Trace
	}
	j.log = old.log
	m.forget(j.ID)
}
