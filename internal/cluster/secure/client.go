package secure

import (
	"context"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"taxon/internal/cluster/release"
)

// DialOptions returns the options for connections to other processes. If one side permanently refuses
// a connection, calls over it fail with code Unauthenticated (Denied).
func (o Options) DialOptions() ([]grpc.DialOption, error) {
	if o.CACert == "" && o.Cert != "" {
		return nil, errors.New("‹tls-cert› needs ‹tls-ca›, to know whom it is shown to")
	}
	if (o.Cert == "") != (o.Key == "") {
		return nil, errors.New("‹tls-cert› and ‹tls-key› go together")
	}
	opts := []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessageBytes)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingWait, PermitWithoutStream: true}),
		// A proxy from the environment must not see this traffic, and a cluster's addresses are
		// rarely behind one.
		grpc.WithNoProxy(),
	}
	if o.CACert != "" {
		files, err := o.watchPair()
		if err != nil {
			return nil, err
		}
		opts = append(opts, grpc.WithTransportCredentials(&clientCreds{o: o, files: files}))
	} else {
		opts = append(opts, grpc.WithTransportCredentials(&plainCreds{TransportCredentials: insecure.NewCredentials(),
			anywhere: o.Insecure}))
	}
	opts = append(opts, denials()...)
	opts = append(opts, grpc.WithPerRPCCredentials(releaseTold{}))
	if o.ServerName != "" {
		opts = append(opts, grpc.WithAuthority(o.ServerName))
	}
	if o.TokenFile != "" {
		token, err := watch([]string{o.TokenFile}, o.warn, func() (string, error) { return clientToken(o.TokenFile, o.Role) })
		if err != nil {
			return nil, err
		}
		opts = append(opts, grpc.WithPerRPCCredentials(&bearer{token}))
	}
	return opts, nil
}

// Reaches says at once why a connection to an address would be refused: it is beyond loopback,
// and nothing protects what is sent there. A name is judged when it is called.
func (o Options) Reaches(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	if err != nil || ip == nil || ip.IsLoopback() || o.Insecure || o.CACert != "" {
		return nil
	}
	return errors.New(string(beyond(addr)))
}

func beyond(addr string) refusal {
	return refusal(addr + " lies beyond loopback: give ‹tls-ca›, or ‹insecure› to send in the clear")
}

// plainCreds sends plaintext that stays on this machine, unless anywhere is set.
type plainCreds struct {
	credentials.TransportCredentials
	anywhere bool
}

func (c *plainCreds) ClientHandshake(ctx context.Context, authority string,
	conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if !c.anywhere && !isLoopback(conn.RemoteAddr()) {
		return nil, nil, beyond(conn.RemoteAddr().String())
	}
	plain, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if err != nil {
		return nil, nil, err
	}
	return explainHandshake(plain, func(err error) error { return explainPlain(err, conn.RemoteAddr()) }), info, nil
}

func (c *plainCreds) Clone() credentials.TransportCredentials {
	return &plainCreds{TransportCredentials: c.TransportCredentials.Clone(), anywhere: c.anywhere}
}

// releaseTold sends this process's release with each call.
type releaseTold struct{}

func (releaseTold) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return told(), nil
}

var told = sync.OnceValue(func() map[string]string { return map[string]string{release.Key: release.Words()} })

func (releaseTold) RequireTransportSecurity() bool { return false }

// bearer sends the token with each call. plainCreds keeps plaintext from going too far.
type bearer struct{ token *watched[string] }

func (b *bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token.get()}, nil
}

func (b *bearer) RequireTransportSecurity() bool { return false }
