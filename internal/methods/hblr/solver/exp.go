package solver

import "math"

// Exp and Log return the same bits on every machine. Those of package math do not: assembly and
// fused products round the last bit differently. The error of both is below one unit of it
// (FreeBSD's e_exp.c and e_log.c).

const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
)

// Exp returns e to the x.
func Exp(x float64) float64 {
	switch {
	case x != x || x > 7.09782712893383973096e+02:
		return x + math.Inf(1)
	case x < -7.45133219101941108420e+02:
		return 0
	}
	k := int(float64(x*math.Log2E) + math.Copysign(0.5, x))
	if k <= -1021 || k >= 1023 { // at the ends of float64's range
		return math.Ldexp(fraction(x, k), k)
	}
	return fraction(x, k) * power(k)
}

// power returns 2 to the k, if that is a normal number.
func power(k int) float64 { return math.Float64frombits(uint64(k+1023) << 52) }

// fraction returns e to the x - k log 2, k being the whole number nearest to x / log 2.
func fraction(x float64, k int) float64 {
	hi := x - float64(float64(k)*ln2Hi)
	lo := float64(float64(k) * ln2Lo)
	r := hi - lo
	t := float64(r * r)
	p := -1.65339022054652515390e-06 + float64(t*4.13813679705723846039e-08)
	p = 6.61375632143793436117e-05 + float64(t*p)
	p = -2.77777777770155933842e-03 + float64(t*p)
	p = 1.66666666666666657415e-01 + float64(t*p)
	c := r - float64(t*p)
	return 1 - ((lo - float64(r*c)/(2-c)) - hi)
}

// Log returns the natural logarithm of a positive number.
func Log(x float64) float64 {
	f, exponent := x, 0
	if x >= 0x1p-1022 && x <= math.MaxFloat64 { // math.Frexp of a normal number
		bits := math.Float64bits(x)
		f, exponent = math.Float64frombits(bits&(1<<52-1)|1022<<52), int(bits>>52)-1022
	} else {
		f, exponent = math.Frexp(x)
	}
	if f < math.Sqrt2/2 {
		f *= 2
		exponent--
	}
	return logOf(f-1, float64(exponent))
}

// logOf returns log(1 + f) + k log 2, f being between sqrt(1/2) - 1 and sqrt(2) - 1.
func logOf(f, k float64) float64 {
	s := f / (2 + f)
	z := float64(s * s)
	w := float64(z * z)
	t1 := 2.222219843214978396e-01 + float64(w*1.531383769920937332e-01)
	t1 = float64(w * (3.999999999940941908e-01 + float64(w*t1)))
	t2 := 1.818357216161805012e-01 + float64(w*1.479819860511658591e-01)
	t2 = 2.857142874366239149e-01 + float64(w*t2)
	t2 = float64(z * (6.666666666666735130e-01 + float64(w*t2)))
	half := float64(f * f / 2)
	return float64(k*ln2Hi) - ((half - (float64(s*(half+t1+t2)) + float64(k*ln2Lo))) - f)
}

// logarithm returns Log of a number from 1 to 2.
func logarithm(u float64) float64 {
	if u >= math.Sqrt2 {
		return logOf(u/2-1, 1)
	}
	return logOf(u-1, 0)
}
