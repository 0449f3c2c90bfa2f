package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"taxon/internal/human"
	"taxon/internal/jobs"
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
			c, err := o.dial(cmd.Context(), a)
			if err != nil {
				return err
			}
			defer c.Close()
			r, err := c.Restore(cmd.Context(), o.from, o.job, o.replicas)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(jobs.StatusOf(r.Status))
			}
			a.ui.Note("%s goes on behind sweep %d, over %s", r.Job, r.Sweep, human.Counted(int64(r.Shards), "shard", "shards"))
			_, err = fmt.Fprintln(a.stdout, r.Job)
			return err
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
