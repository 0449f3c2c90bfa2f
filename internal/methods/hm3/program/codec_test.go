package program

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"taxon/internal/methods/hm3/solver"
	"taxon/worker/codec"
)

// TestCodec checks that an encoded value decodes to the same value. A value that is truncated,
// longer, corrupted, or of other rows or microlabels gives an error or another valid value, but no
// panic.
func TestCodec(t *testing.T) {
	s := &solver.State{Primal: 2.5, Dual: 0.1, Rows: []solver.Marginals{{}, {At: []uint32{0, 1, 7},
		Value: []float64{0.3, 1e-300, 2}}, {At: []uint32{299}, Value: []float64{1}}}}
	b := encodeState(s)
	for _, rows := range []int{3, -1} {
		if got, err := decodeState(b, rows, 75); err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	try := func(what string, b []byte, rows, microlabels int) {
		t.Helper()
		if _, err := decodeState(b, rows, microlabels); !errors.Is(err, codec.ErrBroken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := range b {
		try("short", b[:n], 3, 75)
	}
	try("longer", append(slices.Clone(b), 0), 3, 75)
	try("rows", b, 4, 75)
	try("microlabels", b, 3, 74)
	try("format", append([]byte{0x81}, b[1:]...), 3, 75)
	for i := range b {
		for bit := range 8 {
			c := slices.Clone(b)
			c[i] ^= 1 << bit
			_, _ = decodeState(c, -1, 75)
		}
	}
}
