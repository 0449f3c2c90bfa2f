package program

import (
	"math/rand/v2"
	"testing"

	"taxon/internal/linalg/contribution"
)

// TestDenseRoundTrip checks that the parts of all ranges together are the whole, bit for bit, and
// that a truncated value, or one with too many parents, is refused.
func TestDenseRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	const width, nodes = 53, 9
	cs := []contribution.Dense{{Parent: 4, Curvature: make([]uint8, width)}, {Parent: 0, Curvature: make([]uint8, width)},
		{Parent: 8}}
	for k := range cs {
		cs[k].Sum = make([]float32, width)
		for f := range width {
			if cs[k].Sum[f] = float32(r.NormFloat64()); cs[k].Curvature != nil {
				cs[k].Curvature[f] = uint8(r.IntN(256))
			}
		}
	}
	ranges := []uint32{0, 1, 1, 30, width}
	for n, data := range encodeDense(cs, ranges) {
		lo, hi := ranges[n], ranges[n+1]
		got, err := decodeDense(nil, data, int(hi-lo), nodes)
		if err != nil {
			t.Fatal(err)
		}
		for k, c := range cs {
			for f := range hi - lo {
				if got[k].Parent != c.Parent || got[k].Sum[f] != c.Sum[lo+f] || c.Curvature != nil &&
					got[k].Curvature[f] != c.Curvature[lo+f] {
					t.Fatalf("range %d, contribution %d: %+v, want %+v", n, k, got[k], c)
				}
			}
		}
		for cut := range len(data) {
			if _, err := decodeDense(nil, data[:cut], int(hi-lo), nodes); err == nil {
				t.Fatalf("range %d: %d of %d bytes were read", n, cut, len(data))
			}
		}
		if _, err := decodeDense(nil, data, int(hi-lo), 8); err == nil {
			t.Fatal("a parent too many was read")
		}
	}
}
