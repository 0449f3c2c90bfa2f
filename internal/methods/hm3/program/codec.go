package program

import (
	"math"

	"taxon/internal/methods/hm3/solver"
	"taxon/worker/codec"
)

// formatDual is the first byte of a value of the family dual. store/FORMAT.md has the layout.
const formatDual = 0x91

// encodeState encodes the marginals of all instances.
func encodeState(s *solver.State) []byte {
	e := codec.Encoder{}
	e.Byte(formatDual)
	e.Uvarint(len(s.Rows))
	e.F64([]float64{s.Primal, s.Dual})
	for _, row := range s.Rows {
		e.Uvarint(len(row.At))
		e.Ascending(row.At, 0)
		e.F64(row.Value)
	}
	return e.B
}

// decodeState decodes marginals for the given numbers of rows and microlabels. A negative rows
// accepts any number of rows.
func decodeState(b []byte, rows, microlabels int) (*solver.State, error) {
	d, s := codec.Decoder{B: b}, &solver.State{}
	d.Format(formatDual)
	n := d.Count(1)
	var priced [2]float64
	d.F64(priced[:])
	s.Primal, s.Dual = priced[0], priced[1]
	if rows >= 0 && n != rows {
		d.Fail()
		return nil, d.End("duals")
	}
	s.Rows = make([]solver.Marginals, n)
	for i := range s.Rows {
		if m := d.Count(9); m > 0 {
			row := &s.Rows[i]
			row.At, row.Value = make([]uint32, m), make([]float64, m)
			d.Ascending(row.At, 0, uint32(min(4*microlabels, math.MaxUint32)))
			d.F64(row.Value)
		}
	}
	return s, d.End("duals")
}
