package program

import (
	"bytes"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"taxon/worker/codec"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// goldenWeights are in falling order and have a node without entries.
func goldenWeights() []NodeWeights {
	return []NodeWeights{
		{Node: 700, Columns: []uint32{499}, Values: []float32{-1}},
		{Node: 5},
		{Node: 3, Columns: []uint32{100, 130, 1000}, Values: []float32{0.1, -2, 0}},
	}
}

// records reads the nodes that DecodeWeights gives.
func records(words []uint32) (nodes []NodeWeights) {
	for len(words) > 0 {
		n, m := NodeWeights{Node: words[0]}, int(words[1])
		n.Columns = words[2 : 2+m]
		for _, bits := range words[2+m : 2+2*m] {
			n.Values = append(n.Values, math.Float32frombits(bits))
		}
		nodes, words = append(nodes, n), words[2+2*m:]
	}
	return nodes
}

// again decodes and encodes.
func again(b []byte) ([]byte, error) {
	words, err := DecodeWeights(b)
	if err != nil {
		return nil, err
	}
	return EncodeWeights(records(words)), nil
}

// TestGolden: the program writes the golden files' bytes, and reads them.
func TestGolden(t *testing.T) {
	path, written := filepath.Join("testdata", "weights-v2.bin"), EncodeWeights(goldenWeights())
	if *rewrite {
		if err := os.WriteFile(path, written, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(golden, written) {
		t.Errorf("weights have changed: give the layout a new format byte and keep the old reader\n%x\n%x, %v", golden,
			written, err)
	}
	words, err := DecodeWeights(golden)
	if g, want := records(words), goldenWeights(); err != nil || !reflect.DeepEqual(g, []NodeWeights{want[2], want[0]}) {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestWeightsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []NodeWeights
		for _, n := range rapid.SliceOfNDistinct(rapid.Uint32Range(0, math.MaxUint32-1), 0, 20, rapid.ID[uint32]).Draw(t,
			"nodes") {
			w := NodeWeights{Node: n, Columns: rapid.SliceOfNDistinct(rapid.Uint32Range(0, math.MaxUint32-1), 1, 20,
				rapid.ID[uint32]).Draw(t, "columns")}
			slices.Sort(w.Columns)
			w.Values = rapid.SliceOfN(rapid.Float32(), len(w.Columns), len(w.Columns)).Draw(t, "values")
			nodes = append(nodes, w)
		}
		words, err := DecodeWeights(EncodeWeights(nodes))
		if got := records(words); err != nil || len(got) != len(nodes) || len(nodes) > 0 && !reflect.DeepEqual(got, nodes) {
			t.Fatalf("%v\n%+v\n%+v", err, nodes, got)
		}
	})
}

// TestWeightsDamaged: a value that is cut short, longer, or of another format is an error that
// says so, never a panic.
func TestWeightsDamaged(t *testing.T) {
	b := EncodeWeights(goldenWeights())
	for n := range b {
		if _, err := DecodeWeights(b[:n]); !errors.Is(err, codec.ErrBroken) {
			t.Errorf("cut to %d of %d bytes: %v", n, len(b), err)
		}
	}
	if _, err := DecodeWeights(append(slices.Clone(b), 0)); !errors.Is(err, codec.ErrBroken) {
		t.Errorf("one byte more: %v", err)
	}
	for i := range b { // single flips: an error or another valid value, no panic
		for bit := range 8 {
			c := slices.Clone(b)
			c[i] ^= 1 << bit
			_, _ = DecodeWeights(c)
		}
	}
}

// TestShortWeightsStaySmall: what is allocated is bounded by the input, whatever counts it claims.
func TestShortWeightsStaySmall(t *testing.T) {
	claims := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	for _, head := range [][]byte{{}, {1}, {1, 1}, {1, 1, 0}, {1, 1, 0, 1}} {
		b := append(append([]byte{FormatWeights}, head...), claims...)
		const runs = 200
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			if _, err := DecodeWeights(b); !errors.Is(err, codec.ErrBroken) {
				t.Fatalf("%x: %v", b, err)
			}
		}
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) / runs; got > 4096 {
			t.Errorf("%x: %d bytes allocated", b, got)
		}
	}
}

func FuzzWeights(f *testing.F) {
	f.Add(EncodeWeights(goldenWeights()))
	f.Fuzz(func(t *testing.T, b []byte) {
		once, err := again(b)
		if err != nil {
			if !errors.Is(err, codec.ErrBroken) {
				t.Fatal(err)
			}
			return
		}
		twice, err := again(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v\n%x\n%x", err, once, twice)
		}
	})
}
