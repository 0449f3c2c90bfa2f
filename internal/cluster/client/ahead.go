package client

import (
	"context"
	"slices"

	"taxon/coordinator/machine"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// ahead gathers the model of a followed job while the coordinator still digests its weights. They
// are complete by then, and each of the two needs only one core. If gathering fails, the model is
// fetched when the job is done, and errors are reported then. It is used by one goroutine. A nil
// ahead gathers nothing.
type ahead struct {
	c   *Client
	dir string

	// of is the status at the job's end. It is nil if nothing is gathered.
	of     *taxonv1.JobStatus
	cancel context.CancelFunc
	values *values
	done   chan struct{} // closed when g is set
	g      *gathered     // nil: gathering failed
}

// see takes a job's status. Gathering begins when the digest is being made, and is abandoned if
// it turns out that the job goes on.
func (h *ahead) see(ctx context.Context, st *taxonv1.JobStatus) {
	if h == nil || h.isOf(st) {
		return
	}
	h.stop()
	if st.GetState() == taxonv1.JobState_JOB_STATE_RUNNING && st.GetPhase() == machine.PhaseDigest {
		h.start(ctx, st)
	}
}

// isOf reports whether the gathered model belongs to the end that a status describes. A job that was
// resumed ends again, with other weights.
func (h *ahead) isOf(st *taxonv1.JobStatus) bool {
	return h.of != nil && h.of.GetFinalStep() == st.GetFinalStep() &&
		slices.Equal(h.of.GetFinalAttempts(), st.GetFinalAttempts())
}

func (h *ahead) start(ctx context.Context, st *taxonv1.JobStatus) {
	ctx, h.cancel = context.WithCancel(ctx)
	h.of, h.values, h.done = st, &values{}, make(chan struct{})
	go func() {
		defer close(h.done)
		r, err := h.c.Jobs.Describe(ctx, &taxonv1.JobRequest{Job: st.GetJob()})
		if err != nil || len(r.GetPlan().GetItems()) == 0 { // it was discarded
			return
		}
		h.g, _ = h.c.gather(ctx, r, st, h.dir, h.values)
	}()
}

// take waits for the model of the end that a status describes, shows progress, and returns it, or
// nil if there is none. A model of another end is removed.
func (h *ahead) take(st *taxonv1.JobStatus, line progress.Progress) *gathered {
	if h == nil || h.of == nil {
		return nil
	}
	if !h.isOf(st) {
		h.stop()
		return nil
	}
	h.values.show(line)
	<-h.done
	g := h.g
	h.g = nil
	return g
}

// stop ends gathering and removes what was not taken.
func (h *ahead) stop() {
	if h == nil || h.of == nil {
		return
	}
	h.cancel()
	<-h.done
	if h.g != nil {
		h.g.abort()
	}
	h.of, h.g = nil, nil
}
