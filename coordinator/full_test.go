package coordinator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"taxon/coordinator"
	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/test/machinetest"
)

// A store without room is waited for, as one that is away is: the job says so for as long,
// fails no task, and goes on to the same weights when there is room again.
func TestFullStoreIsWaitedFor(t *testing.T) {
	spec := machinetest.Spec("twoblock", 4)
	want, _ := train(t, spec, 2)
	values := newToyStore()
	c := newCluster(t, coordinator.Config{Store: values, Limits: machine.Limits{Backoff: ms, MaxBackoff: 2 * ms}})
	job := c.submit("j", spec)
	var full atomic.Bool
	var refused atomic.Int64
	full.Store(true)
	c.work(2, executorFunc(func(_ context.Context, l *taxonv1.Lease) (*taxonv1.Sums, error) {
		if l.Sweep > 1 && full.Load() {
			refused.Add(1)
			return nil, fmt.Errorf("put: %w: 3 MiB are free", store.ErrFull)
		}
		return values.run(l)
	}))
	waits := func() string {
		st, err := c.jobs.Status(t.Context(), &taxonv1.StatusRequest{Job: job})
		if err != nil || st.State != taxonv1.JobState_JOB_STATE_RUNNING {
			t.Fatalf("%v, %v", st, err)
		}
		return st.WaitsFor
	}
	eventually(t, "many tries, and the status says why", func() bool {
		return refused.Load() > 100 && strings.Contains(waits(), "store is full: 3 MiB are free")
	})
	full.Store(false)
	st := c.wait(job)
	if got, err := values.weights(st); err != nil || !slices.Equal(got, want) || st.WaitsFor != "" {
		t.Errorf("ended %v %s, waits for %q: other weights, %v", st.State, st.Error, st.WaitsFor, err)
	}
}
