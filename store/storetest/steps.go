package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"taxon/store"
)

func testCommit(t *testing.T, h Harness) {
	ctx, s := open(t, h)
	value := func(step, task, attempt uint32) store.Value {
		return store.Value{Key: key(step, task, attempt, "v/0"), Data: fmt.Appendf(nil, "%d/%d/%d", step, task, attempt)}
	}
	for step := uint32(1); step <= 2; step++ {
		for task := uint32(0); task < 4; task++ {
			for attempt := uint32(1); attempt <= 3; attempt++ {
				put(t, s, value(step, task, attempt))
			}
		}
	}
	other := value(1, 0, 1)
	other.Key.Job = "job-2"
	put(t, s, other)
	for range 2 { // idempotent
		if err := s.Commit(ctx, "job-1", 1, []uint32{2, 0, 3}); err != nil {
			t.Fatal(err)
		}
		want(t, s, value(1, 0, 2), value(1, 2, 3), other)
		wantMissing(t, s, key(1, 0, 1, "v/0"), key(1, 0, 3, "v/0"), key(1, 1, 1, "v/0"), key(1, 1, 3, "v/0"),
			key(1, 2, 1, "v/0"), key(1, 2, 2, "v/0"), key(1, 3, 1, "v/0"))
		for task := uint32(0); task < 4; task++ {
			want(t, s, value(2, task, 1), value(2, task, 2), value(2, task, 3))
		}
	}
	if n := len(list(t, ctx, s, "job-1")); n != 2+12 {
		t.Errorf("%d values listed after commit, must be 14", n)
	}
	// A late attempt may write; it is another key and goes with its step.
	put(t, s, value(1, 0, 1))
	want(t, s, value(1, 0, 2), value(1, 0, 1))
	if err := s.Commit(ctx, "nobody", 7, []uint32{1}); err != nil {
		t.Errorf("commit of an empty step: %v", err)
	}
}

func testDrop(t *testing.T, h Harness) {
	ctx, s := open(t, h)
	value := func(job string, step uint32) store.Value {
		k := key(step, 1, 1, "v")
		k.Job = job
		return store.Value{Key: k, Data: fmt.Appendf(nil, "%s/%d", job, step)}
	}
	steps := []uint32{1, 2, 3, 4, 255, 256, 257, 1 << 20}
	for _, job := range []string{"a", "ab", "b"} {
		for _, n := range steps {
			put(t, s, value(job, n))
		}
	}
	drop := func(d store.DropSpec, count uint64) {
		t.Helper()
		n, err := s.Drop(ctx, d)
		if err != nil || n != count {
			t.Errorf("drop %+v: %d values, %v; must be %d", d, n, err, count)
		}
	}
	drop(store.DropSpec{Job: "a"}, 0)
	drop(store.DropSpec{Job: "a", Keep: []uint32{1}}, 0)
	drop(store.DropSpec{Job: "a", Before: 256, Keep: []uint32{2, 255, 9}}, 3)
	drop(store.DropSpec{Job: "a", Before: 256, Keep: []uint32{2, 255, 9}}, 0)
	wantMissing(t, s, value("a", 1).Key, value("a", 3).Key, value("a", 4).Key)
	for _, n := range []uint32{2, 255, 256, 257, 1 << 20} {
		want(t, s, value("a", n))
	}
	drop(store.DropSpec{Job: "ab", All: true, Before: 1, Keep: []uint32{1, 2}}, uint64(len(steps)))
	drop(store.DropSpec{Job: "nobody", All: true}, 0)
	for _, n := range steps {
		wantMissing(t, s, value("ab", n).Key)
		want(t, s, value("b", n))
	}
	// What was dropped may be written anew, also with other bytes.
	again := store.Value{Key: value("ab", 1).Key, Data: []byte("new")}
	put(t, s, again)
	want(t, s, again)
}

func testList(t *testing.T, h Harness) {
	ctx, s := open(t, h)
	size := func(i int) int {
		if i < 37 {
			return i * 100
		}
		return i * 9000 // several chunks on disk
	}
	var keys []store.Key
	for _, job := range []string{"a", "a-b", "b"} {
		for i := range 40 {
			k := store.Key{Job: job, Step: uint32(i*i) % 300, Task: uint32(i) % 5, Attempt: 1 + uint32(i)%2,
				Name: fmt.Sprintf("x/%d", i)}
			keys = append(keys, k)
			put(t, s, store.Value{Key: k, Data: noise(uint64(i), size(i))})
		}
	}
	slices.SortFunc(keys, store.Key.Compare)
	check := func(got []store.Info, keys []store.Key) {
		t.Helper()
		if len(got) != len(keys) {
			t.Fatalf("%d values listed, must be %d", len(got), len(keys))
		}
		for i, in := range got {
			var n int
			if _, err := fmt.Sscanf(in.Key.Name, "x/%d", &n); err != nil {
				t.Fatal(err)
			}
			if in.Key != keys[i] || in.Bytes != uint64(size(n)) || in.CRC32C != store.Checksum(noise(uint64(n), size(n))) {
				t.Errorf("entry %d is %+v, must be of %s", i, in, keys[i])
			}
		}
	}
	check(list(t, ctx, s, ""), keys)
	check(list(t, ctx, s, "a"), keys[:40])
	check(list(t, ctx, s, "a-b"), keys[40:80])
	check(list(t, ctx, s, "c"), nil)
	stop := errors.New("enough")
	n := 0
	err := s.List(ctx, "", func(in store.Info) error {
		if n++; n == 3 {
			return stop
		}
		_, err := s.Get(ctx, []store.Key{in.Key}) // the store is not locked meanwhile
		return err
	})
	if !errors.Is(err, stop) || n != 3 {
		t.Errorf("list ends after %d entries with %v, must be 3 with yield's error", n, err)
	}
}
