package memory_test

import (
	"errors"
	"testing"

	"taxon/store"
	"taxon/store/memory"
	"taxon/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		New: func(*testing.T) store.Store { return memory.New(memory.Options{}) },
		Corrupt: func(t *testing.T, s store.Store, k store.Key) {
			got, err := s.Get(t.Context(), []store.Key{k})
			if err != nil {
				t.Fatal(err)
			}
			got[0][len(got[0])/2] ^= 1 // the shard's own bytes
		},
		BigBytes: 20 << 20,
		Full: func(*testing.T) (store.Store, func()) {
			return memory.New(memory.Options{MaxBytes: 1 << 20}), func() {}
		},
	})
}

func TestBudget(t *testing.T) {
	s := memory.New(memory.Options{MaxBytes: 10_000, Limits: store.Limits{ValueBytes: 6_000, BatchValues: 4}})
	put := func(step uint32, n int) error {
		k := store.Key{Job: "j", Step: step, Attempt: 1, Name: "v"}
		return s.Put(t.Context(), []store.Value{{Key: k, Data: make([]byte, n)}})
	}
	if err := put(1, 6_001); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("large value: %v", err)
	}
	if err := s.Put(t.Context(), make([]store.Value, 5)); err == nil {
		t.Error("a batch over the limit is taken")
	}
	if err := put(1, 6_000); err != nil {
		t.Fatal(err)
	}
	if err := put(2, 4_000); !errors.Is(err, store.ErrFull) {
		t.Errorf("over the budget: %v", err)
	}
	for range 3 {
		if err := put(1, 6_000); err != nil { // costs nothing again
			t.Fatal(err)
		}
	}
	if _, err := s.Drop(t.Context(), store.DropSpec{Job: "j", Before: 2}); err != nil {
		t.Fatal(err)
	}
	if s.Bytes() != 0 {
		t.Errorf("%d bytes are held by an empty shard", s.Bytes())
	}
	if err := put(2, 6_000); err != nil {
		t.Errorf("after the drop: %v", err)
	}
	if err := s.Commit(t.Context(), "j", 2, nil); err != nil || s.Bytes() != 0 {
		t.Errorf("after a commit that drops all: %d bytes, %v", s.Bytes(), err)
	}
}
