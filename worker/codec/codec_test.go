package codec

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAscending refuses indices that repeat or lie beyond the data.
func TestAscending(t *testing.T) {
	for _, c := range []struct {
		differences []int
		ok          bool
	}{
		{[]int{0, 1, 5}, true}, {[]int{0, 0}, false}, {[]int{3, 0, 1}, false}, {[]int{9}, true}, {[]int{10}, false},
		{[]int{5, 5}, false},
	} {
		e := Encoder{}
		for _, d := range c.differences {
			e.Uvarint(d)
		}
		d := Decoder{B: e.B}
		d.Ascending(make([]uint32, len(c.differences)), 0, 10)
		if (d.End("x") == nil) != c.ok {
			t.Errorf("differences %v below 10: %v", c.differences, d.Err)
		}
	}
}

// TestAscendingTwin compares with one difference at a time, on lists right and wrong.
func TestAscendingTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.Uint32Range(0, 1<<20).Draw(t, "lo")
		differences := rapid.SliceOfN(rapid.OneOf(rapid.Uint32Range(1, 127), rapid.Uint32Range(0, 300)), 0, 60).Draw(t,
			"differences")
		e, sum := Encoder{}, uint64(lo)
		for _, d := range differences {
			e.Uvarint(int(d))
			sum += uint64(d)
		}
		e.B = e.B[:len(e.B)-rapid.IntRange(0, min(2, len(e.B))).Draw(t, "cut")]
		limit := uint32(sum) + rapid.Uint32Range(0, 2).Draw(t, "beyond")
		want, ok := ascendingTwin(e.B, len(differences), lo, limit)
		got, d := make([]uint32, len(differences)), Decoder{B: e.B}
		d.Ascending(got, lo, limit)
		if (d.End("x") == nil) != ok || ok && !slices.Equal(got, want) {
			t.Fatalf("%v, %v, %v", d.Err, got, want)
		}
	})
}

func ascendingTwin(b []byte, n int, lo, limit uint32) (out []uint32, ok bool) {
	at := uint64(lo)
	for i := range n {
		v, used := binary.Uvarint(b)
		if at += v; used <= 0 || at >= uint64(limit) || v == 0 && i > 0 {
			return nil, false
		}
		out, b = append(out, uint32(at)), b[used:]
	}
	return out, len(b) == 0
}

// BenchmarkAscending reads lists as contributions and vectors have them: one difference in
// twenty takes two bytes.
func BenchmarkAscending(b *testing.B) {
	e, r, n, at := Encoder{}, rand.New(rand.NewPCG(1, 2)), 10000, uint32(0)
	for range n {
		d := 1 + r.Uint32N(60)
		if r.IntN(200) == 0 {
			d += 100
		}
		e.Uvarint(int(d))
		at += d
	}
	dst := make([]uint32, n)
	b.SetBytes(int64(len(e.B)))
	for b.Loop() {
		d := Decoder{B: e.B}
		d.Ascending(dst, 0, at+1)
		if d.End("x") != nil {
			b.Fatal(d.Err)
		}
	}
}
