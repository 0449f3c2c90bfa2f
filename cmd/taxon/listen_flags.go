package main

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"taxon/internal/metrics"
	"taxon/internal/secure"
)

// processFlags are the flags that coordinator, store and worker share, and what follows
// from them.
type processFlags struct {
	security secure.Options
	metrics  metrics.Options
	log      metrics.LogOptions
}

// add defines the flags as two groups of cmd's help.
func (p *processFlags) add(cmd *cobra.Command) {
	flagGroup(cmd, "Security", p.security.AddFlags)
	flagGroup(cmd, "Observation", func(f *pflag.FlagSet) {
		p.metrics.AddFlags(f)
		p.log.AddFlags(f)
	})
}

// open checks the flags and makes the process's log and figures. role is whom the process
// calls others as; stderr takes the log.
func (p *processFlags) open(role secure.Role, stderr io.Writer) (*slog.Logger, *metrics.Process, error) {
	log, err := p.log.Logger(stderr)
	if err != nil {
		return nil, nil, usagef("%w", err)
	}
	if err := p.security.Validate(); err != nil {
		return nil, nil, usagef("%w", err)
	}
	figures := metrics.NewProcess(string(role), readVersion().Version)
	p.security.Role = role
	p.security.Warn = metrics.Warner(log, "security files")
	p.security.Refused = figures.Refused
	return log, figures, nil
}

// serverOptions are those of a process's gRPC server, measured and guarded.
func (p *processFlags) serverOptions(figures *metrics.Process) ([]grpc.ServerOption, error) {
	opts, err := p.security.ServerOptions(secure.DefaultPolicy())
	if err != nil {
		return nil, err
	}
	return append(opts, figures.GRPC()...), nil
}

// clientFlags are the flags of verbs that call a coordinator.
type clientFlags struct{ security secure.Options }

func (c *clientFlags) add(cmd *cobra.Command) { flagGroup(cmd, "Security", c.security.AddClientFlags) }
