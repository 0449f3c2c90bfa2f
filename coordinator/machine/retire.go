package machine

import (
	"fmt"
	"slices"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/protobuf/proto"
)

// keptStatuses bounds the ended jobs whose status is kept. Limits.KeepJobs and KeepFor bound
// those whose values are kept too.
const keptStatuses = 1000

// keptLines and keptTrace bound the log and trace of a job whose values are deleted.
const (
	keptLines = 20
	keptTrace = 20
)

// retire drops the values of the jobs that ended longest ago, and forgets the oldest of all.
func (m *Machine) retire() {
	ended := 0
	for i := len(m.jobs) - 1; i >= 0; i-- {
		j := m.jobs[i]
		if !j.ended() {
			continue
		}
		ended++
		switch {
		case j.Dropped:
		case ended > m.limits.KeepJobs:
			m.decide(Record{Kind: recordDiscard, Job: j.ID, Reason: fmt.Sprintf("those of %d jobs that have ended are kept, and as many came later", m.limits.KeepJobs)})
		case m.now-j.Ended > m.limits.KeepFor:
			m.decide(Record{Kind: recordDiscard, Job: j.ID, Reason: fmt.Sprintf("it ended %.0f days ago", (m.now-j.Ended).Seconds()/86400)})
		}
		if ended > keptStatuses {
			m.decide(Record{Kind: recordForget, Job: j.ID})
		}
	}
}

// kept is how much longer retire keeps a job's values. nil: it has not ended.
func (m *Machine) kept(j *job) *taxonv1.Kept {
	switch {
	case !j.ended():
		return nil
	case j.Dropped:
		return &taxonv1.Kept{Dropped: true, Discarded: j.Discarded}
	}
	left := m.limits.KeepJobs
	for i := len(m.jobs) - 1; m.jobs[i] != j; i-- {
		if m.jobs[i].ended() {
			left--
		}
	}
	return &taxonv1.Kept{UntilUnixMs: (j.Ended + m.limits.KeepFor).Milliseconds(), Jobs: uint32(max(left, 1))}
}

// compact drops all of an ended job that its status does not need.
func (j *job) compact() error {
	d := j.spec.GetData()
	spec := &taxonv1.JobSpec{Options: j.spec.GetOptions(), Data: &taxonv1.Data{Fingerprint: d.GetFingerprint(),
		Instances: d.GetInstances(), Features: d.GetFeatures(), Nonzeros: d.GetNonzeros()}}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(spec)
	if err != nil {
		return err
	}
	last := j.progress()
	j.Dropped, j.Spec, j.Last, j.Nodes, j.Terminals = true, data, &last, j.plan.Nodes, j.plan.Terminals
	j.prepared, j.driver, j.Driver = reviveCompacted(&j.jobState, spec), nil, nil
	j.Values, j.Past, j.Recomputes, j.recomputes, j.lastRuns, j.foreign = nil, nil, nil, nil, nil, nil
	j.Trace = append([]traceRecord(nil), j.Trace[max(len(j.Trace)-keptTrace, 0):]...)
	j.log.Lines = append([]logLine(nil), j.log.Lines[max(len(j.log.Lines)-keptLines, 0):]...)
	return nil
}

// reviveCompacted derives what it can from the specification of a job whose values are deleted.
func reviveCompacted(s *jobState, spec *taxonv1.JobSpec) *prepared {
	return &prepared{spec: spec, plan: &method.Plan{Nodes: s.Nodes, Terminals: s.Terminals}}
}

// forget removes a job for good.
func (m *Machine) forget(id string) {
	delete(m.byID, id)
	m.jobs = slices.DeleteFunc(slices.Clone(m.jobs), func(j *job) bool { return j.ID == id }) // a clone, because a caller that lists them may forget some
}
