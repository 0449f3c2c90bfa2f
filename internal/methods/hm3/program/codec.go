package program

import (
	"math"

	"taxon/internal/methods/hm3/solver"
	"taxon/worker/codec"
)

// formatDual begins a value of the family dual: see store/FORMAT.md.
const formatDual = 0x91

// encodeState writes the marginals of all instances.
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

// decodeState reads what encodeState wrote of so many rows and microlabels; rows < 0: of any.
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
