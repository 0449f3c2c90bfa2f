package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
)

// checker records what clients and workers have observed, and checks the invariants.
type checker struct {
	w        *world
	grants   map[uint64]string // epoch -> lease
	attempts map[string]uint32 // job/step/task -> committed attempt
	reports  map[string]bool   // job/step/task/attempt whose report was accepted
	status   map[string]*taxonv1.JobStatus
	emitting map[string]uint32 // job -> step that writes the final values
	replayed int
	silence
}

func newChecker(w *world) *checker {
	return &checker{w: w, grants: map[uint64]string{}, attempts: map[string]uint32{}, reports: map[string]bool{},
		status: map[string]*taxonv1.JobStatus{}, emitting: map[string]uint32{}, silence: silence{w: w}}
}

// granted checks that no epoch is granted twice.
func (c *checker) granted(l *taxonv1.Lease) {
	what := fmt.Sprintf("%s step %d task %d attempt %d", l.Job, l.Step, l.Task, l.Attempt)
	if old, there := c.grants[l.Epoch]; there {
		c.w.fail("epoch %d was granted for %s and again for %s", l.Epoch, old, what)
	}
	c.grants[l.Epoch] = what
	c.answered(epoch(l.Epoch))
	switch last := c.emitting[l.Job]; {
	case l.Emit:
		c.emitting[l.Job] = l.Step
	case last > 0 && l.Step > last: // it has rolled back
		delete(c.emitting, l.Job)
	}
}

func (c *checker) accepted(id *taxonv1.LeaseId) {
	c.reports[fmt.Sprintf("%s/%d/%d/%d", id.Job, id.Step, id.Task, id.Attempt)] = true
	task := fmt.Sprintf("%s/%d/%d", id.Job, id.Step, id.Task)
	if old, there := c.attempts[task+"?"]; there && old != id.Attempt {
		c.w.fail("%s: attempts %d and %d were both accepted", task, old, id.Attempt)
	}
	c.attempts[task+"?"] = id.Attempt
}

// committed checks that one attempt of each task is committed, for good, and that its report was
// accepted.
func (c *checker) committed(s machine.CommitStep) {
	for n, attempt := range s.Attempts {
		task := fmt.Sprintf("%s/%d/%d", s.Job, s.Step, n)
		if old, there := c.attempts[task]; there && old != attempt {
			c.w.fail("%s: attempts %d and %d were both committed", task, old, attempt)
		}
		c.attempts[task] = attempt
		if last, there := c.attempts[task+"?"]; there && last != attempt {
			c.w.fail("%s: attempt %d was accepted, %d committed", task, last, attempt)
		}
	}
}

// progress checks that the progress that users see never decreases.
func (c *checker) progress(k *coord) {
	for _, j := range k.machine.Jobs(k.clock()) {
		st, err := k.machine.Status(j.Job, k.clock(), 0)
		if err != nil {
			c.w.fail("status: %v", err)
			return
		}
		old := c.status[j.Job]
		c.status[j.Job] = st
		if old == nil || k.synced < len(k.file) { // the real shell answers after the sync
			if old != nil {
				c.status[j.Job] = old
			}
			continue
		}
		resumed := old.State == taxonv1.JobState_JOB_STATE_CANCELLED && k.w.faults.Users > 0
		if st.Sweep < old.Sweep || st.State < old.State && !resumed || st.Rollbacks < old.Rollbacks ||
			len(st.Trace) < len(old.Trace) {
			c.w.fail("job %s: reported sweep %d %v, then sweep %d %v", j.Job, old.Sweep, old.State, st.Sweep, st.State)
		}
		if k.w.faults.Rot+k.w.faults.Wipe == 0 && st.Remade+st.Rollbacks > 0 {
			c.w.fail("job %s: %d values were made again and %d rollbacks, but no fault took any", j.Job, st.Remade, st.Rollbacks)
		}
	}
}

// replays checks that replaying the journal gives the same machine.
func (c *checker) replays(k *coord) {
	m, _, err := rebuild(k.limits, k.file)
	if err != nil {
		c.w.fail("the journal can't be replayed: %v", err)
		return
	}
	c.replayed++
	a, err := comparable(m.Snapshot())
	b, err2 := comparable(k.machine.Snapshot())
	if err := errors.Join(err, err2); err != nil {
		c.w.fail("a snapshot is not JSON: %v", err)
	} else if !bytes.Equal(a, b) {
		c.w.fail("replayed, the machine is\n%s\nnot\n%s", a, b)
	}
}

// comparable removes from a snapshot what replaying does not restore: the time of the last event,
// and tasks that are still listed as returned after they were leased again.
func comparable(snapshot []byte) ([]byte, error) {
	var s map[string]json.RawMessage
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return nil, err
	}
	delete(s, "Now")
	var jobs []map[string]json.RawMessage
	if err := json.Unmarshal(s["Jobs"], &jobs); err != nil {
		return nil, err
	}
	for _, j := range jobs {
		delete(j, "Again")
	}
	var err error
	if s["Jobs"], err = json.Marshal(jobs); err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

func sortKeys(keys []key) { slices.SortFunc(keys, compareKeys) }
