package model

import "math"

// toHalf rounds v to IEEE 754 binary16, to the nearest, ties to even. Beyond its range
// it gives infinity.
func toHalf(v float32) uint16 {
	b := math.Float32bits(v)
	sign, b := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case b >= 0x7f800000: // infinity or no number
		if b > 0x7f800000 {
			return sign | 0x7e00
		}
		return sign | 0x7c00
	case b >= 0x477ff000: // 65520 and above round to infinity
		return sign | 0x7c00
	case b < 0x33000000: // below half of the smallest subnormal, 2^-25
		return sign
	case b < 0x38800000: // subnormal in binary16: shift the mantissa with its leading one
		shift := 126 - b>>23
		return sign | uint16(roundShift(b&0x7fffff|0x800000, shift))
	}
	return sign | uint16(roundShift(b-0x38000000, 13))
}

// roundShift is b >> n, rounded to the nearest, ties to even.
func roundShift(b, n uint32) uint32 {
	return (b + (1<<(n-1) - 1) + b>>n&1) >> n
}

// fromHalf is the float32 of a binary16.
func fromHalf(h uint16) float32 {
	sign, e, m := uint32(h&0x8000)<<16, uint32(h>>10)&0x1f, uint32(h&0x3ff)
	switch e {
	case 0: // m 2^-24, exact
		return math.Float32frombits(math.Float32bits(float32(m)*(1.0/(1<<24))) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | m<<13)
	}
	return math.Float32frombits(sign | (e+112)<<23 | m<<13)
}
