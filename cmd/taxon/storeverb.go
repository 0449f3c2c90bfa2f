package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster/node"
)

func newStoreCmd(a *app) *cobra.Command {
	var o node.Store
	cmd := &cobra.Command{
		Use:     "store --dir DIR --coordinator ADDR",
		GroupID: groupCluster,
		Short:   "run a shard of a cluster's parameter store",
		Long: "Runs one shard of the parameter store: it keeps what workers write, and the data sets that submitters upload, checksummed. " +
			"Values lie in files of --dir, with Badger for what tells where, and are synced before they are acknowledged, so a shard that is killed comes back with all of them; " +
			"with --memory they live in memory and go with the process. The shard's id is kept in --dir: the same folder is the same shard, wherever it runs.",
		Example: "taxon store --dir /var/lib/taxon/store --coordinator coordinator.example:7070 --listen 127.0.0.1:7071\n" +
			"TAXON_COORDINATOR=127.0.0.1:7070 taxon store --dir store-0",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := needCoordinator("store", o.Coordinator); err != nil {
				return err
			}
			a.starts(&o.Process)
			return o.Run(cmd.Context())
		},
	}
	flagGroup(cmd, "Process", func(f *pflag.FlagSet) {
		f.StringVar(&o.Dir, "dir", "", "folder of the shard: `DIR`")
		coordinatorFlag(f, &o.Coordinator)
		listenFlags(f, &o.Process, "127.0.0.1:0")
		f.StringVar(&o.Advertise, "advertise", "", "`ADDR` (host:port) under which others reach it (default: the one it listens on)")
		f.StringVar(&o.Name, "name", "", "`NAME` of a new shard (default: made up)")
		f.BoolVar(&o.ShortCircuit, "short-circuit", true, "let workers on this host that may open DIR read and write values by way of its files, not the network")
		bytesFlag(f, &o.Memory, "memory", 0, "keep values in memory instead, at most `SIZE` of them")
	})
	frameFlags(cmd, &o.Process)
	require(cmd, "dir")
	return cmd
}
