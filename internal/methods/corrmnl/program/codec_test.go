package program

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"taxon/internal/linalg/sparse"
	"taxon/internal/methods/corrmnl/solver"
	hblr "taxon/internal/methods/hblr/solver"
	"taxon/worker/codec"
)

// TestCodec checks that an encoded value decodes to the same value. A value that is truncated,
// longer, corrupted or of another problem gives an error or another valid value, but no panic.
func TestCodec(t *testing.T) {
	p := &solver.Problem{
		Rows: hblr.Rows{X: &sparse.Matrix{Rows: 2, Cols: 1, NNZ: 2, Shards: []sparse.Shard{{Begin: []uint64{0, 1, 2},
			Index: []uint32{0, 0}, Value: []float32{1, -1}}}}, Bias: 1},
		Class: []int32{0, 1}, Parent: []int32{-1, -1}, Leaf: []bool{true, true}, Level: []int32{0, 0}, Levels: 1,
	}
	p.Prepare()
	s, sampler := p.Start(1), p.NewSolver()
	for k := range 3 {
		if _, err := sampler.Sample(context.Background(), s, solver.Options{Iterations: 4, Adapt: k == 0, Leapfrog: 3,
			Every: 2, Keep: 3, Seed: uint64(k)}); err != nil {
			t.Fatal(err)
		}
	}
	b := encodeState(s)
	if got, err := decodeState(b, p); err != nil || !reflect.DeepEqual(got, s) || len(s.Batches) != 2 || len(s.Kept) != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	broken := func(what string, b []byte, p *solver.Problem) {
		t.Helper()
		if _, err := decodeState(b, p); !errors.Is(err, codec.ErrBroken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := range b {
		broken("short", b[:n], p)
	}
	broken("longer", append(slices.Clone(b), 0), p)
	broken("format", append([]byte{0x81}, b[1:]...), p)
	more := *p
	more.Levels = 2
	broken("levels", b, &more)
	for i := range b {
		for bit := range 8 {
			c := slices.Clone(b)
			c[i] ^= 1 << bit
			_, _ = decodeState(c, p)
		}
	}
}
