package shard

import "math"

// Add adds x times the differences of column c, which is one of the shard's, to the sums of their nodes.
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

// addHalves is addSingles for values in float16. Sign, exponent and digits of one, moved to their
// places in a float64, are short of 2^1008: exponents count from -15 there, and from -1023 here.
// So x is larger by that, and products are the same.
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

// addBytes is addSingles for values in steps of the column's scale.
func (s *Packed) addBytes(c uint32, x float64, sums []float64) {
	i := int(c) - s.first
	gaps, next := s.gaps[s.gapsAt[i]:], uint32(0)
	at, scale := 0, float64(s.scale[i]) // of eight bits: its products with steps are exact
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

// longGap reads a gap of more than one byte at gaps[at:]; then is where the next one begins.
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
