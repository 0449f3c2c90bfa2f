package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/cluster"
	"taxon/internal/secure"
	taxonv1 "taxon/proto/taxon/v1"
)

// clientOptions are the flags of the verbs that call a cluster.
type clientOptions struct {
	verb        string
	coordinator string
	security    secure.Options
	patience    time.Duration
}

// clientTimeout bounds a single call.
const clientTimeout = 30 * time.Second

// flags defines the options as the last group of a verb's help.
func (o *clientOptions) flags(cmd *cobra.Command) {
	o.verb = cmd.Name()
	flagGroup(cmd, "Cluster", func(f *pflag.FlagSet) {
		coordinatorFlag(f, &o.coordinator)
		f.DurationVar(&o.patience, "patience", 15*time.Second, "how long to go on calling a coordinator that does not answer: `TIME`")
		o.security.AddClientFlags(f)
	})
}

// client is a connection to a cluster.
type client struct {
	verb   string
	addr   string
	dialer *cluster.Dialer
	jobs   taxonv1.JobsClient
	shards *cluster.Shards
	forget func() // what was copied to this machine for the connection
}

// dial prepares the connection; the first call makes it.
func (o *clientOptions) dial() (*client, error) { return o.dialIn(context.Background()) }

// dialIn is dial, which ends with ctx.
func (o *clientOptions) dialIn(ctx context.Context) (*client, error) {
	if err := needCoordinator(o.verb, o.coordinator); err != nil {
		return nil, err
	}
	if err := driverGone(ctx, o.verb, o.coordinator); err != nil {
		return nil, err
	}
	forget, err := o.findRemote(ctx)
	if err != nil {
		return nil, err
	}
	c, err := o.connect()
	if err != nil {
		forget()
		return nil, err
	}
	c.forget = forget
	return c, nil
}

func (o *clientOptions) connect() (*client, error) {
	c := &client{verb: o.verb, addr: o.coordinator, dialer: &cluster.Dialer{Security: o.security, Patience: o.patience}}
	conn, err := c.dialer.Conn(o.coordinator)
	if err != nil {
		return nil, usagef("%s: %w", o.verb, err)
	}
	c.jobs = taxonv1.NewJobsClient(conn)
	c.shards = &cluster.Shards{Dialer: c.dialer, List: func(ctx context.Context) (*taxonv1.StoresResult, error) {
		return c.jobs.Stores(ctx, &taxonv1.StoresRequest{})
	}}
	return c, nil
}

func (c *client) close() {
	_ = c.dialer.Close() // nothing was written
	c.forget()
}

// fail words an error of a call for the user, and gives it its exit status: what the
// command line got wrong is 2.
func (c *client) fail(err error) error {
	if err == nil || isCancelled(err) {
		return err
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	switch s.Code() {
	case codes.NotFound, codes.InvalidArgument, codes.AlreadyExists, codes.FailedPrecondition:
		return usagef("%s: %s", c.verb, s.Message())
	case codes.Unauthenticated, codes.PermissionDenied:
		return usagef("%s: %w", c.verb, cluster.Explain(c.addr, err))
	case codes.Unavailable, codes.DeadlineExceeded:
		return &awayError{fmt.Errorf("%s: %w: see whether it runs there (`taxon cluster status`, its log), or give another --coordinator", c.verb, cluster.Explain(c.addr, err))}
	}
	return fmt.Errorf("%s: %w", c.verb, errors.New(s.Message()))
}

// awayError is that of a coordinator that does not answer.
type awayError struct{ error }

// oneArg takes exactly one positional argument, called what.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("%s: give one %s: taxon %s", verbPath(cmd), what, cmd.Use)
		}
		return nil
	}
}

// stateName is a job's state as the user reads it.
func stateName(s taxonv1.JobState) string {
	switch s {
	case taxonv1.JobState_JOB_STATE_QUEUED:
		return "queued"
	case taxonv1.JobState_JOB_STATE_RUNNING:
		return "running"
	case taxonv1.JobState_JOB_STATE_DONE:
		return "done"
	case taxonv1.JobState_JOB_STATE_FAILED:
		return "failed"
	case taxonv1.JobState_JOB_STATE_CANCELLED:
		return "cancelled"
	}
	return "unknown"
}

// stateOf is a job's state as the user reads it: discarded, whatever it was before.
func stateOf(s taxonv1.JobState, k *taxonv1.Kept) string {
	if k.GetDiscarded() {
		return "discarded"
	}
	return stateName(s)
}

// hasEnded says whether a job is over.
func hasEnded(s taxonv1.JobState) bool {
	return s == taxonv1.JobState_JOB_STATE_DONE || s == taxonv1.JobState_JOB_STATE_FAILED || s == taxonv1.JobState_JOB_STATE_CANCELLED
}
