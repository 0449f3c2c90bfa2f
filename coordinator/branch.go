package coordinator

import (
	"encoding/json"
	"fmt"
	"slices"

	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/protobuf/proto"
)

// SpecOf is the specification of the job that a state is of. Pure.
func SpecOf(state []byte) (*taxonv1.JobSpec, error) {
	var s struct {
		ID   string
		Spec []byte
	}
	if err := json.Unmarshal(state, &s); err != nil {
		return nil, fmt.Errorf("job state: %w", err)
	}
	spec := &taxonv1.JobSpec{}
	if err := proto.Unmarshal(s.Spec, spec); err != nil {
		return nil, fmt.Errorf("job %s: specification: %w", s.ID, err)
	}
	return spec, nil
}

// Branch turns the state of a job (of Server.State or a checkpoint) into that of another
// one, which begins at the first one's duals and internals: for Server.Resume, once the
// values that the state names are in the store under the new id. The specifications may
// differ in options that change no plan: C, gap, seed, weights, caps. Momentum and
// certificate begin anew. Pure.
func Branch(state []byte, id string, spec *taxonv1.JobSpec) ([]byte, error) {
	var old jobState
	if err := json.Unmarshal(state, &old); err != nil {
		return nil, fmt.Errorf("job state: %w", err)
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
	if !slices.Equal(p.plan.BlockTerminals, first.plan.BlockTerminals) || !slices.Equal(p.plan.RangeBegin, first.plan.RangeBegin) ||
		len(old.Dual) != len(p.plan.BlockSet) || len(old.X) != len(p.plan.RangeBegin)-1 {
		return nil, fmt.Errorf("job %s: its plan is not that of job %s: bias, schedule, method and pruning must be the same", id, old.ID)
	}
	j, err := newJob(id, p)
	if err != nil {
		return nil, err
	}
	j.Dual, j.X, j.XPrev, j.StepNo = old.Dual, old.X, old.X, old.StepNo
	j.outer.begin(spec.GetOptions().GetLoss() != "logistic")
	return j.encode(), nil
}

// Begin is the state of a job that begins at given internals, and with `blocks` at given
// states of the blocks: for Server.Resume, once the values are in the store, as attempt 1
// of the tasks of an emit step of the number given. Pure.
func Begin(id string, spec *taxonv1.JobSpec, step uint32, blocks bool) (state []byte, plan *taxonv1.Plan, err error) {
	p, err := prepare(spec)
	if err != nil {
		return nil, nil, fmt.Errorf("job %s: %w", id, err)
	}
	j, err := newJob(id, p)
	if err != nil {
		return nil, nil, err
	}
	j.StepNo = step
	j.outer.begin(blocks && spec.GetOptions().GetLoss() != "logistic")
	for b := range j.Dual {
		if blocks {
			j.Dual[b] = taxonv1.Place{Step: step, Task: uint32(b), Attempt: 1}
		}
	}
	if !p.flat {
		for r := range j.X {
			j.X[r] = taxonv1.Place{Step: step, Task: uint32(len(j.Dual) + r), Attempt: 1}
		}
		j.XPrev = slices.Clone(j.X)
	}
	return j.encode(), p.plan, nil
}
