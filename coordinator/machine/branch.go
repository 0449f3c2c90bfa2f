package machine

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/proto"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"
)

// Branch turns the state of a job (from Server.State or a checkpoint) into the state of another
// job, which begins at the values of the families given. Server.SubmitCheckpoint takes it once the
// values that the state names are in the store under the new id. The specifications may differ in
// options that do not change the plan: C, gap, seed, weights, stopping criteria. Momentum and
// certificate are reset. It is pure.
func Branch(state []byte, id string, spec *taxonv1.JobSpec, families []string) ([]byte, error) {
	old, err := reviveJob(state)
	if err != nil {
		return nil, err
	}
	was, is := old.spec.GetData(), spec.GetData()
	if was.GetFingerprint() != is.GetFingerprint() || !bytes.Equal(was.GetRows(), is.GetRows()) ||
		!proto.Equal(old.spec.GetStructure(), spec.GetStructure()) {
		return nil, fmt.Errorf("job %s: a job can't begin where one on other data or another structure ended", id)
	}
	p, err := prepare(spec)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	if !bytes.Equal(p.plan.Detail, old.plan.Detail) || !old.Values.of(p.plan) {
		return nil, fmt.Errorf("job %s: its plan is not that of job %s: the method and its options that decide what the "+
			"items are must be the same", id, old.ID)
	}
	return p.warmStart(id, old.StepNo, families, func(v *method.Variable) places { return old.Values[v.Name][0] })
}

// WarmStart returns the state of a job that begins at given values of some families, and its plan.
// Server.SubmitCheckpoint takes it once the values are in the store. Their names are those that
// attempt 1 of the tasks of the step given would have written, one task per item, list after list
// of the plan. It is pure.
func WarmStart(id string, spec *taxonv1.JobSpec, step uint32,
	families []string) (state []byte, plan *taxonv1.Plan, err error) {
	p, err := prepare(spec)
	if err != nil {
		return nil, nil, fmt.Errorf("job %s: %w", id, err)
	}
	state, err = p.warmStart(id, step, families, func(v *method.Variable) places {
		at, first := make(places, p.plan.Items[v.Items].Count), p.plan.First(v.Items)
		for i := range at {
			at[i] = taxonv1.Place{Step: step, Task: uint32(first + i), Attempt: 1}
		}
		return at
	})
	return state, p.message(), err
}

// warmStart returns the state of a job whose families given begin at the places given. Its step
// numbers follow the one given.
func (p *prepared) warmStart(id string, step uint32, families []string,
	at func(*method.Variable) places) ([]byte, error) {
	j, err := newJob(id, p)
	if err != nil {
		return nil, err
	}
	j.StepNo = step
	for _, name := range families {
		v := p.plan.Variable(name)
		if v == nil {
			return nil, fmt.Errorf("job %s: method %s has no values named %s", id, p.method.Name(), name)
		}
		for back := range j.Values[name] {
			j.Values[name][back] = at(v)
		}
	}
	if d, ok := j.driver.(method.WarmStarter); ok {
		d.WarmStart(families)
	}
	return j.encode()
}

// message returns the plan as workers receive it.
func (p *prepared) message() *taxonv1.Plan {
	out := &taxonv1.Plan{Detail: p.plan.Detail, Rooted: p.plan.Rooted}
	for _, list := range p.plan.Items {
		out.Items = append(out.Items, &taxonv1.Items{Count: uint32(list.Count), Cost: list.Cost})
	}
	for _, s := range p.plan.Sums {
		out.Sums = append(out.Sums, &taxonv1.Sum{Name: s.Name, Count: s.Count})
	}
	for _, v := range p.plan.Variables {
		if v.Cut {
			out.Families = append(out.Families, &taxonv1.Family{Name: v.Name, By: uint32(v.By)})
		}
	}
	return out
}

// NewPlan returns the plan of a specification, as workers receive it. It is pure.
func NewPlan(spec *taxonv1.JobSpec) (*taxonv1.Plan, error) {
	p, err := prepare(spec)
	if err != nil {
		return nil, err
	}
	return p.message(), nil
}

// A snapshot of a job can be restored on any cluster, with any number of shards: its state names
// values by step, task and attempt, never by shard. On its own cluster it replaces the job there,
// if that has failed or was cancelled. So a job that has lost a shard for good can continue on the
// other shards.

// SavedState is what a checkpoint's state says about its job.
type SavedState struct {
	Job  string
	Spec *taxonv1.JobSpec
	// Sweep is the highest committed sweep.
	Sweep uint32
	// Replicas is the number of copies that each value had. Zero means one.
	Replicas uint32
	// Keep lists, ascending, the steps whose values the state refers to.
	Keep []uint32
}

// ReadState reads the state of a SaveJob action. It refuses a state of another version. It is pure.
func ReadState(state []byte) (*SavedState, error) {
	s, err := readState(state)
	if err != nil {
		return nil, err
	}
	out := &SavedState{Job: s.ID, Spec: &taxonv1.JobSpec{}, Sweep: s.Committed, Replicas: s.Replicas, Keep: s.keepSteps()}
	if err := proto.Unmarshal(s.Spec, out.Spec); err != nil {
		return nil, fmt.Errorf("job %s: specification: %w", s.ID, err)
	}
	return out, nil
}

// restore queues a job that continues from a state whose values lie on the shards given.
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
	if err := m.checkSpec(j, e.Owner); err != nil {
		return err
	}
	if err := m.checkFits(j.prepared, e.Replicas); err != nil {
		return err
	}
	if err := m.checkShards(e.Shards, e.Replicas); err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	m.decide(Record{Kind: recordRestore, Job: j.ID, Owner: e.Owner, Payload: e.State, Shards: e.Shards,
		Replicas: max(e.Replicas, 1), restored: j})
	m.out = append(m.out, Submitted{Job: j.ID})
	return nil
}

// checkReplace returns an error if a restored job may not replace the job of its id.
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

// supersede copies to j, from the job that it replaces, the owner, what users have seen, and the
// step numbers, so that no number is used twice.
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
	j.log, j.Owner = old.log, old.Owner
	m.forget(j.ID)
}
