package program

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"taxon/internal/methods/msvm/solver"
	"taxon/worker/codec"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func golden() *solver.State {
	return &solver.State{Primal: 2.5, Dual: 0.1, Begin: []uint64{0, 2, 2, 5}, Class: []uint32{0, 300, 1, 2, 3},
		Value: []float64{0, 0.3, 1e-300, 2, 0}}
}

// TestGolden checks that the program writes the golden files' bytes, and reads them.
func TestGolden(t *testing.T) {
	path, written := filepath.Join("testdata", "dual-v1.bin"), encodeState(golden())
	if *rewrite {
		if err := os.WriteFile(path, written, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, written) {
		t.Errorf("duals have changed: give the layout a new format byte and keep the old reader\n%x\n%x, %v", b, written, err)
	}
	for _, rows := range []int{3, -1} {
		if s, err := decodeState(written, rows, 301); err != nil || !reflect.DeepEqual(s, golden()) {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if s, err := decodeState(encodeState(&solver.State{Begin: []uint64{0}}), 0, 2); err != nil || len(s.Class) > 0 {
		t.Error(s, err)
	}
}

// TestDamaged checks that a value that is truncated, longer, of another format, or of other rows or
// classes gives a clear error, but no panic.
func TestDamaged(t *testing.T) {
	b := encodeState(golden())
	try := func(what string, b []byte, rows, classes int) {
		t.Helper()
		if _, err := decodeState(b, rows, classes); !errors.Is(err, codec.ErrBroken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := range b {
		try("short", b[:n], 3, 301)
	}
	try("longer", append(slices.Clone(b), 0), 3, 301)
	try("rows", b, 4, 301)
	try("classes", b, 3, 300)
	for i := range b { // a single flip gives an error or another valid value
		for bit := range 8 {
			c := slices.Clone(b)
			c[i] ^= 1 << bit
			_, _ = decodeState(c, -1, 301)
		}
	}
	try("format", append([]byte{0x71}, b[1:]...), 3, 301)
}
