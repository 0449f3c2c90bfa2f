package main

import (
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/cluster/node"
	"taxon/internal/exit"
	"taxon/internal/fs"
	"taxon/internal/human"
)

// envCoordinator stands in for --coordinator.
const envCoordinator = "TAXON_COORDINATOR"

// coordinatorFlag defines --coordinator.
func coordinatorFlag(f *pflag.FlagSet, p *string) {
	f.StringVar(p, "coordinator", os.Getenv(envCoordinator), "`ADDR` (host:port) of the coordinator, or the hdfs:// file in which it says where it is (default "+envCoordinator+")")
	f.Lookup("coordinator").DefValue = "" // the environment's value belongs in no help text
}

// needCoordinator refuses a command line without the coordinator's address.
func needCoordinator(verb, addr string) error {
	if fs.IsRemote(addr) {
		return nil // read when it is called
	}
	if addr == "" {
		return exit.Usagef("%s: which cluster? give --coordinator HOST:PORT or set %s", verb, envCoordinator)
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return exit.Usagef("%s: --coordinator %s: must be HOST:PORT", verb, human.QuoteIfOdd(addr))
	}
	return nil
}

// listenFlags defines where a process listens.
func listenFlags(f *pflag.FlagSet, o *node.Process, addr string) {
	f.StringVar(&o.Listen, "listen", addr, "`ADDR` (host:port) to listen on; beyond loopback it needs TLS, see `taxon help certs`; port 0: any")
	f.IntVar(&o.ListenFD, "listen-fd", -1, "listening socket `N` that the process was given")
	f.Lookup("listen-fd").Hidden = true // for `taxon cluster`
}

// frameFlags defines the groups that all processes share.
func frameFlags(cmd *cobra.Command, o *node.Process) {
	flagGroup(cmd, "Security", o.Security.AddFlags)
	flagGroup(cmd, "Watching", func(f *pflag.FlagSet) {
		o.Metrics.AddFlags(f)
		o.Log.AddFlags(f)
	})
}

// starts says who starts a process, and what is done with what it says.
func (a *app) starts(o *node.Process) {
	o.Version, o.LogTo = readVersion().Version, a.stderr
	o.Say = func(line string) { fmt.Fprintln(a.stdout, line) }
}
