package machine

import (
	"bytes"
	"fmt"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/protobuf/proto"
)

// SpecOf is the specification of the job that a state is of. Pure.
func SpecOf(state []byte) (*taxonv1.JobSpec, error) {
	s, err := readState(state)
	if err != nil {
		return nil, err
	}
	spec := &taxonv1.JobSpec{}
	if err := proto.Unmarshal(s.Spec, spec); err != nil {
		return nil, fmt.Errorf("job %s: specification: %w", s.ID, err)
	}
	return spec, nil
}

// Branch turns the state of a job (of Server.State or a checkpoint) into that of another
// one, which begins at the values of the families given: for Server.SubmitCheckpoint, once the
// values that the state names are in the store under the new id. The specifications may
// differ in options that change no plan: C, gap, seed, weights, caps. Momentum and
// certificate begin anew. Pure.
func Branch(state []byte, id string, spec *taxonv1.JobSpec, families []string) ([]byte, error) {
	old, err := readState(state)
	if err != nil {
		return nil, err
	}
	before, err := SpecOf(state)
	if err != nil {
		return nil, err
	}
	if before.GetData().GetFingerprint() != spec.GetData().GetFingerprint() || !proto.Equal(before.GetStructure(), spec.GetStructure()) {
		return nil, fmt.Errorf("job %s: a job can't begin where one on other data or another structure ended", id)
	}
	p, err := prepare(spec)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	first, err := prepare(before)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", old.ID, err)
	}
	if !bytes.Equal(p.plan.Detail, first.plan.Detail) || !old.Values.of(p.plan) {
		return nil, fmt.Errorf("job %s: its plan is not that of job %s: bias, schedule, method and pruning must be the same", id, old.ID)
	}
	j, err := newJob(id, p)
	if err != nil {
		return nil, err
	}
	j.StepNo = old.StepNo
	for _, name := range families {
		v := p.plan.Value(name)
		if v == nil {
			return nil, fmt.Errorf("job %s: method %s has no values named %s", id, p.method.Name(), name)
		}
		j.begins(*v, old.Values[name][0])
	}
	j.driver.WarmStart(families)
	return j.encode(), nil
}

// begins has a job begin at given values of a family.
func (j *job) begins(v method.Value, at places) {
	for back := range j.Values[v.Name] {
		j.Values[v.Name][back] = at
	}
}

// WarmStart is the state of a job that begins at given values of some families: for Server.SubmitCheckpoint,
// once they are in the store, each as if attempt 1 of a task of the step given had written it:
// one task an item, list after list of the plan. Pure.
func WarmStart(id string, spec *taxonv1.JobSpec, step uint32, families []string) (state []byte, plan *taxonv1.Plan, err error) {
	p, err := prepare(spec)
	if err != nil {
		return nil, nil, fmt.Errorf("job %s: %w", id, err)
	}
	j, err := newJob(id, p)
	if err != nil {
		return nil, nil, err
	}
	j.StepNo = step
	for _, name := range families {
		v := p.plan.Value(name)
		if v == nil {
			return nil, nil, fmt.Errorf("job %s: method %s has no values named %s", id, p.method.Name(), name)
		}
		at, first := make(places, p.plan.Items[v.Items].Count), p.plan.First(v.Items)
		for i := range at {
			at[i] = taxonv1.Place{Step: step, Task: uint32(first + i), Attempt: 1}
		}
		j.begins(*v, at)
	}
	j.driver.WarmStart(families)
	return j.encode(), p.message(), nil
}

// message is the plan as workers know it.
func (p *prepared) message() *taxonv1.Plan {
	out := &taxonv1.Plan{Detail: p.plan.Detail}
	for _, list := range p.plan.Items {
		out.Items = append(out.Items, &taxonv1.Items{Count: uint32(list.Count), Cost: list.Cost})
	}
	for _, s := range p.plan.Sums {
		out.Sums = append(out.Sums, &taxonv1.Sum{Name: s.Name, Count: s.Count})
	}
	for _, v := range p.plan.Values {
		if v.Cut {
			out.Families = append(out.Families, &taxonv1.Family{Name: v.Name, By: uint32(v.By)})
		}
	}
	return out
}

// NewPlan is the plan of a specification, as workers are told it. Pure.
func NewPlan(spec *taxonv1.JobSpec) (*taxonv1.Plan, error) {
	p, err := prepare(spec)
	if err != nil {
		return nil, err
	}
	return p.message(), nil
}
