package secure

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	taxonv1 "taxon/proto/taxon/v1"
)

// authority makes one in a new folder.
func authority(t *testing.T) *Authority {
	t.Helper()
	a, err := OpenAuthority(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// issue gives the options of who holds a new certificate.
func issue(t *testing.T, a *Authority, r Request) Options {
	t.Helper()
	r.Valid = 30 * day
	c, err := a.Issue(r, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return Options{CACert: a.CertFile(), Cert: c.Cert, Key: c.Key}
}

func coordinatorCert(t *testing.T, a *Authority) Options {
	return issue(t, a, Request{Hosts: []string{"localhost", "127.0.0.1"}, Roles: []Role{Coordinator}})
}

func TestCertificatesGiveRoles(t *testing.T) {
	ours, theirs := authority(t), authority(t)
	addr := serve(t, coordinatorCert(t, ours))
	submit := issue(t, ours, Request{Roles: []Role{Submit}})
	stranger := issue(t, theirs, Request{Roles: []Role{Admin}})
	// it trusts the server, which does not ask for its certificate
	stranger.CACert = ours.CertFile()
	for _, c := range []struct {
		name          string
		o             Options
		submit, lease codes.Code
		health        codes.Code
	}{
		{"submit", submit, codes.Unimplemented, codes.PermissionDenied, codes.OK},
		{"worker", issue(t, ours, Request{Roles: []Role{Worker}}), codes.PermissionDenied, codes.Unimplemented, codes.OK},
		{"both", issue(t, ours, Request{Name: "both", Roles: []Role{Worker, Submit}}), codes.Unimplemented,
			codes.Unimplemented, codes.OK},
		{"no certificate", Options{CACert: ours.CertFile()}, codes.Unauthenticated, codes.Unauthenticated, codes.OK},
		{"certificate of another authority", stranger, codes.Unauthenticated, codes.Unauthenticated, codes.Unauthenticated},
		{"another authority's idea of the server", issue(t, theirs, Request{Roles: []Role{Submit}}), codes.Unauthenticated,
			codes.Unauthenticated, codes.Unauthenticated},
		{"plaintext", Options{}, codes.Unauthenticated, codes.Unauthenticated, codes.Unauthenticated},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, ctx := dial(t, c.o, addr), callContext(t)
			_, err := taxonv1.NewJobsClient(conn).Submit(ctx, &taxonv1.SubmitRequest{})
			want(t, "Submit", err, c.submit)
			_, err = taxonv1.NewTasksClient(conn).Lease(ctx, &taxonv1.LeaseRequest{})
			want(t, "Lease", err, c.lease)
			_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
			want(t, "health", err, c.health)
		})
	}
}

// TestForcedCertificate: a caller that shows a certificate nobody asked for gets no
// connection.
func TestForcedCertificate(t *testing.T) {
	addr := serve(t, coordinatorCert(t, authority(t)))
	o := issue(t, authority(t), Request{Roles: []Role{Admin}})
	cert, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.Dial("tcp", addr, &tls.Config{
		InsecureSkipVerify: true, NextProtos: []string{"h2"},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil },
	})
	if err == nil {
		defer func() { _ = c.Close() }()
		_, err = c.Read(make([]byte, 1)) // with TLS 1.3 the refusal comes behind the handshake
	}
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("another authority's admin is let in: %v", err)
	}
}

// TestAWorkerIsNoCoordinator: a worker's certificate, though of the right authority and
// name, does not make a server that others trust.
func TestAWorkerIsNoCoordinator(t *testing.T) {
	a := authority(t)
	addr := serve(t, issue(t, a, Request{Hosts: []string{"127.0.0.1"}, Roles: []Role{Worker}}))
	_, err := healthpb.NewHealthClient(dial(t, issue(t, a, Request{Roles: []Role{Submit}}), addr)).Check(callContext(t),
		&healthpb.HealthCheckRequest{})
	want(t, "health of a false coordinator", err, codes.Unauthenticated)
	if err != nil && !strings.Contains(err.Error(), "of role worker") {
		t.Error(err)
	}
}

func TestTokenBesideCertificates(t *testing.T) {
	a := authority(t)
	server := coordinatorCert(t, a)
	server.TokenFile = write(t, "tokens", "submit "+submitToken+"\n")
	byCert := issue(t, a, Request{Roles: []Role{Submit}})
	byToken := Options{CACert: a.CertFile(), TokenFile: write(t, "token", submitToken)}
	call := func(o Options, addr string) error {
		_, err := taxonv1.NewJobsClient(dial(t, o, addr)).Submit(callContext(t), &taxonv1.SubmitRequest{})
		return err
	}
	addr := serve(t, server)
	want(t, "certificate", call(byCert, addr), codes.Unimplemented)
	want(t, "token", call(byToken, addr), codes.Unimplemented)
	want(t, "neither", call(Options{CACert: a.CertFile()}, addr), codes.Unauthenticated)
	server.RequireToken = true
	addr = serve(t, server)
	want(t, "certificate where a token is demanded", call(byCert, addr), codes.Unauthenticated)
	byCert.TokenFile = byToken.TokenFile
	want(t, "both", call(byCert, addr), codes.Unimplemented)
}

func TestOnlyTLS13(t *testing.T) {
	a := authority(t)
	addr := serve(t, coordinatorCert(t, a))
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12,
		NextProtos: []string{"h2"}})
	if err == nil {
		_ = c.Close()
		t.Error("TLS 1.2 is spoken")
	}
}

func TestListenBeyondLoopback(t *testing.T) {
	a := authority(t)
	mutual := coordinatorCert(t, a)
	tokens := write(t, "tokens", "submit "+submitToken+"\n")
	for _, c := range []struct {
		name string
		o    Options
		want string // "": allowed
	}{
		{"nothing", Options{}, "TLS is needed"},
		{"authority only", Options{CACert: mutual.CACert}, "TLS is needed"},
		{"token in the clear", Options{TokenFile: tokens}, "a token needs TLS"},
		{"required token in the clear", Options{TokenFile: tokens, RequireToken: true}, "a token needs TLS"},
		{"TLS for everyone", Options{Cert: mutual.Cert, Key: mutual.Key}, "callers must be known"},
		{"mutual", mutual, ""},
		{"TLS and token", Options{Cert: mutual.Cert, Key: mutual.Key, TokenFile: tokens}, ""},
		{"insecure", Options{Insecure: true}, ""},
	} {
		l, err := c.o.Listen(t.Context(), "0.0.0.0:0")
		if err == nil {
			_ = l.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if l, err = c.o.Listen(t.Context(), "localhost:0"); err != nil {
			t.Errorf("%s: loopback: %v", c.name, err)
		} else {
			_ = l.Close()
		}
	}
}

// TestNothingInTheClearBeyondLoopback: a client does not even greet a remote host.
func TestNothingInTheClearBeyondLoopback(t *testing.T) {
	c := &plainCreds{anywhere: false}
	remote := fakeConn{addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7}}
	if _, _, err := c.ClientHandshake(t.Context(), "", remote); err == nil || !strings.Contains(err.Error(), "‹tls-ca") {
		t.Error(err)
	}
}

type fakeConn struct {
	net.Conn
	addr net.Addr
}

func (c fakeConn) RemoteAddr() net.Addr { return c.addr }

func TestRotation(t *testing.T) {
	a := authority(t)
	o := coordinatorCert(t, a)
	warned := 0
	o.Warn = func(error) { warned++ }
	w, err := o.watchPair()
	if err != nil {
		t.Fatal(err)
	}
	// soon makes the next get look at the files, without waiting for it to be due.
	soon := func() pair { w.looked = time.Time{}; return w.get() }
	first := soon().cert.Leaf.SerialNumber
	if soon().cert.Leaf.SerialNumber.Cmp(first) != 0 || warned != 0 {
		t.Error("changed by itself")
	}
	good, err := os.ReadFile(o.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeFile(o.Key, []byte("half a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if soon().cert.Leaf.SerialNumber.Cmp(first) != 0 || warned != 1 {
		t.Errorf("a broken key: %d warnings", warned)
	}
	if err := writeFile(o.Key, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Issue(Request{Hosts: []string{"localhost", "127.0.0.1"}, Roles: []Role{Coordinator}, Valid: 30 * day,
		Renew: true}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if soon().cert.Leaf.SerialNumber.Cmp(first) == 0 {
		t.Error("a new certificate is not noticed")
	}
	if err := os.Remove(o.Cert); err != nil {
		t.Fatal(err)
	}
	if soon().cert == nil || warned != 2 {
		t.Errorf("a missing file: %d warnings", warned)
	}
}

func TestAuthority(t *testing.T) {
	now := time.Now()
	a := authority(t)
	host := Request{Hosts: []string{"h", "::1", "10.0.0.1"}, Roles: []Role{Worker}, Valid: 30 * day}
	for _, c := range []struct {
		name string
		r    Request
		at   time.Time
		made bool
	}{
		{"new", host, now, true},
		{"again", host, now, false},
		{"address written otherwise", Request{Hosts: []string{"10.0.0.1", "0:0::1", "h"}, Name: "h", Roles: host.Roles,
			Valid: host.Valid}, now, false},
		{"after half its time", host, now.Add(15 * day), false},
		{"near its end", host, now.Add(25 * day), true},
		{"other role", Request{Hosts: host.Hosts, Roles: []Role{Worker, Store}, Valid: host.Valid}, now, true},
		{"asked for", Request{Hosts: host.Hosts, Roles: []Role{Worker, Store}, Valid: host.Valid, Renew: true}, now, true},
	} {
		got, err := a.Issue(c.r, c.at)
		if err != nil || got.Made != c.made {
			t.Errorf("%s: made %v, %v, want %v", c.name, got.Made, err, c.made)
		}
	}
	long, err := a.Issue(Request{Roles: []Role{Admin}, Valid: 20 * 365 * day}, now)
	if err != nil || long.Expires.After(a.Expires()) {
		t.Errorf("outlives its authority: %v, %v", long.Expires, err)
	}
	again, err := OpenAuthority(a.dir, now)
	if err != nil || again.Made || !again.cert.Equal(a.cert) {
		t.Errorf("opened again: %v", err)
	}
	if _, err := OpenAuthority(a.dir, a.Expires().Add(time.Second)); err == nil || !strings.Contains(err.Error(),
		"expired") {
		t.Errorf("expired: %v", err)
	}
	if err := os.Chmod(filepath.Join(a.dir, caKeyFile), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(a.dir, now); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that all can read: %v", err)
	}
	if err := os.Remove(filepath.Join(a.dir, caKeyFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(a.dir, now); err == nil || !strings.Contains(err.Error(), "no key beside") {
		t.Errorf("no key: %v", err)
	}
}

// TestLimited: the connection over the bound waits until another one ends.
func TestLimited(t *testing.T) {
	l, err := Options{}.listen(t.Context(), "127.0.0.1:0", 1)
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn)
	failed := make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				failed <- err
				return
			}
			accepted <- c
		}
	}()
	for range 2 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
	}
	first := <-accepted
	select {
	case <-accepted:
		t.Fatal("a connection over the bound")
	case <-time.After(30 * time.Millisecond): // an early success would be a false one, a late one is none
	}
	_ = first.Close()
	_ = first.Close() // gives back one slot, not two
	second := <-accepted
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	_ = second.Close()
}
