package secure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc/credentials"
)

// pair is a process's certificate and the authority that it trusts. Either may be nil.
type pair struct {
	cert *tls.Certificate
	pool *x509.CertPool
}

// watchPair loads the files of the options and follows their changes.
func (o Options) watchPair() (*watched[pair], error) {
	var paths []string
	for _, p := range []string{o.CACert, o.Cert, o.Key} {
		if p != "" {
			paths = append(paths, p)
		}
	}
	return watch(paths, o.warn, o.loadPair)
}

// CertificateExpiry returns when the process's own certificate expires. It is zero if there is none that can be read.
func (o Options) CertificateExpiry() time.Time {
	p, err := o.loadPair()
	if err != nil || p.cert == nil {
		return time.Time{}
	}
	return p.cert.Leaf.NotAfter
}

// loadPair loads the files of the options.
func (o Options) loadPair() (pair, error) {
	var p pair
	if o.CACert != "" {
		data, err := readFile(o.CACert, false)
		if err != nil {
			return pair{}, err
		}
		p.pool = x509.NewCertPool()
		if !p.pool.AppendCertsFromPEM(data) {
			return pair{}, fmt.Errorf("%s: no PEM certificate in it", o.CACert)
		}
	}
	if o.Cert != "" {
		certPEM, err := readFile(o.Cert, false)
		if err != nil {
			return pair{}, err
		}
		keyPEM, err := readFile(o.Key, true)
		if err != nil {
			return pair{}, err
		}
		cert, err := tls.X509KeyPair(certPEM, keyPEM)
		if err != nil {
			return pair{}, fmt.Errorf("%s and %s: %w", o.Cert, o.Key, err)
		}
		p.cert = &cert
	}
	return p, nil
}

// serverConfig returns the TLS configuration of a listening process. Callers without a certificate may
// connect, and are then refused call by call, so that health stays open. A certificate of another
// authority ends the handshake.
func serverConfig(files *watched[pair], protocols []string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			p := files.get()
			c := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: protocols, Certificates: []tls.Certificate{*p.cert}}
			if p.pool != nil {
				c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, p.pool
			}
			return c, nil
		},
	}
}

// clientCreds are the credentials of a client. They use the present files for each connection.
type clientCreds struct {
	o     Options
	files *watched[pair]
	// name overrides the server's name. If it is empty, that is the dialled name.
	name string
}

// current returns the credentials from the present files.
func (c *clientCreds) current(p pair) credentials.TransportCredentials {
	t := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: p.pool, ServerName: c.name,
		VerifyConnection: func(s tls.ConnectionState) error {
			if why := wrongRole(s.PeerCertificates[0]); why != "" {
				return refusal("its certificate " + why)
			}
			return nil
		}}
	if p.cert != nil {
		t.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if err := r.SupportsCertificate(p.cert); err == nil {
				return p.cert, nil
			}
			if c.o.TokenFile != "" { // the token may be enough
				return new(tls.Certificate), nil
			}
			return nil, refusal(fmt.Sprintf("it takes certificates of another authority than %s, which has issued %s: give "+
				"one of its cluster's (`taxon certs`)", p.cert.Leaf.Issuer.CommonName, c.o.Cert))
		}
	}
	return credentials.NewTLS(t)
}

func (c *clientCreds) ClientHandshake(ctx context.Context, authority string,
	conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	p := c.files.get()
	explain := func(err error) error { return c.o.explainTLS(err, p.cert) }
	safe, info, err := c.current(p).ClientHandshake(ctx, authority, conn)
	if err != nil {
		return nil, nil, explain(err)
	}
	return explainHandshake(safe, explain), info, nil
}

func (c *clientCreds) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("secure: credentials of a client can't serve")
}

func (c *clientCreds) Info() credentials.ProtocolInfo { return c.current(c.files.get()).Info() }

func (c *clientCreds) Clone() credentials.TransportCredentials {
	return &clientCreds{o: c.o, files: c.files, name: c.name}
}

func (c *clientCreds) OverrideServerName(name string) error {
	c.name = name
	return nil
}

// wrongRole returns the reason why a certificate does not prove a server: it is for another role.
// The reason is worded as the end of a sentence about the certificate. A worker of the same
// authority must not pass for the coordinator. A certificate without roles, from another authority,
// is judged by its name.
func wrongRole(cert *x509.Certificate) string {
	have := certificateRoles(cert)
	if len(have) == 0 || slices.ContainsFunc(have, func(r Role) bool {
		return r == Coordinator || r == Store ||
			r == Admin
	}) {
		return ""
	}
	return fmt.Sprintf("is one of role %s, not of a coordinator or store: check the address, or make one by "+
		"`taxon certs ‹role›`", have[0])
}
