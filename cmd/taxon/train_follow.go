package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/status"

	"taxon/internal/engine"
	"taxon/internal/jobs"
	taxonv1 "taxon/proto/taxon/v1"
)

// follow shows the job's progress until it has ended. A cancelled context cancels the
// job, which leaves a checkpoint.
func (t *training) follow(ctx context.Context, e *engine.Engine, job string) (*taxonv1.JobStatus, error) {
	p := t.a.ui.Start("train: sweep", 0)
	defer p.Done()
	// The watch outlives ctx: it has to see the job's clean end.
	watching, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	stop := context.AfterFunc(ctx, func() {
		_, _ = e.Jobs.Cancel(watching, &taxonv1.CancelRequest{Job: job}) // the watch tells how it went
		close(t.scores.cancelled)
	})
	defer stop()
	first := true
	st, err := jobs.Watch(watching, e.Jobs, job, 0, func(st *taxonv1.JobStatus) error {
		if first { // a resumed training has sweeps behind it
			p.Resume(int64(st.GetSweep()) + 1)
			first = false
		}
		t.show(p, st)
		t.driving.Saw(st)
		return nil
	})
	switch {
	case err != nil:
		return nil, plainStatus(err)
	case st.GetState() == taxonv1.JobState_JOB_STATE_FAILED:
		return nil, t.failure(st)
	case st.GetState() == taxonv1.JobState_JOB_STATE_CANCELLED:
		return nil, t.interrupted(st)
	}
	return st, nil
}

// show puts sweep, gap and the time left on the progress line. How far the work is, is
// measured on the way of log(gap) from the first certificate to the tolerance.
func (t *training) show(p *progress, st *taxonv1.JobStatus) {
	var extra []string
	if k := st.GetTasks(); k != nil {
		if n := k.GetDone() + k.GetRunning() + k.GetWaiting(); n > 0 {
			extra = append(extra, fmt.Sprintf("%s %d/%d", st.GetPhase(), k.GetDone(), n))
		}
	}
	if c := st.GetCertificate(); c.GetPrimalOnly() {
		extra = append(extra, fmt.Sprintf("objective %.6g", c.GetObjective()))
	} else if c != nil {
		extra = append(extra, fmt.Sprintf("gap %s of %.0e", formatGap(c.GetGap()), t.o.gap))
	}
	if left := formatLeft(st.GetEtaSeconds()); left != "" {
		extra = append(extra, "ETA "+left)
	}
	p.Set(int64(st.GetSweep())+1, strings.Join(extra, "  "))
}

// failure words a failed job for the user.
func (t *training) failure(st *taxonv1.JobStatus) error {
	if t.mr != nil && t.mr.Refused() != nil {
		return t.mr.Refused()
	}
	return fmt.Errorf("training failed in sweep %d: %s", st.GetSweep()+1, st.GetError())
}

// interrupted ends a cancelled job: what is kept, and how to go on.
func (t *training) interrupted(st *taxonv1.JobStatus) error {
	if st.GetError() != "" {
		return fmt.Errorf("interrupted, and no checkpoint could be written: %s", st.GetError())
	}
	if !t.work.hasCheckpoint() {
		return interruptedf("interrupted before the first sweep was done: nothing kept")
	}
	return interruptedf("interrupted after sweep %d; to go on from there: %s", st.GetSweep(), t.a.commandLine())
}

// plainStatus takes the transport's wording off an error of a service.
func plainStatus(err error) error {
	if s, ok := status.FromError(err); ok {
		return errors.New(s.Message())
	}
	return err
}
