package storetest

import (
	"bytes"
	"slices"
	"testing"

	"taxon/store"
)

func testSnapshot(t *testing.T, h Harness) {
	ctx, s := open(t, h)
	var values []store.Value
	var keys []store.Key
	for i := range 20 {
		v := store.Value{Key: key(uint32(i%2), uint32(i), 1, "v"), Data: noise(uint64(i), i*i*1000)}
		put(t, s, v)
		if i%3 != 0 {
			values, keys = append(values, v), append(keys, v.Key)
		}
	}
	var file, again bytes.Buffer
	if err := store.Snapshot(ctx, &file, s, keys); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(keys)
	if err := store.Snapshot(ctx, &again, s, append(keys, keys[3])); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(file.Bytes(), again.Bytes()) {
		t.Error("the order of keys changes the snapshot")
	}
	_, to := open(t, h)
	cut := bytes.NewReader(file.Bytes()[:file.Len()-1])
	wantError(t, store.Restore(ctx, cut, to, store.Limits{}), store.ErrSnapshot)
	if n := len(list(t, ctx, to, "")); n != 0 {
		t.Errorf("a refused snapshot left %d values", n)
	}
	for range 2 {
		if err := store.Restore(ctx, bytes.NewReader(file.Bytes()), to, store.Limits{}); err != nil {
			t.Fatal(err)
		}
		want(t, to, values...)
	}
	if n := len(list(t, ctx, to, "")); n != len(values) {
		t.Errorf("%d values restored, must be %d", n, len(values))
	}
	no := key(99, 1, 1, "no")
	wantKeyError(t, store.Snapshot(ctx, &again, s, []store.Key{no}), store.ErrMissing, no)
}
