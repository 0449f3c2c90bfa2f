package storetest

import (
	"context"
	"testing"

	"taxon/store"
)

// Harness makes stores for the suite.
type Harness struct {
	// New opens an empty store, which the suite closes.
	New func(t *testing.T) store.Store
	// Corrupt flips a bit of the stored bytes of a key, which has some. It may leave the store
	// unusable for other keys.
	Corrupt func(t *testing.T, s store.Store, k store.Key)
	// Reopen closes a durable store and opens its medium again. It is nil for a volatile store.
	Reopen func(t *testing.T, s store.Store) store.Store
	// Crash opens a copy of the medium as it is now, without closing the store, which the suite
	// closes itself. It is nil for a volatile store.
	Crash func(t *testing.T, s store.Store) store.Store
	// Full opens an empty store that holds at most some 100 MiB, and returns a function that makes
	// room in another way than by dropping values. It is nil for a store without bounds.
	Full func(t *testing.T) (s store.Store, makeRoom func())
	// BigBytes is the size of the largest value tried.
	BigBytes int
	// Copies says that the store keeps several copies of each value. Then all of several writers
	// that race for a key with different bytes may be refused.
	Copies bool
	// StaysOpen says that Close ends nothing, as in a client of shards that others own.
	StaysOpen bool
}

// Run runs the whole suite.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"round trip", testRoundTrip},
		{"missing", testMissing},
		{"sizes", testSizes},
		{"write once", testWriteOnce},
		{"idempotent", testIdempotent},
		{"repeats in a batch", testBatchRepeats},
		{"commit", testCommit},
		{"drop", testDrop},
		{"list", testList},
		{"bad requests", testBadRequests},
		{"corrupt", testCorrupt},
		{"lost", testLost},
		{"heal", testHeal},
		{"full", testFull},
		{"cancel", testCancel},
		{"concurrent", testConcurrent},
		{"commit and drop beside writers", testConcurrentDrops},
		{"close", testClose},
		{"reopen", testReopen},
		{"crash", testCrash},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, h) })
	}
}

func open(t *testing.T, h Harness) (context.Context, store.Store) {
	t.Helper()
	s := h.New(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return t.Context(), s
}
