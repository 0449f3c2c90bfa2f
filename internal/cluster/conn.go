package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/internal/cluster/secure"
	"taxon/internal/retry"
	"taxon/store/storerpc"
)

const (
	// patientWait is the longest pause between two tries of a user's call. It is short, so that the
	// call succeeds soon after the other side is back.
	patientWait = 100 * time.Millisecond
	// connectWait bounds one attempt to connect.
	connectWait = 5 * time.Second
)

// Dialer makes connections and keeps one for each address. Its methods may be called from several
// goroutines.
type Dialer struct {
	// Security says how connections are protected and what identity they have.
	Security secure.Options

	// Patience is how long Conn repeats a call, other than a stream, while the other side is away.
	// Zero means a single try. Callers of shards have a patience of their own (storerpc.Options).
	Patience time.Duration

	// mu guards the fields below.
	mu     sync.Mutex
	conns  map[string]*grpc.ClientConn
	shards map[string]*grpc.ClientConn
}

// Conn returns the connection to an address: host:port, or hdfs://..., a file in which the
// coordinator says where it is (Place). The connection is made on first use and again when it
// breaks; the file is then read again. The Dialer closes it.
func (d *Dialer) Conn(addr string) (*grpc.ClientConn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var patience []grpc.DialOption
	if d.Patience > 0 {
		patience = append(patience, grpc.WithChainUnaryInterceptor(patient(d.Patience)))
	}
	return d.conn(&d.conns, addr, patience)
}

// Shard returns a connection as Conn does, to a store shard and with settings for large messages.
func (d *Dialer) Shard(addr string) (*grpc.ClientConn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conn(&d.shards, addr, storerpc.BulkDialOptions())
}

// conn finds or makes a connection. The interceptors in `first` run before those that security
// adds, so that they see the errors that those return. The caller holds mu.
func (d *Dialer) conn(conns *map[string]*grpc.ClientConn, addr string,
	first []grpc.DialOption) (*grpc.ClientConn, error) {
	if c := (*conns)[addr]; c != nil {
		return c, nil
	}
	safe, err := d.Security.DialOptions()
	if err != nil {
		return nil, err
	}
	if err := d.Security.Reaches(addr); err != nil {
		return nil, err
	}
	longest := retry.Longest
	if d.Patience > 0 { // a user waits once; processes are many, and try for ever
		longest = patientWait
	}
	options := append(slices.Concat(first, safe),
		grpc.WithConnectParams(grpc.ConnectParams{
			// A process that is being replaced is back within half a second, so try often.
			Backoff:           backoff.Config{BaseDelay: retry.First, Multiplier: 1.6, Jitter: 0.2, MaxDelay: longest},
			MinConnectTimeout: connectWait,
		}),
		grpc.WithDisableServiceConfig(),
	)
	target := addr
	if IsPlace(addr) {
		target = "coordinator"
		options = append(options, grpc.WithContextDialer((&finder{path: addr}).dial))
	}
	c, err := grpc.NewClient("passthrough:///"+target, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	if *conns == nil {
		*conns = map[string]*grpc.ClientConn{}
	}
	(*conns)[addr] = c
	return c, nil
}

// Close closes the connections.
func (d *Dialer) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, conns := range []map[string]*grpc.ClientConn{d.conns, d.shards} {
		for _, c := range conns { // in any order
			errs = append(errs, c.Close())
		}
	}
	d.conns, d.shards = nil, nil
	return errors.Join(errs...)
}

// patient repeats a call while the other side is away, up to limit. Every call of taxon may be made
// twice, because those that change something carry ids.
func patient(limit time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker,
		options ...grpc.CallOption) error {
		return retry.RetryEvery(ctx, limit, patientWait, func() error {
			return call(ctx, method, req, reply, conn,
				options...)
		},
			func(err error) bool { return status.Code(err) == codes.Unavailable })
	}
}

// Explain rephrases, for a user, the error of a call to the coordinator at an address if the call
// did not reach it: it does not answer, or one side denies access. Other errors are returned
// unchanged.
func Explain(addr string, err error) error {
	var s interface{ GRPCStatus() *status.Status }
	switch {
	case !errors.As(err, &s):
		return err
	case secure.Denied(err):
		return fmt.Errorf("no access to the coordinator at %s: %s", addr, s.GRPCStatus().Message())
	case s.GRPCStatus().Code() == codes.Unavailable, s.GRPCStatus().Code() == codes.DeadlineExceeded:
		return fmt.Errorf("the coordinator at %s does not answer: %s", addr, storerpc.Plain(s.GRPCStatus().Message()))
	}
	return err
}
