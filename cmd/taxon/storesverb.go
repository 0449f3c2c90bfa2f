package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster"
	"taxon/internal/cluster/client"
	"taxon/internal/cluster/jobs"
	"taxon/internal/ui/format"
	taxonv1 "taxon/proto/taxon/v1"
)

// storeLine is a shard in the JSON output of `taxon stores`.
type storeLine struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	// State is up or down.
	State  string `json:"state"`
	Values uint64 `json:"values"`
	Bytes  uint64 `json:"bytes"`
	// Free is nil if unknown.
	Free *uint64 `json:"free_bytes"`
	// Reserve is the free space below which the store refuses writes. It is nil if unknown.
	Reserve *uint64 `json:"reserve_bytes"`
	Refuses bool    `json:"refuses_writes"`
	// Repairs reports that the store copies missed values from its replicas.
	Repairs bool `json:"repairing"`
	// Version is the version of the store's program, as last reported. It is empty if unknown.
	Version string `json:"version"`
	// Jobs lists the jobs with values on the shard, at most 100.
	Jobs []string `json:"jobs"`
}

// storeLineOf converts a shard's state.
func storeLineOf(s *taxonv1.Shard) storeLine {
	l := storeLine{ID: s.GetId(), Address: s.GetAddr(), State: jobs.MemberState(s.GetState()), Values: s.GetValues(),
		Bytes: s.GetBytes(), Version: s.GetVersion(),
		Refuses: cluster.Refuses(s), Repairs: s.GetRepairing(), Jobs: append([]string{}, s.GetJobs()...)}
	if s.GetReserve() > 0 {
		l.Free, l.Reserve = &s.Free, &s.Reserve
	}
	return l
}

// row returns the line of the table.
func (l storeLine) row() []string {
	free, writes := "-", "yes"
	if l.Free != nil {
		free = format.Bytes(int64(*l.Free))
	}
	switch {
	case l.State != "up":
		writes = "-"
	case l.Refuses:
		writes = "refused: less than " + format.Bytes(int64(*l.Reserve)) + " free"
	}
	state := l.State
	if l.Repairs && state == "up" {
		state += ", repairs"
	}
	return []string{l.ID, l.Address, state, fmt.Sprint(l.Values), format.Bytes(int64(l.Bytes)), free, writes,
		fmt.Sprint(len(l.Jobs)), l.Version}
}

// newStoresCmd returns the verb stores, which lists the store shards.
func newStoresCmd(a *app) *cobra.Command {
	cmd := clientVerb(a, &cobra.Command{
		Use:   "stores",
		Short: "list a cluster's store shards",
		Long: "Lists the store shards of a cluster in order of joining, also those that are down: what each holds, its " +
			"free space, whether it accepts writes, and how many jobs have values on it. " +
			"Values and bytes are counted from time to time. For a shard that is down the last known figures are shown. " +
			"`taxon stores forget` removes a shard that is lost for good.",
		Example: "taxon stores --coordinator 127.0.0.1:7070\ntaxon stores --json",
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, c *client.Client, _ []string) error {
		r, err := c.Jobs.Stores(ctx, &taxonv1.StoresRequest{})
		if err != nil {
			return err
		}
		lines := []storeLine{}
		rows := [][]string{{"STORE", "ADDRESS", "STATE", "VALUES", "BYTES", "FREE", "WRITES", "JOBS", "VERSION"}}
		for _, s := range r.GetShards() {
			lines = append(lines, storeLineOf(s))
			rows = append(rows, lines[len(lines)-1].row())
		}
		return a.printTable(lines, rows, "no stores")
	})
	cmd.AddCommand(newStoresForget(a), newStoresStrays(a))
	return cmd
}

// newStoresForget returns the verb stores forget, which removes a lost shard.
func newStoresForget(a *app) *cobra.Command {
	var yes bool
	cmd := clientVerb(a, &cobra.Command{
		Use:   "forget STORE",
		Short: "remove a lost store shard from the list",
		Long: "Removes a store shard that is down for good from a cluster's list. If jobs have values on it, the command " +
			"asks first, or needs --yes: " +
			"these jobs keep waiting for the shard. If the shard comes back with its folder, it joins again " +
			"with all its values.",
		Example: "taxon stores forget shard-1a2b --coordinator 127.0.0.1:7070\ntaxon stores forget shard-1a2b --yes",
		Args:    oneArg("STORE"),
	}, func(ctx context.Context, c *client.Client, args []string) error {
		s, err := c.ForgetStore(ctx, args[0], a.confirmer(yes))
		if err != nil {
			return err
		}
		return a.printNote(storeLineOf(s), "%s: forgotten", s.GetId())
	})
	cmd.GroupID = "" // of a sub-verb
	yesFlag(cmd, &yes)
	return cmd
}

// strayLine is a job in the JSON output of `taxon stores strays`.
type strayLine struct {
	Job string `json:"job"`
	// Values is the number of values on the shards that are up. Every replica counts.
	Values uint64 `json:"values"`
	Bytes  uint64 `json:"bytes"`
	// Dropped reports that this command dropped them.
	Dropped bool `json:"dropped"`
}

// newStoresStrays returns the verb stores strays, which lists values of jobs that no longer exist.
func newStoresStrays(a *app) *cobra.Command {
	var drop, yes bool
	cmd := clientVerb(a, &cobra.Command{
		Use:   "strays [JOB...]",
		Short: "list values of jobs that the coordinator does not know, or drop them",
		Long: "Lists the jobs that have values in the stores and that the coordinator does not know, or has dropped: its " +
			"journal was lost, or a store was away. " +
			"--drop drops the values of the jobs named, or of all listed, after a question or with --yes. It never touches " +
			"values of a job that `taxon jobs` lists as kept. " +
			"Don't use it while a `taxon restore` runs.",
		Example: "taxon stores strays --coordinator 127.0.0.1:7070\ntaxon stores strays old-job --drop --yes",
		Args:    cobra.ArbitraryArgs,
	}, func(ctx context.Context, c *client.Client, args []string) error {
		list, err := c.Strays(ctx, drop, args, a.confirmer(yes))
		if err != nil {
			return err
		}
		lines := []strayLine{}
		rows := [][]string{{"JOB", "VALUES", "BYTES", "DROPPED"}}
		for _, s := range list {
			if len(args) > 0 && !slices.Contains(args, s.GetJob()) {
				continue
			}
			lines = append(lines, strayLine{s.GetJob(), s.GetValues(), s.GetBytes(), s.GetDropped()})
			rows = append(rows, []string{s.GetJob(), fmt.Sprint(s.GetValues()), format.Bytes(int64(s.GetBytes())),
				map[bool]string{true: "yes", false: "no"}[s.GetDropped()]})
		}
		return a.printTable(lines, rows, "no values of unknown jobs")
	})
	cmd.GroupID = "" // of a sub-verb
	flagGroup(cmd, "What", func(f *pflag.FlagSet) {
		f.BoolVar(&drop, "drop", false, "drop the values")
	})
	yesFlag(cmd, &yes)
	return cmd
}

// yesFlag defines --yes, which answers confirm.
func yesFlag(cmd *cobra.Command, yes *bool) {
	flagGroup(cmd, "Safety", func(f *pflag.FlagSet) {
		f.BoolVar(yes, "yes", false, "do not ask")
	})
}
