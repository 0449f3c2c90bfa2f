package program

import (
	"math"

	"taxon/internal/methods/msvm/solver"
	"taxon/worker/codec"
)

// formatDual and formatSigned are the first bytes of values of the family dual, without and with
// signs. store/FORMAT.md has the layouts.
const (
	formatDual   = 0x81
	formatSigned = 0x82
)

// encodeState encodes the duals and working sets of all instances.
func encodeState(s *solver.State) []byte {
	rows := len(s.Begin) - 1
	e := codec.Encoder{B: make([]byte, 0, 32+2*rows+10*len(s.Class))}
	if s.Sign == nil {
		e.Byte(formatDual)
	} else {
		e.Byte(formatSigned)
		e.Uvarint(len(s.Sign))
	}
	e.Uvarint(rows)
	e.Uvarint(len(s.Class))
	e.F64([]float64{s.Primal, s.Dual})
	for i := range rows {
		class := s.Class[s.Begin[i]:s.Begin[i+1]]
		e.Uvarint(len(class))
		e.Ascending(class, 0)
	}
	e.F64(s.Value)
	e.F64(s.Sign)
	return e.B
}

// decodeState decodes a state for the given numbers of rows and classes. A negative rows accepts
// any number of rows.
func decodeState(b []byte, rows, classes int) (*solver.State, error) {
	d, s := codec.Decoder{B: b}, &solver.State{}
	if len(b) > 0 && b[0] == formatSigned {
		d.Format(formatSigned)
		s.Sign = make([]float64, d.Count(8))
	} else {
		d.Format(formatDual)
	}
	n := d.Count(1)
	entries := d.Count(9)
	var priced [2]float64
	d.F64(priced[:])
	s.Primal, s.Dual = priced[0], priced[1]
	if rows >= 0 && n != rows {
		d.Fail()
		return nil, d.End("duals")
	}
	s.Begin, s.Class = make([]uint64, 1, n+1), make([]uint32, entries)
	at := 0
	for range n {
		m := d.Count(1)
		if d.Err != nil || m > entries-at {
			d.Fail()
			return nil, d.End("duals")
		}
		d.Ascending(s.Class[at:at+m], 0, uint32(min(classes, math.MaxUint32)))
		at += m
		s.Begin = append(s.Begin, uint64(at))
	}
	if at != entries {
		d.Fail()
	}
	s.Value = make([]float64, entries)
	d.F64(s.Value)
	d.F64(s.Sign)
	return s, d.End("duals")
}
