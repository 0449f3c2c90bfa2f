package dataset

import (
	"errors"
	"math"
	"strconv"
	"unsafe"
)

var (
	errNumber = errors.New("not a number")
	errFinite = errors.New("values must be finite")
	errRange  = errors.New("too large for float32 (at most 3.4e38)")
)

// pow10 holds the powers of ten that float64 represents exactly.
var pow10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// parseValue parses a decimal number and rounds it correctly to float32. The form is an optional
// sign, digits with at most one point, and an optional exponent.
func parseValue(s []byte) (float32, error) {
	i, neg := 0, false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		i = 1
	}
	var mantissa uint64
	digits, exp, point := 0, 0, false
	for ; i < len(s); i++ {
		c := s[i] - '0'
		if c <= 9 {
			digits++
			if mantissa < 1<<59 { // one more digit cannot overflow
				mantissa = mantissa*10 + uint64(c)
			} else {
				return parseSlow(s)
			}
			if point {
				exp--
			}
			continue
		}
		if s[i] == '.' && !point {
			point = true
			continue
		}
		break
	}
	if digits == 0 {
		return 0, notNumber(s)
	}
	if i < len(s) {
		e, ok := parseExponent(s[i:])
		if !ok {
			return 0, notNumber(s)
		}
		exp += e
	}
	if v, ok := compose(mantissa, exp, neg); ok {
		return v, nil
	}
	return parseSlow(s)
}

// fastValue parses the plain form that nearly all files use, [-]digits[.digits] with at most 15
// digits, up to a blank or the end of s. n is the number of bytes parsed; it is 0 if the number
// needs parseValue.
func fastValue(s []byte) (v float32, n int) {
	i, neg := 0, false
	if len(s) > 0 && s[0] == '-' {
		i, neg = 1, true
	}
	start := i
	var mantissa uint64
	for ; i < len(s) && s[i]-'0' <= 9; i++ {
		mantissa = mantissa*10 + uint64(s[i]-'0')
	}
	digits, exp := i-start, 0
	if i < len(s) && s[i] == '.' {
		i++
		point := i
		for ; i < len(s) && s[i]-'0' <= 9; i++ {
			mantissa = mantissa*10 + uint64(s[i]-'0')
		}
		exp = i - point
		digits += exp
	}
	// 15 digits stay below 2^53. A longer run may have wrapped around, and is left to parseValue.
	if digits == 0 || digits > 15 || i < len(s) && s[i] != ' ' && s[i] != '\t' {
		return 0, 0
	}
	v, ok := compose(mantissa, -exp, neg)
	if !ok {
		return 0, 0
	}
	return v, i
}

// parseExponent parses an e followed by a signed integer. Huge exponents saturate.
func parseExponent(s []byte) (int, bool) {
	if s[0]|0x20 != 'e' {
		return 0, false
	}
	s = s[1:]
	neg := false
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	if len(s) == 0 {
		return 0, false
	}
	e := 0
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		e = min(e*10+int(c-'0'), 1<<20)
	}
	if neg {
		e = -e
	}
	return e, true
}

// compose returns mantissa * 10^exp, and true if float64 arithmetic gives the correctly rounded
// float32.
//
// mantissa and the power are exact, and a single operation rounds, so d is the float64 nearest to
// the number. Rounding d again is wrong only if d is midway between two float32 (its low 29 bits
// are a 1 followed by zeros). compose returns false for such numbers, and for those at the ends of
// float32's range, whose midpoints have another bit pattern.
func compose(mantissa uint64, exp int, neg bool) (float32, bool) {
	if mantissa == 0 {
		return 0, true
	}
	if mantissa >= 1<<53 || exp < -22 || exp > 22 {
		return 0, false
	}
	d := float64(mantissa)
	if exp < 0 {
		d /= pow10[-exp]
	} else {
		d *= pow10[exp]
	}
	if math.Float64bits(d)&(1<<29-1) == 1<<28 || d < 0x1p-125 || d > 0x1p127 {
		return 0, false
	}
	if neg {
		d = -d
	}
	return float32(d), true
}

// parseSlow leaves the rounding to strconv. s may still end with invalid characters.
func parseSlow(s []byte) (float32, error) {
	for _, c := range s {
		// strconv would also accept hexadecimal digits, underscores, inf and nan.
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c|0x20 != 'e' {
			return 0, notNumber(s)
		}
	}
	v, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(s), len(s)), 32)
	if errors.Is(err, strconv.ErrRange) {
		return 0, errRange
	}
	if err != nil {
		return 0, errNumber
	}
	return float32(v), nil
}

// notNumber returns the error for a token that is no finite number. Infinities and NaN, which other
// tools write, get a message of their own.
func notNumber(s []byte) error {
	if isNonFinite(s) {
		return errFinite
	}
	return errNumber
}

func isNonFinite(s []byte) bool {
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	if len(s) > 8 {
		return false
	}
	var lower [8]byte
	for i, c := range s {
		lower[i] = c | 0x20
	}
	switch string(lower[:len(s)]) {
	case "nan", "inf", "infinity":
		return true
	}
	return false
}
