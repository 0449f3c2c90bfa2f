package storerpc_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
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
	ends   []storerpc.Endpoint
	copies int // 0: one
}

// serve runs a gRPC server of one shard on an in-memory listener.
func serve(t testing.TB, shard store.Shard) *grpc.ClientConn {
	t.Helper()
	return serveService(t, storerpc.NewServer(shard).Register)
}

func serveService(t testing.TB, register func(grpc.ServiceRegistrar)) *grpc.ClientConn {
	t.Helper()
	lis := bufconn.Listen(1 << 20)
	srv := grpc.NewServer()
	register(srv)
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
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // stopped before it began is well
			t.Error(err)
		}
	})
	return conn
}

func newCluster(t testing.TB, n int) *cluster { return newBounded(t, n, 0) }

// full is a cluster of 1 MiB a shard.
func full(t *testing.T) (store.Store, func()) { return newBounded(t, 3, 1<<20), func() {} }

func newBounded(t testing.TB, n int, maxBytes uint64) *cluster {
	t.Helper()
	c := &cluster{}
	var ends []storerpc.Endpoint
	for i := range n {
		shard := memory.New(memory.Options{MaxBytes: maxBytes})
		c.shards = append(c.shards, shard)
		ends = append(ends, storerpc.Endpoint{Name: fmt.Sprintf("shard-%d", i), Conn: serve(t, shard)})
	}
	c.ends = ends
	var err error
	if c.Client, err = storerpc.NewClient(ends, store.Limits{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// newEmbedded is newCluster over the in-process transport.
func newEmbedded(t testing.TB, n int) *cluster {
	t.Helper()
	c := &cluster{}
	var shards []store.Shard
	for range n {
		shard := memory.New(memory.Options{})
		c.shards = append(c.shards, shard)
		shards = append(shards, shard)
	}
	var err error
	if c.Client, err = storerpc.Embedded(shards, store.Limits{}); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConformanceEmbedded(t *testing.T) {
	for _, n := range []int{1, 5} {
		t.Run(fmt.Sprintf("%d shards", n), func(t *testing.T) {
			storetest.Run(t, storetest.Harness{
				New:       func(t *testing.T) store.Store { return newEmbedded(t, n) },
				Corrupt:   corrupt,
				BigBytes:  20 << 20,
				StaysOpen: true,
			})
		})
	}
}

func TestConformance(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		t.Run(fmt.Sprintf("%d shards", n), func(t *testing.T) {
			storetest.Run(t, storetest.Harness{
				New:       func(t *testing.T) store.Store { return newCluster(t, n) },
				Corrupt:   corrupt,
				BigBytes:  4<<20 - 5,
				Full:      full,
				StaysOpen: true,
			})
		})
	}
}

// TestConformanceReplicas: with copies a store keeps to the same rules.
func TestConformanceReplicas(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		New: func(t *testing.T) store.Store {
			c := newCluster(t, 3)
			var err error
			if c.Client, err = storerpc.New(c.ends, storerpc.Options{Replicas: 2, Patience: -1}); err != nil {
				t.Fatal(err)
			}
			c.copies = 2
			return c
		},
		Corrupt:   corrupt,
		BigBytes:  4<<20 - 5,
		Copies:    true,
		StaysOpen: true,
	})
}

// corrupt flips a bit in whichever shards hold the key.
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
	if found != max(s.(*cluster).copies, 1) {
		t.Fatalf("%s lies in %d shards", k, found)
	}
}

// The benchmarks move 100 MiB in values of one size to one shard and back; MB/s
// counts both ways.
func BenchmarkPutGetBufconn(b *testing.B) {
	bySize(b, func(b *testing.B) store.Store { return newCluster(b, 1) })
}

func BenchmarkPutGetEmbedded(b *testing.B) {
	bySize(b, func(b *testing.B) store.Store { return newEmbedded(b, 1) })
}

// TestManyKeys asks for more keys than a gRPC message of the default limit can name.
func TestManyKeys(t *testing.T) {
	c := newCluster(t, 1)
	keys := make([]store.Key, 50_000)
	var values []store.Value
	for i := range keys {
		keys[i] = store.Key{Job: strings.Repeat("j", store.MaxJobBytes), Task: uint32(i), Attempt: 1,
			Name: strings.Repeat("n", store.MaxNameBytes)}
		if i%1000 == 999 {
			values = append(values, store.Value{Key: keys[i], Data: fmt.Append(nil, i)})
		}
	}
	if err := c.Put(t.Context(), values); err != nil {
		t.Fatal(err)
	}
	got, err := c.Get(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	for i, data := range got {
		if want := fmt.Sprint(i); i%1000 == 999 && string(data) != want || i%1000 != 999 && data != nil {
			t.Fatalf("value %d is %q", i, data)
		}
	}
}

// BenchmarkPutGetDirect is the shard without any transport.
func BenchmarkPutGetDirect(b *testing.B) {
	bySize(b, func(b *testing.B) store.Store { return memory.New(memory.Options{}) })
}

func bySize(b *testing.B, open func(b *testing.B) store.Store) {
	for _, size := range []int{4 << 20, 1 << 20, 64 << 10, 4 << 10} {
		b.Run(fmt.Sprintf("value=%dKiB", size>>10), func(b *testing.B) { benchmark(b, open(b), size) })
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
