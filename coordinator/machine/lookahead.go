package machine

import (
	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Lookahead is how a job's step under way stands, and what follows it.
type Lookahead struct {
	Step    uint32 // number of the step under way; 0: none is
	Waiting int    // its tasks that nobody has
	Running int    // its tasks that somebody has
	// Next are the leases of the step after it, if its parameters do not depend on the step under
	// way. They assume that each task is committed under its present attempt, and have no epoch.
	Next []*taxonv1.Lease
	// Again: the step after it may be run a second time, from the same values.
	Again bool
}

// Lookahead tells how a job's step under way stands. It changes nothing.
func (m *Machine) Lookahead(id string) (Lookahead, error) {
	j, err := m.known(id)
	if err != nil || !j.running() || j.step == nil {
		return Lookahead{}, err
	}
	s := j.step
	a := Lookahead{Step: s.number, Waiting: len(s.tasks) - s.done - s.live, Running: s.live}
	a.Next, a.Again = j.lookahead()
	return a, nil
}

// lookahead lays out the step behind the one under way as closeStep will, on copies.
func (j *job) lookahead() (next []*taxonv1.Lease, again bool) {
	d, ok := j.driver.(method.Lookahead)
	if !ok {
		return nil, false
	}
	after, again, known := d.Ahead()
	if !known {
		return nil, false
	}
	s := layOut(after, j.StepNo+1, j.published(j.step, method.Outcome{}, func(n uint32) taxonv1.Place {
		t := &j.step.tasks[n]
		return taxonv1.Place{Step: j.step.number, Task: n, Attempt: max(t.committed, t.attempt)}
	}))
	for n := range s.tasks {
		s.tasks[n].attempt = 1
		next = append(next, s.lease(j, uint32(n)))
	}
	return next, again
}
