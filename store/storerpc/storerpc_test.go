package storerpc_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"taxon/store"
	"taxon/store/memory"
	"taxon/store/storerpc"
	"taxon/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is n memory shards behind a client, all in this process.
type cluster struct {
	*storerpc.Client
	shards []*memory.Store
}

// serve runs a gRPC server of one shard on an in-memory listener.
func serve(t testing.TB, shard store.Shard) *grpc.ClientConn {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	srv := grpc.NewServer()
	storerpc.NewServer(shard).Register(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		srv.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn
}

func newCluster(t testing.TB, n int) *cluster {
	t.Helper()
	c := &cluster{}
	var ends []storerpc.Endpoint
	for i := range n {
		shard := memory.New(memory.Options{})
		c.shards = append(c.shards, shard)
		ends = append(ends, storerpc.Endpoint{Name: fmt.Sprintf("shard-%d", i), Conn: serve(t, shard)})
	}
	var err error
	if c.Client, err = storerpc.NewClient(ends, store.Limits{}); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConformance(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprintf("%d shards", n), func(t *testing.T) {
			storetest.Run(t, storetest.Harness{
				New:       func(t *testing.T) store.Store { return newCluster(t, n) },
				Corrupt:   corrupt,
				BigBytes:  10 << 20,
				StaysOpen: true,
			})
		})
	}
}

// corrupt flips a bit in whichever shard holds the key.
func corrupt(t *testing.T, s store.Store, k store.Key) {
	found := 0
	for _, shard := range s.(*cluster).shards {
		got, err := shard.Get(t.Context(), []store.Key{k})
		if err != nil {
			t.Fatal(err)
		}
		if got[0] != nil {
			got[0][len(got[0])/2] ^= 1
			found++
		}
	}
	if found != 1 {
		t.Fatalf("%s lies in %d shards", k, found)
	}
}

// BenchmarkPutGetBufconn moves 100 MB in values of 1 MiB and of 16 KiB there and
// back; MB/s counts both ways.
func BenchmarkPutGetBufconn(b *testing.B) {
	for _, size := range []int{1 << 20, 64 << 10, 4 << 10} {
		b.Run(fmt.Sprintf("value=%dKiB", size>>10), func(b *testing.B) { benchmark(b, newCluster(b, 1), size) })
	}
}

func benchmark(b *testing.B, s store.Store, size int) {
	const total = 100 << 20
	data := make([]byte, total)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	values := make([]store.Value, total/size)
	keys := make([]store.Key, len(values))
	b.SetBytes(2 * total)
	b.ReportAllocs()
	step := uint32(0)
	for b.Loop() {
		step++
		for i := range values {
			keys[i] = store.Key{Job: "bench", Step: step, Task: uint32(i), Attempt: 1, Name: "v/0"}
			values[i] = store.Value{Key: keys[i], Data: data[i*size : (i+1)*size]}
		}
		if err := s.Put(b.Context(), values); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Get(b.Context(), keys); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Drop(b.Context(), store.DropSpec{Job: "bench", All: true}); err != nil {
			b.Fatal(err)
		}
	}
}
