package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"taxon/store"
)

// Replicated is a store that keeps several copies of each value on shards that the
// suite can break.
type Replicated struct {
	Store store.Store
	// Patient waits long enough for a shard that a test starts again at once.
	Patient store.Store
	Shards  []Breakable
	Copies  int
	// Repair brings a shard up to date.
	Repair func(shard int) error
}

// Breakable is a shard that a test can stop, wipe and damage.
type Breakable interface {
	// Stop makes calls end as if the shard's process were killed.
	Stop()
	// Start brings the shard back with the values that it had.
	Start()
	// Wipe replaces the shard by an empty one.
	Wipe()
	// Holds returns the shard's copy: nil if there is none, other bytes if it is damaged.
	Holds(k store.Key) []byte
	// Corrupt flips a bit of the shard's copy.
	Corrupt(k store.Key)
	// Later calls Start as soon as after returns true.
	Later(after func() (ok bool))
}

// RunReplicated runs the suite of stores that keep copies: at least 2 of each value, on
// more shards than that.
func RunReplicated(t *testing.T, open func(t *testing.T) Replicated) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, r Replicated)
	}{
		{"copies", testCopies},
		{"any shard may be away", testShardAway},
		{"too many away", testTooManyAway},
		{"heal on read", testHealOnRead},
		{"lost only if all copies are", testAllCopiesBad},
		{"repair after an absence", testRepairBehind},
		{"repair of an empty shard", testRepairEmpty},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func manyValues(step uint32, n int) []store.Value {
	var out []store.Value
	for i := range n {
		out = append(out, store.Value{Key: key(step, uint32(i), 1, fmt.Sprintf("v/%d", i%5)),
			Data: noise(uint64(i)+100*uint64(step), i*i)})
	}
	return out
}

// count returns the number of intact copies of a value.
func (r Replicated) count(v store.Value) int {
	n := 0
	for _, s := range r.Shards {
		if got := s.Holds(v.Key); got != nil && bytes.Equal(got, v.Data) {
			n++
		}
	}
	return n
}

func (r Replicated) wantCopies(t *testing.T, values ...store.Value) {
	t.Helper()
	for _, v := range values {
		if n := r.count(v); n != r.Copies {
			t.Errorf("%s has %d copies, must be %d", v.Key, n, r.Copies)
		}
	}
}

func keysOf(values []store.Value) []store.Key {
	var out []store.Key
	for _, v := range values {
		out = append(out, v.Key)
	}
	return out
}

func testCopies(t *testing.T, r Replicated) {
	values := manyValues(1, 60)
	put(t, r.Store, values...)
	r.wantCopies(t, values...)
	want(t, r.Store, values...)
	if got := list(t, t.Context(), r.Store, ""); len(got) != len(values) {
		t.Errorf("%d values listed, must be %d", len(got), len(values))
	}
}

func testShardAway(t *testing.T, r Replicated) {
	for i, s := range r.Shards {
		before, meanwhile := manyValues(uint32(2*i), 40), manyValues(uint32(2*i+1), 40)
		put(t, r.Store, before...)
		s.Stop()
		want(t, r.Store, before...)
		wantMissing := key(99, 1, 1, "no")
		_, err := r.Store.Get(t.Context(), []store.Key{wantMissing})
		if err != nil && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a missing value: %v", err)
		}
		put(t, r.Store, meanwhile...)
		want(t, r.Store, meanwhile...)
		if err := r.Store.Commit(t.Context(), "job-1", uint32(2*i), make([]uint32, 40)); err != nil {
			t.Errorf("commit: %v", err)
		}
		if _, err := r.Store.Drop(t.Context(), store.DropSpec{Job: "job-1", Before: uint32(2*i + 1)}); err != nil {
			t.Errorf("drop: %v", err)
		}
		if got := list(t, t.Context(), r.Store, ""); len(got) != len(meanwhile) {
			t.Errorf("%d values listed, must be %d", len(got), len(meanwhile))
		}
		s.Start()
		want(t, r.Store, meanwhile...)
		if err := r.Repair(i); err != nil {
			t.Fatal(err)
		}
		r.wantCopies(t, meanwhile...)
		if _, err := r.Store.Drop(t.Context(), store.DropSpec{Job: "job-1", All: true}); err != nil {
			t.Fatal(err)
		}
	}
}

// testTooManyAway checks that calls which need shards that are away fail with an error that says to
// wait, and that they succeed after waiting.
func testTooManyAway(t *testing.T, r Replicated) {
	values := manyValues(1, 60)
	put(t, r.Store, values...)
	for _, s := range r.Shards {
		s.Stop()
	}
	_, err := r.Store.Get(t.Context(), keysOf(values))
	wantError(t, err, store.ErrUnavailable)
	if store.Lost(err) != nil {
		t.Errorf("values on shards that are away are told to be lost: %v", err)
	}
	more := manyValues(2, 60)
	wantError(t, r.Store.Put(t.Context(), more), store.ErrUnavailable)
	wantError(t, r.Store.Commit(t.Context(), "job-1", 1, nil), store.ErrUnavailable)
	wantError(t, r.Store.List(t.Context(), "", func(store.Info) error { return nil }), store.ErrUnavailable)
	var tries atomic.Int32
	for _, s := range r.Shards {
		s.Later(func() bool { return tries.Add(1) > 8 })
	}
	put(t, r.Patient, more...)
	want(t, r.Patient, values...)
	want(t, r.Patient, more...)
}

func testHealOnRead(t *testing.T, r Replicated) {
	values := manyValues(1, 60)[1:] // an empty value can't be damaged
	put(t, r.Store, values...)
	for i, v := range values {
		for j := range r.Shards {
			if s := r.Shards[(i+j)%len(r.Shards)]; s.Holds(v.Key) != nil {
				s.Corrupt(v.Key)
				break
			}
		}
		if n := r.count(v); n != r.Copies-1 {
			t.Fatalf("%s has %d whole copies", v.Key, n)
		}
	}
	// A damaged first copy is found and healed; a damaged later one is not looked at.
	want(t, r.Store, values...)
	healed := 0
	for _, v := range values {
		if r.count(v) == r.Copies {
			healed++
		}
	}
	if healed == 0 {
		t.Error("no copy was healed")
	}
}

func testAllCopiesBad(t *testing.T, r Replicated) {
	values := manyValues(1, 20)[1:]
	put(t, r.Store, values...)
	bad := values[7]
	for _, s := range r.Shards {
		if s.Holds(bad.Key) != nil {
			s.Corrupt(bad.Key)
		}
	}
	_, err := r.Store.Get(t.Context(), keysOf(values))
	wantKeyError(t, err, store.ErrCorrupt, bad.Key)
	if lost := store.Lost(err); len(lost) != 1 {
		t.Errorf("lost: %v", lost)
	}
	bad.Data = noise(108, 64)
	put(t, r.Store, bad)
	want(t, r.Store, values...)
}

func testRepairBehind(t *testing.T, r Replicated) {
	early, late := manyValues(1, 50), manyValues(2, 50)
	put(t, r.Store, early...)
	r.Shards[1].Stop()
	put(t, r.Store, late...)
	r.Shards[1].Start()
	for range 2 { // idempotent
		if err := r.Repair(1); err != nil {
			t.Fatal(err)
		}
		r.wantCopies(t, early...)
		r.wantCopies(t, late...)
	}
}

func testRepairEmpty(t *testing.T, r Replicated) {
	values := append(manyValues(1, 50), store.Value{Key: key(2, 1, 1, "big"), Data: noise(1, 5<<20)})
	put(t, r.Store, values...)
	for i, s := range r.Shards {
		s.Wipe()
		if err := r.Repair(i); err != nil {
			t.Fatal(err)
		}
		r.wantCopies(t, values...)
	}
	want(t, r.Store, values...)
}
