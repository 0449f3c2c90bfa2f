package mapper

import "math/bits"

// Lanes is the number of classes that share a pass over a row: sixteen float32 weights
// fill one 64-byte cache line a feature.
const Lanes = 16

// fullWidth is the number of active lanes from which all sixteen are scored together;
// below it four chains at a time cost less (measured with BenchmarkScore).
const fullWidth = 9

// real is the arithmetic of a descent: float32 is fast, float64 goes below its rounding.
type real interface{ float32 | float64 }

// The kernels. Every lane sums a row's products in the row's order, multiply and add
// unfused (the explicit T(...) stops the compiler from fusing), so the lanes' bits do
// not depend on which kernel ran or on which other lanes were active.

// score sets s[l] = sum_j val[j] * w[idx[j]][l] for the lanes of mask, started from
// bias*w[last][l] when bias is not zero (w's last line is the bias feature's).
// Other lanes of s are undefined.
func score[T real](w [][Lanes]T, idx []uint32, val []float32, bias T, mask uint16, s *[Lanes]T) {
	if bits.OnesCount16(mask) >= fullWidth {
		scoreHalf(w, idx, val, bias, 0, s)
		scoreHalf(w, idx, val, bias, 8, s)
		return
	}
	for mask != 0 {
		scoreFour(w, idx, val, bias, &mask, s)
	}
}

// scoreHalf scores eight adjacent lanes from `from` (0 or 8).
func scoreHalf[T real](w [][Lanes]T, idx []uint32, val []float32, bias T, from int, s *[Lanes]T) {
	var s0, s1, s2, s3, s4, s5, s6, s7 T
	if bias != 0 {
		p := (*[8]T)(w[len(w)-1][from:])
		s0, s1, s2, s3 = bias*p[0], bias*p[1], bias*p[2], bias*p[3]
		s4, s5, s6, s7 = bias*p[4], bias*p[5], bias*p[6], bias*p[7]
	}
	val = val[:len(idx)]
	for j, c := range idx {
		x := T(val[j])
		p := (*[8]T)(w[c][from:])
		s0 += T(x * p[0])
		s1 += T(x * p[1])
		s2 += T(x * p[2])
		s3 += T(x * p[3])
		s4 += T(x * p[4])
		s5 += T(x * p[5])
		s6 += T(x * p[6])
		s7 += T(x * p[7])
	}
	q := (*[8]T)(s[from:])
	q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7] = s0, s1, s2, s3, s4, s5, s6, s7
}

// scoreFour scores the lowest four lanes of mask and removes them from it.
func scoreFour[T real](w [][Lanes]T, idx []uint32, val []float32, bias T, mask *uint16, s *[Lanes]T) {
	m := *mask
	l0 := bits.TrailingZeros16(m) & 15
	m &= m - 1
	l1, l2, l3 := l0, l0, l0
	if m != 0 {
		l1 = bits.TrailingZeros16(m) & 15
		m &= m - 1
	}
	if m != 0 {
		l2 = bits.TrailingZeros16(m) & 15
		m &= m - 1
	}
	if m != 0 {
		l3 = bits.TrailingZeros16(m) & 15
		m &= m - 1
	}
	*mask = m
	var s0, s1, s2, s3 T
	if bias != 0 {
		p := &w[len(w)-1]
		s0, s1, s2, s3 = bias*p[l0], bias*p[l1], bias*p[l2], bias*p[l3]
	}
	val = val[:len(idx)]
	for j, c := range idx {
		x := T(val[j])
		p := &w[c]
		s0 += T(x * p[l0])
		s1 += T(x * p[l1])
		s2 += T(x * p[l2])
		s3 += T(x * p[l3])
	}
	s[l0], s[l1], s[l2], s[l3] = s0, s1, s2, s3
}

// score64 is one lane's score in float64; products of float32 are exact in it.
func score64(w [][Lanes]float32, idx []uint32, val []float32, bias float32, l int) float64 {
	s := 0.0
	if bias != 0 {
		s = float64(bias) * float64(w[len(w)-1][l])
	}
	for j, c := range idx {
		s += float64(float64(val[j]) * float64(w[c][l]))
	}
	return s
}

// update adds delta[l] * x to the lanes of mask: w[idx[j]][l] += val[j] * delta[l].
func update[T real](w [][Lanes]T, idx []uint32, val []float32, bias T, mask uint16, delta *[Lanes]T) {
	for ; mask != 0; mask &= mask - 1 {
		l := bits.TrailingZeros16(mask) & 15
		d := delta[l]
		if bias != 0 {
			w[len(w)-1][l] += T(bias * d)
		}
		for j, c := range idx {
			w[c][l] += T(T(val[j]) * d)
		}
	}
}
