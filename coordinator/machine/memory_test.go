package machine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"taxon/coordinator/footprint"
	"taxon/coordinator/method"
	"taxon/coordinator/method/methodtest"
	taxonv1 "taxon/proto/taxon/v1"
)

func estimateOf(spec *taxonv1.JobSpec) (method.Estimate, error) {
	p, err := prepare(spec)
	if err != nil {
		return method.Estimate{}, err
	}
	return p.estimate, nil
}

// A job that the shards have no room for is refused with what it needs and what is left.
func TestJobTooLargeForTheShards(t *testing.T) {
	m := New(Limits{})
	spec := methodtest.WordNetLike(200, 50)
	refusal := func(replicas uint32) error {
		for _, a := range m.Step(0, Submit{Spec: spec, Replicas: replicas}) {
			if r, ok := a.(Refused); ok {
				return r.Err
			}
		}
		return nil
	}
	e, err := estimateOf(spec)
	if err != nil {
		t.Fatal(err)
	}
	m.Step(0, JoinShard{ID: "a", Addr: "a:1", Capacity: e.StoreJob, Bytes: e.StoreJob / 10})
	m.Step(0, JoinShard{ID: "b", Addr: "b:1", Capacity: e.StoreJob / 2})
	if err := refusal(1); err != nil {
		t.Errorf("it fits, but: %v", err)
	}
	if err := refusal(2); !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "fewer replicas") {
		t.Errorf("two copies do not fit: %v", err)
	}
	m.Step(0, JoinShard{ID: "b", Addr: "b:1"}) // does not tell what it can hold
	if err := refusal(2); err != nil {
		t.Errorf("nobody knows whether it fits, but: %v", err)
	}
}

// A job that no worker has the memory for is refused with the memory that would do, and
// what is started by that number takes it.
func TestJobTooLargeForTheWorkers(t *testing.T) {
	m := New(Limits{})
	spec := methodtest.WordNetLike(200, 50)
	e, err := estimateOf(spec)
	if err != nil {
		t.Fatal(err)
	}
	m.Step(0, Register{Name: "small", Slots: 8, Memory: footprint.Needs(e, 1) - 1})
	if fit := footprint.Fitting(e, footprint.Needs(e, 8)-1); !strings.HasPrefix(fit, "‹slots=7›,") {
		t.Errorf("a little too little for eight slots: %s", fit)
	}
	var refusal error
	for _, a := range m.Step(0, Submit{Spec: spec}) {
		if r, ok := a.(Refused); ok {
			refusal = r.Err
		}
	}
	enough := atLeast(footprint.Needs(e, 1))
	if !errors.Is(refusal, ErrTooLarge) || !strings.Contains(refusal.Error(), "‹slots=1› ‹memory="+enough+"›") ||
		!strings.Contains(refusal.Error(), atLeast(footprint.Needs(e, 2)-footprint.Needs(e, 1))) {
		t.Fatalf("refusal: %v, want the number %s", refusal, enough)
	}
	var mib uint64
	if _, err := fmt.Sscanf(enough, "%dMiB", &mib); err != nil {
		t.Fatal(err)
	}
	m.Step(0, Register{Name: "larger", Slots: 1, Memory: mib << 20})
	for _, a := range m.Step(0, Submit{Spec: spec}) {
		if r, ok := a.(Refused); ok {
			t.Errorf("refused beside a worker of the memory that it asked for: %v", r.Err)
		}
	}
}
