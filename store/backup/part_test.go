package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"taxon/store"
	"taxon/store/memory"
)

// goldenValues are the values in testdata/part-v1.bin.
func goldenValues() []store.Value {
	var out []store.Value
	for i := range 6 {
		data := bytes.Repeat([]byte{byte('a' + i)}, i*i*7)
		k := store.Key{Job: "golden", Step: uint32(i / 2), Task: uint32(i), Attempt: 1 + uint32(i)%2,
			Name: fmt.Sprintf("x/%d", i)}
		out = append(out, store.Value{Key: k, Data: data})
	}
	return out
}

// listed returns a store with values, and what it lists.
func listed(t testing.TB, values []store.Value) (store.Store, []store.Info) {
	t.Helper()
	s := memory.New(memory.Options{})
	if err := s.Put(t.Context(), values); err != nil {
		t.Fatal(err)
	}
	var infos []store.Info
	if err := s.List(t.Context(), "", func(i store.Info) error { infos = append(infos, i); return nil }); err != nil {
		t.Fatal(err)
	}
	return s, infos
}

// part writes values and returns the bytes.
func part(t testing.TB, values []store.Value) []byte {
	t.Helper()
	s, infos := listed(t, values)
	var out bytes.Buffer
	if err := writePart(t.Context(), &out, s, infos); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read(b []byte) ([]store.Checksummed, error) {
	var out []store.Checksummed
	err := readPart(context.Background(), bytes.NewReader(b), store.Limits{}, func(v store.Checksummed) error {
		out = append(out, v)
		return nil
	})
	return out, err
}

func TestPartGolden(t *testing.T) {
	const path = "testdata/part-v1.bin"
	written := part(t, goldenValues())
	if *rewrite {
		if err := os.WriteFile(path, written, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(golden, written) {
		t.Error("the format of parts has changed: raise its version")
	}
	got, err := read(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := goldenValues()
	if len(got) != len(want) {
		t.Fatalf("%d values, must be %d", len(got), len(want))
	}
	for i, v := range want {
		if got[i].Key != v.Key || !bytes.Equal(got[i].Data, v.Data) || got[i].Data == nil {
			t.Errorf("value %d is %s %q", i, got[i].Key, got[i].Data)
		}
	}
}

// TestPartDamage flips every bit and cuts at every byte.
func TestPartDamage(t *testing.T) {
	whole := part(t, goldenValues())
	refused := func(what string, b []byte) {
		t.Helper()
		_, err := read(b)
		if !errors.Is(err, store.ErrSnapshot) && !errors.Is(err, store.ErrTooLarge) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := range whole {
		refused(fmt.Sprintf("cut to %d bytes", n), whole[:n])
		for bit := range 8 {
			whole[n] ^= 1 << bit
			refused(fmt.Sprintf("bit %d of byte %d", bit, n), whole)
			whole[n] ^= 1 << bit
		}
	}
	refused("one byte more", append(bytes.Clone(whole), 0))
	refused("twice", append(bytes.Clone(whole), whole...))
	refused("another file", []byte("%PDF-1.4 and so on"))
	if _, err := read(whole); err != nil {
		t.Errorf("the whole file: %v", err)
	}
}

func TestPartWriterOrder(t *testing.T) {
	w, err := newPartWriter(&bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	v := store.Sum(goldenValues()[1])
	if err := w.add(v); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []store.Value{goldenValues()[1], goldenValues()[0]} {
		if err := w.add(store.Sum(bad)); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s after %s: %v", bad.Key, v.Key, err)
		}
	}
	v.Key.Name = "a b"
	if err := w.add(v); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("bad key: %v", err)
	}
}

type fullDisk struct{ left int }

var errNoSpace = errors.New("no space left")

func (f *fullDisk) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return f.left, errNoSpace
	}
	f.left -= len(b)
	return len(b), nil
}

func TestPartFullDisk(t *testing.T) {
	s, infos := listed(t, []store.Value{{Key: goldenValues()[0].Key, Data: make([]byte, 300<<10)}})
	for _, left := range []int{0, 100 << 10, 300 << 10} {
		err := writePart(t.Context(), &fullDisk{left}, s, infos)
		if !errors.Is(err, errNoSpace) {
			t.Errorf("%d bytes of room: %v", left, err)
		}
	}
}

func TestReadPartEnds(t *testing.T) {
	whole := part(t, goldenValues())
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := readPart(ctx, bytes.NewReader(whole), store.Limits{}, func(store.Checksummed) error {
		n++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("cancelled: %v after %d values", err, n)
	}
	err = readPart(t.Context(), bytes.NewReader(whole), store.Limits{ValueBytes: 20},
		func(store.Checksummed) error { return nil })
	if !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("value over the limit: %v", err)
	}
	err = readPart(t.Context(), bytes.NewReader(whole), store.Limits{},
		func(store.Checksummed) error { return errNoSpace })
	if !errors.Is(err, errNoSpace) {
		t.Errorf("yield's error: %v", err)
	}
}

func FuzzPart(f *testing.F) {
	whole := part(f, goldenValues())
	f.Add(whole)
	f.Add(whole[:40])
	f.Add(part(f, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := read(b)
		if err != nil {
			return
		}
		var values []store.Value
		for _, v := range got {
			values = append(values, store.Value{Key: v.Key, Data: v.Data})
		}
		if !bytes.Equal(part(t, values), b) {
			t.Errorf("%d values are read from other bytes than they are written as", len(got))
		}
	})
}
