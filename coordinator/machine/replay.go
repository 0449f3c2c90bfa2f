package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/protobuf/proto"
)

// A job that can't be written, read or replayed fails, and no other job does.

// Replay applies a record of the journal. It returns no actions: they were executed before the
// restart, or Recover returns them again. A record that does not fit its job makes Recover fail
// that job; later records of the job are skipped until then.
func (m *Machine) Replay(r Record) error {
	m.now, m.out = max(m.now, r.At), nil
	// An epoch is never used twice, even if its record is skipped.
	m.lastEpoch = max(m.lastEpoch, r.Epoch)
	j := m.find(r.Job)
	if j != nil && (j.broken != nil || j.foreign != nil) && !slices.Contains(ending, r.Kind) {
		return nil
	}
	err := m.apply(&r)
	switch {
	case err == nil:
		if j != nil && r.Kind == recordFail {
			j.broken = nil
		}
	case errors.Is(err, errUnknownKind):
	case j != nil && j == m.find(r.Job):
		j.broken, err = err, nil
	case r.Kind == recordSubmit:
		err = m.addForeign(jobSnapshot{Job: strangerState(&r)}, err)
	case r.Kind == recordRestore:
		err = m.addForeign(jobSnapshot{Job: r.Payload}, err)
	}
	m.out = nil
	return err
}

// ending lists the kinds of records that apply to a job which can't be continued.
var ending = []recordKind{recordFail, recordDiscard, recordForget, recordRestore}

// failBroken fails the jobs whose records could not be replayed.
func (m *Machine) failBroken(now Tick) {
	for _, j := range m.jobs {
		if err := j.broken; err != nil {
			m.now, j.broken = max(now, m.now), nil
			m.fail(j, "the journal has something that does not fit the job: "+err.Error())
		}
	}
}

// giveUp fails a job that can't be written, and forgets everything of it that its status does not
// need.
func (m *Machine) giveUp(j *job, err error) {
	m.failJob(j, "it can't be saved: "+err.Error(), m.now)
	if err := j.compact(); err != nil {
		j.Spec = nil
	}
	j.jobState = jobState{Version: stateVersion, ID: j.ID, Name: j.Name, Owner: j.Owner, Spec: j.Spec, State: j.State,
		Error: j.Error, StepNo: j.StepNo,
		Committed: j.Committed, Dropped: true, Shards: j.Shards, Replicas: j.Replicas, Submitted: j.Submitted,
		Started: j.Started, Ended: j.Ended,
		Nodes: j.Nodes, Terminals: j.Terminals}
	m.out = nil
}

// foreignJob returns a failed job in place of one that this version can't continue, because another
// version wrote it or would plan it differently. Its values stay in the store and its state in the
// journal until it is discarded, so the version that wrote it can continue it.
func foreignJob(s jobSnapshot, why error) (*job, error) {
	var was struct {
		ID, Name, Owner           string
		Spec                      []byte
		StepNo, Committed         uint32
		Shards                    []string
		Replicas                  uint32
		Submitted, Started, Ended Tick
	}
	if err := json.Unmarshal(s.Job, &was); err != nil || was.ID == "" {
		return nil, why
	}
	spec := &taxonv1.JobSpec{}
	_ = proto.Unmarshal(was.Spec, spec) // what can't be read of it is not shown
	state := jobState{Version: stateVersion, ID: was.ID, Name: was.Name, Owner: was.Owner, Spec: was.Spec,
		StepNo: was.StepNo, Committed: was.Committed,
		Shards: was.Shards, Replicas: was.Replicas, Submitted: was.Submitted, Started: was.Started,
		Ended: max(was.Ended, was.Started, was.Submitted, 1),
		State: taxonv1.JobState_JOB_STATE_FAILED,
		Error: fmt.Sprintf("this version of taxon can't continue it: %v", why)}
	return &job{jobState: state, prepared: reviveCompacted(&state, spec), foreign: &s, log: s.Log}, nil
}

// addForeign adds a job that can't be continued.
func (m *Machine) addForeign(s jobSnapshot, why error) error {
	j, err := foreignJob(s, why)
	if err != nil {
		return err
	}
	m.lastJob++
	m.forget(j.ID)
	m.jobs = append(m.jobs, j)
	m.byID[j.ID] = j
	return nil
}

// strangerState returns the state of a job that was submitted and can't be planned.
func strangerState(r *Record) []byte {
	out, _ := json.Marshal(&jobState{Version: stateVersion, ID: r.Job, Name: r.Name, Owner: r.Owner, Spec: r.Payload,
		Submitted: r.At,
		Shards:    r.Shards, Replicas: r.Replicas})
	return out
}
