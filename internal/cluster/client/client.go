// Package client calls a cluster for a user. It submits and follows jobs, fetches their models,
// restores them from snapshots, and words errors for the user.
package client

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/cluster"
	"taxon/internal/cluster/jobs"
	"taxon/internal/cluster/secure"
	"taxon/internal/fs"
	"taxon/internal/fs/vfs"
	"taxon/internal/ui/option"
	"taxon/internal/ui/progress"
	taxonv1 "taxon/proto/taxon/v1"
)

// Options describe which cluster is called, and how.
type Options struct {
	// Verb is the prefix of errors.
	Verb string
	// Coordinator is HOST:PORT, or the file in which the coordinator writes its address.
	Coordinator string
	Security    secure.Options
	// Patience is how long calls to a coordinator that does not answer are repeated.
	Patience time.Duration
	Tell     progress.Reporter
	// Describe describes the models that are copied from the cluster.
	Describe Describe
}

// Timeout bounds a single call.
const Timeout = 30 * time.Second

// Client is a connection to a cluster.
type Client struct {
	Options
	Jobs   taxonv1.JobsClient
	Shards *cluster.Shards
	dialer *cluster.Dialer
	// removes what was copied to this machine for the connection
	forget func()
}

// Dial prepares the connection; the first call makes it.
func Dial(ctx context.Context, o Options) (*Client, error) {
	forget, err := o.findRemote(ctx)
	if err != nil {
		return nil, err
	}
	c := &Client{Options: o, dialer: &cluster.Dialer{Security: o.Security, Patience: o.Patience}, forget: forget}
	conn, err := c.dialer.Conn(o.Coordinator)
	if err != nil {
		forget()
		return nil, option.Errorf("%s: %w", o.Verb, err)
	}
	c.Jobs = taxonv1.NewJobsClient(conn)
	c.Shards = &cluster.Shards{Dialer: c.dialer, List: func(ctx context.Context) (*taxonv1.StoresResult, error) {
		return c.Jobs.Stores(ctx, &taxonv1.StoresRequest{})
	}}
	return c, nil
}

// Close ends the connection.
func (c *Client) Close() {
	_ = c.dialer.Close() // nothing was written
	c.forget()
}

// Fail turns a call's error into a message for the user, and gives it an exit status: 2 if the
// command line is wrong.
func (c *Client) Fail(err error) error {
	if err == nil || jobs.IsCancelled(err) {
		return err
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	switch s.Code() {
	case codes.NotFound, codes.InvalidArgument, codes.AlreadyExists, codes.FailedPrecondition:
		return option.Errorf("%s: %s", c.Verb, s.Message())
	case codes.Unauthenticated, codes.PermissionDenied:
		return option.Errorf("%s: %w", c.Verb, cluster.Explain(c.Coordinator, err))
	case codes.Unavailable, codes.DeadlineExceeded:
		return &awayError{fmt.Errorf("%s: %w: see whether it runs there (`taxon cluster status`, its log), or give "+
			"another ‹coordinator›", c.Verb, cluster.Explain(c.Coordinator, err))}
	}
	return fmt.Errorf("%s: %w", c.Verb, errors.New(s.Message()))
}

// awayError is the error of a call that the coordinator does not answer.
type awayError struct{ error }

// MembersUp counts the stores and workers that are up according to the coordinator.
func (c *Client) MembersUp(ctx context.Context) (stores, workers int, err error) {
	ctx, done := context.WithTimeout(ctx, Timeout)
	defer done()
	s, err := c.Jobs.Stores(ctx, &taxonv1.StoresRequest{})
	if err != nil {
		return 0, 0, err
	}
	w, err := c.Jobs.Workers(ctx, &taxonv1.WorkersRequest{})
	if err != nil {
		return 0, 0, err
	}
	for _, s := range s.GetShards() {
		if s.GetState() == taxonv1.MemberState_MEMBER_STATE_UP {
			stores++
		}
	}
	for _, w := range w.GetWorkers() {
		if w.GetState() == taxonv1.MemberState_MEMBER_STATE_UP {
			workers++
		}
	}
	return stores, workers, nil
}

// DrainThose drains the workers that are up and whose names `meant` accepts.
func (c *Client) DrainThose(ctx context.Context, meant func(name string) bool) error {
	ctx, done := context.WithTimeout(ctx, Timeout)
	defer done()
	list, err := c.Jobs.Workers(ctx, &taxonv1.WorkersRequest{})
	if err != nil {
		return err
	}
	for _, w := range list.GetWorkers() {
		if w.GetState() == taxonv1.MemberState_MEMBER_STATE_UP && meant(w.GetName()) {
			if _, err := c.Jobs.Drain(ctx, &taxonv1.DrainRequest{Worker: w.GetWorker()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// CountJobs counts the jobs that have not ended, and those whose weights can be exported.
func (c *Client) CountJobs(ctx context.Context) (open, weights int, err error) {
	ctx, done := context.WithTimeout(ctx, Timeout)
	defer done()
	list, err := c.Jobs.ListJobs(ctx, &taxonv1.ListJobsRequest{})
	if err != nil {
		return 0, 0, err
	}
	for _, j := range list.GetJobs() {
		if !j.GetState().Ended() {
			open++
		}
		if j.GetExportable() {
			weights++
		}
	}
	return open, weights, nil
}

// Folder is a folder next to the file in which a coordinator says where it is. It has the
// certificate with which the cluster's owner calls. The file system decides who may read it.
const (
	Folder    = "client"
	CAFile    = "ca.crt"
	CertName  = "client" // file name of the certificate (.crt) and key (.key)
	TokenFile = "client.token"
)

// findRemote prepares calls to a cluster that is found by a file. It refuses a path where no
// coordinator has announced itself. It uses the certificates next to the file, unless others were
// given. forget removes their copies.
func (o *Options) findRemote(ctx context.Context) (forget func(), err error) {
	if !cluster.IsPlace(o.Coordinator) {
		return func() {}, nil
	}
	switch _, err := cluster.ReadPlace(ctx, o.Coordinator); {
	case errors.Is(err, iofs.ErrNotExist):
		return nil, option.Errorf("%s: %s: no coordinator has said there where it is: give the file that `taxon "+
			"coordinator ‹announce›` or `taxon yarn up` writes", o.Verb, o.Coordinator)
	case err != nil:
		return nil, err
	}
	cluster.NameServers(&o.Security, o.Coordinator)
	s := &o.Security
	if s.CACert != "" || s.Cert != "" || s.TokenFile != "" || s.Insecure {
		return func() {}, nil
	}
	temp, forget, err := fs.TempDir("client")
	if err != nil {
		return nil, err
	}
	from := fs.Join(fs.Dir(o.Coordinator), Folder)
	for name, to := range map[string]*string{CAFile: &s.CACert, CertName + ".crt": &s.Cert, CertName + ".key": &s.Key,
		TokenFile: &s.TokenFile} {
		data, err := fs.ReadFile(ctx, fs.Join(from, name))
		if errors.Is(err, iofs.ErrNotExist) {
			continue
		}
		if err == nil {
			*to = filepath.Join(temp, name)
			err = vfs.WriteNew(vfs.OS, *to, data, 0o600)
		}
		if err != nil {
			forget()
			return nil, err
		}
	}
	return forget, nil
}
