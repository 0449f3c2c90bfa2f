package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/coordinator/method/registry"
	"taxon/internal/cluster/jobs"
	"taxon/internal/retry"
	"taxon/internal/ui/format"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// Confirm asks the user whether to do something that can't be undone. why says what would be lost.
// An error means that it must not be done.
type Confirm func(why, question string) error

// Status asks for a job's status, once.
func (c *Client) Status(ctx context.Context, job string) (*taxonv1.JobStatus, error) {
	call, done := context.WithTimeout(ctx, Timeout)
	defer done()
	st, err := c.Jobs.Status(call, &taxonv1.StatusRequest{Job: job})
	return st, c.Fail(err)
}

// Cancel cancels a job. If discard is true, it also drops the job's values. Before it drops the
// weights of a finished job, it asks the user. The result `what` describes what was done.
func (c *Client) Cancel(ctx context.Context, job string, discard bool,
	ask Confirm) (st *taxonv1.JobStatus, what string, err error) {
	if discard {
		st, err := c.Jobs.Status(ctx, &taxonv1.StatusRequest{Job: job})
		if err == nil && hasWeights(st) {
			err = ask(fmt.Sprintf("%s: job %s is done, and this drops its weights for good", c.Verb, job), "Drop them?")
		}
		if err != nil {
			return nil, "", err
		}
	}
	if st, err = c.Jobs.Cancel(ctx, &taxonv1.CancelRequest{Job: job, Discard: discard}); err != nil {
		return nil, "", err
	}
	return st, wasCancelled(st, discard), nil
}

// hasWeights reports whether a job's weights are in the store: from its last step on, also while
// they are being digested.
func hasWeights(st *taxonv1.JobStatus) bool {
	return !st.GetKept().GetDropped() && st.GetFinalStep() > 0
}

// wasCancelled describes the result of cancelling.
func wasCancelled(st *taxonv1.JobStatus, discard bool) string {
	state := fmt.Sprintf("%s after sweep %d", jobs.Doing(st), st.GetSweep())
	switch {
	case discard:
		return state + "; its values are dropped"
	case !st.GetState().Ended():
		return fmt.Sprintf("is being cancelled after sweep %d: its checkpoint is being written, `taxon status %s` "+
			"shows when it is there", st.GetSweep(), st.GetJob())
	case st.GetState() != taxonv1.JobState_JOB_STATE_CANCELLED:
		return state + ": there was nothing to cancel"
	}
	return state
}

// Logs calls show for each line of a job's log. If follow is true, it waits for further lines until
// the job ends. If the coordinator goes away, Logs calls it again.
func (c *Client) Logs(ctx context.Context, job string, follow bool, show func(*taxonv1.LogLine) error) error {
	after := uint64(0)
	return retry.Retry(ctx, c.Patience, func() error {
		stream, err := c.Jobs.Logs(ctx, &taxonv1.LogsRequest{Job: job, Follow: follow, After: after})
		if err != nil {
			return err
		}
		for {
			r, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			for _, l := range r.GetLines() {
				after = l.GetNumber()
				if err := show(l); err != nil {
					return err
				}
			}
		}
	}, func(err error) bool { return status.Code(err) == codes.Unavailable })
}

// ForgetStore removes a shard that is down from the list. It asks first if jobs have values on
// it.
func (c *Client) ForgetStore(ctx context.Context, id string, ask Confirm) (*taxonv1.Shard, error) {
	list, err := c.Jobs.Stores(ctx, &taxonv1.StoresRequest{})
	if err != nil {
		return nil, err
	}
	shards := list.GetShards()
	i := slices.IndexFunc(shards, func(s *taxonv1.Shard) bool { return s.GetId() == id })
	force := i >= 0 && shards[i].GetState() == taxonv1.MemberState_MEMBER_STATE_DOWN && len(shards[i].GetJobs()) > 0
	if force {
		if err := ask(fmt.Sprintf("stores forget: jobs have values on store %s: %s", id, strings.Join(shards[i].GetJobs(),
			", ")), "Forget it?"); err != nil {
			return nil, err
		}
	}
	return c.Jobs.ForgetStore(ctx, &taxonv1.ForgetStoreRequest{Id: id, Force: force})
}

// Strays lists the jobs that have values in the store and that the coordinator does not know, or
// has dropped. If drop is true, it drops the values of the named jobs, or of all listed jobs if
// none are named. It asks the user first.
func (c *Client) Strays(ctx context.Context, drop bool, named []string, ask Confirm) ([]*taxonv1.Stray, error) {
	list, err := c.Jobs.Strays(ctx, &taxonv1.StraysRequest{})
	if err != nil || !drop {
		return list.GetJobs(), err
	}
	if len(named) == 0 {
		for _, s := range list.GetJobs() {
			named = append(named, s.GetJob())
		}
	}
	if len(named) == 0 {
		return nil, nil
	}
	if err := ask(fmt.Sprintf("stores strays: the values of %s are dropped for good; values that a restore has "+
		"just put look like them", strings.Join(named, ", ")), "Drop them?"); err != nil {
		return nil, err
	}
	list, err = c.Jobs.Strays(ctx, &taxonv1.StraysRequest{Drop: named})
	return list.GetJobs(), err
}

// Watch calls show for each change of a job until the job has ended, and returns its last status
// with the whole trace. If the coordinator goes away it is called again.
func (c *Client) Watch(ctx context.Context, job string,
	show func(*taxonv1.JobStatus) error) (*taxonv1.JobStatus, error) {
	st, err := jobs.Watch(ctx, c.Jobs, job, c.Patience, show)
	return st, c.Fail(err)
}

// follow shows a job's progress until it has ended, and calls see for each status.
func (c *Client) follow(ctx context.Context, job string, see func(*taxonv1.JobStatus)) (*taxonv1.JobStatus, error) {
	p := c.Tell.Start(job+": sweep", 0)
	defer p.Done()
	return c.Watch(ctx, job, func(st *taxonv1.JobStatus) error {
		showProgress(p, st)
		see(st)
		return nil
	})
}

// showProgress puts sweep, tasks, gap and time left on the progress line.
func showProgress(p progress.Progress, st *taxonv1.JobStatus) {
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
		extra = append(extra, fmt.Sprintf("gap %s of %.0e", format.Gap(c.GetGap()), registry.Number(st.GetOptions(), "gap")))
	}
	if n := st.GetWorkersLost(); n > 0 {
		extra = append(extra, format.Counted(int64(n), "worker lost", "workers lost"))
	}
	if w := st.GetWaitsFor(); w != "" {
		extra = append(extra, "waits for "+format.OneLine(w))
	} else if left := jobs.ETA(st); left != "" {
		extra = append(extra, "ETA "+left)
	}
	p.Set(int64(st.GetSweep())+1, strings.Join(extra, "  "))
}
