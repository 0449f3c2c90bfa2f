package secure

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
)

// issueAt gives the options of who holds a certificate that was made at a time.
func issueAt(t *testing.T, a *Authority, at time.Time, r Request) Options {
	t.Helper()
	r.Valid = 30 * day
	c, err := a.Issue(r, at)
	if err != nil {
		t.Fatal(err)
	}
	return Options{CACert: a.CertFile(), Cert: c.Cert, Key: c.Key}
}

// Whatever keeps the two sides of a call apart for good is told as what it is, with what
// to do about it, and is no lost connection.
func TestRefusalsSayWhatIsWrong(t *testing.T) {
	ours, theirs := authority(t), authority(t)
	local := []string{"localhost", "127.0.0.1"}
	server := coordinatorCert(t, ours)
	withTokens := server
	withTokens.TokenFile = write(t, "tokens", "submit "+submitToken+"\n")
	onlyTokens := withTokens
	onlyTokens.RequireToken = true
	submit := issue(t, ours, Request{Roles: []Role{Submit}})
	foreign := issue(t, theirs, Request{Roles: []Role{Submit}})
	stranger := foreign
	stranger.CACert = ours.CertFile()
	ago, soon := time.Now().Add(-90*day), time.Now().Add(90*day)
	for _, c := range []struct {
		name           string
		server, client Options
		want           []string
	}{
		{"a certificate of another authority", server, stranger, []string{"another authority than taxon CA",
			filepath.Base(stranger.Cert), "taxon certs"}},
		{"the same where tokens are taken", withTokens, stranger, []string{"another authority than taxon CA",
			filepath.Base(stranger.Cert)}},
		{"a server of another authority", server, foreign, []string{"issued by taxon CA", "not in ‹tls-ca=" + foreign.CACert,
			"ca.crt of its cluster"}},
		{"a server of another name", issue(t, ours, Request{Hosts: []string{"node-1", "10.0.0.1"},
			Roles: []Role{Coordinator}}), submit, []string{"is for node-1, 10.0.0.1, not for 127.0.0.1", "‹host"}},
		{"a server of another role", issue(t, ours, Request{Name: "w", Hosts: local, Roles: []Role{Worker}}), submit,
			[]string{"of role worker, not of a coordinator or store"}},
		{"a server's expired certificate", issueAt(t, ours, ago, Request{Name: "old", Hosts: local,
			Roles: []Role{Coordinator}}), submit, []string{"is valid from", "here it is", "(old)", "set the clock"}},
		{"a server's certificate of the future", issueAt(t, ours, soon, Request{Name: "new", Hosts: local,
			Roles: []Role{Coordinator}}), submit, []string{"is valid from", "here it is", "(new)", "set the clock"}},
		{"an expired certificate", server, issueAt(t, ours, ago, Request{Name: "mine", Roles: []Role{Submit}}),
			[]string{"mine.crt", "expired certificate", "valid from", "renew it", "set the clocks"}},
		{"a certificate of the future", server, issueAt(t, ours, soon, Request{Name: "later", Roles: []Role{Submit}}),
			[]string{"later.crt", "certificate", "valid from", "set the clocks"}},
		{"TLS against a plain server", Options{}, submit, []string{"does not speak TLS", "‹tls-cert"}},
		{"plain against a server with TLS", server, Options{Insecure: true}, []string{"speaks TLS: give ‹tls-ca›"}},
		{"a wrong token", withTokens, Options{CACert: ours.CertFile(), TokenFile: write(t, "token", otherToken)},
			[]string{"token is not known here", "taxon certs token"}},
		{"a token where none are taken", server, Options{CACert: ours.CertFile(), TokenFile: write(t, "token", submitToken)},
			[]string{"no tokens are taken here", "‹tls-cert"}},
		{"nothing where both would do", withTokens, Options{CACert: ours.CertFile()},
			[]string{"‹token-file›, or ‹tls-cert›"}},
		{"nothing where a certificate is needed", server, Options{CACert: ours.CertFile()},
			[]string{"a certificate is needed: give ‹tls-cert›"}},
		{"a certificate where a token is demanded", onlyTokens, submit, []string{"a token is needed: give ‹token-file›"}},
		{"another role", server, issue(t, ours, Request{Name: "someone", Roles: []Role{Worker}}),
			[]string{"/taxon.v1.Jobs/Submit needs role submit or admin", "certificate someone has role worker",
				"of a role that may"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := taxonv1.NewJobsClient(dial(t, c.client, serve(t, c.server))).Submit(callContext(t),
				&taxonv1.SubmitRequest{})
			if !Denied(err) {
				t.Fatalf("it counts as a lost connection: %v", err)
			}
			text := status.Convert(err).Message()
			for _, w := range c.want {
				if !strings.Contains(text, w) {
					t.Errorf("%q does not say %q", text, w)
				}
			}
			for _, w := range []string{refusalMark, "rpc error", "transport:", `\"`, "x509:", "\n"} {
				if strings.Contains(text, w) {
					t.Errorf("%q has %q in it", text, w)
				}
			}
		})
	}
}

// A connection that breaks, with TLS or without, is no refusal: it is made again.
func TestALostConnectionIsNoRefusal(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	defer func() { _ = l.Close(); <-done }()
	for _, o := range []Options{{}, issue(t, authority(t), Request{Roles: []Role{Submit}})} {
		_, err := taxonv1.NewJobsClient(dial(t, o, l.Addr().String())).Submit(callContext(t), &taxonv1.SubmitRequest{})
		want(t, "a server that hangs up", err, codes.Unavailable)
	}
}

// A process that others could not call at its address finds out itself.
func TestCheckServes(t *testing.T) {
	ours, theirs := authority(t), authority(t)
	good := issue(t, ours, Request{Name: "good", Hosts: []string{"node-1", "*.taxon-store", "10.0.0.1"},
		Roles: []Role{Store}})
	stranger := issue(t, theirs, Request{Hosts: []string{"node-1"}, Roles: []Role{Store}})
	stranger.CACert = ours.CertFile()
	byTokens, byFile := good, good
	byTokens.CACert, byFile.ServerName = "", "cluster.taxon.internal"
	for _, c := range []struct {
		name, addr string
		o          Options
		want       string // "": it serves
	}{
		{"plain", "node-9:1", Options{}, ""},
		{"its name", "node-1:7071", good, ""},
		{"a name of its wildcard", "taxon-store-0.taxon-store:7071", good, ""},
		{"its address", "10.0.0.1:7071", good, ""},
		{"another name", "node-2:7071", good, "good.crt is for node-1, *.taxon-store, 10.0.0.1, not for node-2: " +
			"make one for that name"},
		{"another address", "10.0.0.2:7071", good, "not for 10.0.0.2"},
		{"another name, by tokens", "node-2:7071", byTokens, "not for node-2"},
		{"the name of a cluster that is found by a file", "node-1:7071", byFile, "not for cluster.taxon.internal"},
		{"another authority", "node-1:7071", stranger, "is issued by taxon CA"},
		{"expired", "node-1:7071", issueAt(t, ours, time.Now().Add(-90*day), Request{Name: "old", Hosts: []string{"node-1"},
			Roles: []Role{Store}}), "is valid from"},
		{"a worker's", "node-1:7071", issue(t, ours, Request{Name: "w", Hosts: []string{"node-1"}, Roles: []Role{Worker}}),
			"of role worker"},
		{"none", "node-1:7071", Options{CACert: good.CACert}, "give ‹tls-cert› and ‹tls-key›"},
	} {
		err := c.o.CheckServes(c.addr)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
