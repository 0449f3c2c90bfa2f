package store_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"taxon/store"
)

// keys draws valid keys, often close to each other.
func keys() *rapid.Generator[store.Key] {
	number := rapid.OneOf(rapid.Uint32(), rapid.Uint32Range(0, 3), rapid.Uint32Range(250, 260))
	return rapid.Custom(func(t *rapid.T) store.Key {
		return store.Key{
			Job:     rapid.StringMatching(`[a-c0-1][a-b._-]{0,4}`).Draw(t, "job"),
			Step:    number.Draw(t, "step"),
			Task:    number.Draw(t, "task"),
			Attempt: max(1, number.Draw(t, "attempt")),
			Name:    rapid.StringMatching(`[a-b]{1,3}(/[0-9]{1,3}){0,2}`).Draw(t, "name"),
		}
	})
}

func TestKeyEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := keys().Draw(t, "a"), keys().Draw(t, "b")
		ea, eb := store.AppendKey(nil, a), store.AppendKey(nil, b)
		if got, err := store.ParseKey(ea); err != nil || got != a {
			t.Fatalf("%s reads back as %s, %v", a, got, err)
		}
		if bytes.Compare(ea, eb) != a.Compare(b) {
			t.Fatalf("%s and %s: encoded order differs", a, b)
		}
		if len(ea) > store.MaxKeyBytes {
			t.Fatalf("%d bytes", len(ea))
		}
		same := a.Job == b.Job && a.Step == b.Step
		if bytes.HasPrefix(eb, store.AppendStepPrefix(nil, a.Job, a.Step)) != same {
			t.Fatalf("prefix of %s and %s", a, b)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	f.Add(store.AppendKey(nil, store.Key{Job: "job-1", Step: 1, Task: 2, Attempt: 3, Name: "x/3/0"}))
	f.Add([]byte("j\x00aaaabbbb\x00\x00\x00\x00n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := store.ParseKey(b)
		if err != nil {
			if !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%q: %v", b, err)
			}
			return
		}
		if !bytes.Equal(store.AppendKey(nil, k), b) {
			t.Errorf("%q reads as %s", b, k)
		}
	})
}

func TestDropSpec(t *testing.T) {
	d := store.DropSpec{Job: "j", Before: 10, Keep: []uint32{7, 3}}
	for step, want := range map[uint32]bool{0: true, 3: false, 4: true, 7: false, 9: true, 10: false, 11: false} {
		if d.Drops(step) != want {
			t.Errorf("step %d: %v", step, !want)
		}
	}
}

func TestLimits(t *testing.T) {
	l := store.Limits{ValueBytes: 10, BatchBytes: 15, BatchValues: 2}.WithDefaults()
	k := store.Key{Job: "j", Attempt: 1, Name: "v"}
	value := func(n int) store.Value { return store.Value{Key: k, Data: make([]byte, n)} }
	for _, c := range []struct {
		what   string
		values []store.Value
		ok     bool
	}{
		{"nothing", nil, true},
		{"at the limits", []store.Value{value(10), value(5)}, true},
		{"large value", []store.Value{value(11)}, false},
		{"large batch", []store.Value{value(10), value(6)}, false},
		{"many values", []store.Value{value(1), value(1), value(1)}, false},
	} {
		err := l.CheckPut(c.values)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if err := l.CheckGet(make([]store.Key, 1)); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("empty key: %v", err)
	}
	if err := l.CheckGet([]store.Key{k, k, k}); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("many keys: %v", err)
	}
}
