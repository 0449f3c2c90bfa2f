package coordinator

import (
	"encoding/json"
	"fmt"
	"slices"

	taxonv1 "taxon/proto/taxon/v1"
)

// Ahead is how a job's step under way stands, and what follows it.
type Ahead struct {
	Step    uint32 // number of the step under way; 0: none is
	Waiting int    // its tasks that nobody has
	Running int    // its tasks that somebody has
	// Next are the leases of the step after it, in range order, where they are known before
	// it has ended: those of a REDUCE step behind a MAP step, whose parameters do not depend
	// on what the MAP tasks report. They presume that each task is committed under the
	// attempt that it has now, and have no epoch.
	Next []*taxonv1.Lease
}

// Ahead tells how a job's step under way stands. It changes nothing.
func (m *Machine) Ahead(id string) (Ahead, error) {
	j := m.find(id)
	if j == nil {
		return Ahead{}, ErrUnknownJob
	}
	if !j.running() || j.step == nil {
		return Ahead{}, nil
	}
	s := j.step
	return Ahead{Step: s.number, Waiting: len(s.tasks) - s.done - s.live, Running: s.live, Next: j.foresee()}, nil
}

// foresee lays out the REDUCE step behind a MAP step as closeStep will, on copies.
func (j *job) foresee() []*taxonv1.Lease {
	if j.step.spec.Map != taxonv1.TaskKind_TASK_KIND_MAP || j.step.spec.Reduce != taxonv1.TaskKind_TASK_KIND_UNSPECIFIED || j.flat {
		return nil
	}
	after := *j.outer
	if _, err := after.commit(make([]Sums, len(j.step.tasks))); err != nil {
		return nil
	}
	spec := after.step()
	if spec.Map != taxonv1.TaskKind_TASK_KIND_UNSPECIFIED || spec.Reduce != taxonv1.TaskKind_TASK_KIND_REDUCE {
		return nil
	}
	dual := slices.Clone(j.Dual)
	for n := range j.step.maps {
		t := &j.step.tasks[n]
		dual[j.step.first+n] = taxonv1.Place{Step: j.step.number, Task: n, Attempt: max(t.committed, t.attempt)}
	}
	s := &step{spec: spec, number: j.StepNo + 1, from: sources{dual, j.X, j.XPrev}, tasks: make([]task, len(j.X))}
	s.in = compile(spec, s.from)
	out := make([]*taxonv1.Lease, len(s.tasks))
	for n := range s.tasks {
		s.tasks[n].attempt = 1
		out[n] = s.lease(j, uint32(n))
	}
	return out
}

// KeptSteps lists, ascending, the steps whose values a job's state refers to. Pure.
func KeptSteps(state []byte) ([]uint32, error) {
	j := &job{}
	if err := json.Unmarshal(state, &j.jobState); err != nil {
		return nil, fmt.Errorf("job state: %w", err)
	}
	return j.keepSteps(), nil
}
