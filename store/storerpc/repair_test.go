package storerpc_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taxon/store"
	"taxon/store/storerpc"
)

func repairValues(step uint32, n int) []store.Value {
	var out []store.Value
	for i := range n {
		k := store.Key{Job: "j", Step: step, Task: uint32(i), Attempt: 1, Name: "v"}
		out = append(out, store.Value{Key: k, Data: fmt.Appendf(make([]byte, 0, 2000), "%01999d", i)})
	}
	return out
}

// TestRepairCounts: a repair copies what is missing, once, and goes on where one that
// was broken off ended.
func TestRepairCounts(t *testing.T) {
	r, c := newReplicated(t, 3, 2)
	values := repairValues(1, 5000)
	if err := r.Store.Put(t.Context(), values); err != nil {
		t.Fatal(err)
	}
	held := uint64(0)
	for _, v := range values {
		if r.Shards[0].Holds(v.Key) != nil {
			held++
		}
	}
	r.Shards[0].Wipe()
	ctx, cancel := context.WithCancel(t.Context())
	first, err := storerpc.Repair(ctx, c, "shard-0",
		storerpc.RepairOptions{Progress: func(storerpc.RepairResult) { cancel() }})
	if !errors.Is(err, context.Canceled) || first.Copied == 0 || first.Copied == held {
		t.Fatalf("broken off: %+v, %v", first, err)
	}
	second, err := storerpc.Repair(t.Context(), c, "shard-0", storerpc.RepairOptions{BytesPerSecond: 100 << 20})
	if err != nil || second.Checked != held || first.Copied+second.Copied != held || second.Bytes != 1999*second.Copied {
		t.Errorf("%d values are to be held; first %+v, then %+v, %v", held, first, second, err)
	}
	third, err := storerpc.Repair(t.Context(), c, "shard-0", storerpc.RepairOptions{Job: "j"})
	if err != nil || third.Checked != held || third.Copied != 0 {
		t.Errorf("once more: %+v, %v", third, err)
	}
	other, err := storerpc.Repair(t.Context(), c, "shard-0", storerpc.RepairOptions{Job: "other"})
	if err != nil || other.Checked != 0 {
		t.Errorf("another job: %+v, %v", other, err)
	}
	if _, err := storerpc.Repair(t.Context(), c, "shard-9", storerpc.RepairOptions{}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("a shard that is none: %v", err)
	}
}

// TestBehind: a client knows which shards its writes left out, until they are repaired.
func TestBehind(t *testing.T) {
	r, c := newReplicated(t, 3, 2)
	r.Shards[1].Stop()
	if err := r.Store.Put(t.Context(), repairValues(1, 50)); err != nil {
		t.Fatal(err)
	}
	if got := c.Behind(); len(got) != 1 || got[0] != "shard-1" {
		t.Errorf("behind: %v", got)
	}
	if err := r.Repair(1); !errors.Is(err, store.ErrUnavailable) || len(c.Behind()) != 1 {
		t.Errorf("repair of a dead shard: %v; behind: %v", err, c.Behind())
	}
	r.Shards[1].Start()
	if err := r.Repair(1); err != nil || len(c.Behind()) != 0 {
		t.Errorf("repair: %v; behind: %v", err, c.Behind())
	}
}

// TestRepairConflict: other bytes in the shard stay, and don't hold up the rest.
func TestRepairConflict(t *testing.T) {
	r, c := newReplicated(t, 2, 2)
	values := repairValues(1, 20)
	if err := r.Store.Put(t.Context(), values); err != nil {
		t.Fatal(err)
	}
	r.Shards[0].Wipe()
	alone, err := storerpc.NewClient([]storerpc.Endpoint{{Name: "x", Conn: r.Shards[0].(*brittle)}}, store.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := alone.Put(t.Context(), []store.Value{{Key: values[3].Key, Data: []byte("other")}}); err != nil {
		t.Fatal(err)
	}
	got, err := storerpc.Repair(t.Context(), c, "shard-0", storerpc.RepairOptions{})
	if err != nil || got.Differ != 1 || got.Copied != 19 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRepairBesideTheJob: writes, reads, drops and shards' deaths go on meanwhile; in
// the end every value of the steps that are left has its copies.
func TestRepairBesideTheJob(t *testing.T) {
	r, c := newReplicated(t, 4, 2)
	steps := uint32(40)
	if testing.Short() {
		steps = 12
	}
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer done.Store(true)
		for step := uint32(1); step <= steps; step++ {
			values := repairValues(step, 60)
			victim := r.Shards[step%4]
			switch step % 4 {
			case 0:
				victim.Wipe()
			case 2:
				victim.Stop()
			}
			if err := r.Store.Put(t.Context(), values); err != nil {
				t.Errorf("put: %v", err)
			}
			victim.Start()
			var keys []store.Key
			for _, v := range values {
				keys = append(keys, v.Key)
			}
			if _, err := store.Need(t.Context(), r.Store, keys); err != nil {
				t.Errorf("get: %v", err)
			}
			if _, err := r.Store.Drop(t.Context(), store.DropSpec{Job: "j", Before: step - 1}); err != nil {
				t.Errorf("drop: %v", err)
			}
		}
	})
	for !done.Load() {
		for i := range r.Shards {
			if err := r.Repair(i); err != nil && !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("repair: %v", err)
			}
		}
	}
	wg.Wait()
	for i := range r.Shards {
		if err := r.Repair(i); err != nil {
			t.Error(err)
		}
	}
	for step := steps - 1; step <= steps; step++ {
		for _, v := range repairValues(step, 60) {
			copies := 0
			for _, s := range r.Shards {
				if s.Holds(v.Key) != nil {
					copies++
				}
			}
			if copies != 2 {
				t.Errorf("%s has %d copies", v.Key, copies)
			}
		}
	}
	if len(c.Behind()) != 0 {
		t.Errorf("behind: %v", c.Behind())
	}
}

// Orders that only free space wait once for a shard that is away while others have copies, and not
// at all for one that is known to be down: a job's end waits for all of its orders.
func TestOrdersDoNotWait(t *testing.T) {
	for _, known := range []bool{false, true} {
		shards := []*brittle{newBrittle(t), newBrittle(t)}
		var ends []storerpc.Endpoint
		for i, b := range shards {
			gone := i == 1
			ends = append(ends, storerpc.Endpoint{Name: fmt.Sprintf("s%d", i), Conn: b, Down: func() bool {
				return known &&
					gone
			}})
		}
		patience := 250 * time.Millisecond
		if known {
			patience = time.Hour
		}
		c, err := storerpc.New(ends, storerpc.Options{Replicas: 2, Patience: patience})
		if err != nil {
			t.Fatal(err)
		}
		shards[1].Stop()
		calls := 0
		for range 50 {
			shards[1].Later(func() bool { calls++; return false })
			if err := c.Commit(t.Context(), "j", 1, []uint32{1}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Drop(t.Context(), store.DropSpec{Job: "j", Before: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if calls > 60 {
			t.Errorf("known to be down %t: the shard that is away was asked %d times in 100 orders", known, calls)
		}
		shards[1].Start()
		if err := c.Commit(t.Context(), "j", 2, []uint32{1}); err != nil {
			t.Error(err)
		}
	}
}
