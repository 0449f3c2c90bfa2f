package secure

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc"

	taxonv1 "taxon/proto/taxon/v1"
)

// namedJobs answers a submission with who made it.
type namedJobs struct {
	taxonv1.UnimplementedJobsServer
}

func (namedJobs) Submit(ctx context.Context, _ *taxonv1.SubmitRequest) (*taxonv1.SubmitResult, error) {
	return &taxonv1.SubmitResult{Job: Caller(ctx)}, nil
}

// A handler learns who calls, by certificate or token, and a token's name gives no token away.
func TestCaller(t *testing.T) {
	ours := authority(t)
	server := coordinatorCert(t, ours)
	server.TokenFile = write(t, "tokens", "submit "+submitToken+"\n")
	opts, err := server.ServerOptions(DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	l, err := server.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(opts...)
	taxonv1.RegisterJobsServer(s, namedJobs{})
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	for _, c := range []struct {
		client Options
		want   string
	}{
		{issue(t, ours, Request{Name: "ada", Roles: []Role{Submit}}), "ada"},
		{Options{CACert: ours.CertFile(), TokenFile: write(t, "token", submitToken)}, "token:765c4471"},
	} {
		r, err := taxonv1.NewJobsClient(dial(t, c.client, l.Addr().String())).Submit(callContext(t), &taxonv1.SubmitRequest{})
		if err != nil || r.GetJob() != c.want {
			t.Errorf("called by %q (%v), want %q", r.GetJob(), err, c.want)
		}
	}
	g, err := server.newGuard(Policy{"POST /x": {Submit}}, "")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/x", nil)
	r.Header.Set("Authorization", "Bearer "+submitToken)
	got := ""
	g.serveHTTP(httptest.NewRecorder(), r, http.HandlerFunc(func(_ http.ResponseWriter,
		r *http.Request) {
		got = Caller(r.Context())
	}), nil)
	if got != "token:765c4471" {
		t.Errorf("over HTTP: called by %q", got)
	}
}
