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

// kind is what a typed column holds. Parquet and Arrow have many more types; two that mean the
// same are one kind, so a cell reads alike from either.
type kind uint8

const (
	unusable  kind = iota // no text and no number: logical.plural says what it is
	textual               // texts, and bytes that are taken for UTF-8
	boolean               // value.whole is 0 or 1
	signed                // value.whole
	unsigned              // value.whole has the bits of the uint64
	float                 // value.float, of logical.bits bits
	decimal               // value.whole or value.big, in units of 10^-logical.scale
	date                  // value.whole is days since 1970
	timeOfDay             // value.whole and value.nanos are seconds since midnight
	timestamp             // the same since 1970, in no particular zone
	instant               // the same since 1970 in UTC
	uuid                  // value.text has 16 bytes
)

// logical is the type of a column. The zero value is unusable.
type logical struct {
	kind  kind
	list  bool // the cells are lists of such values
	bits  int  // of a float: 32 or 64
	scale int  // of a decimal: its digits behind the point
	// of times and timestamps: how many of the file's units are a second
	second int64
	plural string // what the values are called in messages
}

// plurals name the kinds that are no numbers.
var plurals = map[kind]string{date: "dates", timeOfDay: "times of day", timestamp: "timestamps", instant: "timestamps",
	uuid: "UUIDs"}

// refused is the type of values that a cell can't be.
func refused(plural string) logical { return logical{plural: plural} }

// maxScale is the largest scale of a decimal of 256 bits.
const maxScale = 76

// decimals is the type of decimals.
func decimals(scale int32) logical {
	if scale < -maxScale || scale > maxScale {
		return refused(fmt.Sprintf("decimals with %d digits behind the point", scale))
	}
	return logical{kind: decimal, scale: int(scale)}
}

// value is a cell or an entry of a list. Its column's logical type says which fields hold it.
type value struct {
	null  bool
	whole int64
	nanos int64
	float float64
	text  string
	big   *big.Int // nil: whole
}

// moment is the time of day, or since 1970, of so many of the file's units.
func (t *logical) moment(units int64) value {
	sec, part := units/t.second, units%t.second
	if part < 0 {
		sec, part = sec-1, part+t.second
	}
	return value{whole: sec, nanos: part * (int64(time.Second) / t.second)}
}

// text is the text of a value that is not null: as polars and DuckDB write it to CSV, times with
// as many groups of three digits behind the second as there are, timestamps in ISO 8601's form
// and, where the file knows their instant, in UTC. Decimals keep the digits of their scale. NaN
// is missing, as null is, and gives an empty text.
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

// number is the number of a value; NaN for null. Texts are read as numbers, as cells of CSV are.
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

// floatText is the shortest text that gives the number back in so many bits; "" for NaN. Whole
// numbers keep a point, as nearly all programs write them in CSV and JSON.
func floatText(x float64, bits int) string {
	size, small := math.Abs(x), 1e-5
	if bits == 32 {
		small = float64(float32(small)) // what is written as 0.00001
	}
	switch {
	case math.IsNaN(x):
		return ""
	case math.IsInf(x, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(x, 'f', -1, bits)), "+")
	case size != 0 && size < small || size >= 1e16:
		mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', -1, bits), "e")
		return mantissa + "e" + exponent[:1] + strings.TrimPrefix(exponent[1:], "0") // Go has two digits at least
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

// powers are the powers of ten that are exact in a float64.
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// decimalNumber is the float64 nearest to a decimal.
func decimalNumber(v value, scale int) (float64, error) {
	const exact = 1 << 53 // whole numbers up to it are, so the division rounds once
	if v.big == nil && scale >= 0 && scale < len(powers) && v.whole >= -exact && v.whole <= exact {
		return float64(v.whole) / powers[scale], nil
	}
	return strconv.ParseFloat(decimalText(v, scale), 64)
}

// bigEndian is the number of a decimal's bytes, in two's complement.
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

// The first second of the year 0, and the first after the year 9999. ISO 8601 has a form for
// others only if both sides agree on one.
const yearZero, yearTenThousand = -62167219200, 253402300800

// momentText writes a time by a layout of package time, with what is behind the second.
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

// columnar is a file of a format whose columns have types.
type columnar interface {
	next() (line int64, err error)
	find(name string) int
	columns() []string
	// column is the name and type of a column that find has found.
	column(k int) (name string, t *logical)
	// each calls f with a cell of the present row, or with each entry of a list. A list that is
	// null has none, and counts as no list.
	each(k int, f func(v value) error) (list bool, err error)
	close()
}

// typed reads the cells of a columnar file as texts and numbers, by their types.
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
