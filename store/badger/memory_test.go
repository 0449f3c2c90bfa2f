package badger

import (
	"math/rand/v2"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"taxon/store"
)

// liveHeap is what the last garbage collection left.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestMemoryBound: writing far more than the bound takes less than the bound, beside
// the batch on its way.
func TestMemoryBound(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	before := liveHeap()
	s := mustOpen(t, t.TempDir())
	defer s.Close()
	const size, batch = 64 << 10, 32
	r := rand.NewChaCha8([32]byte{})
	peak := before
	steps := uint32(24) // 48 MiB
	if os.Getenv("TAXON_TEST_MEMORY") != "" {
		steps = 700
	}
	for step := range steps { // the older half is dropped now and then
		var values []store.Value
		for i := range uint32(batch) {
			data := make([]byte, size)
			_, _ = r.Read(data) // never fails
			values = append(values, store.Value{Key: store.Key{Job: "j", Step: step, Task: i, Attempt: 1, Name: "v"},
				Data: data})
		}
		if err := s.Put(t.Context(), values); err != nil {
			t.Fatal(err)
		}
		if step%20 == 19 {
			if _, err := s.Drop(t.Context(), store.DropSpec{Job: "j", Before: step - 10}); err != nil {
				t.Fatal(err)
			}
		}
		peak = max(peak, liveHeap())
	}
	t.Logf("%d MiB at most", (peak-before)>>20)
	if bound := uint64(minMemory + 2*batch*size); peak-before > bound {
		t.Errorf("%d MiB are held, the bound is %d", (peak-before)>>20, bound>>20)
	}
}
