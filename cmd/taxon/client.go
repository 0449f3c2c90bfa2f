package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"taxon/internal/app/train"
	"taxon/internal/cluster/client"
	"taxon/internal/data/dataset"
	"taxon/internal/model"
	"taxon/internal/ui/option"
	taxonv1 "taxon/proto/taxon/v1"
)

// clientOptions are the flags of the verbs that call a cluster.
type clientOptions struct {
	client.Options
	profile string // path; "": none
}

// flags defines the options as the last group of a verb's help.
func (o *clientOptions) flags(cmd *cobra.Command) {
	o.Verb = cmd.Name()
	flagGroup(cmd, "Cluster", func(f *pflag.FlagSet) {
		coordinatorFlag(f, &o.Coordinator)
		f.DurationVar(&o.Patience, "patience", 15*time.Second, "how long to keep calling a coordinator that "+
			"does not answer: `TIME`")
		clusterProfile(f, &o.profile)
	})
}

// dial prepares the connection, which the first call opens.
func (o *clientOptions) dial(ctx context.Context, a *app) (*client.Client, error) {
	if err := readProfile(ctx, o.profile, &o.Coordinator, &o.Security); err != nil {
		return nil, err
	}
	if err := needCoordinator(o.Verb, o.Coordinator); err != nil {
		return nil, err
	}
	o.Tell, o.Describe = a.ui, describeModel
	return client.Dial(ctx, o.Options)
}

// oneArg requires exactly one positional argument. what is the name of the argument in errors.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return option.Errorf("%s: give one %s: taxon %s", verbPath(cmd), what, cmd.Use)
		}
		return nil
	}
}

// describeModel describes a job's model without its weights. It also returns a function that
// completes the report.
func describeModel(spec *taxonv1.JobSpec, names *dataset.Set) (model.Meta, func(*model.Report), error) {
	t, err := train.Of(spec)
	if err != nil {
		return model.Meta{}, nil, err
	}
	t.Set = names
	return t.Meta(), t.Complete, nil
}
