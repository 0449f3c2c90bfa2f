package secure

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Denied reports whether a call failed because one side does not accept the other: its identity,
// role, certificate or protocol. Unlike a lost connection, this needs a change of files, flags or
// a clock.
func Denied(err error) bool {
	code := status.Code(err)
	return code == codes.Unauthenticated || code == codes.PermissionDenied
}

// refusal is an error that ends a connection before its first call for such a reason.
type refusal string

// refusalMark marks the text of a refusal, so that it is found in a call's error. gRPC keeps
// nothing but the text.
const refusalMark = "refused: "

func (r refusal) Error() string { return refusalMark + string(r) }

// denial turns the error of a call whose connection was refused into a plain one with code
// Unauthenticated. It returns other errors unchanged.
func denial(err error) error {
	s := status.Convert(err)
	_, text, found := strings.Cut(s.Message(), refusalMark)
	if s.Code() != codes.Unavailable || !found {
		return err
	}
	if unquoted, err := strconv.Unquote(`"` + text); err == nil { // gRPC has quoted it
		text = unquoted
	}
	return status.Error(codes.Unauthenticated, text)
}

// denials returns interceptors that apply denial to all calls of a connection.
func denials() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
			call grpc.UnaryInvoker, options ...grpc.CallOption) error {
			return denial(call(ctx, method, req, reply, conn, options...))
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
			open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			stream, err := open(ctx, desc, conn, method, options...)
			return stream, denial(err)
		}),
	}
}

// handshakeConn is a connection whose first read may end in a refusal: in TLS 1.3 a server checks
// the client's certificate after the client's handshake is done.
type handshakeConn struct {
	net.Conn
	explain func(error) error
	first   sync.Once
	// firstRead is closed after the first read.
	firstRead chan struct{}
	// refused is the error of that read, or nil.
	refused error
}

// explainHandshake returns a connection that explains the error of its first read.
func explainHandshake(conn net.Conn, explain func(error) error) *handshakeConn {
	return &handshakeConn{Conn: conn, explain: explain, firstRead: make(chan struct{})}
}

func (c *handshakeConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.first.Do(func() {
		if n == 0 && err != nil {
			err = c.explain(err)
			c.refused = err
		}
		close(c.firstRead)
	})
	return n, err
}

// Write waits for the reader's error if the connection is closed, because only the reader learns
// why.
func (c *handshakeConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		select {
		case <-c.firstRead:
			err = cmp.Or(c.refused, err)
		case <-time.After(2 * probeTime): // nobody reads
		}
	}
	return n, err
}

// explainTLS rephrases a permanent TLS error. It returns other errors unchanged.
func (o Options) explainTLS(err error, own *tls.Certificate) error {
	var record tls.RecordHeaderError
	var alert *net.OpError
	switch {
	case errors.As(err, &record):
		return refusal("it does not speak TLS: start it with ‹tls-cert› and ‹tls-key›, or leave ‹tls-ca› out here")
	case errors.As(err, &alert) && alert.Op == "remote error" && own == nil:
		return refusal(fmt.Sprintf("it ended the handshake (%v)", alert.Err))
	case errors.As(err, &alert) && alert.Op == "remote error":
		return refusal(fmt.Sprintf("it refuses the certificate %s (%v), which is issued by %s and valid %s: give one of "+
			"its authority, renew it (`taxon certs`), or set the clocks",
			o.Cert, alert.Err, own.Leaf.Issuer.CommonName, validity(own.Leaf)))
	}
	if why := o.explainCertificate(err); why != "" {
		return refusal("its certificate " + why)
	}
	return err
}

// explainCertificate says why a certificate is not accepted, as the end of a sentence about it. It
// is empty if err is not about that.
func (o Options) explainCertificate(err error) string {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &unknown):
		return fmt.Sprintf("is issued by %s, which is not in ‹tls-ca=%s›: give the ca.crt of its cluster",
			unknown.Cert.Issuer.CommonName, o.CACert)
	case errors.As(err, &name):
		return fmt.Sprintf("is for %s, not for %s: make one for that name too (`taxon certs ‹host›`), or "+
			"use a name that it has", hostsOf(name.Certificate), name.Host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("is valid %s (%s): renew it (`taxon certs`), or set the clock", validity(invalid.Cert),
			invalid.Cert.Subject.CommonName)
	case errors.As(err, &invalid):
		return fmt.Sprintf("can't serve: %v", invalid)
	}
	return ""
}

// validity returns, in words, when a certificate is valid and what time the clock shows.
func validity(c *x509.Certificate) string {
	return fmt.Sprintf("from %s to %s (here it is %s)", c.NotBefore.UTC().Format(time.RFC3339),
		c.NotAfter.UTC().Format(time.RFC3339), time.Now().UTC().Format(time.RFC3339))
}

// hostsOf lists the names and addresses of a certificate.
func hostsOf(c *x509.Certificate) string {
	names := c.DNSNames
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no host"
	}
	return strings.Join(names, ", ")
}

// explainPlain finds out whether a connection without TLS was closed because the other side expects
// TLS.
func explainPlain(err error, addr net.Addr) error {
	if errors.Is(err, net.ErrClosed) || !speaksTLS(addr) {
		return err
	}
	return refusal("it speaks TLS: give ‹tls-ca›, and ‹tls-cert› with ‹tls-key› or ‹token-file›")
}

// speaksTLS reports whether a server speaks TLS. It sends no data, so it does not matter whose
// server it is.
func speaksTLS(addr net.Addr) bool {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	c, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}}).DialContext(ctx,
		addr.Network(), addr.String())
	if err == nil {
		_ = c.Close() // nothing was written
	}
	var alert *net.OpError
	return err == nil || errors.As(err, &alert) && alert.Op == "remote error"
}

// probeTime bounds speaksTLS, because a process that is being replaced may not answer.
const probeTime = 2 * time.Second

// CheckServes reports what would make others refuse this process when they call it at an address:
// a certificate without that name, expired, of another authority or for another role, or none
// where TLS is expected.
func (o Options) CheckServes(addr string) error {
	if o.CACert == "" && o.Cert == "" {
		return nil
	}
	if o.Cert == "" {
		return fmt.Errorf("others call %s by TLS: give ‹tls-cert› and ‹tls-key›", addr)
	}
	name := o.ServerName
	if host, _, err := net.SplitHostPort(addr); err == nil && name == "" {
		name = host
	}
	p, err := o.loadPair()
	if err != nil {
		return err
	}
	if p.pool == nil {
		err = p.cert.Leaf.VerifyHostname(name)
	} else {
		between := x509.NewCertPool()
		for _, der := range p.cert.Certificate[1:] {
			if c, err := x509.ParseCertificate(der); err == nil {
				between.AddCert(c)
			}
		}
		_, err = p.cert.Leaf.Verify(x509.VerifyOptions{Roots: p.pool, Intermediates: between, DNSName: name})
	}
	if err != nil {
		why := o.explainCertificate(err)
		if why == "" {
			why = "can't serve: " + err.Error()
		}
		return fmt.Errorf("nobody could call it at %s: the certificate %s %s", addr, o.Cert, why)
	}
	if why := wrongRole(p.cert.Leaf); why != "" {
		return fmt.Errorf("nobody would call it: the certificate %s %s", o.Cert, why)
	}
	return nil
}
