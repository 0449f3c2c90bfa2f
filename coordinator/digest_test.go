package coordinator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"taxon/coordinator"
	"taxon/coordinator/machine"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/test/machinetest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var (
	errAway = errors.New("store shard s1 is away")
	errLost = errors.New("no value of step 7")
)

// toyDigester answers with an error, as long as it has one.
type toyDigester struct {
	mu    sync.Mutex
	err   error
	calls int
}

func (d *toyDigester) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *toyDigester) Digest(_ context.Context, job *taxonv1.JobResult, st *taxonv1.JobStatus) (machine.Digest, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	if st.FinalStep == 0 || job.GetSpec() == nil {
		return machine.Digest{}, errors.New("nothing to read")
	}
	return machine.Digest{WeightsSHA256: "5ac3"}, d.err
}

func (d *toyDigester) Passing(err error) bool { return errors.Is(err, errAway) }

// A job is done when its weights are digested, and shown as running until then. A store that
// is away is waited for, also by the next server; weights that can't be read are lost.
func TestDigest(t *testing.T) {
	store, digester, kept := newToyStore(), &toyDigester{err: errAway}, &memoryJournal{}
	config := coordinator.Config{Store: store, Digester: digester, Journal: kept}
	c := newCluster(t, config)
	job := c.submit("j", machinetest.Spec("twoblock", 2))
	c.work(2, store)
	waits := func() bool {
		st, err := c.jobs.Status(t.Context(), &taxonv1.StatusRequest{Job: job})
		if err != nil || st.State != taxonv1.JobState_JOB_STATE_RUNNING {
			t.Fatalf("%v, %v", st, err)
		}
		return st.Phase == machine.PhaseDigest && strings.Contains(st.WaitsFor, errAway.Error())
	}
	eventually(t, "the status says what is in the way", waits)
	c.stop()
	config.Snapshot, config.Records = kept.Contents()
	c = newCluster(t, config)
	eventually(t, "the next server says so too", waits)
	digester.fail(nil)
	st := c.wait(job)
	if st.State != taxonv1.JobState_JOB_STATE_DONE || st.WeightsSha256 != "5ac3" || st.Error != "" || st.WaitsFor != "" {
		t.Fatalf("done: %v", st)
	}

	verify := func() (*taxonv1.JobStatus, error) {
		return c.jobs.Status(t.Context(), &taxonv1.StatusRequest{Job: job, Verify: true})
	}
	digester.fail(errAway)
	if _, err := verify(); status.Code(err) != codes.Unavailable {
		t.Errorf("verified while the store is away: %v", err)
	}
	digester.fail(errLost)
	if st, err := verify(); err != nil || !st.Resumable || !strings.Contains(st.Error, errLost.Error()) {
		t.Errorf("verified when the weights are lost: %v, %v", st, err)
	}
	if _, err := c.jobs.Resume(t.Context(), &taxonv1.ResumeRequest{Job: job}); err != nil {
		t.Fatal(err)
	}
	c.work(1, store)
	if st := c.wait(job); !st.Resumable || st.WeightsSha256 != "" || !strings.Contains(st.Error, "its weights are lost") {
		t.Errorf("digested when the weights are lost: %v", st)
	}
}

// A cancelled job waits for no digest: the store need not come back for it.
func TestCancelledWithoutDigest(t *testing.T) {
	store, digester := newToyStore(), &toyDigester{err: errAway}
	c := newCluster(t, coordinator.Config{Store: store, Digester: digester})
	job := c.submit("j", machinetest.Spec("twoblock", 2))
	c.work(2, store)
	eventually(t, "the digest is tried", func() bool {
		digester.mu.Lock()
		defer digester.mu.Unlock()
		return digester.calls > 1
	})
	if st, err := c.jobs.Cancel(t.Context(), &taxonv1.CancelRequest{Job: job}); err != nil ||
		st.State != taxonv1.JobState_JOB_STATE_CANCELLED {
		t.Fatalf("cancelled: %v, %v", st, err)
	}
	digester.fail(nil)
	if _, err := c.jobs.Resume(t.Context(), &taxonv1.ResumeRequest{Job: job}); err != nil {
		t.Fatal(err)
	}
	st := c.wait(job)
	want, _ := train(t, machinetest.Spec("twoblock", 2), 2)
	if got, err := store.weights(st); err != nil || st.WeightsSha256 != "5ac3" || !slices.Equal(got, want) {
		t.Errorf("resumed: %v, other weights, %v", st, err)
	}
}
