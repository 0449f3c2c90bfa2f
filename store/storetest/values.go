package storetest

import (
	"fmt"
	"strings"
	"testing"

	"taxon/store"
)

func testRoundTrip(t *testing.T, h Harness) {
	_, s := open(t, h)
	var values []store.Value
	for i := range 60 {
		k := key(uint32(i%3), uint32(i%7), 1, fmt.Sprintf("v/%d", i))
		values = append(values, store.Value{Key: k, Data: noise(uint64(i), i*37)})
	}
	put(t, s, values...)
	want(t, s, values...)
	// Any order and repetition of keys is answered as asked.
	values[0], values[59], values[5] = values[59], values[0], values[7]
	want(t, s, values...)
	put(t, s)
	want(t, s)
}

func testMissing(t *testing.T, h Harness) {
	_, s := open(t, h)
	there := store.Value{Key: key(1, 2, 3, "dual"), Data: []byte("x")}
	wantMissing(t, s, there.Key)
	put(t, s, there)
	wantMissing(t, s, key(2, 2, 3, "dual"), key(1, 3, 3, "dual"), key(1, 2, 4, "dual"),
		key(1, 2, 3, "dual2"), key(1, 2, 3, "dua"), key(1, 2, 3, "dual/0"),
		store.Key{Job: "job-10", Step: 1, Task: 2, Attempt: 3, Name: "dual"})
	got, err := s.Get(t.Context(), []store.Key{key(9, 9, 9, "no"), there.Key, key(9, 9, 9, "no")})
	if err != nil || got[0] != nil || string(got[1]) != "x" || got[2] != nil {
		t.Errorf("mixed get: %q, %v", got, err)
	}
}

// testSizes stores values whose sizes are at the limits of chunks, on the wire and on disk.
func testSizes(t *testing.T, h Harness) {
	_, s := open(t, h)
	var values []store.Value
	for _, n := range []int{0, 1, 255 << 10, 256 << 10, 256<<10 + 1, 1<<20 - 1, 1 << 20, 1<<20 + 1, h.BigBytes} {
		values = append(values, store.Value{Key: key(1, uint32(n), 1, "noise"), Data: noise(uint64(n), n)})
	}
	for _, n := range []int{0, 1, 256<<10 + 1, 1<<20 + 1} { // they compress
		values = append(values, store.Value{Key: key(1, uint32(n), 1, "zeros"), Data: make([]byte, n)})
	}
	values = append(values, store.Value{Key: key(2, 0, 1, "nil")})
	put(t, s, values...)
	want(t, s, values...)
}

func testWriteOnce(t *testing.T, h Harness) {
	ctx, s := open(t, h)
	for i, n := range []int{1, 100, 1<<20 + 3} {
		v := store.Value{Key: key(1, uint32(i), 1, "v"), Data: noise(1, n)}
		put(t, s, v)
		other := store.Value{Key: v.Key, Data: noise(1, n)}
		other.Data[n/2] ^= 4
		for _, bad := range [][]byte{other.Data, v.Data[:n-1], nil, append(noise(1, n), 0)} {
			err := s.Put(ctx, []store.Value{{Key: v.Key, Data: bad}})
			wantKeyError(t, err, store.ErrConflict, v.Key)
		}
		want(t, s, v)
		// Another attempt is another key.
		put(t, s, store.Value{Key: key(1, uint32(i), 2, "v"), Data: other.Data})
		want(t, s, v, store.Value{Key: key(1, uint32(i), 2, "v"), Data: other.Data})
	}
}

func testIdempotent(t *testing.T, h Harness) {
	_, s := open(t, h)
	for round := range 3 {
		for _, n := range []int{0, 10, 1<<20 + 5} {
			v := store.Value{Key: key(1, uint32(n), 1, "v"), Data: noise(uint64(n), n)}
			put(t, s, v)
			want(t, s, v)
		}
		if n := len(list(t, t.Context(), s, "")); n != 3 {
			t.Errorf("round %d: %d values listed, must be 3", round, n)
		}
	}
}

func testBatchRepeats(t *testing.T, h Harness) {
	ctx, s := open(t, h)
	v := store.Value{Key: key(1, 1, 1, "v"), Data: noise(1, 500)}
	put(t, s, v, store.Value{Key: v.Key, Data: noise(1, 500)})
	want(t, s, v)
	k := key(1, 2, 1, "v")
	err := s.Put(ctx, []store.Value{{Key: k, Data: []byte("a")}, {Key: k, Data: []byte("b")}})
	wantKeyError(t, err, store.ErrConflict, k)
}

func testBadRequests(t *testing.T, h Harness) {
	ctx, s := open(t, h)
	good := key(1, 1, 1, "v")
	bad := map[string]store.Key{}
	for _, job := range []string{"", "a b", "a/b", "ä", "a\x00b", ".a", "-a", strings.Repeat("j", 65)} {
		k := good
		k.Job = job
		bad["job "+job] = k
	}
	for _, name := range []string{"", "a b", "/a", "a/", "a//b", ".", "..", "a/../b", "a\x00", "a\nb",
		strings.Repeat("n", 129)} {
		k := good
		k.Name = name
		bad["name "+name] = k
	}
	zero := good
	zero.Attempt = 0
	bad["attempt 0"] = zero
	for what, k := range bad {
		if err := s.Put(ctx, []store.Value{{Key: good}, {Key: k}}); err == nil {
			t.Errorf("put accepts %q", what)
		} else {
			wantError(t, err, store.ErrInvalid)
		}
		_, err := s.Get(ctx, []store.Key{good, k})
		wantError(t, err, store.ErrInvalid)
	}
	wantError(t, s.Commit(ctx, "a b", 1, nil), store.ErrInvalid)
	_, err := s.Drop(ctx, store.DropSpec{All: true})
	wantError(t, err, store.ErrInvalid)
	wantError(t, s.List(ctx, "a b", func(store.Info) error { return nil }), store.ErrInvalid)
}

func testCorrupt(t *testing.T, h Harness) {
	for _, n := range []int{1, 700, 3<<20 + 1} {
		ctx, s := open(t, h)
		v := store.Value{Key: key(1, 1, 1, "v"), Data: noise(5, n)}
		other := store.Value{Key: key(2, 1, 1, "v"), Data: noise(6, 10)}
		put(t, s, v, other)
		h.Corrupt(t, s, v.Key)
		got, err := s.Get(ctx, []store.Key{v.Key})
		wantKeyError(t, err, store.ErrCorrupt, v.Key)
		if got != nil {
			t.Errorf("corrupt bytes are returned")
		}
		got, err = s.Get(ctx, []store.Key{other.Key, v.Key})
		wantKeyError(t, err, store.ErrCorrupt, v.Key)
		if got != nil {
			t.Errorf("corrupt bytes are returned")
		}
		want(t, s, other)
	}
}
