package storerpc_test

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
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
	srv := grpc.NewServer(storerpc.ServerGRPCOptions()...)
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

func newFleet(t *testing.T) *storerpc.Fleet {
	f := storerpc.NewFleet(func(addr string) (storerpc.Conn, error) {
		return grpc.NewClient(addr, append(storerpc.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	})
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// TestFleet: a shard that is killed comes back at its address while a call waits for it,
// then moves to another one.
func TestFleet(t *testing.T) {
	shards := map[string]store.Shard{"a": memory.New(memory.Options{}), "b": memory.New(memory.Options{})}
	f := newFleet(t)
	addrs, kills := map[string]string{}, map[string]func(){}
	for id, s := range shards {
		addrs[id], kills[id] = listen(t, s, "", storerpc.ServerOptions{})
		if err := f.Update([]storerpc.Member{{ID: id, Addr: addrs[id]}}); err != nil {
			t.Fatal(err)
		}
	}
	c, err := f.Client([]string{"b", "a"}, storerpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var values []store.Value
	var keys []store.Key
	for i := range 40 {
		k := store.Key{Job: "j", Step: uint32(i), Attempt: 1, Name: "v"}
		keys, values = append(keys, k), append(values, store.Value{Key: k, Data: bytes.Repeat([]byte{byte(i)}, 100)})
	}
	check := func(what string) {
		t.Helper()
		got, err := c.Get(t.Context(), keys)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for i, v := range values {
			if !bytes.Equal(got[i], v.Data) {
				t.Errorf("%s: value %d is %q", what, i, got[i])
			}
		}
	}
	if err := c.Put(t.Context(), values[:20]); err != nil {
		t.Fatal(err)
	}
	kills["a"]()
	impatient, err := f.Client([]string{"a", "b"}, storerpc.Options{Patience: -1})
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
	check("after a restart")
	kills["a"]()
	moved, _ := listen(t, shards["a"], "", storerpc.ServerOptions{})
	if err := f.Update([]storerpc.Member{{ID: "a", Addr: moved}, {ID: "b", Addr: addrs["b"], Down: true}}); err != nil {
		t.Fatal(err)
	}
	check("after a move")
	if got := f.Members(); len(got) != 2 || got[0] != (storerpc.Member{ID: "a", Addr: moved}) || !got[1].Down {
		t.Errorf("members: %+v", got)
	}
}

func TestFleetRefuses(t *testing.T) {
	f := newFleet(t)
	if _, err := f.Client([]string{"x"}, storerpc.Options{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("unknown shard: %v", err)
	}
	if err := f.Update([]storerpc.Member{{ID: "a b", Addr: "127.0.0.1:1"}}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("bad id: %v", err)
	}
	if err := f.Update([]storerpc.Member{{ID: "a", Addr: "127.0.0.1:1"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Client([]string{"a"}, storerpc.Options{Replicas: 2}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("more copies than shards: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Update(nil); !errors.Is(err, store.ErrClosed) {
		t.Errorf("update of a closed fleet: %v", err)
	}
	if _, err := f.Client([]string{"a"}, storerpc.Options{}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("client of a closed fleet: %v", err)
	}
}
