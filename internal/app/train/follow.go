package train

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"taxon/coordinator/method/registry"
	"taxon/internal/app/engine"
	"taxon/internal/cluster/jobs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// follow shows the job's progress until it has ended. If the context is cancelled it cancels the
// job, which leaves a checkpoint.
func (t *Training) follow(ctx context.Context, e *engine.Engine, job string) (*taxonv1.JobStatus, error) {
	p := t.ui.Start("train: sweep", 0)
	defer p.Done()
	// The watch outlives ctx, to see how the job ends.
	watching := context.WithoutCancel(ctx)
	stop := context.AfterFunc(ctx, func() {
		_, _ = e.Jobs.Cancel(watching, &taxonv1.CancelRequest{Job: job}) // the watch shows the outcome
		close(t.scores.cancelled)
	})
	defer stop()
	// mu guards the progress line.
	var mu sync.Mutex
	var last *taxonv1.JobStatus
	show := func(doing string) {
		if last != nil {
			t.show(p, last, doing)
		}
	}
	if t.o.Remote != nil {
		t.o.Remote.Follow(func(text string) {
			mu.Lock()
			defer mu.Unlock()
			show(text)
		})
	}
	first := true
	st, err := jobs.Watch(watching, e.Jobs, job, 0, func(st *taxonv1.JobStatus) error {
		if first { // a resumed training has earlier sweeps
			p.Resume(int64(st.GetSweep()) + 1)
			first = false
		}
		mu.Lock()
		last = st
		show("")
		mu.Unlock()
		return nil
	})
	switch {
	case err != nil:
		return nil, engine.StripStatus(err)
	case st.GetState() == taxonv1.JobState_JOB_STATE_DONE:
		return st, nil
	case st.GetState() == taxonv1.JobState_JOB_STATE_CANCELLED:
		return nil, t.interrupted(st)
	case t.o.Remote != nil && t.o.Remote.Refused() != nil:
		return nil, t.o.Remote.Refused()
	}
	return nil, Failed(st)
}

// show puts the sweep, remote progress, gap and remaining time on the progress line. Progress is
// measured by log(gap), from the first certificate to the tolerance.
func (t *Training) show(p progress.Progress, st *taxonv1.JobStatus, doing string) {
	var extra []string
	if doing != "" {
		extra = append(extra, doing)
	}
	if k := st.GetTasks(); k != nil {
		if n := k.GetDone() + k.GetRunning() + k.GetWaiting(); n > 0 {
			extra = append(extra, fmt.Sprintf("%s %d/%d", st.GetPhase(), k.GetDone(), n))
		}
	}
	if c := st.GetCertificate(); c.GetPrimalOnly() {
		extra = append(extra, fmt.Sprintf("objective %.6g", c.GetObjective()))
	} else if c != nil {
		extra = append(extra, fmt.Sprintf("gap %s of %.0e", format.Gap(c.GetGap()), registry.Number(t.o.Job, "gap")))
	}
	if left := jobs.ETA(st); left != "" {
		extra = append(extra, "ETA "+left)
	}
	p.Set(int64(st.GetSweep())+1, strings.Join(extra, "  "))
}

// Failed returns the error of a failed job, worded for the user.
func Failed(st *taxonv1.JobStatus) error {
	return fmt.Errorf("training failed in sweep %d: %s", st.GetSweep()+1, st.GetError())
}

// interrupted returns the error of a cancelled job. It names the checkpoint that is kept and the
// command that resumes the training.
func (t *Training) interrupted(st *taxonv1.JobStatus) error {
	if st.GetError() != "" {
		return fmt.Errorf("interrupted, and no checkpoint could be written: %s", st.GetError())
	}
	if !t.work.HasCheckpoint() {
		return jobs.Interruptedf("interrupted before the first sweep was done: nothing kept")
	}
	return jobs.Interruptedf("interrupted after sweep %d; to continue from there: %s", st.GetSweep(), t.o.Again)
}
