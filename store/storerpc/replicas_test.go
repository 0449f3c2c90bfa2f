package storerpc_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taxon/store"
	"taxon/store/memory"
	"taxon/store/storerpc"
	"taxon/store/storetest"
)

// brittle is a connection to a shard that can be cut, and the shard behind it.
type brittle struct {
	t *testing.T

	mu    sync.Mutex
	conn  grpc.ClientConnInterface
	shard *memory.Store
	down  bool
	after func() bool
}

func newBrittle(t *testing.T) *brittle {
	b := &brittle{t: t}
	b.Wipe()
	return b
}

// reach gives the connection, or the error of a process that is not there.
func (b *brittle) reach() (grpc.ClientConnInterface, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down && b.after != nil && b.after() {
		b.down, b.after = false, nil
	}
	if b.down {
		return nil, status.Error(codes.Unavailable, "killed")
	}
	return b.conn, nil
}

func (b *brittle) Invoke(ctx context.Context, method string, args, reply any, o ...grpc.CallOption) error {
	conn, err := b.reach()
	if err != nil {
		return err
	}
	return conn.Invoke(ctx, method, args, reply, o...)
}

func (b *brittle) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string,
	o ...grpc.CallOption) (grpc.ClientStream, error) {
	conn, err := b.reach()
	if err != nil {
		return nil, err
	}
	return conn.NewStream(ctx, desc, method, o...)
}

func (b *brittle) set(down bool, after func() bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down, b.after = down, after
}

func (b *brittle) Stop()                   { b.set(true, nil) }
func (b *brittle) Start()                  { b.set(false, nil) }
func (b *brittle) Later(after func() bool) { b.set(true, after) }
func (b *brittle) Corrupt(k store.Key)     { data := b.Holds(k); data[len(data)/2] ^= 1 }

func (b *brittle) Holds(k store.Key) []byte {
	got, err := b.shard.Get(b.t.Context(), []store.Key{k})
	if errors.Is(err, store.ErrCorrupt) {
		return []byte("damaged")
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return got[0]
}

func (b *brittle) Wipe() {
	shard := memory.New(memory.Options{})
	conn := serve(b.t, shard)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn, b.shard = conn, shard
}

func newReplicated(t *testing.T, shards, copies int) (storetest.Replicated, *storerpc.Client) {
	r := storetest.Replicated{Copies: copies}
	var ends []storerpc.Endpoint
	for i := range shards {
		b := newBrittle(t)
		r.Shards = append(r.Shards, b)
		ends = append(ends, storerpc.Endpoint{Name: fmt.Sprintf("shard-%d", i), Conn: b})
	}
	open := func(patience time.Duration) *storerpc.Client {
		c, err := storerpc.New(ends, storerpc.Options{Replicas: copies, Patience: patience})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := open(-1)
	r.Store, r.Patient = c, open(time.Minute)
	r.Repair = func(i int) error {
		_, err := storerpc.Repair(t.Context(), c, fmt.Sprintf("shard-%d", i), storerpc.RepairOptions{})
		return err
	}
	return r, c
}

func TestReplicated(t *testing.T) {
	for _, n := range [][2]int{{2, 2}, {3, 2}, {5, 3}} {
		t.Run(fmt.Sprintf("%d shards %d copies", n[0], n[1]), func(t *testing.T) {
			storetest.RunReplicated(t, func(t *testing.T) storetest.Replicated {
				r, _ := newReplicated(t, n[0], n[1])
				return r
			})
		})
	}
}
