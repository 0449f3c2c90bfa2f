package cluster

import (
	"errors"
	"testing"

	taxonv1 "taxon/proto/taxon/v1"
	"taxon/store"
	"taxon/store/badger"
	"taxon/store/memory"
	"taxon/store/storerpc"
)

// A shard tells how many values it holds, what they take, and what room there is for more.
func TestHolding(t *testing.T) {
	disk, err := badger.Open(badger.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]store.Shard{"disk": disk, "memory": memory.New(memory.Options{MaxBytes: 1 << 20})} {
		h := &Holding{Shard: s}
		tell := func() *taxonv1.JoinStoreRequest {
			r := &taxonv1.JoinStoreRequest{}
			h.count(t.Context())
			h.Tell(t.Context(), r)
			return r
		}
		before := tell()
		if !before.GetEmpty() || before.GetValues() > 0 || before.GetFree() == 0 || before.GetReserve() == 0 {
			t.Errorf("%s: nothing is held: %v", name, before)
		}
		values := []store.Value{{Key: store.Key{Job: "j", Attempt: 1, Name: "a"}, Data: make([]byte, 1000)},
			{Key: store.Key{Job: "j", Attempt: 1, Name: "b"}, Data: make([]byte, 500)}}
		if err := s.Put(t.Context(), values); err != nil {
			t.Fatal(err)
		}
		after := tell()
		if after.GetEmpty() || after.GetValues() != 2 || after.GetBytes() < 1500 {
			t.Errorf("%s: two values are held: %v", name, after)
		}
		if name == "memory" && before.GetFree()-after.GetFree() != after.GetBytes() {
			t.Errorf("%s: %d bytes were free, %d are, %d are held", name, before.GetFree(), after.GetFree(), after.GetBytes())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		free, reserve uint64
		refuses       bool
	}{{0, 0, false}, {0, 1, true}, {99, 100, true}, {100, 100, false}} {
		if Refuses(&taxonv1.Shard{Free: c.free, Reserve: c.reserve}) != c.refuses {
			t.Errorf("%+v", c)
		}
	}
}

// A shard that has refused a value for lack of room says that it refuses writes, though more than
// its reserve is free, until it takes one again.
func TestFullShardSaysSo(t *testing.T) {
	shard := memory.New(memory.Options{MaxBytes: 1 << 20})
	service := storerpc.NewServer(shard)
	channel := storerpc.NewChannel()
	service.Register(channel)
	c, err := storerpc.New([]storerpc.Endpoint{{Name: "a", Conn: channel}}, storerpc.Options{Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	h := &Holding{Shard: shard, Refused: service.Refused}
	put := func(name string, size int) error {
		return c.Put(t.Context(), []store.Value{{Key: store.Key{Job: "j", Step: 1, Attempt: 1, Name: name},
			Data: make([]byte, size)}})
	}
	said := func(what string, refuses bool) {
		t.Helper()
		r := &taxonv1.JoinStoreRequest{}
		h.Tell(t.Context(), r)
		if got := Refuses(&taxonv1.Shard{Free: r.GetFree(), Reserve: r.GetReserve()}); got != refuses ||
			(h.Writable() != nil) != refuses {
			t.Errorf("%s: refuses writes %t: %v", what, got, h.Writable())
		}
	}
	said("empty", false)
	if err := put("a", 700<<10); err != nil {
		t.Fatal(err)
	}
	said("with room", false)
	if err := put("b", 600<<10); !errors.Is(err, store.ErrFull) {
		t.Fatal(err)
	}
	said("full", true)
	if err := put("c", 100<<10); err != nil {
		t.Fatal(err)
	}
	said("after a smaller one", false)
}
