package program

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"taxon/internal/linalg/contribution"
	"taxon/mapper"
	"taxon/reducer"
	"taxon/worker/codec"
)

// ascendingGen generates up to n strictly ascending indices in [lo, hi).
func ascendingGen(t *rapid.T, n int, lo, hi uint32, label string) []uint32 {
	v := rapid.SliceOfNDistinct(rapid.Uint32Range(lo, hi-1), 0, min(n, int(hi-lo)), rapid.ID[uint32]).Draw(t, label)
	slices.Sort(v)
	return v
}

func drawState(t *rapid.T, rows uint32) *mapper.State {
	s := &mapper.State{Priced: rapid.Bool().Draw(t, "priced"), Rows: ascendingGen(t, 40, 0, rows, "rows")}
	n := len(s.Rows)
	set := rapid.OneOf(rapid.Just(uint16(0)), rapid.SampledFrom([]uint16{1, 1 << 7, 1 << 15, 3, 1<<15 | 1}),
		rapid.Uint16())
	s.Work = rapid.SliceOfN(set, n, n).Draw(t, "work")
	s.Live = rapid.SliceOfN(set, n, n).Draw(t, "live")
	k := 0
	for _, m := range s.Live {
		k += bits.OnesCount16(m)
	}
	if rapid.Bool().Draw(t, "precise") {
		s.Dual = rapid.SliceOfN(rapid.Float64(), k, k).Draw(t, "dual")
		return s
	}
	s.Dual = make([]float64, k)
	for i, a := range rapid.SliceOfN(rapid.Float32(), k, k).Draw(t, "dual") {
		s.Dual[i] = float64(a)
	}
	return s
}

// TestStateOfOneLane checks that a row visited by one lane takes two bytes, or six with a dual.
func TestStateOfOneLane(t *testing.T) {
	s := &mapper.State{}
	for row := range uint32(1000) {
		s.Rows, s.Work, s.Live = append(s.Rows, row), append(s.Work, 1<<(row%16)), append(s.Live, 0)
		if row%10 == 0 {
			s.Live[row], s.Dual = s.Work[row], append(s.Dual, 1)
		}
	}
	if got, want := len(encodeState(s)), 2*1000+4*100+4; got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

func TestStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SampledFrom([]uint32{1, 100, 1 << 20, math.MaxInt32}).Draw(t, "of")
		s := drawState(t, rows)
		got, err := decodeState(encodeState(s), int(rows))
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Fatalf("%v\n%+v\n%+v", err, s, got)
		}
		if len(s.Rows) > 0 {
			if _, err := decodeState(encodeState(s), int(s.Rows[len(s.Rows)-1])); !errors.Is(err, codec.ErrBroken) {
				t.Fatalf("a row beyond the data: %v", err)
			}
		}
	})
}

// drawContributions generates a block's parts for parents among `nodes` internals.
func drawContributions(t *rapid.T, nodes int, width uint32) (cs []contribution.Contribution) {
	for range rapid.IntRange(0, 5).Draw(t, "slots") {
		c := contribution.Contribution{Parent: int32(rapid.IntRange(0, nodes-1).Draw(t, "parent")), Feature: ascendingGen(t,
			30, 0, width, "features")}
		n := len(c.Feature)
		c.Sum = rapid.SliceOfN(rapid.Float64Range(-1e30, 1e30), n, n).Draw(t, "sum")
		c.Curvature = rapid.SliceOfN(rapid.Uint8Range(1, 16), n, n).Draw(t, "curvature")
		cs = append(cs, c)
	}
	return cs
}

// drawRanges divides [0, width) at random places. Ranges may be empty.
func drawRanges(t *rapid.T, width uint32) []uint32 {
	cuts := rapid.SliceOfN(rapid.Uint32Range(0, width), 0, 4).Draw(t, "cuts")
	slices.Sort(cuts)
	return append(append([]uint32{0}, cuts...), width)
}

// TestContributionsRoundTrip checks that the parts of all ranges together are the whole, and that
// values outside full passes are rounded to float32 once.
func TestContributionsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const nodes = 300
		width := uint32(rapid.SampledFrom([]int{1, 50, 5000}).Draw(t, "width"))
		cs := drawContributions(t, nodes, width)
		ranges := drawRanges(t, width)
		flags := rapid.IntRange(0, partExact|partDegrees).Draw(t, "flags")
		joined := make([]contribution.Contribution, len(cs))
		for r, data := range encodeParts(cutContributions(cs, ranges), ranges, flags) {
			got, err := decodeContributions(nil, data, ranges[r], ranges[r+1], nodes, flags)
			if err != nil {
				t.Fatal(err)
			}
			k := 0
			for _, g := range got {
				for cs[k].Parent != g.Parent || !overlaps(cs[k].Feature, g.Feature[0]) {
					k++
				}
				joined[k].Feature = append(joined[k].Feature, g.Feature...)
				joined[k].Sum = append(joined[k].Sum, g.Sum...)
				joined[k].Curvature = append(joined[k].Curvature, g.Curvature...)
				k++
			}
		}
		for k, c := range cs {
			want := slices.Clone(c.Sum)
			for i, v := range want {
				if flags&partExact == 0 {
					want[i] = float64(float32(v))
				}
			}
			if !slices.Equal(joined[k].Feature, c.Feature) || !slices.Equal(joined[k].Sum, want) ||
				!slices.Equal(joined[k].Curvature, c.Curvature) {
				t.Fatalf("slot %d:\n%+v\n%+v", k, c, joined[k])
			}
		}
	})
}

func overlaps(features []uint32, f uint32) bool {
	_, ok := slices.BinarySearch(features, f)
	return ok
}

// drawVectors generates override lists of n nodes over [lo, hi).
func drawVectors(t *rapid.T, n int, lo, hi uint32) *reducer.Vectors {
	v := reducer.Zero(n)
	for p := range n {
		if hi > lo {
			v.Feature = append(v.Feature, ascendingGen(t, 12, lo, hi, "features")...)
		}
		v.Begin[p+1] = int64(len(v.Feature))
	}
	v.Value = rapid.SliceOfN(rapid.Float32(), len(v.Feature), len(v.Feature)).Draw(t, "values")
	return v
}

func TestVectorsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "nodes")
		lo := rapid.Uint32Range(0, 1000).Draw(t, "lo")
		hi := lo + rapid.Uint32Range(0, 300).Draw(t, "width")
		v := drawVectors(t, n, lo, hi)
		var nodes []int32 // of one group
		for p := range int32(n) {
			if rapid.Bool().Draw(t, "in") {
				nodes = append(nodes, p)
			}
		}
		got, err := decodeVectors(encodeVectors(v, nodes, lo), len(nodes), lo, hi)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range nodes {
			a, b := v.Begin[p], v.Begin[p+1]
			c, d := got.Begin[i], got.Begin[i+1]
			if !slices.Equal(v.Feature[a:b], got.Feature[c:d]) || !slices.Equal(v.Value[a:b], got.Value[c:d]) {
				t.Fatalf("node %d", p)
			}
		}
		if _, err := decodeVectors(encodeVectors(v, nodes, lo), len(nodes)+1, lo, hi); !errors.Is(err, codec.ErrBroken) {
			t.Fatalf("another number of nodes: %v", err)
		}
	})
}

// decoders are named after the value they read. again is the encoding of the decoded value.
var decoders = map[string]func(b []byte) (again []byte, err error){
	"dual": func(b []byte) ([]byte, error) {
		s, err := decodeState(b, fuzzRows)
		if err != nil {
			return nil, err
		}
		return encodeState(s), nil
	},
	"v": func(b []byte) ([]byte, error) {
		cs, err := decodeContributions(nil, b, 3, fuzzWidth, fuzzNodes, 0)
		if err != nil {
			return nil, err
		}
		return encodeParts([][]contribution.Contribution{cs}, []uint32{3}, partExact)[0], nil
	},
	"x": func(b []byte) ([]byte, error) {
		v, err := decodeVectors(b, 4, 3, fuzzWidth)
		if err != nil {
			return nil, err
		}
		return encodeVectors(v, []int32{0, 1, 2, 3}, 3), nil
	},
}

const fuzzRows, fuzzWidth, fuzzNodes = 1000, 500, 40

// examples returns valid values, as seeds for the fuzz targets and for damage.
func examples() map[string][]byte {
	g := goldenValues()
	return map[string][]byte{"dual": g["dual-v2"], "v": g["v-priced-v1"], "x": g["x-v1"]}
}

// TestDamaged checks that a value that is truncated, longer, or of another format gives a clear
// error, but no panic.
func TestDamaged(t *testing.T) {
	for kind, b := range examples() {
		decode := decoders[kind]
		if again, err := decode(b); err != nil || len(again) == 0 {
			t.Fatalf("%s: the example itself: %v", kind, err)
		}
		for n := range b {
			if _, err := decode(b[:n]); !errors.Is(err, codec.ErrBroken) {
				t.Errorf("%s cut to %d of %d bytes: %v", kind, n, len(b), err)
			}
		}
		if _, err := decode(append(slices.Clone(b), 0)); !errors.Is(err, codec.ErrBroken) {
			t.Errorf("%s with one byte more: %v", kind, err)
		}
		for other := range decoders {
			if _, err := decoders[other](b); other != kind && !errors.Is(err, codec.ErrBroken) {
				t.Errorf("%s read as %s: %v", kind, other, err)
			}
		}
		for i := range b { // a single flip gives an error or another valid value
			for bit := range 8 {
				c := slices.Clone(b)
				c[i] ^= 1 << bit
				_, _ = decode(c)
			}
		}
	}
}

// TestShortInputsStaySmall checks that the memory allocated is bounded by the input's size,
// regardless of the counts in it.
func TestShortInputsStaySmall(t *testing.T) {
	claims := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	for kind, format := range map[string]byte{"dual": formatState, "v": formatContributions, "x": formatVectors} {
		for _, head := range [][]byte{{}, {1}, {1, 1}, {1, 1, 1}, {4, 0xf1, 3, 0xf1, 3, 0xf1, 3, 0xf1, 3}} {
			// the last one claims 4 nodes of 497 features
			b := append(append([]byte{format}, head...), claims...)
			var err error
			const runs = 200
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range runs {
				_, err = decoders[kind](b)
			}
			runtime.ReadMemStats(&after)
			got := (after.TotalAlloc - before.TotalAlloc) / runs
			if !errors.Is(err, codec.ErrBroken) || got > 4096 {
				t.Errorf("%s, %d bytes: %v, %d bytes allocated", kind, len(b), err, got)
			}
		}
	}
}

func fuzzValue(f *testing.F, kind string) {
	f.Add(examples()[kind])
	decode := decoders[kind]
	f.Fuzz(func(t *testing.T, b []byte) {
		once, err := decode(b)
		if err != nil {
			if !errors.Is(err, codec.ErrBroken) {
				t.Fatal(err)
			}
			return
		}
		twice, err := decode(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%v\n%x\n%x", err, once, twice)
		}
	})
}

func FuzzState(f *testing.F)         { fuzzValue(f, "dual") }
func FuzzContributions(f *testing.F) { fuzzValue(f, "v") }
func FuzzVectors(f *testing.F)       { fuzzValue(f, "x") }

func TestBrokenNamesTheValue(t *testing.T) {
	_, err := decodeState(nil, 1)
	if want := "duals of a block: " + codec.ErrBroken.Error(); fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}
