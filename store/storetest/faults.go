package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"taxon/store"
)

func testCancel(t *testing.T, h Harness) {
	_, s := open(t, h)
	v := store.Value{Key: key(1, 1, 1, "v"), Data: noise(1, 100)}
	put(t, s, v)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, s.Put(ctx, []store.Value{{Key: key(1, 2, 1, "v")}}), context.Canceled)
	_, err := s.Get(ctx, []store.Key{v.Key})
	wantError(t, err, context.Canceled)
	wantError(t, s.Commit(ctx, "job-1", 1, nil), context.Canceled)
	_, err = s.Drop(ctx, store.DropSpec{Job: "job-1", All: true})
	wantError(t, err, context.Canceled)
	wantError(t, s.List(ctx, "", func(store.Info) error { return nil }), context.Canceled)
	want(t, s, v)
	wantMissing(t, s, key(1, 2, 1, "v"))
	// A deadline in the past is told apart from a cancellation.
	late, cancelLate := context.WithTimeout(t.Context(), 0)
	defer cancelLate()
	_, err = s.Get(late, []store.Key{v.Key})
	wantError(t, err, context.DeadlineExceeded)
}

// testConcurrent lets writers race for the same keys. Writers of equal bytes must all succeed. Of
// writers with different bytes exactly one may win, and readers must see its bytes or nothing.
func testConcurrent(t *testing.T, h Harness) {
	ctx, s := open(t, h)
	const writers, keys = 6, 25
	var wins [keys]sync.Map
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range keys {
				same := store.Value{Key: key(1, uint32(i), 1, "same"), Data: noise(uint64(i), 2000)}
				if err := s.Put(ctx, []store.Value{same}); err != nil {
					t.Errorf("same bytes: %v", err)
				}
				k := key(2, uint32(i), 1, "race")
				err := s.Put(ctx, []store.Value{{Key: k, Data: fmt.Appendf(nil, "writer %d", w)}})
				if err == nil {
					wins[i].Store(w, true)
				} else if !errors.Is(err, store.ErrConflict) {
					t.Errorf("race: %v", err)
				}
				if _, err := s.Get(ctx, []store.Key{same.Key, k, key(1, uint32(i+1), 1, "same")}); err != nil {
					t.Errorf("get: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for i := range keys {
		n, winner := 0, 0
		wins[i].Range(func(w, _ any) bool { n++; winner = w.(int); return true })
		if n == 0 && h.Copies {
			want(t, s, store.Value{Key: key(1, uint32(i), 1, "same"), Data: noise(uint64(i), 2000)})
			continue
		}
		if n != 1 {
			t.Fatalf("key %d has %d winners", i, n)
		}
		want(t, s, store.Value{Key: key(2, uint32(i), 1, "race"), Data: fmt.Appendf(nil, "writer %d", winner)},
			store.Value{Key: key(1, uint32(i), 1, "same"), Data: noise(uint64(i), 2000)})
	}
}

// testConcurrentDrops deletes old steps while new ones are written and read.
func testConcurrentDrops(t *testing.T, h Harness) {
	ctx, s := open(t, h)
	const steps, tasks = 12, 4
	var wg sync.WaitGroup
	for step := uint32(1); step <= steps; step++ {
		for task := range uint32(tasks) {
			wg.Go(func() {
				for attempt := uint32(1); attempt <= 2; attempt++ {
					v := store.Value{Key: key(step, task, attempt, "v"), Data: noise(uint64(step), 3000)}
					if err := s.Put(ctx, []store.Value{v}); err != nil {
						t.Errorf("put: %v", err)
					}
				}
			})
		}
		wg.Go(func() {
			if step < 3 {
				return
			}
			if _, err := s.Drop(ctx, store.DropSpec{Job: "job-1", Before: step - 2}); err != nil {
				t.Errorf("drop: %v", err)
			}
		})
		wg.Wait()
		if err := s.Commit(ctx, "job-1", step, []uint32{1, 2, 1, 2}); err != nil {
			t.Fatalf("commit: %v", err)
		}
	}
	if _, err := s.Drop(ctx, store.DropSpec{Job: "job-1", Before: steps}); err != nil {
		t.Fatal(err)
	}
	if got := list(t, ctx, s, ""); len(got) != tasks {
		t.Errorf("%d values are left, must be %d", len(got), tasks)
	}
	for task := range uint32(tasks) {
		want(t, s, store.Value{Key: key(steps, task, 1+task%2, "v"), Data: noise(steps, 3000)})
	}
}

func testClose(t *testing.T, h Harness) {
	if h.StaysOpen {
		t.Skip("closing this store ends nothing")
	}
	ctx, s := open(t, h)
	put(t, s, store.Value{Key: key(1, 1, 1, "v")})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, s.Put(ctx, []store.Value{{Key: key(1, 1, 1, "w")}}), store.ErrClosed)
	_, err := s.Get(ctx, []store.Key{key(1, 1, 1, "v")})
	wantError(t, err, store.ErrClosed)
	wantError(t, s.Commit(ctx, "job-1", 1, nil), store.ErrClosed)
	_, err = s.Drop(ctx, store.DropSpec{Job: "job-1", All: true})
	wantError(t, err, store.ErrClosed)
	wantError(t, s.List(ctx, "", func(store.Info) error { return nil }), store.ErrClosed)
}

// durable fills a store with values that must survive, and drops others.
func durable(t *testing.T, s store.Store) (there []store.Value, gone []store.Key) {
	t.Helper()
	for i := range 30 {
		step := uint32(1 + i%3)
		v := store.Value{Key: key(step, uint32(i), 1, "v"), Data: noise(uint64(i), i*i*900)}
		put(t, s, v)
		if step == 1 {
			gone = append(gone, v.Key)
		} else {
			there = append(there, v)
		}
	}
	if _, err := s.Drop(t.Context(), store.DropSpec{Job: "job-1", Before: 2}); err != nil {
		t.Fatal(err)
	}
	return there, gone
}

func testReopen(t *testing.T, h Harness) {
	if h.Reopen == nil {
		t.Skip("volatile")
	}
	s := h.New(t)
	there, gone := durable(t, s)
	for range 2 {
		s = h.Reopen(t, s)
		want(t, s, there...)
		wantMissing(t, s, gone...)
		err := s.Put(t.Context(), []store.Value{{Key: there[0].Key, Data: []byte("other")}})
		wantKeyError(t, err, store.ErrConflict, there[0].Key)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// testCrash checks that acknowledged values survive a crash.
func testCrash(t *testing.T, h Harness) {
	if h.Crash == nil {
		t.Skip("volatile")
	}
	_, s := open(t, h)
	there, gone := durable(t, s)
	after := h.Crash(t, s)
	want(t, after, there...)
	wantMissing(t, after, gone...)
	put(t, after, store.Value{Key: key(9, 9, 9, "later"), Data: []byte("x")})
	again := h.Crash(t, after)
	want(t, again, append(there, store.Value{Key: key(9, 9, 9, "later"), Data: []byte("x")})...)
	for _, c := range []store.Store{after, again} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
