package program

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"

	"taxon/internal/linalg/contribution"
	"taxon/mapper"
	"taxon/reducer"
	"taxon/worker/codec"
	"taxon/worker/program"
)

// The first byte of a value is one of these kinds, which includes the version. store/FORMAT.md has
// the diagrams.
const (
	formatState         = 0x12
	formatContributions = 0x21
	formatDense         = 0x22
	formatVectors       = 0x31
	formatGrid          = 0x32
	formatSmooth        = 0x51
	formatSmoothDense   = 0x52
)

func init() {
	const block, part, group = "MAP, one a block", "MAP, one a block and feature range",
		"REDUCE, one a feature range and block group"
	program.Declare("rr",
		program.Layout{Names: "`dual`", By: block, Holds: "duals and working set", Formats: []byte{formatState}},
		program.Layout{Names: "`v/<r>`", By: part, Holds: "what the block's parents need to move",
			Formats: []byte{formatContributions}},
		program.Layout{Names: "`v/<r>`", By: part + ", logistic loss on trees", Holds: "the same, dense",
			Formats: []byte{formatDense}},
		program.Layout{Names: "`x/<g>`", By: group, Holds: "vectors of the internals that the group's blocks see",
			Formats: []byte{formatVectors}},
		program.Layout{Names: "`x/<g>`", By: group + ", logistic loss on trees", Holds: "the same, dense",
			Formats: []byte{formatGrid}},
		program.Layout{Names: "`dual`", By: block + ", logistic loss", Holds: "v = w - m of the block's terminals",
			Formats: []byte{formatSmooth, formatSmoothDense}})
}

// encodeState encodes a block's duals and working set.
func encodeState(s *mapper.State) []byte {
	e := codec.Encoder{B: make([]byte, 0, 40+6*len(s.Rows)+4*len(s.Dual))} // upper bound on the size of the lists
	e.Byte(formatState)
	flags := 0
	if s.Priced {
		flags |= statePriced
	}
	wide := slices.ContainsFunc(s.Dual, func(a float64) bool { return float64(float32(a)) != a })
	if wide { // duals of a solve in float64
		flags |= stateWide
	}
	rounded := s.Rounding != [mapper.Lanes]uint8{}
	if rounded {
		flags |= stateRounded
	}
	e.Uvarint(flags)
	if rounded {
		e.B = append(e.B, s.Rounding[:]...)
	}
	e.Uvarint(len(s.Rows))
	e.Ascending(s.Rows, 0)
	appendSets(&e, s.Work, s.Live)
	if wide {
		e.F64(s.Dual)
	} else {
		e.F64as32(s.Dual)
	}
	return bytes.Clone(e.B) // the store keeps the memory
}

// These are the flags of a state.
const (
	statePriced  = 1 << iota // State.Priced
	stateWide                // duals are float64
	stateRounded             // State.Rounding follows
)

// decodeState decodes a state over the given number of rows.
func decodeState(b []byte, rows int) (*mapper.State, error) {
	d := codec.Decoder{B: b}
	d.Format(formatState)
	flags := d.Number(statePriced | stateWide | stateRounded)
	s := &mapper.State{Priced: flags&statePriced != 0}
	width := 4
	if flags&stateWide != 0 {
		width = 8
	}
	if flags&stateRounded != 0 {
		if copy(s.Rounding[:], d.Take(mapper.Lanes)) < mapper.Lanes || !s.ValidRounding() {
			d.Fail()
		}
	}
	n := d.Count(2)
	s.Rows, s.Work, s.Live = make([]uint32, n), make([]uint16, n), make([]uint16, n)
	d.Ascending(s.Rows, 0, uint32(rows))
	readSets(&d, s.Work, s.Live)
	duals := 0
	for _, m := range s.Live {
		duals += bits.OnesCount16(m)
	}
	if d.Err == nil && len(d.B) != width*duals {
		d.Fail()
		duals = 0
	}
	if d.Err == nil {
		s.Dual = make([]float64, duals)
		if width == 8 {
			d.F64(s.Dual)
		} else {
			d.F32as64(s.Dual)
		}
	}
	return s, d.End("duals of a block")
}

// cutContributions divides a block's contributions by feature ranges, without copying. A range
// lacks the contributions that are empty in it.
func cutContributions(cs []contribution.Contribution, ranges []uint32) [][]contribution.Contribution {
	out := make([][]contribution.Contribution, len(ranges)-1)
	at := make([]int, len(cs))
	all := make([]contribution.Contribution, 0, len(cs)*len(out))
	for r := range out {
		from := len(all)
		for k, c := range cs {
			lo := at[k]
			hi := lo + lowerBound(c.Feature[lo:], ranges[r+1])
			if at[k] = hi; hi > lo {
				all = append(all, contribution.Contribution{
					Parent: c.Parent, Feature: c.Feature[lo:hi], Sum: c.Sum[lo:hi], Curvature: c.Curvature[lo:hi],
				})
			}
		}
		out[r] = all[from:len(all):len(all)]
	}
	return out
}

// lowerBound returns the number of features below limit.
func lowerBound(features []uint32, limit uint32) int {
	n, _ := slices.BinarySearch(features, limit)
	return n
}

// encodeParts encodes a block's contributions, divided by feature ranges, as one value per range.
// All values share one allocation.
func encodeParts(parts [][]contribution.Contribution, ranges []uint32, flags int) [][]byte {
	size := 0
	for _, part := range parts {
		size += contributionsSize(part, flags&partExact != 0)
	}
	e := codec.Encoder{B: make([]byte, 0, size)}
	ends := make([]int, len(parts))
	for r, part := range parts {
		appendContributions(&e, part, ranges[r], flags)
		ends[r] = len(e.B)
	}
	out, at := make([][]byte, len(parts)), 0
	for r, end := range ends {
		out[r], at = e.B[at:end:end], end
	}
	return out
}

// These are the flags of a part.
const (
	partExact   = 1 << iota // sums are float64, not float32
	partDegrees             // curvatures are codes of degrees, not numbers of terminals
)

// contributionsSize estimates the encoded size of contributions. Most differences take one or two
// bytes. The estimate is close because the store keeps the memory.
func contributionsSize(cs []contribution.Contribution, exact bool) int {
	entries := 0
	for _, c := range cs {
		entries += len(c.Feature)
	}
	if exact {
		return 16 + 6*len(cs) + 11*entries
	}
	return 16 + 6*len(cs) + 7*entries
}

// appendContributions encodes the part of one range, which begins at lo.
func appendContributions(e *codec.Encoder, cs []contribution.Contribution, lo uint32, flags int) {
	e.Byte(formatContributions)
	e.Uvarint(flags)
	e.Uvarint(len(cs))
	for _, c := range cs {
		e.Uvarint(int(c.Parent))
		e.Uvarint(len(c.Feature))
		e.Ascending(c.Feature, lo)
		e.B = append(e.B, c.Curvature...)
		if flags&partExact != 0 {
			e.F64(c.Sum)
		} else {
			e.F64as32(c.Sum)
		}
	}
}

// decodeContributions decodes one block's part of the feature range [lo, hi) over the given number
// of internal nodes, and appends it to dst. flags must equal the part's partDegrees.
func decodeContributions(dst []contribution.Contribution, b []byte, lo, hi uint32, nodes,
	flags int) ([]contribution.Contribution, error) {
	d := codec.Decoder{B: b}
	d.Format(formatContributions)
	has := d.Number(partExact | partDegrees)
	exact := has&partExact != 0
	if (has^flags)&partDegrees != 0 {
		d.Fail()
	}
	n := d.Count(2)
	each := 1 + 1 + 4 // least size of an entry in bytes
	if exact {
		each = 1 + 1 + 8
	}
	most := len(d.B) / each
	features, sums := make([]uint32, most), make([]float64, most) // of all contributions, in one allocation
	for range n {
		c := contribution.Contribution{Parent: int32(d.Number(nodes - 1))}
		m := d.Count(each)
		if d.Err != nil || m > len(features) {
			d.Fail()
			break
		}
		c.Feature, features = features[:m:m], features[m:]
		c.Sum, sums = sums[:m:m], sums[m:]
		d.Ascending(c.Feature, lo, hi)
		c.Curvature = d.Take(m)
		if exact {
			d.F64(c.Sum)
		} else {
			d.F32as64(c.Sum)
		}
		if m > 0 && d.Err == nil {
			dst = append(dst, c)
		}
	}
	return dst, d.End("contributions of a block")
}

// encodeVectors encodes the override lists of the given nodes over a range that begins at lo.
func encodeVectors(v *reducer.Vectors, nodes []int32, lo uint32) []byte {
	total := 0
	for _, p := range nodes {
		total += int(v.Begin[p+1] - v.Begin[p])
	}
	e := codec.Encoder{B: make([]byte, 0, 64+2*len(nodes)+5*total+total/8)} // most differences take one byte
	e.Byte(formatVectors)
	e.Uvarint(len(nodes))
	for _, p := range nodes {
		e.Uvarint(int(v.Begin[p+1] - v.Begin[p]))
	}
	for _, p := range nodes {
		e.Ascending(v.Feature[v.Begin[p]:v.Begin[p+1]], lo)
	}
	for _, p := range nodes {
		e.F32(v.Value[v.Begin[p]:v.Begin[p+1]])
	}
	return e.B
}

// decodeVectors decodes the value that encodeVectors wrote, for the given number of nodes over [lo,
// hi).
func decodeVectors(b []byte, nodes int, lo, hi uint32) (*reducer.Vectors, error) {
	v := new(reducer.Vectors)
	return v, decodeVectorsInto(v, b, nodes, lo, hi)
}

// decodeVectorsInto does what decodeVectors does, in the memory of v.
func decodeVectorsInto(v *reducer.Vectors, b []byte, nodes int, lo, hi uint32) error {
	d := codec.Decoder{B: b}
	d.Format(formatVectors)
	if n := d.Count(1); n != nodes {
		d.Fail()
	}
	v.Resize(nodes, 0)
	for p := range nodes {
		v.Begin[p+1] = v.Begin[p] + int64(d.Number(int(hi-lo)))
	}
	total := v.Begin[nodes]
	if d.Err == nil && total*5 > int64(len(d.B)) {
		d.Fail()
	}
	if d.Err == nil {
		v.Resize(nodes, int(total))
		for p := range nodes {
			d.Ascending(v.Feature[v.Begin[p]:v.Begin[p+1]], lo, hi)
		}
		d.F32(v.Value)
	}
	return d.End("vectors of the internals")
}

// The rows' sets of lanes of a state are encoded in this way. Many rows, in the first sweeps nine
// of ten, have no dual, and most are visited by one lane only: such a row takes a single byte.
// There is one byte per row, followed by the sets that the bytes do not contain, row by row:
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

// appendSets encodes, for each row, the lanes that visit it and the lanes that have a dual there.
// It is branch-free in the rows, because the kinds of rows are unpredictable.
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
		lane := bits.TrailingZeros16(w) // 16 if no lane visits the row
		if several != 0 {
			lane = setFollows
		}
		heads[i] = byte(lane | (some+same)<<liveShift)
		follow += lane>>4 + some - same
	}
	out := e.Extend(2*follow + 4) // room for an unconditional write, which need not be kept
	heads, at := e.B[from:from+len(work)], 0
	for i, head := range heads {
		binary.LittleEndian.PutUint16(out[at:], work[i])
		at += int(head >> 3 & 2) // the bit of setFollows, times two
		binary.LittleEndian.PutUint16(out[at:], live[i])
		at += int(head >> (liveShift - 1) & (liveSet << 1))
	}
	e.B = e.B[:len(e.B)-4]
}

// readSets decodes sets for the given number of rows.
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

// encodeSmooth encodes v of a block's lanes, at the features where any lane has a nonzero, or in
// full.
func encodeSmooth(s *mapper.State) []byte {
	if s.Feature == nil && len(s.Value) > 0 {
		e := codec.Encoder{B: make([]byte, 0, 8+4*len(s.Value))}
		e.B = append(e.B, formatSmoothDense, 0, 0, 0)
		e.B = binary.LittleEndian.AppendUint32(e.B, uint32(len(s.Value)))
		e.F32(s.Value)
		return e.B
	}
	e := codec.Encoder{B: make([]byte, 0, 16+2*len(s.Feature)+4*len(s.Value))}
	e.Byte(formatSmooth)
	e.Uvarint(len(s.Feature))
	e.Ascending(s.Feature, 0)
	e.F32(s.Value)
	return e.B
}

// decodeSmooth decodes v of the given number of lanes over `width` features. The result may alias
// b.
func decodeSmooth(b []byte, lanes int, width uint32) (*mapper.State, error) {
	d := codec.Decoder{B: b}
	if len(b) > 0 && b[0] == formatSmoothDense {
		var head [2]uint32
		d.U32(head[:])
		n := int64(head[1])
		if head[0] != formatSmoothDense || n == 0 || n > (int64(width)+1)*int64(lanes) || n%int64(lanes) != 0 ||
			4*n != int64(len(d.B)) {
			d.Fail()
		}
		return &mapper.State{Priced: true, Value: d.View32(len(d.B) / 4)}, d.End("state of a block")
	}
	d.Format(formatSmooth)
	n := d.Count(1 + 4*lanes)
	s := &mapper.State{Priced: true, Feature: make([]uint32, n), Value: make([]float32, n*lanes)}
	d.Ascending(s.Feature, 0, width)
	d.F32(s.Value)
	return s, d.End("state of a block")
}

// encodeDense encodes a block's dense contributions, divided by feature ranges, as one value per
// range. All values share one allocation. Each value begins at a multiple of eight bytes, so that
// its numbers can be used in place.
func encodeDense(cs []contribution.Dense, ranges []uint32) [][]byte {
	size := 0
	for r := range len(ranges) - 1 {
		size += denseSize(cs, int(ranges[r+1]-ranges[r]))
	}
	e, out := codec.Encoder{B: make([]byte, 0, size)}, make([][]byte, len(ranges)-1)
	for r := range out {
		from, lo, hi := len(e.B), ranges[r], ranges[r+1]
		e.B = append(e.B, formatDense, 0, 0, 0)
		e.B = binary.LittleEndian.AppendUint32(e.B, uint32(len(cs)))
		for _, c := range cs {
			e.B = binary.LittleEndian.AppendUint32(e.B, uint32(c.Parent))
		}
		for _, c := range cs {
			e.B = binary.LittleEndian.AppendUint32(e.B, uint32(min(len(c.Curvature), 1)))
		}
		for _, c := range cs {
			e.F32(c.Sum[lo:hi])
		}
		for _, c := range cs {
			if c.Curvature != nil {
				e.B = append(e.B, c.Curvature[lo:hi]...)
			}
		}
		out[r] = e.B[from:len(e.B):len(e.B)]
		e.Extend(-len(e.B) & 7)
	}
	return out
}

// denseSize returns the padded size in bytes of dense contributions over the given number of
// features.
func denseSize(cs []contribution.Dense, width int) int {
	n := 8 + len(cs)*(8+4*width)
	for _, c := range cs {
		if c.Curvature != nil {
			n += width
		}
	}
	return (n + 7) &^ 7
}

// decodeDense decodes one block's dense contributions over the given numbers of features and
// internal nodes, and appends them to dst. They may alias b.
func decodeDense(dst []contribution.Dense, b []byte, width, nodes int) ([]contribution.Dense, error) {
	d := codec.Decoder{B: b}
	var head [2]uint32
	d.U32(head[:])
	n := int(head[1])
	if d.Err != nil || head[0] != formatDense || n > len(d.B)/8 {
		d.Fail()
		return dst, d.End("contributions of a block")
	}
	parents, curved := make([]uint32, n), make([]uint32, n)
	d.U32(parents)
	d.U32(curved)
	from := len(dst)
	for k, p := range parents {
		if int64(p) >= int64(nodes) || curved[k] > 1 {
			d.Fail()
		}
		dst = append(dst, contribution.Dense{Parent: int32(p), Sum: d.View32(width)})
	}
	for k := range dst[from:] {
		if curved[k] == 1 {
			dst[from+k].Curvature = d.Take(width)
		}
	}
	return dst, d.End("contributions of a block")
}

// encodeGrid encodes the dense vectors of the given nodes over a range.
func encodeGrid(g *reducer.Grid, nodes []int32) []byte {
	e := codec.Encoder{B: make([]byte, 0, 8+4*g.Width*len(nodes))}
	e.B = append(e.B, formatGrid, 0, 0, 0)
	e.B = binary.LittleEndian.AppendUint32(e.B, uint32(len(nodes)))
	for _, p := range nodes {
		e.F32(g.Row(int(p)))
	}
	return e.B
}

// decodeGrid decodes the value of encodeGrid or encodeVectors over [lo, hi), for nodes with parents
// at the given places. The result may alias b.
func decodeGrid(b []byte, parent []int32, lo, hi uint32) (*reducer.Grid, error) {
	if len(b) > 0 && b[0] == formatVectors {
		v, err := decodeVectors(b, len(parent), lo, hi)
		if err != nil {
			return nil, err
		}
		return v.Grid(parent, lo, hi), nil
	}
	d := codec.Decoder{B: b}
	var head [2]uint32
	d.U32(head[:])
	if head != [2]uint32{formatGrid, uint32(len(parent))} {
		d.Fail()
	}
	width := int(hi - lo)
	g := &reducer.Grid{Width: width, Value: d.View32(width * len(parent))}
	return g, d.End("vectors of the internals")
}
