package coordinator

import (
	"errors"
	"strings"
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
)

// The estimate grows with what it is of, and names what a plan is made of.
func TestPlanMemory(t *testing.T) {
	small, err := EstimateJob(wordnetLike(200, 50))
	if err != nil {
		t.Fatal(err)
	}
	large, err := EstimateJob(wordnetLike(2000, 500))
	if err != nil {
		t.Fatal(err)
	}
	if small.Terminals < 200 || small.Blocks != (small.Terminals+15)/16 || small.Ranges == 0 || small.WorkerSlot == 0 {
		t.Errorf("%+v", small)
	}
	if large.StoreSweep <= small.StoreSweep || large.Coordinator <= small.Coordinator || large.SecondsSweep <= small.SecondsSweep ||
		large.WorkerShared <= small.WorkerShared || large.StoreJob < large.StoreSweep {
		t.Errorf("ten times the classes: %+v, then %+v", small, large)
	}
	wide := wordnetLike(200, 50)
	wide.Data.Features *= 10
	if e, err := EstimateJob(wide); err != nil || e.WorkerSlot < 5*small.WorkerSlot || e.Worker(3)-e.Worker(1) != 2*e.WorkerSlot {
		t.Errorf("ten times the features: %+v, then %+v, %v", small, e, err)
	}
	if _, err := EstimateJob(&taxonv1.JobSpec{Structure: &taxonv1.Structure{Names: []string{"a"}, Parents: []uint32{0}, Children: []uint32{0}}}); err == nil {
		t.Error("a cycle was planned")
	}
}

// A job that the shards have no room for is refused with what it needs and what is left.
func TestJobTooLargeForTheShards(t *testing.T) {
	m := NewMachine(Limits{})
	spec := wordnetLike(200, 50)
	refusal := func(replicas uint32) error {
		for _, a := range m.Step(0, Submit{Spec: spec, Replicas: replicas}) {
			if r, ok := a.(Refused); ok {
				return r.Err
			}
		}
		return nil
	}
	e, err := EstimateJob(spec)
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
