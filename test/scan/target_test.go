// Package scan attacks the services of a coordinator and a store shard over real connections:
// random bytes, foreign protocols, frames that are too large, arbitrary messages in any field to
// every method, and a worker that lies. Nothing may crash, hang or grow without bound; and if
// identities are required, a stranger gets no answer but health. Handlers run in the test's
// process, so that a panic in one fails the test.
package scan

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"taxon/coordinator"
	"taxon/coordinator/machine"
	"taxon/internal/cluster"
	"taxon/internal/cluster/metrics"
	"taxon/internal/cluster/secure"
	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store/memory"
	"taxon/store/storerpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noStore is the coordinator's view of a store that accepts everything.
type noStore struct{}

func (noStore) Commit(context.Context, string, uint32, []uint32) error { return nil }
func (noStore) Drop(context.Context, string, []uint32, uint32) error   { return nil }

// target is a server with all services of taxon, set up as in its processes.
type target struct {
	addr    string
	methods []method
}

// method is a method of a registered service.
type method struct {
	full                 string // "/package.service/name"
	fromClient, toClient bool   // whether the directions are streams
}

// dataOf is the command's own: it reads the description of a restored job's data from its state.
func dataOf(state []byte) (string, *taxonv1.Data, error) {
	s, err := machine.ReadState(state)
	if err != nil {
		return "", nil, err
	}
	return s.Job, s.Spec.GetData(), nil
}

func start(t *testing.T, o secure.Options) *target {
	t.Helper()
	opts, err := o.ServerOptions(secure.DefaultPolicy())
	if err != nil {
		t.Fatal(err)
	}
	l, err := o.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := coordinator.NewServer(coordinator.Config{Store: noStore{}, Failed: func(err error) { t.Log(err) }})
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(append(opts, metrics.NewProcess("coordinator", "test").GRPC()...)...)
	c.Register(cluster.Guard(s, cluster.Rules{Roots: cluster.Roots{t.TempDir()}, DataOf: dataOf}))
	shard := memory.New(memory.Options{MaxBytes: 64 << 20})
	storerpc.NewServer(shard).Register(s)
	secure.Register(s)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		<-done
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := shard.Close(); err != nil {
			t.Error(err)
		}
	})
	out := &target{addr: l.Addr().String()}
	for service, info := range s.GetServiceInfo() {
		for _, m := range info.Methods {
			out.methods = append(out.methods, method{"/" + service + "/" + m.Name, m.IsClientStream, m.IsServerStream})
		}
	}
	slices.SortFunc(out.methods, func(a, b method) int { return strings.Compare(a.full, b.full) })
	if len(out.methods) < 25 {
		t.Fatalf("found %d methods only", len(out.methods))
	}
	return out
}

func dial(t *testing.T, o secure.Options, addr string) *grpc.ClientConn {
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

// alive checks that the server still answers.
func alive(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatalf("it no longer answers: %v", err)
	}
}

// raw is a message that holds its own encoding.
type raw struct{ data []byte }

// rawCodec sends raw messages unchanged.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) { return v.(*raw).data, nil }
func (rawCodec) Unmarshal(data []byte, v any) error {
	v.(*raw).data = slices.Clone(data)
	return nil
}
func (rawCodec) Name() string { return "proto" }

// call sends messages to a method and returns the final status code. It waits at most for patience.
func call(t *testing.T, conn *grpc.ClientConn, m method, patience time.Duration, messages ...[]byte) codes.Code {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, m.full,
		grpc.ForceCodec(rawCodec{}))
	if err != nil {
		return status.Code(err)
	}
	for _, data := range messages {
		if stream.SendMsg(&raw{data}) != nil {
			break // RecvMsg returns the reason
		}
	}
	_ = stream.CloseSend()
	for range 1000 {
		if err := stream.RecvMsg(&raw{}); err != nil {
			return status.Code(err) // the code of io.EOF, the regular end, is Unknown
		}
	}
	return codes.OK
}

// seeded returns the source of a test's inputs, so that a failure can be reproduced.
func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 1)) }
