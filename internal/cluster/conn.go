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

	"taxon/internal/fs"
	"taxon/internal/pause"
	"taxon/internal/secure"
	"taxon/store/storerpc"
)

const (
	// patientWait is pause.Longest of a user's own call: it answers soon after its other side is back.
	patientWait = 100 * time.Millisecond
	// connectWait bounds one attempt to connect.
	connectWait = 5 * time.Second
)

// Dialer makes connections and keeps one for each address.
type Dialer struct {
	Security secure.Options
	// Patience is how long a call of Conn that does not stream is made again and again while
	// the other side is away; 0: not at all. Callers of shards have a patience of their own.
	Patience time.Duration

	mu     sync.Mutex
	conns  map[string]*grpc.ClientConn
	shards map[string]*grpc.ClientConn
}

// Conn is the connection to an address, host:port, or to the coordinator that says in a
// file, hdfs://..., where it is (Place). It is made when it is first used, and made again
// when it breaks; the file is read anew then. The Dialer closes it.
func (d *Dialer) Conn(addr string) (*grpc.ClientConn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var patience []grpc.DialOption
	if d.Patience > 0 {
		patience = append(patience, grpc.WithChainUnaryInterceptor(patient(d.Patience)))
	}
	return d.conn(&d.conns, addr, patience)
}

// Shard is the same for the address of a shard, to which values are carried.
func (d *Dialer) Shard(addr string) (*grpc.ClientConn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conn(&d.shards, addr, storerpc.BulkDialOptions())
}

// conn finds a connection, or makes it with the options given and, behind them, those of the
// security: so the others see what it makes of errors. The caller holds mu.
func (d *Dialer) conn(conns *map[string]*grpc.ClientConn, addr string, first []grpc.DialOption) (*grpc.ClientConn, error) {
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
	longest := pause.Longest
	if d.Patience > 0 { // a user waits, once; processes are many and try for ever
		longest = patientWait
	}
	options := append(slices.Concat(first, safe),
		grpc.WithConnectParams(grpc.ConnectParams{
			// What is being replaced is back within half a second: look often.
			Backoff:           backoff.Config{BaseDelay: pause.First, Multiplier: 1.6, Jitter: 0.2, MaxDelay: longest},
			MinConnectTimeout: connectWait,
		}),
		grpc.WithDisableServiceConfig(),
	)
	target := addr
	if fs.IsRemote(addr) {
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
		for _, c := range conns { // the order of closing shows nowhere
			errs = append(errs, c.Close())
		}
	}
	d.conns, d.shards = nil, nil
	return errors.Join(errs...)
}

// patient makes a call again while the other side is away, for as long as limit. All of
// our calls may be made twice: those that change something are told apart by ids.
func patient(limit time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
		return pause.RetryEvery(ctx, limit, patientWait, func() error { return call(ctx, method, req, reply, conn, options...) },
			func(err error) bool { return status.Code(err) == codes.Unavailable })
	}
}

// Explain words for a user what a call to the coordinator at an address failed with, where
// that is the way there: it does not answer, or one side denies the other access. Other
// errors stay as they are.
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
