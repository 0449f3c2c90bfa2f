package secure

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	submitToken = "submit-submit-submit-submit"
	workerToken = "worker-worker-worker-worker"
	otherToken  = "nobody-nobody-nobody-nobody"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve runs a server with services that answer Unimplemented, and health; the address.
func serve(t *testing.T, o Options) string {
	t.Helper()
	opts, err := o.ServerOptions(DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	l, err := o.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(opts...)
	taxonv1.RegisterJobsServer(s, taxonv1.UnimplementedJobsServer{})
	taxonv1.RegisterTasksServer(s, taxonv1.UnimplementedTasksServer{})
	taxonv1.RegisterMembersServer(s, taxonv1.UnimplementedMembersServer{})
	taxonv1.RegisterStoreServer(s, taxonv1.UnimplementedStoreServer{})
	Register(s, "taxon.v1.Jobs")
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return l.Addr().String()
}

func dial(t *testing.T, o Options, addr string) *grpc.ClientConn {
	t.Helper()
	opts, err := o.DialOptions()
	if err != nil {
		t.Fatal(err)
	}
	c, err := grpc.NewClient(addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// want checks the code of a unary call; Unimplemented is a call that was let through.
func want(t *testing.T, what string, err error, code codes.Code) {
	t.Helper()
	if got := status.Code(err); got != code {
		t.Errorf("%s: %v (%v), want %v", what, got, err, code)
	}
}

func callContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestTokensGiveRoles(t *testing.T) {
	addr := serve(t, Options{RequireToken: true, TokenFile: write(t, "tokens", "submit "+submitToken+"\nworker "+
		workerToken+"\n")})
	for _, c := range []struct {
		name, token          string
		submit, lease, store codes.Code
	}{
		{"submit", submitToken, codes.Unimplemented, codes.PermissionDenied, codes.PermissionDenied},
		{"worker", "worker " + workerToken, codes.PermissionDenied, codes.Unimplemented, codes.PermissionDenied},
		{"other", otherToken, codes.Unauthenticated, codes.Unauthenticated, codes.Unauthenticated},
		{"none", "", codes.Unauthenticated, codes.Unauthenticated, codes.Unauthenticated},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o Options
			if c.token != "" {
				o.TokenFile = write(t, "token", c.token)
			}
			conn, ctx := dial(t, o, addr), callContext(t)
			_, err := taxonv1.NewJobsClient(conn).Submit(ctx, &taxonv1.SubmitRequest{})
			want(t, "Submit", err, c.submit)
			_, err = taxonv1.NewTasksClient(conn).Lease(ctx, &taxonv1.LeaseRequest{})
			want(t, "Lease", err, c.lease)
			_, err = taxonv1.NewStoreClient(conn).Commit(ctx, &taxonv1.CommitRequest{})
			want(t, "Commit", err, c.store)
			_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: "taxon.v1.Jobs"})
			want(t, "health", err, codes.OK)
		})
	}
}

func TestListenRefusesBeyondLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		l, err := Options{}.Listen(t.Context(), addr)
		if err == nil {
			_ = l.Close()
			t.Errorf("listens on %s", addr)
		}
	}
	l, err := Options{Insecure: true}.Listen(t.Context(), "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("accepts when closed")
	}
}
