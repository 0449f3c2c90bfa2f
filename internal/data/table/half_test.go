package table

import (
	"bufio"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"taxon/internal/fs"
)

// TestHalf checks that every 16-bit number is read as the same value from Arrow, Parquet and NumPy:
// m 2^-24 below 2^-14, (1024+m) 2^(e-25) from there.
func TestHalf(t *testing.T) {
	b := array.NewFloat16Builder(memory.DefaultAllocator)
	for h := range 1 << 16 {
		b.Append(float16.FromBits(uint16(h)))
	}
	column, of := b.NewFloat16Array(), logical{kind: float, bits: 32}
	for h := range 1 << 16 {
		e, m := h>>10&0x1f, float64(h&0x3ff)
		want := math.Ldexp(m, -24)
		switch {
		case e == 31 && m != 0:
			want = math.NaN()
		case e == 31:
			want = math.Inf(1)
		case e > 0:
			want = math.Ldexp(1024+m, e-25)
		}
		if h >= 1<<15 {
			want = -want
		}
		for _, got := range []float64{float64(Half(uint16(h))), of.arrowValue(column, h).float} {
			if math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
				t.Fatalf("%#04x is %g, want %g", h, got, want)
			}
		}
	}
}

// TestFloatText checks that the limits at which an exponent is written depend on the number, not on
// its bits.
func TestFloatText(t *testing.T) {
	for x, want := range map[float64]string{1e-5: "0.00001", 9e-6: "9e-6", 1e16: "1e+16", 2.5: "2.5", 0: "0.0"} {
		for _, bits := range []int{32, 64} {
			y := x
			if bits == 32 {
				y = float64(float32(x))
			}
			if got := floatText(y, bits); got != want {
				t.Errorf("%g in %d bits: %s, want %s", x, bits, got, want)
			}
		}
	}
}

// TestHalfText checks that a 16-bit float is written with the digits that identify it among 32-bit
// floats, as polars writes it.
func TestHalfText(t *testing.T) {
	for x, want := range map[float32]string{0.1: "0.099975586", 0.5: "0.5", 2: "2.0"} {
		if got := floatText(float64(Half(float16.New(x).Uint16())), 32); got != want {
			t.Errorf("%g: %s, want %s", x, got, want)
		}
	}
}

// TestWriters reads the forms of polars and DuckDB in CSV and JSON that differ from the text of the
// value: as a label, the form is kept; as a number, it has the same value.
func TestWriters(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"polars.csv", "x,l\nNaN,NaN\n", "2  NaN|"}, {"duckdb.csv", "x,l\nnan,nan\n", "2  nan|"},
		{"duckdb.csv", "x,l\n1e-05,1e-05\n", "2  1e-05| 1:1e-05"},
		{"polars.jsonl", "{\"x\":null,\"l\":null}\n", "1  |"},
		{"duckdb.jsonl", "{\"x\":1.100000023841858,\"l\":1.100000023841858}\n", "1  1.100000023841858| 1:1.100000023841858"},
		{"duckdb.jsonl", "{\"x\":2.1,\"l\":2.1}\n", "1  2.1| 1:2.1"},
		{"duckdb.jsonl", "{\"x\":NaN,\"l\":1}\n", ""},
	} {
		o := Options{Columns: Columns{Features: []string{"x"}, Label: "l"}}
		rows, _, err := readPath(t, write(t, c.name, c.content), o, all)
		got := strings.Join(rows, "\n")
		if got != c.want || (err == nil) != (c.want != "") || err != nil && !fs.IsInput(err) {
			t.Errorf("%s: %q, %v; want %q", c.content, got, err, c.want)
		}
	}
}

// TestNumPyText checks that a NUL within a text of NumPy neither ends the text nor counts as
// padding.
func TestNumPyText(t *testing.T) {
	n := &npy{kind: 'U', size: 3, buf: make([]byte, 12)}
	for text, want := range map[string]string{"a\x00\x00\x00\x00\x00\x00\x00b\x00\x00\x00": "a\x00b",
		"a\x00\x00\x00b\x00\x00\x00\x00\x00\x00\x00": "ab"} {
		n.r = bufio.NewReader(strings.NewReader(text))
		if got, err := n.text(); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
