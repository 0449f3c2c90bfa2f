package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/cluster"
	"taxon/internal/cluster/jobs"
	"taxon/internal/fs"
	"taxon/internal/model"
	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
)

// Submission is a job to submit.
type Submission struct {
	// Spec is the specification, without the place of its data.
	Spec *taxonv1.JobSpec
	// Data is the folder of the data set.
	Data string
	// InPlace says that the workers can read the folder themselves, so that only the names are
	// uploaded.
	InPlace bool
	// ID is the id of the job. If it is empty, one is made up.
	ID       string
	Name     string
	Replicas int
	// Trial says that the job's values will be discarded soon. They do not take the place of other
	// jobs' values.
	Trial bool
}

// CheckID refuses an invalid job id.
func CheckID(id string) error {
	switch {
	case store.ValidateJob(id) != nil:
		return fmt.Errorf("only letters, digits, '.', '_', '-', at most %d, and first a letter or digit", store.MaxJobBytes)
	case strings.HasPrefix(id, "data-"):
		return errors.New("ids that begin with data- belong to uploaded data")
	}
	return nil
}

// uploadTries is the largest number of uploads for one submission. Data are uploaded again if the
// collector drops them just before the job is accepted.
const uploadTries = 3

// Submit uploads the data and submits the job. It returns the job's id.
func (c *Client) Submit(ctx context.Context, s *Submission) (string, error) {
	id := s.ID
	if id == "" {
		id = "job-" + strings.ToLower(rand.Text()[:8]) // chosen here, so that a repeated call makes one job
	}
	var r *taxonv1.SubmitResult
	var err error
	for range uploadTries {
		if r, err = c.uploadAndSubmit(ctx, s, id); status.Code(err) != codes.Aborted { // its data were dropped just before
			break
		}
	}
	if few := r.GetDisplaced(); err == nil && len(few) > 0 && !s.Trial {
		c.Tell.Warn("when job %s has finished, the weights of %s are dropped, as the coordinator keeps no more finished "+
			"jobs: export them before", r.GetJob(), strings.Join(few, ", "))
	}
	return r.GetJob(), c.Fail(err)
}

// uploadAndSubmit makes one try.
func (c *Client) uploadAndSubmit(ctx context.Context, s *Submission, id string) (r *taxonv1.SubmitResult, err error) {
	if err := c.upload(ctx, s); err != nil {
		return nil, err
	}
	err = retry.Retry(ctx, c.Patience, func() (err error) {
		r, err = c.Jobs.Submit(ctx, &taxonv1.SubmitRequest{Spec: s.Spec, Job: id, Name: s.Name, Replicas: uint32(s.Replicas)})
		return err
	}, func(err error) bool { return status.Code(err) == codes.FailedPrecondition }) // not enough shards are up yet
	return r, err
}

// upload puts the data to a place where workers find them.
func (c *Client) upload(ctx context.Context, s *Submission) error {
	line := c.Tell.StartBytes("upload", 0)
	defer line.Done()
	data := &cluster.DataStore{Shards: c.Shards, Copies: s.Replicas, Patience: c.Patience}
	dir, done, err := fs.Fetch(ctx, s.Data)
	if err != nil {
		return err
	}
	defer done()
	path, err := cluster.Upload(ctx, data, s.Replicas, dir, s.InPlace, func(done, total int64) {
		line.Total(total)
		line.Set(done)
	})
	if err != nil {
		return err
	}
	s.Spec.Data.Path = path
	if !s.InPlace {
		return nil
	}
	s.Spec.Data.Names = path
	s.Spec.Data.Path, err = fs.Abs(s.Data)
	return err
}

// Await follows a job to its end, and writes its model to out. If out is empty, it fetches no
// model. It returns the report of a finished job; any other end is an error.
func (c *Client) Await(ctx context.Context, job, out string) (*model.Report, error) {
	var early *ahead
	if out != "" {
		early = &ahead{c: c, dir: out}
		defer early.stop()
	}
	st, err := c.follow(ctx, job, func(st *taxonv1.JobStatus) { early.see(ctx, st) })
	if err != nil {
		if jobs.IsCancelled(err) && errors.Is(context.Cause(ctx), jobs.ErrInterrupted) {
			return nil, jobs.Interruptedf("job %s goes on; `taxon status %s ‹watch›` follows it, `taxon cancel %s` ends it", job,
				job, job)
		}
		if errors.As(err, new(*awayError)) {
			return nil, fmt.Errorf("%w; job %s goes on with the coordinator, and `taxon status %s ‹watch›` follows it then", err,
				job, job)
		}
		return nil, err
	}
	switch st.GetState() {
	case taxonv1.JobState_JOB_STATE_FAILED:
		return nil, fmt.Errorf("job %s failed in sweep %d: %s", job, st.GetSweep()+1, st.GetError())
	case taxonv1.JobState_JOB_STATE_CANCELLED:
		return nil, jobs.Interruptedf("job %s was cancelled after sweep %d", job, st.GetSweep())
	}
	report := jobs.ReportOf(st)
	if report.WeightsSHA256 == "" && st.GetError() != "" {
		return nil, fmt.Errorf("job %s: %s", job, st.GetError())
	}
	if out != "" {
		if report, err = c.fetchModel(ctx, job, out, early); err != nil { // its error says more than the status
			if store.Lost(err) == nil && !errors.Is(err, cluster.ErrNotThere) {
				err = fmt.Errorf("%w (job %s is done: `taxon export ‹job=%s› ‹format=model› ‹out=DIR›` fetches its model)", err,
					job, job)
			}
			return nil, err
		}
	}
	return report, nil
}
