package machine

import (
	"encoding/json"
	"fmt"
	"slices"

	"taxon/coordinator/method"
	taxonv1 "taxon/proto/taxon/v1"

	"google.golang.org/protobuf/proto"
)

// codedState is a serialised jobState whose places are still run-length coded. A few coded bytes
// may stand for any number of places, so they are compared with the plan before they are expanded.
type codedState struct {
	jobState
	// Values replaces that of jobState.
	Values codedValues
	Past   []codedPast
}

// codedPast is a pastStep whose places are still coded.
type codedPast struct {
	pastStep
	// From replaces that of pastStep.
	From codedValues
}

// placeRuns are places as JSON has them: four lists of the count, step, task and attempt of each
// run.
type placeRuns [4][]uint32

// codedValues are values as JSON has them.
type codedValues map[string][]placeRuns

// reviveJob rebuilds a job from a serialised jobState.
func reviveJob(state []byte) (*job, error) {
	s, err := readState(state)
	if err != nil {
		return nil, err
	}
	spec := &taxonv1.JobSpec{}
	if err := proto.Unmarshal(s.Spec, spec); err != nil {
		return nil, fmt.Errorf("job %s: specification: %w", s.ID, err)
	}
	if s.Dropped {
		return makeJob(s.jobState, reviveCompacted(&s.jobState, spec))
	}
	p, err := prepare(spec)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", s.ID, err)
	}
	if err := s.expand(p.plan); err != nil {
		return nil, fmt.Errorf("job %s: %w", s.ID, err)
	}
	return makeJob(s.jobState, p)
}

// readState reads a serialised jobState of this version.
func readState(state []byte) (s codedState, err error) {
	var version struct{ Version int }
	if err := json.Unmarshal(state, &version); err != nil {
		return s, fmt.Errorf("job state: %w", err)
	}
	if version.Version != stateVersion {
		return s, fmt.Errorf("job state: %w", errOtherVersion)
	}
	if err := json.Unmarshal(state, &s); err != nil {
		return s, fmt.Errorf("job state: %w", err)
	}
	return s, nil
}

// maxPast bounds the places that all past steps of a state have read together. It is far above any
// plan's.
const maxPast = 1 << 24

// expand decodes the places of the values that the state refers to. It fails if the state was
// written under another plan than p.
func (s *codedState) expand(p *method.Plan) (err error) {
	if s.jobState.Values, err = s.Values.expand(p); err != nil {
		return err
	}
	if len(s.Values) != len(p.Variables) {
		return errOtherPlan
	}
	referred, left := s.jobState.Values.steps(), maxPast
	for _, past := range s.Past {
		at, known := slices.BinarySearch(referred, past.Number)
		if left -= past.From.items(); !known || left < 0 {
			return fmt.Errorf("its state names a past step %d that nothing refers to, or too many of them", past.Number)
		}
		referred = slices.Delete(referred, at, at+1)
		if past.pastStep.From, err = past.From.expand(p); err != nil || !past.valid(p) {
			return fmt.Errorf("its state names a past step %d of another plan", past.Number)
		}
		s.jobState.Past = append(s.jobState.Past, past.pastStep)
	}
	return nil
}

// errOtherPlan refuses a state that was written under another plan.
var errOtherPlan = fmt.Errorf("its state has another plan than this version makes: train anew")

// expand returns the places of some of a plan's families. Each must have all versions and all
// items.
func (v codedValues) expand(p *method.Plan) (values, error) {
	out := values{}
	for name, versions := range v {
		family := p.Variable(name)
		if family == nil || len(versions) != family.Versions {
			return nil, errOtherPlan
		}
		for _, runs := range versions {
			items := uint64(0)
			for _, n := range runs[0] {
				items += uint64(n)
			}
			if items != uint64(p.Items[family.Items].Count) {
				return nil, errOtherPlan
			}
			r := &taxonv1.Refs{Count: runs[0], Step: runs[1], Task: runs[2], Attempt: runs[3]}
			out[name] = append(out[name], r.Expand())
		}
	}
	return out, nil
}

// items returns the number of places, or a number just above maxPast if there are more.
func (v codedValues) items() (n int) {
	for _, versions := range v {
		for _, runs := range versions {
			for _, count := range runs[0] {
				n = min(n, maxPast) + int(count)
			}
		}
	}
	return n
}

// steps lists the steps of all values, with repetitions.
func (v codedValues) steps() (out []uint32) {
	for _, versions := range v {
		for _, runs := range versions {
			out = append(out, runs[1]...)
		}
	}
	return out
}

// keepSteps lists, ascending, the steps whose values the state refers to; see job.keepSteps.
func (s *codedState) keepSteps() []uint32 {
	steps := append(s.Values.steps(), s.FinalStep)
	for _, past := range s.Past {
		steps = append(steps, past.From.steps()...)
	}
	return sortedSteps(steps)
}

// of reports whether the values belong to a plan.
func (v values) of(p *method.Plan) bool {
	for _, family := range p.Variables {
		versions := v[family.Name]
		if len(versions) != family.Versions {
			return false
		}
		for _, at := range versions {
			if len(at) != p.Items[family.Items].Count {
				return false
			}
		}
	}
	return len(v) == len(p.Variables)
}

// MarshalJSON codes runs of consecutive tasks as [count, step, task, attempt]. codedValues.expand
// undoes it.
func (p places) MarshalJSON() ([]byte, error) {
	r := taxonv1.NewRefs(p)
	return json.Marshal(placeRuns{r.Count, r.Step, r.Task, r.Attempt})
}
