package storerpc_test

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/storerpc"
)

// endless is a shard in which every key has a value, the same, and that counts its
// readers. (Were each made anew, what is garbage when the collector runs would be counted.)
type endless struct {
	store.Shard
	data          []byte
	readers, most atomic.Int32
}

func (e *endless) Limits() store.Limits { return store.Limits{}.WithDefaults() }

func (e *endless) Read(ctx context.Context, keys []store.Key, yield func(int, store.Checksummed) error) error {
	n := e.readers.Add(1)
	defer e.readers.Add(-1)
	for most := e.most.Load(); n > most && !e.most.CompareAndSwap(most, n); most = e.most.Load() {
	}
	for i, k := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := yield(i, store.Sum(store.Value{Key: k, Data: e.data})); err != nil {
			return err
		}
	}
	return nil
}

// PutChecksummed takes whatever it is given.
func (e *endless) PutChecksummed(context.Context, []store.Checksummed) error { return nil }

// TestExportMemory: many clients read very much at once, a client reads slowly, and one
// not at all: server and transport stay within what ServerOptions say.
func TestExportMemory(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	const streams, clients, size = 6, 24, 1 << 20
	values := 4 // of each client: 96 MiB in all
	if os.Getenv("TAXON_TEST_MEMORY") != "" {
		values = 64
	}
	shard := &endless{data: make([]byte, size)}
	addr, _ := listen(t, shard, "", storerpc.ServerOptions{Streams: streams})
	before := liveHeap()
	var keys []*taxonv1.Key
	for i := range values {
		keys = append(keys, &taxonv1.Key{Job: "j", Step: uint32(i), Attempt: 1, Name: "v"})
	}
	var peak atomic.Uint64
	var bytes atomic.Uint64
	var wg sync.WaitGroup
	for i := range clients {
		conn := dial(t, addr)
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream, err := taxonv1.NewStoreClient(conn).Get(ctx, &taxonv1.GetRequest{Keys: keys})
			if err != nil {
				t.Error(err)
				return
			}
			for n := 0; ; n++ {
				message, err := stream.Recv()
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, c := range message.Chunks {
					bytes.Add(uint64(len(c.Data)))
				}
				for h, p := liveHeap(), peak.Load(); h > p && !peak.CompareAndSwap(p, h); p = peak.Load() {
				}
				if i%8 == 0 && n == 1 {
					return // gives up in the middle
				}
			}
		})
	}
	wg.Wait()
	if n := shard.most.Load(); n > streams || n < 2 {
		t.Errorf("%d streams were served at a time, must be 2 to %d", n, streams)
	}
	// Beside the server there are the clients: a message and its raw form each.
	bound := uint64(streams*storerpc.StreamBytes + clients*3*size)
	t.Logf("%d MiB read; %d MiB held at most", bytes.Load()>>20, (peak.Load()-before)>>20)
	if peak.Load() > before+bound {
		t.Errorf("%d MiB are held, the bound is %d", (peak.Load()-before)>>20, bound>>20)
	}
}

// TestStalledStreams: clients that begin and then do nothing lose their slots.
func TestStalledStreams(t *testing.T) {
	addr, _ := listen(t, &endless{data: make([]byte, 1<<20)}, "", storerpc.ServerOptions{Streams: 2,
		Stall: 50 * time.Millisecond})
	conn := dial(t, addr)
	client := taxonv1.NewStoreClient(conn)
	key := &taxonv1.Key{Job: "j", Attempt: 1, Name: "v"}
	var keys []*taxonv1.Key
	for range 20 {
		keys = append(keys, key)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	put, err := client.Put(ctx) // sends nothing
	if err != nil {
		t.Fatal(err)
	}
	get, err := client.Get(ctx, &taxonv1.GetRequest{Keys: keys}) // reads nothing
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		other, err := client.Get(ctx, &taxonv1.GetRequest{Keys: keys[:1]})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Recv(); err != nil {
			t.Errorf("a stream beside stalled ones: %v", err)
		}
		if _, err := other.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("its end: %v", err)
		}
	}
	// How soon the server looks depends on how busy the machine is.
	for idle := 100 * time.Millisecond; ; idle *= 2 {
		if _, err = put.CloseAndRecv(); status.Code(err) == codes.Unavailable {
			break
		}
		if err != nil || idle > 20*time.Second {
			t.Fatalf("put: %v", err)
		}
		if put, err = client.Put(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(idle)
	}
	for idle := 100 * time.Millisecond; ; idle *= 2 {
		time.Sleep(idle)
		for err = nil; err == nil; {
			_, err = get.Recv()
		}
		if status.Code(err) == codes.Unavailable {
			break
		}
		if !errors.Is(err, io.EOF) || idle > 20*time.Second {
			t.Fatalf("get: %v", err)
		}
		if get, err = client.Get(ctx, &taxonv1.GetRequest{Keys: keys}); err != nil {
			t.Fatal(err)
		}
	}
}

func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
