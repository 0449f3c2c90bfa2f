package program

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"taxon/worker/codec"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// TestGolden checks that the program writes the golden files' bytes, and reads them.
func TestGolden(t *testing.T) {
	vector, columns, sums := []float64{0.1, -2, 3e300}, []uint32{7, 9, 12}, []float64{1, 2, 3, 4, 5, 0.1}
	for name, written := range map[string][]byte{"vector-v1.bin": codec.Vector(vector), "part-v1.bin": encodePart(columns,
		sums)} {
		path := filepath.Join("testdata", name)
		if *rewrite {
			if err := os.WriteFile(path, written, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if golden, err := os.ReadFile(path); err != nil || !bytes.Equal(golden, written) {
			t.Errorf("%s has changed: give the layout a new format byte and keep the old reader\n%x\n%x, %v", name, golden,
				written, err)
		}
	}
	if v, err := codec.ReadVector(codec.Vector(vector), 3); err != nil || !slices.Equal(v, vector) {
		t.Error(v, err)
	}
	if c, s, err := decodePart(encodePart(columns, sums), 2, 7, 13); err != nil || !slices.Equal(c, columns) ||
		!slices.Equal(s, sums) {
		t.Error(c, s, err)
	}
	if c, s, err := decodePart(encodePart(nil, nil), 2, 7, 13); err != nil || len(c)+len(s) > 0 {
		t.Error(c, s, err)
	}
}

// TestDamaged checks that a value that is truncated, longer, of another format, of other columns or
// of another size gives a clear error, but no panic.
func TestDamaged(t *testing.T) {
	vector, part := codec.Vector([]float64{1, 2}), encodePart([]uint32{3, 5}, []float64{1, 2, 3, 4})
	try := func(what string, b []byte) {
		t.Helper()
		if _, err := codec.ReadVector(b, 2); !errors.Is(err, codec.ErrBroken) {
			t.Errorf("%s: vector: %v", what, err)
		}
		if _, _, err := decodePart(b, 2, 3, 6); !errors.Is(err, codec.ErrBroken) {
			t.Errorf("%s: part: %v", what, err)
		}
	}
	for _, b := range [][]byte{vector, part} {
		for n := range b {
			try("short", b[:n])
		}
		try("longer", append(slices.Clone(b), 0))
		for at := range headBytes {
			c := slices.Clone(b)
			c[at] ^= 0x80
			try("head", c)
		}
	}
	if _, err := codec.ReadVector(vector, 3); !errors.Is(err, codec.ErrBroken) {
		t.Error("another size was read")
	}
	for _, columns := range [][]uint32{{2, 5}, {3, 6}, {5, 3}, {4, 4}} {
		if _, _, err := decodePart(encodePart(columns, []float64{1, 2, 3, 4}), 2, 3, 6); !errors.Is(err, codec.ErrBroken) {
			t.Errorf("columns %v of [3, 6) were read", columns)
		}
	}
}
