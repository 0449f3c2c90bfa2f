package dataset

import "math"

// ln is the natural logarithm of x >= 1, with the same bits on every CPU: math.Log is
// assembly on some and fused on others, and its last bit would move fingerprints.
//
//	x = m 2^e, m in [sqrt(1/2), sqrt(2)); s = (m-1)/(m+1)
//	ln x = e ln 2 + 2 (s + s^3/3 + s^5/5 + ...)
//
// |s| < 0.1716, so 12 terms leave less than 1e-18. The conversions stop fusing.
func ln(x float64) float64 {
	const ln2Hi, ln2Lo = 6.93147180369123816490e-01, 1.90821492927058770002e-10
	m, exp := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, exp = 2*m, exp-1
	}
	e := float64(exp)
	s := (m - 1) / (m + 1)
	square := float64(s * s)
	series := 0.0
	for k := 23; k >= 3; k -= 2 {
		series = float64((series + 1/float64(k)) * square)
	}
	rest := 2*s + (float64(2*s*series) + float64(e*ln2Lo))
	return float64(e*ln2Hi) + rest
}
