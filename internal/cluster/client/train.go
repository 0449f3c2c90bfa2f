package client

import (
	"context"
	"strings"

	"taxon/internal/model"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// The methods below serve a search whose trainings are jobs. Each takes its own Reporter, as the
// search shows its own progress.

func (c *Client) telling(ui progress.Reporter) *Client {
	other := *c
	other.Tell = ui
	return &other
}

// Slots returns the number of tasks that all workers together run at a time.
func (c *Client) Slots(ctx context.Context) (n int, err error) {
	ctx, done := context.WithTimeout(ctx, Timeout)
	defer done()
	r, err := c.Jobs.Workers(ctx, &taxonv1.WorkersRequest{})
	if err != nil {
		return 0, c.Fail(err)
	}
	for _, w := range r.GetWorkers() {
		if w.GetState() == taxonv1.MemberState_MEMBER_STATE_UP {
			n += int(w.GetSlots())
		}
	}
	return n, nil
}

// Train submits a job on the data in a folder, or finds it by its id, and follows it to its end.
// If ctx ends first, the job goes on.
func (c *Client) Train(ctx context.Context, ui progress.Reporter, job string, spec *taxonv1.JobSpec, data string,
	see func(*taxonv1.JobStatus)) (*taxonv1.JobStatus, error) {
	c = c.telling(ui)
	if _, err := c.Submit(ctx, &Submission{Spec: spec, Data: data, ID: job, Replicas: 1, Trial: true}); err != nil {
		return nil, err
	}
	return c.follow(ctx, job, see)
}

// Fetch writes the model of a finished job.
func (c *Client) Fetch(ctx context.Context, ui progress.Reporter, job, dir string) (*model.Report, error) {
	return c.telling(ui).FetchModel(ctx, job, dir)
}

// Held lists the jobs that have values and whose ids begin with prefix.
func (c *Client) Held(ctx context.Context, prefix string) (ids []string, err error) {
	ctx, done := context.WithTimeout(ctx, Timeout)
	defer done()
	r, err := c.Jobs.ListJobs(ctx, &taxonv1.ListJobsRequest{})
	for _, j := range r.GetJobs() {
		if strings.HasPrefix(j.GetJob(), prefix) && !j.GetKept().GetDiscarded() {
			ids = append(ids, j.GetJob())
		}
	}
	return ids, c.Fail(err)
}

// Discard cancels a job that has not ended, and drops its values.
func (c *Client) Discard(ctx context.Context, job string) error {
	ctx, done := context.WithTimeout(ctx, Timeout)
	defer done()
	_, err := c.Jobs.Cancel(ctx, &taxonv1.CancelRequest{Job: job, Discard: true})
	return c.Fail(err)
}
