// Package text words numbers and foreign text for people: counts, sizes, one line. It is pure.
package text

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Line joins the lines of a text and takes control characters out of it, which
// input quoted in an error may hold.
func Line(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ReplaceAll(strings.Join(lines, "; "), "\t", " "))
}

// Quoted quotes a value that could not be told from the text around it.
func Quoted(s string) string {
	if s == "" || strings.ContainsAny(s, " \t\n\"'`") {
		return strconv.Quote(s)
	}
	return s
}

// Number writes a whole number with commas: 1,234,567.
func Number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return sign + b.String()
}

// Counted writes a count with its noun: 1 root, 2,000 roots.
func Counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + many
}

// Bytes is the size in the largest binary unit that keeps it at 1 or more.
func Bytes(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + "B"
	}
	power := (bits.Len64(uint64(n)) - 1) / 10
	power = min(power, 4)
	x := float64(n) / float64(int64(1)<<(10*power))
	digits := 0
	if x < 10 && x != math.Trunc(x) {
		digits = 1
	}
	return strconv.FormatFloat(x, 'f', digits, 64) + string("KMGT"[power-1]) + "iB"
}
