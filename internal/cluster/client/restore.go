package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/coordinator/machine"
	"taxon/internal/cluster"
	"taxon/internal/cluster/jobs"
	"taxon/internal/ui/format"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/storerpc"
)

// Restored is a job that was restored from its snapshot.
type Restored struct {
	Job    string
	Sweep  uint32 // the job continues after this sweep
	Shards int    // number of shards that hold its values
	Status *taxonv1.JobStatus
}

// Restore restores a job from a folder of snapshots: it uploads the job's data and values, and then
// its state. An empty job means the only one in the folder. replicas is the number of copies of
// each value; zero keeps the previous number.
func (c *Client) Restore(ctx context.Context, from, job string, replicas int) (r *Restored, err error) {
	err = cluster.WithSnapshot(ctx, from, job, func(saved *cluster.Saved) (err error) {
		r, err = c.restoreSaved(ctx, from, replicas, saved)
		return err
	})
	switch {
	case errors.Is(err, os.ErrNotExist) && job != "":
		return nil, option.Errorf("restore: %s holds no snapshot of job %s", format.QuoteIfNeeded(from), job)
	case errors.Is(err, store.ErrSnapshot), errors.Is(err, store.ErrCorrupt):
		return nil, option.Errorf("restore: %w", err)
	}
	return r, err
}

// restoreSaved restores a job from a snapshot.
func (c *Client) restoreSaved(ctx context.Context, from string, replicas int, saved *cluster.Saved) (*Restored, error) {
	state, err := machine.ReadState(saved.State)
	if err != nil {
		return nil, option.Errorf("restore: %s: %w", format.QuoteIfNeeded(from), err)
	}
	if err := c.wantRestored(ctx, saved.Job); err != nil {
		return nil, err
	}
	replicas = cmp.Or(replicas, max(int(state.Replicas), 1))
	ids, ends, err := c.upShards(ctx, replicas)
	if err != nil {
		return nil, err
	}
	line := c.Tell.StartBytes("data", 0)
	data := &cluster.DataStore{Shards: c.Shards, Copies: replicas, Patience: c.Patience}
	err = saved.PutData(ctx, data, replicas, state.Spec.GetData(), func(done, total int64) {
		line.Total(total)
		line.Set(done)
	})
	line.Done()
	if err != nil {
		return nil, err
	}
	dst, err := storerpc.New(ends, storerpc.Options{Replicas: replicas, Patience: c.Patience})
	if err != nil {
		return nil, err
	}
	line = c.Tell.StartBytes("values", int64(saved.Bytes()))
	err = saved.PutValues(ctx, dst)
	line.Done()
	if errors.Is(err, store.ErrSnapshot) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	st, err := c.Jobs.Restore(ctx, &taxonv1.RestoreRequest{State: saved.State, Shards: ids, Replicas: uint32(replicas)})
	if err != nil {
		return nil, c.Fail(err)
	}
	return &Restored{Job: saved.Job, Sweep: state.Sweep, Shards: len(ids), Status: st}, nil
}

// wantRestored refuses what the coordinator would refuse, before anything is uploaded.
func (c *Client) wantRestored(ctx context.Context, job string) error {
	st, err := c.Jobs.Status(ctx, &taxonv1.StatusRequest{Job: job, Verify: true})
	switch {
	case status.Code(err) == codes.NotFound:
		return nil
	case err != nil:
		return c.Fail(err)
	case st.GetState() == taxonv1.JobState_JOB_STATE_DONE && st.GetResumable(): // its weights are lost
		return nil
	case st.GetState() == taxonv1.JobState_JOB_STATE_DONE && !st.GetKept().GetDropped():
		return option.Errorf("restore: job %s is done on this cluster: `taxon export ‹job=%s›` fetches its result", job, job)
	case st.GetState() == taxonv1.JobState_JOB_STATE_DONE: // it was discarded
		return nil
	case !st.GetState().Ended():
		return option.Errorf("restore: job %s is %s on this cluster: `taxon cancel %s` first, if it shall go "+
			"back to its snapshot", job, jobs.StateName(st.GetState()), job)
	}
	return nil
}

// upShards returns the shards that are up, in order of joining.
func (c *Client) upShards(ctx context.Context, replicas int) (ids []string, ends []storerpc.Endpoint, err error) {
	call, done := context.WithTimeout(ctx, Timeout)
	defer done()
	r, err := c.Jobs.Stores(call, &taxonv1.StoresRequest{})
	if err != nil {
		return nil, nil, c.Fail(err)
	}
	c.Shards.Learn(r.GetShards())
	for _, s := range r.GetShards() {
		if s.GetState() == taxonv1.MemberState_MEMBER_STATE_UP {
			ids = append(ids, s.GetId())
			ends = append(ends, c.Shards.Endpoint(s.GetId()))
		}
	}
	if len(ids) < replicas {
		return nil, nil, option.Errorf("restore: %d copies of each value need as many shards, %s up: start more, or ask "+
			"for fewer ‹replicas›",
			replicas, format.Counted(int64(len(ids)), "is", "are"))
	}
	return ids, ends, nil
}
