package recursive

import (
	"encoding/binary"
	"math/bits"

	"taxon/mapper"
	"taxon/worker/codec"
)

// The rows' sets of lanes in layout 2 of a state. Many rows, in the first sweeps nine of ten,
// bear no dual, and most are visited by one lane: those take a byte here, where layout 1 had
// four. A byte a
// row, then the sets that it does not tell, row by row:
//
//	0   4   5      7
//	+---+---+------+
//	|lane   | live |    lane: the only one that visits the row; 16: their set follows
//	+---+---+------+    live: none, their set follows, the lanes that visit it
const (
	setFollows = mapper.Lanes
	liveShift  = 5
	liveNone   = 0
	liveSet    = 1
	liveWork   = 2
)

// appendSets writes the lanes that visit each row, and those with a dual there. No branch depends
// on the rows: which kind of row comes next can't be foretold.
func appendSets(e *codec.Encoder, work, live []uint16) {
	from, follow := len(e.B), 0
	heads := e.Extend(len(work))
	for i, w := range work {
		l := live[i]
		several, some, same := 0, 0, 0
		if w&(w-1) != 0 {
			several = setFollows
		}
		if l != 0 {
			some = 1
		}
		if l == w {
			same = some
		}
		lane := bits.TrailingZeros16(w) // of no lane: 16
		if several != 0 {
			lane = setFollows
		}
		heads[i] = byte(lane | (some+same)<<liveShift)
		follow += lane>>4 + some - same
	}
	out := e.Extend(2*follow + 4) // room for what is written, and then not counted
	heads, at := e.B[from:from+len(work)], 0
	for i, head := range heads {
		binary.LittleEndian.PutUint16(out[at:], work[i])
		at += int(head >> 3 & 2) // the bit of setFollows, twice
		binary.LittleEndian.PutUint16(out[at:], live[i])
		at += int(head >> (liveShift - 1) & (liveSet << 1))
	}
	e.B = e.B[:len(e.B)-4]
}

// readSets reads what appendSets wrote for as many rows.
func readSets(d *codec.Decoder, work, live []uint16) {
	heads := d.Take(len(work))
	follow := 0
	for _, head := range heads {
		if head&(1<<liveShift-1) > setFollows || head>>liveShift > liveWork {
			d.Fail()
			return
		}
		if head&setFollows != 0 {
			follow++
		}
		if head>>liveShift == liveSet {
			follow++
		}
	}
	raw := d.Take(2 * follow)
	if len(raw) < 2*follow {
		return
	}
	next := func() uint16 {
		set := binary.LittleEndian.Uint16(raw)
		raw = raw[2:]
		return set
	}
	for i, head := range heads {
		if head&setFollows != 0 {
			work[i] = next()
		} else {
			work[i] = 1 << (head & (setFollows - 1))
		}
		switch head >> liveShift {
		case liveSet:
			live[i] = next()
		case liveWork:
			live[i] = work[i]
		}
	}
}
