package dataset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// checkValue compares both parsers with strconv, which rounds correctly.
func checkValue(t interface{ Errorf(string, ...any) }, s string) {
	want, werr := strconv.ParseFloat(s, 32)
	got, err := parseValue([]byte(s))
	if (err == nil) != (werr == nil) || err == nil && got != float32(want) {
		t.Errorf("%s: %v, %v; strconv %v, %v", s, got, err, float32(want), werr)
	}
	if fast, n := fastValue([]byte(s)); n != 0 && (werr != nil || n != len(s) || fast != float32(want)) {
		t.Errorf("%s: fast %v; strconv %v, %v", s, fast, float32(want), werr)
	}
}

func TestValueRounding(t *testing.T) {
	for _, s := range []string{
		"0", "-0", "1", "0.1", "16777217", "16777219", "33554434.5", "1.00000005960464477539", "1.000000059604644775390625",
		"1.0000000596046448", "0.000000059604644775390625", "3.4028235677973366e38", "3.4028235e38", "3.40282346638528860e38",
		"1.1754943508222875e-38", "1e-45", "7e-46", "1.401298464324817e-45", "2.1019476964872256e-45", "5877471754111438e-54",
		"9007199254740993", "9007199254740993e-3", "123456789012345678901234567890e-20", "0.30000000000000004", "1e22",
		"1e23", "1e-22", "1e-23",
		"000000000000000000000000001", "0.00000000000000000000000000000000000000000000001", "1e999999999999999999999",
		"1e-999999999999999999999",
		"999999999999999", "9999999999999999", "5764607523034234880", "57646075230342348800", "184467440737095516160",
	} {
		checkValue(t, s)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		f := math.Float32frombits(rng.Uint32())
		if f-f != 0 {
			continue
		}
		checkValue(t, strconv.FormatFloat(float64(f), 'g', 1+rng.IntN(18), 64))
		checkValue(t, strconv.FormatFloat(float64(f), 'g', -1, 32))
		// midpoints between neighbours and adjacent numbers, with digits that fit the fast path
		g := math.Nextafter32(f, math.MaxFloat32)
		checkValue(t, strconv.FormatFloat((float64(f)+float64(g))/2, 'g', 13+rng.IntN(8), 64))
		checkValue(t, fmt.Sprintf("%d.%0*d", rng.IntN(1<<25), 1+rng.IntN(9), rng.IntN(1e9)))
	}
}

func TestValueProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkValue(t, rapid.StringMatching(`[-+]?[0-9]{1,22}(\.[0-9]{0,22})?([eE][-+]?[0-9]{1,3})?`).Draw(t, "s"))
	})
}

func FuzzValue(f *testing.F) {
	for _, s := range []string{"1.5", "-1e-7", "nan", "0x1p3", "1_0", "", ".", "+", "1e", "inf"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseValue([]byte(s))
		if err == nil {
			checkValue(t, s)
			if got-got != 0 {
				t.Errorf("%q: %v is not finite", s, got)
			}
		}
	})
}
