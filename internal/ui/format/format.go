// Package format formats numbers and texts for people.
package format

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Count writes a whole number with commas: 1,234,567.
func Count(n int64) string {
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
	return Count(n) + " " + many
}

// Clock writes a duration as 0:07, 12:03 or 3:04:05, rounded to seconds.
func Clock(d time.Duration) string {
	s := int64(d.Round(time.Second) / time.Second)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// Seconds writes a measured time to about three digits: 0.041 s, 4.21 s, 312 s.
func Seconds(s float64) string {
	switch {
	case s < 0.1:
		return fmt.Sprintf("%.3f s", s)
	case s < 10:
		return fmt.Sprintf("%.2f s", s)
	case s < 100:
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%.0f s", s)
}

// maxLeft bounds the remaining times that are shown, in seconds. An estimate of more than a week is
// too rough to plan by.
const maxLeft = 7 * 24 * 3600

// Left formats a remaining time: 42 s, 2 m 10 s, 10 h 32 m, 3 d 4 h. It is empty if seconds is not
// positive, or too large to be meaningful.
func Left(seconds float64) string {
	if !(seconds > 0 && seconds <= maxLeft) {
		return ""
	}
	s := max(1, int64(math.Round(seconds)))
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d m %d s", s/60, s%60)
	case s < 24*3600:
		return fmt.Sprintf("%d h %d m", s/3600, s/60%60)
	}
	return fmt.Sprintf("%d d %d h", s/(24*3600), s/3600%24)
}

// Between formats a range of remaining times in one unit: 20 to 45 s, 4 to 7 min, 2 to 3 h, 1 to 2
// d. If both ends are equal it is one time: 5 min. It is empty if the times are not positive, or
// too large to be meaningful.
func Between(low, high float64) string {
	if !(high > 0 && high <= maxLeft && low <= high) {
		return ""
	}
	unit, name := 1.0, "s"
	switch {
	case high >= 48*3600:
		unit, name = 24*3600, "d"
	case high >= 120*60:
		unit, name = 3600, "h"
	case high >= 100:
		unit, name = 60, "min"
	}
	from, to := int64(max(math.Floor(low/unit), 0)), int64(math.Ceil(high/unit))
	switch from {
	case to:
		return fmt.Sprintf("%d %s", to, name)
	case 0:
		return fmt.Sprintf("up to %d %s", to, name)
	}
	return fmt.Sprintf("%d to %d %s", from, to, name)
}

// Gap formats a relative gap with three digits: 1.20e-02, but from 1 on without an exponent: 1.23,
// 45.6 or 12,345.
func Gap(gap float64) string {
	switch {
	case gap >= 1 && gap < 99.95:
		return fmt.Sprintf("%.3g", gap)
	case gap >= 99.95 && gap < 1e15:
		return Count(int64(math.Round(gap)))
	}
	return fmt.Sprintf("%.2e", gap)
}

// OneLine joins the lines of a text and makes it Safe.
func OneLine(s string) string {
	lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' })
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	return Safe(strings.ReplaceAll(strings.Join(lines, "; "), "\t", " "))
}

// Safe replaces everything that a terminal would interpret instead of showing it, because text from
// other people may contain it: control characters except newlines and tabs, characters that change
// the writing direction, and invalid UTF-8.
func Safe(s string) string {
	return strings.Map(func(r rune) rune {
		if obeyed(r) && r != '\n' && r != '\t' {
			return '?'
		}
		return r
	}, s)
}

// obeyed reports whether a terminal may interpret a character.
func obeyed(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' ||
		r == utf8.RuneError
}

// SafeJSON escapes in a JSON document the characters that Safe replaces. The meaning of the
// document does not change.
func SafeJSON(doc []byte) []byte {
	if !bytes.ContainsFunc(doc, func(r rune) bool { return obeyed(r) && r >= 0x7f }) {
		return doc
	}
	var out []byte
	for _, r := range string(doc) {
		if obeyed(r) && r >= 0x7f {
			out = fmt.Appendf(out, "\\u%04x", r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// Bytes formats a size in the largest binary unit in which it is at least 1.
func Bytes(n int64) string { return BytesRounded(uint64(max(n, 0)), math.RoundToEven) }

// BytesRounded is Bytes with the last digit rounded by round: math.Ceil for a size that must
// suffice, math.Floor for one that is available.
func BytesRounded(n uint64, round func(float64) float64) string {
	if n < 1024 {
		return strconv.FormatUint(n, 10) + "B"
	}
	power := min((bits.Len64(n)-1)/10, 4)
	x := float64(n) / float64(int64(1)<<(10*power))
	scale, digits := 1.0, 0
	if x < 10 && x != math.Trunc(x) {
		scale, digits = 10, 1
	}
	return strconv.FormatFloat(round(x*scale)/scale, 'f', digits, 64) + string("KMGT"[power-1]) + "iB"
}

// QuoteIfNeeded quotes a value that could be confused with the text around it.
func QuoteIfNeeded(s string) string {
	if s == "" || strings.ContainsAny(s, " \t\n\"'`") {
		return strconv.Quote(s)
	}
	return s
}

// ShellWord quotes a word that a shell would split or expand.
func ShellWord(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !plainInShell(r) }) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// plainInShell reports whether r needs no quoting in a shell.
func plainInShell(r rune) bool {
	return r > 0x7f || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
		strings.ContainsRune("-_./=:,@%+", r)
}

// PerInstance returns n divided by the number of instances, as text in brackets.
func PerInstance(n, instances int64) string {
	if instances == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.2f an instance)", float64(n)/float64(instances))
}
