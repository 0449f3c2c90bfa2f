package shard

import "math"

// Add adds x times the differences of column c, which must be in the shard, to the sums of their
// nodes.
func (s *Packed) Add(c uint32, x float64, sums []float64) {
	switch {
	case s.values != nil:
		s.addSingles(c, x, sums)
	case s.bytes != nil:
		s.addBytes(c, x, sums)
	default:
		s.addHalves(c, x, sums)
	}
}

// addSingles adds x times the differences of column c to the sums of their nodes:
//
//	for each entry (node, d) of column c: sums[node] += x d
func (s *Packed) addSingles(c uint32, x float64, sums []float64) {
	i := int(c) - s.first
	gaps, next := s.gaps[s.gapsAt[i]:], uint32(0)
	at := 0
	for _, d := range s.values[s.begin[i]:s.begin[i+1]] {
		gap := uint32(gaps[at])
		at++
		if gap >= 0x80 {
			gap, at = longGap(gaps, at-1)
		}
		next += gap
		sums[next] += float64(x * float64(d))
		next++
	}
}

// addHalves does what addSingles does, for float16 values. The sign, exponent and mantissa bits of
// one, moved to their positions in a float64, give a value that is too small by the factor 2^1008,
// because the exponent bias is 15 there and 1023 here. x is multiplied by this factor, so the
// products are equal.
func (s *Packed) addHalves(c uint32, x float64, sums []float64) {
	i := int(c) - s.first
	scaled := x * 0x1p1008
	if math.IsInf(scaled, 0) {
		s.Each(int(c), func(node uint32, d float32) { sums[node] += float64(x * float64(d)) })
		return
	}
	gaps, next := s.gaps[s.gapsAt[i]:], uint32(0)
	at := 0
	for _, bits := range s.halves[s.begin[i]:s.begin[i+1]] {
		gap := uint32(gaps[at])
		at++
		if gap >= 0x80 {
			gap, at = longGap(gaps, at-1)
		}
		next += gap
		moved := int64(int16(bits)) << 42
		sums[next] += float64(scaled * math.Float64frombits(uint64(moved)&^(0x3f<<57)))
		next++
	}
}

// steps are the numbers that bytes stand for.
var steps = func() (s [256]float64) {
	for b := range s {
		s[b] = float64(int8(b))
	}
	return s
}()

// addBytes does what addSingles does, for values in multiples of the column's scale.
func (s *Packed) addBytes(c uint32, x float64, sums []float64) {
	i := int(c) - s.first
	gaps, next := s.gaps[s.gapsAt[i]:], uint32(0)
	at, scale := 0, float64(s.scale[i]) // of eight bits, so its products with steps are exact
	for _, b := range s.bytes[s.begin[i]:s.begin[i+1]] {
		gap := uint32(gaps[at])
		at++
		if gap >= 0x80 {
			gap, at = longGap(gaps, at-1)
		}
		next += gap
		sums[next] += float64(x * float64(scale*steps[b]))
		next++
	}
}

// longGap reads a gap of more than one byte at gaps[at:]. then is the position after it.
func longGap(gaps []byte, at int) (gap uint32, then int) {
	for shift := 0; ; shift += 7 {
		b := gaps[at]
		at++
		gap |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return gap, at
		}
	}
}
