package format

import (
	"math"
	"testing"
	"time"
)

func TestFormats(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Count(0), "0"},
		{Count(999), "999"},
		{Count(1000), "1,000"},
		{Count(-1234567), "-1,234,567"},
		{Bytes(1023), "1023B"},
		{Bytes(512 << 20), "512MiB"},
		{Bytes(1 << 30), "1GiB"},
		{Bytes(5<<30 + 1<<29), "5.5GiB"},
		{Bytes(1280), "1.2KiB"},
		{BytesRounded(128<<20+1, math.Ceil), "129MiB"},
		{BytesRounded(129<<20-1, math.Floor), "128MiB"},
		{BytesRounded(5<<30+1, math.Ceil), "5.1GiB"},
		{BytesRounded(6<<30-1, math.Floor), "5.9GiB"},
		{Clock(59*time.Second + 600*time.Millisecond), "1:00"},
		{Clock(3*time.Hour + 4*time.Minute + 5*time.Second), "3:04:05"},
		{Seconds(0.0412), "0.041 s"},
		{Seconds(4.2), "4.20 s"},
		{Seconds(312.4), "312 s"},
		{Left(0.2), "1 s"},
		{Left(59.4), "59 s"},
		{Left(59.6), "1 m 0 s"},
		{Left(130), "2 m 10 s"},
		{Left(37962), "10 h 32 m"},
		{Left(3*24*3600 + 4.5*3600), "3 d 4 h"},
		{Left(241795777815), ""},
		{Left(math.Inf(1)), ""},
		{Left(math.NaN()), ""},
		{Left(0), ""},
		{Gap(0.012), "1.20e-02"},
		{Gap(1), "1"},
		{Gap(1.234), "1.23"},
		{Gap(99.96), "100"},
		{Gap(12345.6), "12,346"},
		{Gap(1e300), "1.00e+300"},
		{QuoteIfNeeded("a"), "a"},
		{QuoteIfNeeded(""), `""`},
		{QuoteIfNeeded("a b"), `"a b"`},
		{OneLine("a\n b\tc\x1b"), "a; b c?"},
		{OneLine("\u009b2J \x9b \u202eexe.\u2066 \u200f \u2028 é 日 \u200d"), "?2J ? ?exe.? ? ? é 日 \u200d"},
		{Safe("a\r\n\tb\x07"), "a?\n\tb?"},
		{string(SafeJSON([]byte("{\"a\": \"\u009b\u202eé\"}\n"))), `{"a": "\u009b\u202eé"}` + "\n"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// Both ends of a range are in one unit.
func TestBetween(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{20, 44.2, "20 to 45 s"}, {0.2, 0.9, "up to 1 s"}, {5, 5, "5 s"}, {250, 400, "4 to 7 min"}, {59, 61, "59 to 61 s"},
		{50, 110, "up to 2 min"},
		{3 * 3600, 5.5 * 3600, "3 to 6 h"}, {30 * 3600, 50 * 3600, "1 to 3 d"}, {0, 0, ""}, {1, math.Inf(1), ""},
		{math.NaN(), math.NaN(), ""}, {1, 1e9, ""},
	} {
		if got := Between(c.low, c.high); got != c.want {
			t.Errorf("%g to %g s: %q, want %q", c.low, c.high, got, c.want)
		}
	}
}
