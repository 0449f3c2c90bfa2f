package machine

import (
	"bytes"
	"fmt"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/protobuf/proto"
)

// Branch turns the state of a job (of Server.State or a checkpoint) into that of another
// one, which begins at the values of the families given: for Server.SubmitCheckpoint, once the
// values that the state names are in the store under the new id. The specifications may
// differ in options that change no plan: C, gap, seed, weights, stopping criteria. Momentum
// and certificate begin anew. Pure.
func Branch(state []byte, id string, spec *taxonv1.JobSpec, families []string) ([]byte, error) {
	old, err := reviveJob(state)
	if err != nil {
		return nil, err
	}
	if old.spec.GetData().GetFingerprint() != spec.GetData().GetFingerprint() || !proto.Equal(old.spec.GetStructure(), spec.GetStructure()) {
		return nil, fmt.Errorf("job %s: a job can't begin where one on other data or another structure ended", id)
	}
	p, err := prepare(spec)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", id, err)
	}
	if !bytes.Equal(p.plan.Detail, old.plan.Detail) || !old.Values.of(p.plan) {
		return nil, fmt.Errorf("job %s: its plan is not that of job %s: bias, schedule, method and pruning must be the same", id, old.ID)
	}
	return p.warmStart(id, old.StepNo, families, func(v *method.Value) places { return old.Values[v.Name][0] })
}

// WarmStart is the state of a job that begins at given values of some families: for
// Server.SubmitCheckpoint, once they are in the store, each as if attempt 1 of a task of the
// step given had written it: one task an item, list after list of the plan. Pure.
func WarmStart(id string, spec *taxonv1.JobSpec, step uint32, families []string) (state []byte, plan *taxonv1.Plan, err error) {
	p, err := prepare(spec)
	if err != nil {
		return nil, nil, fmt.Errorf("job %s: %w", id, err)
	}
	state, err = p.warmStart(id, step, families, func(v *method.Value) places {
		at, first := make(places, p.plan.Items[v.Items].Count), p.plan.First(v.Items)
		for i := range at {
			at[i] = taxonv1.Place{Step: step, Task: uint32(first + i), Attempt: 1}
		}
		return at
	})
	return state, p.message(), err
}

// warmStart is the state of a job whose families given begin at the places given. Its steps
// are numbered behind the one given.
func (p *prepared) warmStart(id string, step uint32, families []string, at func(*method.Value) places) ([]byte, error) {
	j, err := newJob(id, p)
	if err != nil {
		return nil, err
	}
	j.StepNo = step
	for _, name := range families {
		v := p.plan.Value(name)
		if v == nil {
			return nil, fmt.Errorf("job %s: method %s has no values named %s", id, p.method.Name(), name)
		}
		for back := range j.Values[name] {
			j.Values[name][back] = at(v)
		}
	}
	j.driver.WarmStart(families)
	return j.encode(), nil
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
