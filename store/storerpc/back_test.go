package storerpc_test

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"taxon/store"
	"taxon/store/memory"
	"taxon/store/storerpc"
)

// listen runs a shard's server on a port of this machine; "": any. The address and what
// kills it.
func listen(t *testing.T, shard store.Shard, addr string, o storerpc.ServerOptions) (string, func()) {
	t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(storerpc.BulkServerOptions()...)
	storerpc.NewServerWith(shard, o).Register(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	dead := false
	kill := func() {
		if dead {
			return
		}
		dead = true
		srv.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // stopped before it began is well
			t.Error(err)
		}
	}
	t.Cleanup(kill)
	return lis.Addr().String(), kill
}

// dial connects to a shard's server, and looks often whether one that is gone is back.
func dial(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, append(storerpc.BulkDialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 20 * time.Second,
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, MaxDelay: time.Second}}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// TestComesBack: a shard that is killed comes back at its address while a call waits for it.
func TestComesBack(t *testing.T) {
	shards := map[string]store.Shard{"a": memory.New(memory.Options{}), "b": memory.New(memory.Options{})}
	addrs, kills := map[string]string{}, map[string]func(){}
	var ends []storerpc.Endpoint
	for id, s := range shards {
		addrs[id], kills[id] = listen(t, s, "", storerpc.ServerOptions{})
		ends = append(ends, storerpc.Endpoint{Name: id, Conn: dial(t, addrs[id])})
	}
	c, err := storerpc.New(ends, storerpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var values []store.Value
	var keys []store.Key
	for i := range 40 {
		k := store.Key{Job: "j", Step: uint32(i), Attempt: 1, Name: "v"}
		keys, values = append(keys, k), append(values, store.Value{Key: k, Data: bytes.Repeat([]byte{byte(i)}, 100)})
	}
	if err := c.Put(t.Context(), values[:20]); err != nil {
		t.Fatal(err)
	}
	kills["a"]()
	impatient, err := storerpc.New(ends, storerpc.Options{Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := impatient.Get(t.Context(), keys); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("while a shard is dead: %v", err)
	}
	put := make(chan error, 1)
	go func() { put <- c.Put(t.Context(), values) }()
	time.Sleep(100 * time.Millisecond) // most likely it waits now; it must succeed either way
	_, kills["a"] = listen(t, shards["a"], addrs["a"], storerpc.ServerOptions{})
	if err := <-put; err != nil {
		t.Fatal(err)
	}
	got, err := c.Get(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		if !bytes.Equal(got[i], v.Data) {
			t.Errorf("value %d is %q", i, got[i])
		}
	}
}
