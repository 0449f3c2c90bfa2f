package machine

import (
	"fmt"
	"slices"

	"taxon/coordinator/method"
	"taxon/internal/ui/format"
	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/protobuf/proto"
)

// prepareBytes is prepare for a serialised specification.
func prepareBytes(data []byte) (*prepared, error) {
	spec := &taxonv1.JobSpec{}
	if err := proto.Unmarshal(data, spec); err != nil {
		return nil, fmt.Errorf("specification: %w", err)
	}
	return prepare(spec)
}

// submit handles Submit. It refuses a job that does not fit the limits, the workers or the store.
func (m *Machine) submit(e Submit) error {
	if e.prepared == nil {
		var err error
		if e, err = e.Prepare(); err != nil {
			return err
		}
	}
	p := e.prepared
	id := e.ID
	if id == "" {
		id = m.FreeID(e.Avoid)
	}
	j, err := newJob(id, p)
	if err != nil {
		return err
	}
	if old := m.find(id); old != nil {
		return m.submitAgain(old, j)
	}
	if err := m.checkFull(); err != nil {
		return err
	}
	if err := m.checkSpec(j, e.Owner); err != nil {
		return err
	}
	if err := m.checkFits(p, e.Replicas); err != nil {
		return err
	}
	shards, err := m.chooseShards(e.Replicas)
	if err != nil {
		return err
	}
	m.decide(Record{Kind: recordSubmit, Job: id, Name: clip(e.Name, 256), Owner: e.Owner, Payload: j.Spec, Shards: shards,
		Replicas: e.Replicas, prepared: p})
	m.out = append(m.out, Submitted{Job: id, Displaced: m.displaced(e.Owner)})
	return nil
}

// FreeID returns the next "job-N" that no job has and that is not in avoid.
func (m *Machine) FreeID(avoid []string) string {
	for n := m.lastJob + 1; ; n++ {
		if id := fmt.Sprintf("job-%d", n); m.find(id) == nil && !slices.Contains(avoid, id) {
			return id
		}
	}
}

// checkFull refuses another job if the queue is full.
func (m *Machine) checkFull() error {
	if most := m.limits.MaxRunning + m.limits.MaxQueued; m.openJobs() >= most {
		return fmt.Errorf("%d jobs run or wait, the most there may be: %w", most, ErrTooManyJobs)
	}
	return nil
}

// checkSpec refuses a job whose specification does not fit beside those of its owner's other jobs,
// or of all jobs. Specifications stay in memory and in the journal; the names of labels are most of
// them.
func (m *Machine) checkSpec(j *job, owner string) error {
	own, all, jobs := 0, 0, 0
	for _, k := range m.jobs {
		if k.Dropped || k.ID == j.ID {
			continue
		}
		all += len(k.Spec)
		if k.Owner == owner {
			jobs, own = jobs+1, own+len(k.Spec)
		}
	}
	switch most := m.limits.MaxSpecBytes; {
	case own+len(j.Spec) > most/ownerShare:
		return fmt.Errorf("job %s: its specification takes %s, those of the submitter's %s that are kept take %s, and %s "+
			"is the most: discard some (`taxon cancel ‹discard›`): %w",
			j.ID, atLeast(uint64(len(j.Spec))), format.Counted(int64(jobs), "job", "jobs"), atLeast(uint64(own)),
			atMost(uint64(most/ownerShare)), ErrTooManyJobs)
	case all+len(j.Spec) > most:
		return fmt.Errorf("job %s: its specification takes %s, those of all jobs that are kept take %s, "+
			"and %s is the most: %w",
			j.ID, atLeast(uint64(len(j.Spec))), atLeast(uint64(all)), atMost(uint64(most)), ErrTooManyJobs)
	}
	return nil
}

// ownerShare is the fraction 1/ownerShare of Limits.MaxSpecBytes that one owner may take.
const ownerShare = 4

// openJobs counts the jobs that have not ended.
func (m *Machine) openJobs() int {
	n := 0
	for _, j := range m.jobs {
		if !j.ended() {
			n++
		}
	}
	return n
}

// submitCheckpoint handles SubmitCheckpoint.
func (m *Machine) submitCheckpoint(e SubmitCheckpoint) error {
	j, err := reviveJob(e.State)
	if err != nil {
		return err
	}
	if m.find(j.ID) != nil {
		return fmt.Errorf("job %s: %w", j.ID, ErrJobExists)
	}
	if err := m.checkFull(); err != nil {
		return err
	}
	shards, err := m.chooseShards(j.Replicas)
	if err != nil {
		return err
	}
	m.decide(Record{Kind: recordRestore, Job: j.ID, Payload: e.State, Shards: shards, restored: j})
	m.out = append(m.out, Submitted{Job: j.ID})
	return nil
}

// resume queues again a job that was cancelled, that failed, or that its old criteria have ended.
func (m *Machine) resume(e Resume) error {
	j := m.find(e.Job)
	r := Record{Kind: recordResume, Job: e.Job, By: e.By}
	switch {
	case j == nil:
		return fmt.Errorf("job %s: %w", e.Job, ErrUnknownJob)
	case !j.ended() && e.Criteria.empty(): // it continues anyway
		return nil
	case !j.ended():
		return fmt.Errorf("job %s: %w while it is under way: cancel it first", e.Job, ErrStopCriteria)
	case !j.resumable() && j.stoppedByCriteria() && e.Criteria.empty():
		return fmt.Errorf("job %s: %w; this one is done, by %s: give another ‹gap›, ‹max-sweeps› or ‹max-time› to go on",
			e.Job, ErrNotResumable, j.stoppedBy())
	case !j.resumable() && !j.stoppedByCriteria():
		return fmt.Errorf("job %s: %w", e.Job, ErrNotResumable)
	}
	if !e.Criteria.empty() {
		if err := j.checkResume(e.Criteria); err != nil {
			return err
		}
		r.Criteria = &e.Criteria
	}
	if err := m.checkFull(); err != nil {
		return err
	}
	m.decide(r)
	return nil
}

// startQueued starts queued jobs, oldest first, while fewer than MaxRunning are in flight.
func (m *Machine) startQueued() {
	running := 0
	for _, j := range m.jobs {
		if j.inFlight() {
			running++
		}
	}
	for _, j := range m.jobs {
		if running >= m.limits.MaxRunning {
			return
		}
		if j.State == taxonv1.JobState_JOB_STATE_QUEUED {
			running++
			m.decide(Record{Kind: recordStart, Job: j.ID})
		}
	}
}

// cancel stops a job. With Discard it also drops the values, even of a job that has ended.
func (m *Machine) cancel(e Cancel) error {
	j := m.find(e.Job)
	switch {
	case j == nil:
		return fmt.Errorf("job %s: %w", e.Job, ErrUnknownJob)
	case j.ended() || j.stage == stageSave && !e.Discard:
		if e.Discard && !j.Dropped {
			m.discard(j, e.By)
		}
	case j.State == taxonv1.JobState_JOB_STATE_RUNNING && m.limits.Checkpoints && !e.Discard && j.stage != stageRollBack:
		m.decide(Record{Kind: recordCancel, Job: e.Job, By: e.By})
		m.out = append(m.out, m.save(j, m.now, true))
	default:
		m.decide(Record{Kind: recordCancelOK, Job: e.Job, By: e.By})
		if e.Discard {
			m.discard(j, e.By)
		}
	}
	return nil
}

// discard drops the values of an ended job at a user's request.
func (m *Machine) discard(j *job, by string) {
	m.decide(Record{Kind: recordDiscard, Job: j.ID, Asked: true, By: by, Reason: "a user discarded them"})
}

// saved handles the end of a checkpoint. A failed one fails the job, unless the journal or an older
// checkpoint can take its place.
func (m *Machine) saved(e Saved) {
	j := m.find(e.Job)
	switch {
	case j == nil || j.ended():
	case e.Err != "" && (m.limits.Durable || e.OlderKept) && !e.Final:
		m.decide(Record{Kind: recordNote, Job: j.ID, Reason: "the checkpoint could not be written: " +
			clip(e.Err, maxLineBytes)})
	case e.Err != "":
		m.fail(j, "checkpoint: "+e.Err)
	case e.Final && j.stage == stageSave:
		m.decide(Record{Kind: recordCancelOK, Job: j.ID})
	}
}

// evaluated continues or ends a job whose weights have been evaluated.
func (m *Machine) evaluated(e Evaluated) {
	j := m.find(e.Job)
	switch {
	case j == nil || j.stage != stageEvaluate: // cancelled meanwhile
	case e.Err != "":
		m.fail(j, fmt.Sprintf("sweep %d: evaluation: %s", j.progress().Sweep, e.Err))
	default:
		r := Record{Kind: recordEvaluated, Job: j.ID}
		if e.Stop {
			r.Reason = method.StoppedByEarlyStop
		}
		m.decide(r)
	}
}
