package machine

import (
	"fmt"
	"slices"

	taxonv1 "taxon/proto/taxon/v1"
)

// Digest identifies the final weights of a job.
type Digest struct {
	// WeightsSHA256 is the hexadecimal SHA-256 of the weights.
	WeightsSHA256 string
}

// trained ends a job whose steps are all done. With Limits.Digests it first asks for the digest of
// the weights.
func (m *Machine) trained(j *job, at Tick) {
	if !m.limits.Digests {
		m.endJob(j, taxonv1.JobState_JOB_STATE_DONE, at)
		return
	}
	m.revoke(j, at)
	j.enter(stageDigest, at)
	j.Past, j.Recomputes, j.recomputes, j.awayWhy = nil, nil, nil, ""
	m.out = append(m.out, DigestWeights{Job: j.ID})
}

// digested ends a job whose weights have a digest. Weights that can't be read are lost.
func (m *Machine) digested(e Digested) error {
	j := m.find(e.Job)
	switch {
	case j == nil || j.stage != stageDigest && (!j.exportable() || j.Digest != nil): // cancelled or resumed meanwhile
		return fmt.Errorf("job %s: its weights are not to be digested", e.Job)
	case e.Later:
		j.awayWhy = clip(e.Err, maxLineBytes)
		m.out = append(m.out, Changed{})
	case e.Err != "":
		m.decide(Record{Kind: recordDigested, Job: j.ID, Reason: clip(e.Err, maxLineBytes)})
	default:
		m.decide(Record{Kind: recordDigested, Job: j.ID, Digest: &e.Digest})
	}
	return nil
}

// applyDigested stores the digest and ends the job, if it has not ended yet.
func (m *Machine) applyDigested(j *job, r *Record) {
	j.Digest = r.Digest
	if !j.ended() {
		m.endJob(j, taxonv1.JobState_JOB_STATE_DONE, r.At)
	}
	if r.Digest == nil {
		m.applyWeights(j, r)
	}
}

// The store may lose the weights of a finished job without anybody noticing at once. When it is
// noticed, the job's status says so, and the job can be resumed: it continues from its last
// checkpoint, or from its beginning, to the same bytes.

// weightsLost records that the store has lost the weights of a finished job.
func (m *Machine) weightsLost(e WeightsLost) {
	if j := m.find(e.Job); j != nil && j.exportable() {
		m.decide(Record{Kind: recordWeights, Job: j.ID, Reason: clip(e.Reason, maxLineBytes)})
	}
}

// applyWeights marks the weights of a finished job as lost.
func (m *Machine) applyWeights(j *job, r *Record) {
	j.Lost = true
	j.Error = fmt.Sprintf("its weights are lost: `taxon resume %s` makes them again, from its last snapshot "+
		"if there is one: %s", j.ID, r.Reason)
	j.note(r.At, levelError, "its weights are lost: %s", r.Reason)
	m.out = append(m.out, Changed{})
}

// startSteps lays out the first step of a starting job. If its weights were lost, it first returns
// to its last checkpoint.
func (m *Machine) startSteps(j *job, at Tick) {
	if !j.Lost {
		m.openStep(j, at)
		return
	}
	j.enter(stageRollBack, at)
	j.Rollbacks++
	m.out = append(m.out, LoadJob{Job: j.ID}, Changed{})
}

// submitAgain answers a submission whose id exists already. If it is the same job, the answer is
// that job, which is resumed if its weights were lost.
func (m *Machine) submitAgain(old, j *job) error {
	switch {
	case old.Dropped:
		return fmt.Errorf("job %s: %w", old.ID, ErrDiscarded)
	case !slices.Equal(old.Spec, j.Spec) && sameSpec(old.Spec, j.Spec):
		return fmt.Errorf("job %s: %w (in ‹gap›, ‹max-sweeps› or ‹max-time› alone: cancel it if it is under way, then "+
			"resume it with those wanted)", old.ID, ErrJobExists)
	case !slices.Equal(old.Spec, j.Spec):
		return fmt.Errorf("job %s: %w", old.ID, ErrJobExists)
	case old.State == taxonv1.JobState_JOB_STATE_DONE && old.Lost:
		if err := m.checkFull(); err != nil {
			return err
		}
		m.decide(Record{Kind: recordResume, Job: old.ID})
	}
	m.out = append(m.out, Submitted{Job: old.ID})
	return nil
}
