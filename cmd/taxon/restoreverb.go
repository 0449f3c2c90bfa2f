package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/coordinator"
	"taxon/internal/cluster"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/storerpc"
)

// restoreOptions are the flags of restore.
type restoreOptions struct {
	clientOptions
	from     string
	job      string
	replicas int
}

func newRestoreCmd(a *app) *cobra.Command {
	var o restoreOptions
	cmd := &cobra.Command{
		Use:     "restore --from DIR",
		GroupID: groupCluster,
		Short:   "put a job from its snapshot onto a cluster",
		Long: "Takes a job from a snapshot, as a coordinator's --snapshots makes them, to a cluster: its data, its values and the job itself. The cluster goes on with it, to the same weights byte for byte. " +
			"It may be a new cluster, with any number of shards, or the job's own, if the job has failed there, been cancelled or lost its weights; then the shards that are up take the place of those that are lost.",
		Example: "taxon restore --from snapshots --coordinator 127.0.0.1:7070\n" +
			"taxon restore --from /mnt/backup/snapshots --job nightly --replicas 2",
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.close()
			return c.restore(cmd.Context(), a, &o)
		},
	}
	flagGroup(cmd, "Snapshot", func(f *pflag.FlagSet) {
		f.StringVar(&o.from, "from", "", "the `DIR` of snapshots, or of one")
		f.StringVar(&o.job, "job", "", "`ID` of the job (default: the only one there)")
		intFlag(f, &o.replicas, "replicas", 0, 0, 8, "`N` copies of each value (default: as many as it had)")
	})
	o.flags(cmd)
	require(cmd, "from")
	return cmd
}

// restore uploads the data and the values, and then hands the state over.
func (c *client) restore(ctx context.Context, a *app, o *restoreOptions) error {
	err := cluster.Steadily(ctx, o.from, o.job, func(saved *cluster.Saved) error { return c.restoreSaved(ctx, a, o, saved) })
	switch {
	case errors.Is(err, os.ErrNotExist) && o.job != "":
		return usagef("restore: %s holds no snapshot of job %s", quoteIfOdd(o.from), o.job)
	case errors.Is(err, store.ErrSnapshot), errors.Is(err, store.ErrCorrupt):
		return usagef("restore: %w", err)
	}
	return err
}

// restoreSaved restores a snapshot.
func (c *client) restoreSaved(ctx context.Context, a *app, o *restoreOptions, saved *cluster.Saved) error {
	state, err := coordinator.ReadState(saved.State)
	if err != nil {
		return usagef("restore: %s: %w", quoteIfOdd(o.from), err)
	}
	if err := c.wantRestored(ctx, saved.Job); err != nil {
		return err
	}
	replicas := max(int(state.Replicas), 1)
	if o.replicas > 0 {
		replicas = o.replicas
	}
	ids, ends, err := c.upShards(ctx, replicas)
	if err != nil {
		return err
	}
	line := a.ui.StartBytes("data", 0)
	data := &cluster.DataStore{Shards: c.shards, Copies: replicas, Patience: o.patience}
	err = saved.PutData(ctx, data, state.Spec.GetData(), func(done, total int64) {
		line.Total(total)
		line.Set(done)
	})
	line.Done()
	if err != nil {
		return err
	}
	dst, err := storerpc.New(ends, storerpc.Options{Replicas: replicas, Patience: o.patience})
	if err != nil {
		return err
	}
	line = a.ui.StartBytes("values", int64(saved.Bytes()))
	err = saved.PutValues(ctx, dst)
	line.Done()
	if errors.Is(err, store.ErrSnapshot) {
		return err
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	st, err := c.jobs.Restore(ctx, &taxonv1.RestoreRequest{State: saved.State, Shards: ids, Replicas: uint32(replicas)})
	if err != nil {
		return c.fail(err)
	}
	if a.json {
		return a.printJSON(documentOf(st))
	}
	a.ui.Note("%s goes on behind sweep %d, over %s", saved.Job, state.Sweep, counted(int64(len(ids)), "shard", "shards"))
	_, err = fmt.Fprintln(a.stdout, saved.Job)
	return err
}

// wantRestored refuses early what the coordinator would refuse after all is uploaded.
func (c *client) wantRestored(ctx context.Context, job string) error {
	st, err := c.jobs.Status(ctx, &taxonv1.StatusRequest{Job: job, Verify: true})
	switch {
	case status.Code(err) == codes.NotFound:
		return nil
	case err != nil:
		return c.fail(err)
	case st.GetState() == taxonv1.JobState_JOB_STATE_DONE && st.GetResumable(): // its weights are lost
		return nil
	case st.GetState() == taxonv1.JobState_JOB_STATE_DONE && st.GetWeightsSha256() != "":
		return usagef("restore: job %s is done on this cluster: `taxon export --job %s` fetches its result", job, job)
	case st.GetState() == taxonv1.JobState_JOB_STATE_DONE: // discarded
		return nil
	case !hasEnded(st.GetState()):
		return usagef("restore: job %s is %s on this cluster: `taxon cancel %s` first, if it shall go back to its snapshot", job, stateName(st.GetState()), job)
	}
	return nil
}

// upShards are the shards that are up, in order of joining.
func (c *client) upShards(ctx context.Context, replicas int) (ids []string, ends []storerpc.Endpoint, err error) {
	call, done := context.WithTimeout(ctx, clientTimeout)
	defer done()
	r, err := c.jobs.Stores(call, &taxonv1.StoresRequest{})
	if err != nil {
		return nil, nil, c.fail(err)
	}
	c.shards.Learn(r.GetShards())
	for _, s := range r.GetShards() {
		if s.GetState() == taxonv1.MemberState_MEMBER_STATE_UP {
			ids = append(ids, s.GetId())
			ends = append(ends, c.shards.Endpoint(s.GetId()))
		}
	}
	if len(ids) < replicas {
		return nil, nil, usagef("restore: %d copies of each value need as many shards, %s up: start more, or ask for fewer --replicas",
			replicas, counted(int64(len(ids)), "is", "are"))
	}
	return ids, ends, nil
}
