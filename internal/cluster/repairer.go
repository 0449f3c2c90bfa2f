package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"taxon/internal/retry"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store/storerpc"
)

// Repairer copies values of jobs with several copies that a shard missed while it was away, from
// the other shards. Failed is required.
type Repairer struct {
	// ID is the id of the shard.
	ID     string
	Jobs   taxonv1.JobsClient
	Stores *JobStores
	// Done is called for repairs that copied something. It may be nil.
	Done func(job string, r storerpc.RepairResult)
	// Failed is called with what could not be repaired yet.
	Failed func(error)

	busy atomic.Bool
}

// Busy reports whether the shard may still lack values that it should hold.
func (r *Repairer) Busy() bool { return r.busy.Load() }

// repairAgain is the pause before a failed repair is repeated.
const repairAgain = 2 * time.Second

// Run repairs whenever wanted has a token, which says that the shard was away, until ctx ends.
func (r *Repairer) Run(ctx context.Context, wanted <-chan struct{}) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-wanted:
		}
		r.busy.Store(true)
		for {
			err := r.all(ctx)
			if err == nil {
				r.busy.Store(false)
			}
			if err == nil || ctx.Err() != nil {
				break
			}
			r.Failed(fmt.Errorf("repair: %w", err))
			if retry.For(ctx, repairAgain) != nil {
				return
			}
		}
	}
}

// all repairs the shard's part of every job whose values are still needed.
func (r *Repairer) all(ctx context.Context) error {
	call, done := context.WithTimeout(ctx, callTimeout)
	list, err := r.Jobs.ListJobs(call, &taxonv1.ListJobsRequest{})
	done()
	if err != nil {
		return err
	}
	var errs []error
	for _, j := range list.GetJobs() {
		if j.GetState().Ended() && !j.GetExportable() && !j.GetResumable() {
			continue
		}
		if err := r.job(ctx, j.GetJob()); err != nil {
			errs = append(errs, fmt.Errorf("job %s: %w", j.GetJob(), err))
		}
	}
	return errors.Join(errs...)
}

// job repairs the shard's part of one job.
func (r *Repairer) job(ctx context.Context, job string) error {
	call, done := context.WithTimeout(ctx, callTimeout)
	d, err := r.Jobs.Describe(call, &taxonv1.JobRequest{Job: job})
	done()
	if err != nil {
		return err
	}
	mine := slices.ContainsFunc(d.GetShards(), func(s *taxonv1.Shard) bool { return s.GetId() == r.ID })
	if !mine || d.GetReplicas() < 2 {
		return nil
	}
	client, err := r.Stores.Of(job, d.GetShards(), d.GetReplicas())
	if err != nil {
		return err
	}
	result, err := storerpc.Repair(ctx, client, r.ID, storerpc.RepairOptions{Job: job})
	if result.Copied > 0 && r.Done != nil {
		r.Done(job, result)
	}
	return err
}
