package program

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"taxon/internal/linalg/contribution"
	"taxon/mapper"
	"taxon/reducer"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func goldenState() *mapper.State {
	return &mapper.State{
		Priced: true, Rows: []uint32{0, 3, 300}, Work: []uint16{0x0001, 0x8003, 0}, Live: []uint16{0, 0x8001, 0x0002},
		Dual: []float64{0.5, 1, 0.25},
	}
}

// goldenPrecise returns a state with a dual that float32 cannot represent, and rounded weights.
func goldenPrecise() *mapper.State {
	s := goldenState()
	s.Dual[1] = 0.1
	s.Rounding[0], s.Rounding[15] = 2, 1
	return s
}

// goldenContributions returns contributions including an empty one, which is left out when they are
// read.
func goldenContributions() []contribution.Contribution {
	return []contribution.Contribution{
		{Parent: 7, Feature: []uint32{3, 200, 499}, Sum: []float64{1.5, -0.1, 2}, Curvature: []uint8{1, 16, 2}},
		{Parent: 8},
		{Parent: 39, Feature: []uint32{4}, Sum: []float64{-7}, Curvature: []uint8{3}},
	}
}

func goldenVectors() *reducer.Vectors {
	return &reducer.Vectors{Begin: []int64{0, 2, 2, 3, 4}, Feature: []uint32{3, 200, 499, 10}, Value: []float32{1, -0.5,
		0.1, 3}}
}

// goldenValues returns the values in testdata, as the current program encodes them.
func goldenValues() map[string][]byte {
	cs := goldenContributions()
	return map[string][]byte{
		"dual-v2":       encodeState(goldenState()),
		"dual-wide-v2":  encodeState(goldenPrecise()),
		"v-v1":          encodeParts([][]contribution.Contribution{cs}, []uint32{3}, 0)[0],
		"v-priced-v1":   encodeParts([][]contribution.Contribution{cs}, []uint32{3}, partExact)[0],
		"x-v1":          encodeVectors(goldenVectors(), []int32{0, 1, 2, 3}, 3),
		"dual-fresh-v2": encodeState(&mapper.State{}),
	}
}

// TestGolden checks that the program writes the golden files' bytes, and reads them.
func TestGolden(t *testing.T) {
	for name, written := range goldenValues() {
		path := filepath.Join("testdata", name+".bin")
		if *rewrite {
			if err := os.WriteFile(path, written, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		golden, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(golden, written) {
			t.Errorf("%s has changed: give the layout a new format byte\n%x\n%x", name, golden, written)
		}
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("testdata", name+".bin"))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if s, err := decodeState(read("dual-v2"), 301); err != nil || !reflect.DeepEqual(s, goldenState()) {
		t.Errorf("dual: %+v, %v", s, err)
	}
	if s, err := decodeState(read("dual-wide-v2"), 301); err != nil || !reflect.DeepEqual(s, goldenPrecise()) {
		t.Errorf("precise duals: %+v, %v", s, err)
	}
	if s, err := decodeState(read("dual-fresh-v2"), 301); err != nil || len(s.Rows) > 0 {
		t.Errorf("no duals: %+v, %v", s, err)
	}
	if v, err := decodeVectors(read("x-v1"), 4, 3, 500); err != nil || !reflect.DeepEqual(v, goldenVectors()) {
		t.Errorf("x: %+v, %v", v, err)
	}
	for name, sum := range map[string]float64{"v-v1": float64(float32(-0.1)), "v-priced-v1": -0.1} {
		cs, err := decodeContributions(nil, read(name), 3, 500, 40, 0)
		if err != nil || len(cs) != 2 || cs[0].Parent != 7 || cs[1].Parent != 39 || cs[0].Sum[1] != sum ||
			cs[0].Curvature[1] != 16 || cs[1].Feature[0] != 4 {
			t.Errorf("%s: %+v, %v", name, cs, err)
		}
	}
}
