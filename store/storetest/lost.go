package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"taxon/store"
)

// testLost checks that a reader of several values is told the names of all that are lost.
func testLost(t *testing.T, h Harness) {
	ctx, s := open(t, h)
	there := store.Value{Key: key(1, 1, 1, "v"), Data: noise(1, 900)}
	put(t, s, there)
	got, err := store.Need(ctx, s, []store.Key{there.Key, there.Key})
	if err != nil || len(got) != 2 || len(got[1]) != 900 {
		t.Errorf("need: %d values, %v", len(got), err)
	}
	a, b := key(1, 1, 2, "v"), key(7, 1, 1, "v")
	got, err = store.Need(ctx, s, []store.Key{a, there.Key, b})
	wantKeyError(t, err, store.ErrMissing, a)
	if lost := store.Lost(fmt.Errorf("around: %w", err)); got != nil || !slices.Equal(lost, []store.Key{a, b}) {
		t.Errorf("lost: %v", lost)
	}
	h.Corrupt(t, s, there.Key)
	_, err = store.Need(ctx, s, []store.Key{there.Key})
	wantKeyError(t, err, store.ErrCorrupt, there.Key)
	if lost := store.Lost(err); !slices.Equal(lost, []store.Key{there.Key}) {
		t.Errorf("lost: %v", lost)
	}
	_, err = s.Get(ctx, []store.Key{{Job: "a b"}})
	if lost := store.Lost(err); lost != nil || err == nil {
		t.Errorf("a bad request tells %v to be lost", lost)
	}
}

// testHeal checks that a Put of the right bytes heals a damaged value, and that other bytes do not.
func testHeal(t *testing.T, h Harness) {
	for _, n := range []int{1, 700, 3<<20 + 1} {
		ctx, s := open(t, h)
		v := store.Value{Key: key(1, 1, 1, "v"), Data: noise(5, n)}
		put(t, s, v)
		h.Corrupt(t, s, v.Key)
		err := s.Put(ctx, []store.Value{{Key: v.Key, Data: noise(6, n+1)}})
		wantKeyError(t, err, store.ErrConflict, v.Key)
		_, err = s.Get(ctx, []store.Key{v.Key})
		wantKeyError(t, err, store.ErrCorrupt, v.Key)
		v.Data = noise(5, n) // the store may keep what was put, damage and all
		put(t, s, v)
		want(t, s, v)
		put(t, s, v)
		if got := list(t, ctx, s, ""); len(got) != 1 || got[0].CRC32C != store.Checksum(v.Data) {
			t.Errorf("listed after healing: %+v", got)
		}
	}
}

// testFull checks that a full store says so, keeps what it has acknowledged, and goes on when there
// is room.
func testFull(t *testing.T, h Harness) {
	if h.Full == nil {
		t.Skip("this store is not bounded here")
	}
	s, makeRoom := h.Full(t)
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	var there []store.Value
	var err error
	for i := range 4096 {
		v := store.Value{Key: key(1+uint32(i%2), uint32(i), 1, "v"), Data: noise(uint64(i), 64<<10)}
		if err = s.Put(t.Context(), []store.Value{v}); err != nil {
			break
		}
		if i%2 == 1 || len(there) == 0 {
			there = append(there, v)
		}
	}
	if !errors.Is(err, store.ErrFull) {
		t.Fatalf("256 MiB fit, or fail with %v", err)
	}
	want(t, s, there...)
	makeRoom()
	if _, err := s.Drop(t.Context(), store.DropSpec{Job: "job-1", Before: 2}); err != nil {
		t.Fatal(err)
	}
	later := store.Value{Key: key(3, 1, 1, "later"), Data: noise(1, 64<<10)}
	put(t, s, later)
	want(t, s, append(there[1:], later)...)
}
