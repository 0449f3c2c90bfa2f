package client

import (
	"context"
	"slices"

	"taxon/coordinator/machine"
	"taxon/internal/tell"
	taxonv1 "taxon/proto/taxon/v1"
)

// ahead gathers the model of a job that is followed while the coordinator digests its weights:
// they are all there by then, and neither needs more than a core. What it can't gather it
// leaves to be fetched when the job is done; whoever waits for that is told of errors then.
// One goroutine calls its methods; nil gathers nothing.
type ahead struct {
	c   *Client
	dir string

	of     *taxonv1.JobStatus // a status of the job's end; nil: nothing is gathered
	cancel context.CancelFunc
	values *values
	done   chan struct{} // closed when g is set
	g      *gathered     // nil: it could not be gathered
}

// see takes note of a job's status: it begins when the digest is being made, and gives up what
// turns out not to have been the job's end.
func (h *ahead) see(ctx context.Context, st *taxonv1.JobStatus) {
	if h == nil || h.isOf(st) {
		return
	}
	h.stop()
	if st.GetState() == taxonv1.JobState_JOB_STATE_RUNNING && st.GetPhase() == machine.PhaseDigest {
		h.start(ctx, st)
	}
}

// isOf says whether what is gathered is of the end that a status tells of. A job that was
// resumed has another, and other weights.
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
		if err != nil || len(r.GetPlan().GetItems()) == 0 { // discarded
			return
		}
		h.g, _ = h.c.gather(ctx, r, st, h.dir, h.values)
	}()
}

// take waits for the model of the end that a status tells of, shows how far it is, and
// hands it over; nil: there is none, and nothing of another is left in its place.
func (h *ahead) take(st *taxonv1.JobStatus, line tell.Progress) *gathered {
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

// stop ends it and removes what was not taken.
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
