package storetest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"taxon/store"
)

func key(step, task, attempt uint32, name string) store.Key {
	return store.Key{Job: "job-1", Step: step, Task: task, Attempt: attempt, Name: name}
}

// noise returns n bytes that do not compress. They depend on the seed alone.
func noise(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	b := make([]byte, n)
	_, _ = r.Read(b) // never fails
	return b
}

func put(t *testing.T, s store.Store, values ...store.Value) {
	t.Helper()
	if err := s.Put(t.Context(), values); err != nil {
		t.Fatalf("put: %v", err)
	}
}

// want checks that each value reads back as it was put.
func want(t *testing.T, s store.Store, values ...store.Value) {
	t.Helper()
	keys := make([]store.Key, len(values))
	for i, v := range values {
		keys[i] = v.Key
	}
	got, err := s.Get(t.Context(), keys)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	if len(got) != len(values) {
		t.Fatalf("get: %d values for %d keys", len(got), len(values))
	}
	for i, v := range values {
		if got[i] == nil {
			t.Errorf("%s is missing", v.Key)
		} else if !bytes.Equal(got[i], v.Data) {
			t.Errorf("%s: %d bytes came back for %d, or others", v.Key, len(got[i]), len(v.Data))
		}
	}
}

func wantMissing(t *testing.T, s store.Store, keys ...store.Key) {
	t.Helper()
	got, err := s.Get(t.Context(), keys)
	if err != nil {
		t.Fatalf("get: %v", err)
	}
	for i := range got {
		if got[i] != nil {
			t.Errorf("%s must be missing, has %d bytes", keys[i], len(got[i]))
		}
	}
}

func wantError(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error is %v, must be %v", err, target)
	}
}

// wantKeyError also checks that the error names the key.
func wantKeyError(t *testing.T, err, target error, k store.Key) {
	t.Helper()
	wantError(t, err, target)
	var ke *store.KeyError
	if !errors.As(err, &ke) || ke.Key != k {
		t.Errorf("error %v does not name %s", err, k)
	}
}

func list(t *testing.T, ctx context.Context, s store.Store, job string) []store.Info {
	t.Helper()
	var out []store.Info
	err := s.List(ctx, job, func(in store.Info) error {
		out = append(out, in)
		return nil
	})
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	return out
}
