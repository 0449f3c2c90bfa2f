package client

import (
	"context"
	"fmt"
	"strings"

	"taxon/internal/human"
	"taxon/internal/jobs"
	"taxon/internal/tell"
	taxonv1 "taxon/proto/taxon/v1"
)

// Watch calls show for each change of a job until it has ended, and returns its last
// status with the whole trace. A coordinator that goes away is called again.
func (c *Client) Watch(ctx context.Context, job string, show func(*taxonv1.JobStatus) error) (*taxonv1.JobStatus, error) {
	st, err := jobs.Watch(ctx, c.Jobs, job, c.Patience, show)
	return st, c.Fail(err)
}

// follow shows a job's progress until it has ended; see is told of it, too.
func (c *Client) follow(ctx context.Context, job string, see func(*taxonv1.JobStatus)) (*taxonv1.JobStatus, error) {
	p := c.Tell.Start(job+": sweep", 0)
	defer p.Done()
	return c.Watch(ctx, job, func(st *taxonv1.JobStatus) error {
		showProgress(p, st)
		see(st)
		return nil
	})
}

// showProgress puts sweep, tasks, gap and the time left on the progress line.
func showProgress(p tell.Progress, st *taxonv1.JobStatus) {
	var extra []string
	if n := st.GetQueuePosition(); n > 0 {
		extra = append(extra, fmt.Sprintf("%d in the queue", n))
	}
	if k := st.GetTasks(); k != nil {
		if n := k.GetDone() + k.GetRunning() + k.GetWaiting(); n > 0 {
			extra = append(extra, fmt.Sprintf("%s %d/%d", st.GetPhase(), k.GetDone(), n))
		}
	}
	if c := st.GetCertificate(); c != nil && !c.GetPrimalOnly() {
		extra = append(extra, fmt.Sprintf("gap %s of %.0e", human.Gap(c.GetGap()), st.GetOptions().GetGap()))
	}
	if n := st.GetWorkersLost(); n > 0 {
		extra = append(extra, human.Counted(int64(n), "worker lost", "workers lost"))
	}
	if w := st.GetWaitsFor(); w != "" {
		extra = append(extra, "waits for "+human.OneLine(w))
	} else if left := human.Left(st.GetEtaSeconds()); left != "" {
		extra = append(extra, "ETA "+left)
	}
	p.Set(int64(st.GetSweep())+1, strings.Join(extra, "  "))
}
