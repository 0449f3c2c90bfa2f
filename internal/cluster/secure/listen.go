package secure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/net/netutil"
)

// maxConnections bounds the open connections of a listener. It allows for some thousand workers
// and clients, and is below a service's usual limit on open files.
const maxConnections = 8192

// Listen opens a TCP address, "host:port". It refuses an address beyond loopback unless callers
// must prove themselves over TLS, or Insecure is set. The server that accepts connections adds
// TLS (ServerOptions).
func (o Options) Listen(ctx context.Context, addr string) (net.Listener, error) {
	return o.listen(ctx, addr, maxConnections)
}

// listen is Listen with at most n connections open: the next one waits in the kernel's queue.
func (o Options) listen(ctx context.Context, addr string, n int) (net.Listener, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("listen %s: the address is HOST:PORT: %w", addr, addressProblem(err))
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	// The bound address decides, not the requested one: a name can mean any address.
	if !isLoopback(l.Addr()) && !o.Insecure {
		if err := o.beyondLoopback(host); err != nil {
			return nil, errors.Join(fmt.Errorf("listen %s: %w", addr, err), l.Close())
		}
	}
	return netutil.LimitListener(l, n), nil
}

// beyondLoopback returns an error that says what is missing for listening where other machines can
// call.
func (o Options) beyondLoopback(host string) error {
	where := "beyond loopback"
	if host == "" {
		where = "on all interfaces"
	}
	switch {
	case o.mutual(), o.serverTLS() && o.TokenFile != "":
		return nil
	case o.TokenFile != "":
		return fmt.Errorf("%s a token needs TLS: give ‹tls-cert› and ‹tls-key›, or ‹insecure› to do without", where)
	case o.serverTLS():
		return fmt.Errorf("%s callers must be known: give ‹tls-ca› or ‹token-file›, or ‹insecure› to do without", where)
	}
	return fmt.Errorf("%s TLS is needed: give ‹tls-ca›, ‹tls-cert› and ‹tls-key› (`taxon certs` makes them), or "+
		"‹insecure› to do without", where)
}

func addressProblem(err error) error {
	var a *net.AddrError
	if errors.As(err, &a) {
		return errors.New(a.Err)
	}
	return err
}

// isLoopback reports whether only this machine can reach the address.
func isLoopback(a net.Addr) bool {
	switch a := a.(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		ip, ok := netip.AddrFromSlice(a.IP)
		return ok && ip.Unmap().IsLoopback()
	}
	return false
}
