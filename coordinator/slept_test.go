package coordinator_test

import (
	"sync/atomic"
	"testing"
	"time"

	"taxon/coordinator"
	taxonv1 "taxon/proto/taxon/v1"
)

// slowJournal takes its time to be durable, as one on a file system of other hosts may.
type slowJournal struct {
	coordinator.MemoryJournal
	wait atomic.Int64
}

func (j *slowJournal) Sync(uint64) error {
	time.Sleep(time.Duration(j.wait.Load()))
	return nil
}

// A server that waits for its journal does not sleep: who is silent meanwhile is missed.
func TestSlowJournalIsNoSleep(t *testing.T) {
	t.Parallel()
	j := &slowJournal{}
	c := newCluster(t, coordinator.Config{Store: newToyStore(), Journal: j, Limits: coordinator.Limits{Lease: coordinator.Tick(time.Second)}})
	if _, err := c.tasks.Register(t.Context(), &taxonv1.RegisterRequest{Name: "silent", Slots: 1}); err != nil {
		t.Fatal(err)
	}
	j.wait.Store(int64(2 * time.Second))
	defer j.wait.Store(0)
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(50 * time.Millisecond) {
		r, err := c.jobs.Workers(t.Context(), &taxonv1.WorkersRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Workers) == 0 || r.Workers[0].State != taxonv1.MemberState_MEMBER_STATE_UP {
			return
		}
	}
	t.Error("a worker that is silent for ten leases is up")
}
