package coordinator_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"taxon/coordinator"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// taken is a Checkpointer whose room for some jobs is taken.
type taken struct {
	checkpoints
	ids     map[string]bool
	settled []string
}

func (c *taken) Reserve(_ context.Context, job string, _ []byte) (func() error, error) {
	if c.ids[job] {
		return nil, errors.New("a thesis lies there")
	}
	return func() error { c.settled = append(c.settled, job); return nil }, nil
}

// A job whose checkpoints have no room is refused; one that asks for no id gets one with room.
func TestClaim(t *testing.T) {
	c := &taken{checkpoints: checkpoints{store: newToyStore()}, ids: map[string]bool{"f1": true, "job-1": true,
		"job-2": true}}
	s := newCluster(t, coordinator.Config{Store: c.store, Checkpointer: c})
	_, err := s.jobs.Submit(t.Context(), &taxonv1.SubmitRequest{Spec: machinetest.Spec("twoblock", 0), Job: "f1"})
	if status.Code(err) != codes.AlreadyExists || !strings.Contains(err.Error(), "a thesis lies there") {
		t.Errorf("a job without room: %v", err)
	}
	if id := s.submit("", machinetest.Spec("twoblock", 0)); id != "job-3" || len(c.settled) != 1 || c.settled[0] != id {
		t.Errorf("got id %s, settled %v", id, c.settled)
	}
	c.ids["job-3"] = true // its own
	if id := s.submit("job-3", machinetest.Spec("twoblock", 0)); id != "job-3" {
		t.Errorf("submitted again: %s", id)
	}
}
