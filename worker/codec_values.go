package worker

import (
	"bytes"
	"math/bits"
	"slices"

	"taxon/mapper"
	"taxon/reducer"
)

// encodeState writes a block's duals and working set.
func encodeState(s *mapper.State) []byte {
	e := encoder{make([]byte, 0, 40+6*len(s.Rows)+4*len(s.Dual))} // what the lists may need; they take less
	e.byte(formatState)
	flags := 0
	if s.Priced {
		flags |= statePriced
	}
	wide := slices.ContainsFunc(s.Dual, func(a float64) bool { return float64(float32(a)) != a })
	if wide { // duals of a precise solve
		flags |= stateWide
	}
	nudged := s.Nudge != [mapper.Lanes]uint8{}
	if nudged {
		flags |= stateNudged
	}
	e.uvarint(flags)
	if nudged {
		e.b = append(e.b, s.Nudge[:]...)
	}
	e.uvarint(len(s.Rows))
	e.ascending(s.Rows, 0)
	e.sets(s.Work, s.Live)
	if wide {
		e.f64(s.Dual)
	} else {
		e.f64as32(s.Dual)
	}
	return bytes.Clone(e.b) // the store keeps the memory
}

// Flags of a state.
const (
	statePriced = 1 << iota // State.Priced
	stateWide               // duals are float64
	stateNudged             // State.Nudge follows
)

// decodeState reads a state over the given number of rows.
func decodeState(b []byte, rows int) (*mapper.State, error) {
	d := decoder{b: b}
	first := len(b) > 0 && b[0] == formatState1
	if first {
		d.byte()
	} else {
		d.format(formatState)
	}
	flags := d.number(statePriced | stateWide | stateNudged)
	s := &mapper.State{Priced: flags&statePriced != 0}
	width := 4
	if flags&stateWide != 0 {
		width = 8
	}
	if flags&stateNudged != 0 {
		if copy(s.Nudge[:], d.take(mapper.Lanes)) < mapper.Lanes || !s.ValidNudge() {
			d.fail()
		}
	}
	n := d.count(2)
	s.Rows, s.Work, s.Live = make([]uint32, n), make([]uint16, n), make([]uint16, n)
	d.ascending(s.Rows, 0, uint32(rows))
	if first {
		d.u16(s.Work)
		d.u16(s.Live)
	} else {
		d.sets(s.Work, s.Live)
	}
	duals := 0
	for _, m := range s.Live {
		duals += bits.OnesCount16(m)
	}
	if d.err == nil && len(d.b) != width*duals {
		d.fail()
		duals = 0
	}
	if d.err == nil {
		s.Dual = make([]float64, duals)
		if width == 8 {
			d.f64(s.Dual)
		} else {
			d.f32as64(s.Dual)
		}
	}
	return s, d.end("duals of a block")
}

// cutContributions cuts a block's contributions into feature ranges, without copying;
// parent maps a slot to its internal node. A contribution that has nothing in a range is
// left out of it.
func cutContributions(cs []mapper.Contribution, parent []int32, ranges []uint32) [][]reducer.Contribution {
	out := make([][]reducer.Contribution, len(ranges)-1)
	at := make([]int, len(cs))
	all := make([]reducer.Contribution, 0, len(cs)*len(out))
	for r := range out {
		from := len(all)
		for k, c := range cs {
			lo := at[k]
			hi := lo + lowerBound(c.Feature[lo:], ranges[r+1])
			if at[k] = hi; hi > lo {
				all = append(all, reducer.Contribution{
					Parent: parent[c.Slot], Feature: c.Feature[lo:hi], Sum: c.Sum[lo:hi], Stiff: c.Stiff[lo:hi],
				})
			}
		}
		out[r] = all[from:len(all):len(all)]
	}
	return out
}

// lowerBound is the number of features below limit.
func lowerBound(features []uint32, limit uint32) int {
	n, _ := slices.BinarySearch(features, limit)
	return n
}

// encodeParts writes a block's contributions, cut into feature ranges, one value a range,
// all in one piece of memory. Values are float64 when exact, else float32.
func encodeParts(parts [][]reducer.Contribution, ranges []uint32, exact bool) [][]byte {
	size := 0
	for _, part := range parts {
		size += contributionsSize(part, exact)
	}
	e := encoder{make([]byte, 0, size)}
	ends := make([]int, len(parts))
	for r, part := range parts {
		e.contributions(part, ranges[r], exact)
		ends[r] = len(e.b)
	}
	out, at := make([][]byte, len(parts)), 0
	for r, end := range ends {
		out[r], at = e.b[at:end:end], end
	}
	return out
}

// contributionsSize is about what the contributions take: most differences fit a byte or
// two, and the store keeps the memory, so it is no more than that.
func contributionsSize(cs []reducer.Contribution, exact bool) int {
	entries := 0
	for _, c := range cs {
		entries += len(c.Feature)
	}
	if exact {
		return 16 + 6*len(cs) + 11*entries
	}
	return 16 + 6*len(cs) + 7*entries
}

// contributions writes one range's part; the range begins at lo.
func (e *encoder) contributions(cs []reducer.Contribution, lo uint32, exact bool) {
	width := 0
	if exact {
		width = 1
	}
	e.byte(formatContributions)
	e.uvarint(width)
	e.uvarint(len(cs))
	for _, c := range cs {
		e.uvarint(int(c.Parent))
		e.uvarint(len(c.Feature))
		e.ascending(c.Feature, lo)
		e.b = append(e.b, c.Stiff...)
		if exact {
			e.f64(c.Sum)
		} else {
			e.f64as32(c.Sum)
		}
	}
}

// decodeContributions reads one block's part of the feature range [lo, hi) over the
// given number of internal nodes, appending to dst.
func decodeContributions(dst []reducer.Contribution, b []byte, lo, hi uint32, nodes int) ([]reducer.Contribution, error) {
	d := decoder{b: b}
	d.format(formatContributions)
	exact := d.number(1) == 1
	n := d.count(2)
	each := 1 + 1 + 4 // bytes of an entry, at least
	if exact {
		each = 1 + 1 + 8
	}
	most := len(d.b) / each
	features, sums := make([]uint32, most), make([]float64, most) // of all, in one piece
	for range n {
		c := reducer.Contribution{Parent: int32(d.number(nodes - 1))}
		m := d.count(each)
		if d.err != nil || m > len(features) {
			d.fail()
			break
		}
		c.Feature, features = features[:m:m], features[m:]
		c.Sum, sums = sums[:m:m], sums[m:]
		d.ascending(c.Feature, lo, hi)
		c.Stiff = d.take(m)
		if exact {
			d.f64(c.Sum)
		} else {
			d.f32as64(c.Sum)
		}
		if m > 0 && d.err == nil {
			dst = append(dst, c)
		}
	}
	return dst, d.end("contributions of a block")
}

// encodeVectors writes the override lists of the given nodes over a range from lo on.
func encodeVectors(v *reducer.Vectors, nodes []int32, lo uint32) []byte {
	total := 0
	for _, p := range nodes {
		total += int(v.Begin[p+1] - v.Begin[p])
	}
	e := encoder{make([]byte, 0, 64+2*len(nodes)+5*total+total/8)} // most differences fit a byte
	e.byte(formatVectors)
	e.uvarint(len(nodes))
	for _, p := range nodes {
		e.uvarint(int(v.Begin[p+1] - v.Begin[p]))
	}
	for _, p := range nodes {
		e.ascending(v.Feature[v.Begin[p]:v.Begin[p+1]], lo)
	}
	for _, p := range nodes {
		e.f32(v.Value[v.Begin[p]:v.Begin[p+1]])
	}
	return e.b
}

// vectorPart is one decoded value of vectors: Begin has one entry more than the nodes
// it was written for.
type vectorPart = reducer.Vectors

// decodeVectors reads what encodeVectors wrote for so many nodes over [lo, hi).
func decodeVectors(b []byte, nodes int, lo, hi uint32) (*vectorPart, error) {
	d := decoder{b: b}
	d.format(formatVectors)
	if n := d.count(1); n != nodes {
		d.fail()
	}
	v := &vectorPart{Begin: make([]int64, nodes+1)}
	for p := range nodes {
		v.Begin[p+1] = v.Begin[p] + int64(d.number(int(hi-lo)))
	}
	total := v.Begin[nodes]
	if d.err == nil && total*5 > int64(len(d.b)) {
		d.fail()
	}
	if d.err == nil {
		v.Feature, v.Value = make([]uint32, total), make([]float32, total)
		for p := range nodes {
			d.ascending(v.Feature[v.Begin[p]:v.Begin[p+1]], lo, hi)
		}
		d.f32(v.Value)
	}
	return v, d.end("vectors of the internals")
}

// encodeOverrides writes the final weights of a block's lanes.
func encodeOverrides(os []mapper.Override) []byte {
	total := 0
	for _, o := range os {
		total += len(o.Feature)
	}
	e := encoder{make([]byte, 0, 16+4*len(os)+6*total)}
	e.byte(formatOverrides)
	e.uvarint(len(os))
	for _, o := range os {
		e.uvarint(len(o.Feature))
		e.ascending(o.Feature, 0)
		e.f32(o.Value)
	}
	return e.b
}

// decodeOverrides reads the weights of so many lanes over `width` features.
func decodeOverrides(b []byte, lanes int, width uint32) ([]mapper.Override, error) {
	d := decoder{b: b}
	d.format(formatOverrides)
	if n := d.count(1); n != lanes {
		d.fail()
	}
	out := make([]mapper.Override, lanes)
	for l := range out {
		n := d.count(5)
		out[l] = mapper.Override{Feature: make([]uint32, n), Value: make([]float32, n)}
		d.ascending(out[l].Feature, 0, width)
		d.f32(out[l].Value)
	}
	return out, d.end("weights of a block")
}
