package table

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// kind is the kind of a typed column's values. Parquet and Arrow have many more types; two types
// with the same meaning have the same kind, so a cell reads alike from either format.
type kind uint8

const (
	unusable  kind = iota // neither text nor number; logical.plural names it
	textual               // text, or bytes that are read as UTF-8
	boolean               // value.whole is 0 or 1
	signed                // value.whole
	unsigned              // value.whole has the bits of the uint64
	float                 // value.float, of logical.bits bits
	decimal               // value.whole or value.big, times 10^-logical.scale
	date                  // value.whole is days since 1970
	timeOfDay             // value.whole and value.nanos are seconds since midnight
	timestamp             // seconds and nanoseconds since 1970, without a time zone
	instant               // seconds and nanoseconds since 1970 in UTC
	uuid                  // value.text has 16 bytes
)

// logical is the type of a column. The zero value is unusable.
type logical struct {
	kind  kind
	list  bool // the cells are lists of such values
	bits  int  // 32 or 64, for a float
	scale int  // digits after the decimal point, for a decimal
	// number of the file's units in a second, for times and timestamps
	second int64
	plural string // name of the values in messages
}

// plurals names the kinds that are not numbers.
var plurals = map[kind]string{date: "dates", timeOfDay: "times of day", timestamp: "timestamps", instant: "timestamps",
	uuid: "UUIDs"}

// refused returns the type of values that a cell cannot have.
func refused(plural string) logical { return logical{plural: plural} }

// maxScale is the largest scale of a 256-bit decimal.
const maxScale = 76

// decimals returns the type of decimals of a scale.
func decimals(scale int32) logical {
	if scale < -maxScale || scale > maxScale {
		return refused(fmt.Sprintf("decimals with %d digits behind the point", scale))
	}
	return logical{kind: decimal, scale: int(scale)}
}

// value is a cell, or an entry of a list. The logical type of its column says which fields hold it.
type value struct {
	null  bool
	whole int64
	nanos int64
	float float64
	text  string
	big   *big.Int // nil if whole holds the value
}

// moment converts a number of the file's units to a time of day, or to a time since 1970.
func (t *logical) moment(units int64) value {
	sec, part := units/t.second, units%t.second
	if part < 0 {
		sec, part = sec-1, part+t.second
	}
	return value{whole: sec, nanos: part * (int64(time.Second) / t.second)}
}

// text returns the text of a value that is not null. The form is the one that polars and DuckDB
// write to CSV. Times have as many groups of three fractional digits as they need. Timestamps have
// ISO 8601's form and are in UTC if the file knows their instant. Decimals have all digits of their
// scale. NaN gives an empty text, as it stands for a missing value, like null.
func (t *logical) text(v value) (string, error) {
	switch t.kind {
	case textual:
		return v.text, nil
	case boolean:
		return strconv.FormatBool(v.whole != 0), nil
	case signed:
		return strconv.FormatInt(v.whole, 10), nil
	case unsigned:
		return strconv.FormatUint(uint64(v.whole), 10), nil
	case float:
		return floatText(v.float, t.bits), nil
	case decimal:
		return decimalText(v, t.scale), nil
	case date:
		return momentText(time.DateOnly, value{whole: v.whole * (24 * 60 * 60)}, "")
	case timeOfDay:
		return momentText(time.TimeOnly, v, "")
	case timestamp:
		return momentText("2006-01-02T15:04:05", v, "")
	case instant:
		return momentText("2006-01-02T15:04:05", v, "Z")
	case uuid:
		if b := v.text; len(b) == 16 {
			return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:]), nil
		}
		return "", errors.New("holds a UUID that has not 16 bytes")
	}
	return "", fmt.Errorf("holds %s: want a text, a number or a list of them", t.plural)
}

// number returns the number of a value, or NaN for null. Texts are parsed as cells of CSV are.
func (t *logical) number(v value) (float64, error) {
	if v.null {
		return math.NaN(), nil
	}
	switch t.kind {
	case textual:
		return parseNumber(v.text)
	case boolean, signed:
		return float64(v.whole), nil
	case unsigned:
		return float64(uint64(v.whole)), nil
	case float:
		return v.float, nil
	case decimal:
		return decimalNumber(v, t.scale)
	}
	what := t.plural
	if what == "" {
		what = plurals[t.kind]
	}
	return 0, fmt.Errorf("holds %s: want a number or a list of numbers", what)
}

// floatText returns the shortest text that parses to the same number of the given bits, or "" for
// NaN. Whole numbers keep a decimal point, as nearly all programs write them in CSV and JSON.
func floatText(x float64, bits int) string {
	size, small := math.Abs(x), 1e-5
	if bits == 32 {
		small = float64(float32(small)) // the text 0.00001 is parsed to this value
	}
	switch {
	case math.IsNaN(x):
		return ""
	case math.IsInf(x, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(x, 'f', -1, bits)), "+")
	case size != 0 && size < small || size >= 1e16:
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', -1, bits), "e")
		return mantissa + "e" + exponent[:1] + strings.TrimPrefix(exponent[1:], "0") // Go writes two digits at least
	}
	s := strconv.FormatFloat(x, 'f', -1, bits)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func decimalText(v value, scale int) string {
	digits := strconv.FormatInt(v.whole, 10)
	if v.big != nil {
		digits = v.big.String()
	}
	digits, minus := strings.CutPrefix(digits, "-")
	switch {
	case scale > 0:
		digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
		digits = digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	case scale < 0 && digits != "0":
		digits += strings.Repeat("0", -scale)
	}
	if minus {
		return "-" + digits
	}
	return digits
}

// powers holds the powers of ten that a float64 represents exactly.
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// decimalNumber returns the float64 nearest to a decimal.
func decimalNumber(v value, scale int) (float64, error) {
	// whole numbers up to it are exact, so only the division rounds
	const exact = 1 << 53
	if v.big == nil && scale >= 0 && scale < len(powers) && v.whole >= -exact && v.whole <= exact {
		return float64(v.whole) / powers[scale], nil
	}
	return strconv.ParseFloat(decimalText(v, scale), 64)
}

// bigEndian decodes a decimal's bytes, which are in two's complement.
func bigEndian(b string) value {
	if len(b) <= 8 {
		var v int64
		if len(b) > 0 {
			v = int64(int8(b[0]))
		}
		for i := 1; i < len(b); i++ {
			v = v<<8 | int64(b[i])
		}
		return value{whole: v}
	}
	n := new(big.Int).SetBytes([]byte(b))
	if b[0] >= 0x80 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return bigDecimal(n)
}

func bigDecimal(n *big.Int) value {
	if n.IsInt64() {
		return value{whole: n.Int64()}
	}
	return value{big: n}
}

// yearZero and yearTenThousand are the first seconds of these years. ISO 8601 has a form for years
// outside only by mutual agreement.
const yearZero, yearTenThousand = -62167219200, 253402300800

// momentText formats a time by a layout of package time, followed by the fraction of the second.
func momentText(layout string, v value, zone string) (string, error) {
	if v.whole < yearZero || v.whole >= yearTenThousand {
		return "", errors.New("holds a date outside the years 0 to 9999")
	}
	s := time.Unix(v.whole, v.nanos).UTC().Format(layout)
	if v.nanos != 0 {
		part := fmt.Sprintf(".%09d", v.nanos)
		for strings.HasSuffix(part, "000") {
			part = strings.TrimSuffix(part, "000")
		}
		s += part
	}
	return s + zone, nil
}

// columnar reads a file whose format has typed columns.
type columnar interface {
	next() (line int64, err error)
	find(name string) int
	columns() []string
	// column returns the name and the type of a column that find has returned.
	column(k int) (name string, t *logical)
	// each calls f with a cell of the current row, or with each entry of a list. A null list has no
	// entries, and list is then false.
	each(k int, f func(v value) error) (list bool, err error)
	close()
}

// typed implements records for a columnar file: it converts cells to texts and numbers by their
// types.
type typed struct{ columnar }

func (r typed) texts(k int, dst []string) ([]string, error) {
	name, t := r.column(k)
	_, err := r.each(k, func(v value) error {
		if v.null {
			return nil
		}
		s, err := t.text(v)
		if err == nil && s != "" {
			dst = append(dst, s)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("column %q %w", name, err)
	}
	return dst, err
}

func (r typed) numbers(k int, dst []float64) ([]float64, bool, error) {
	_, t := r.column(k)
	list, err := r.each(k, func(v value) error {
		x, err := t.number(v)
		dst = append(dst, x)
		return err
	})
	return dst, list, err
}
