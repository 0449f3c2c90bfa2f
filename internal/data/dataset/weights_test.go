package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taxon/internal/fs"
)

// weightsFileOf writes a file of weights, one per line.
func weightsFileOf(t *testing.T, lines string) string {
	path := filepath.Join(t.TempDir(), "w.txt")
	if err := os.WriteFile(path, []byte(lines), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWeights checks that a set has the weights of its rows and another fingerprint than without
// weights. A subset has the weights of its rows.
func TestWeights(t *testing.T) {
	const data = "b,a 7:1 3:2.5\n\n# note\na 3:-1\n 9:4\nc\n"
	plain := ingestString(t, filepath.Join(t.TempDir(), "plain"), data, Options{})
	defer plain.Close()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte("0.5\r\n2\n1e-3\n 1000 \n\n \r\n")); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	s := ingestString(t, filepath.Join(t.TempDir(), "set"), data, Options{Weights: weightsFileOf(t, packed.String())})
	defer s.Close()
	if !slices.Equal(s.Weight, []float64{0.5, 2, 1e-3, 1000}) || s.Stats.Weight != 1002.501 || s.Stats.LeftOut != 0 {
		t.Errorf("%v, %+v", s.Weight, s.Stats)
	}
	if s.Fingerprint == plain.Fingerprint {
		t.Error("the fingerprint does not tell of weights")
	}
	if sub := s.Subset([]uint32{1, 3}); !slices.Equal(sub.Weight, []float64{2, 1000}) || sub.Stats.Weight != 1002 {
		t.Errorf("subset: %v, %+v", sub.Weight, sub.Stats)
	}
	ones := ingestString(t, filepath.Join(t.TempDir(), "ones"), data,
		Options{Weights: weightsFileOf(t, "1\n1.0\n1e0\n1\n")})
	defer ones.Close()
	if ones.Weight != nil || ones.Stats.Weight != 0 || ones.Fingerprint != plain.Fingerprint {
		t.Errorf("weights of 1 make another set: %v, %+v", ones.Weight, ones.Stats)
	}
}

// TestWeightZero checks that an instance of weight 0 has the same effect as none: its labels,
// features and words are missing, and it is not counted.
func TestWeightZero(t *testing.T) {
	for _, c := range []struct{ data, rest, weights string }{
		{"b,a 7:1\n 2:1\nd\nc 3:2\na 7:1\n", "c 3:2\na 7:1\n", "0\n0.0\n0\n2\n3\n"},
		{"b,a 7:1\n 2:1\nd\nc 3:2\na 7:1\n", " 2:1\nd\n", "0\n1\n1\n0\n0\n"},
		{"5 8 3\n0 1:1\n2 2:1\n1 3:1\n\n1 3:2\n", "4 8 3\n0 1:1\n1 3:1\n\n1 3:2\n", "1\n0\n1\n1\n1\n"},
		{"a\tone two\nb\tone three\nc\tthree two four\n\tfour three six\n", "b\tone three\nc\tthree two " +
			"four\n\tfour three six\n", "0\n1\n1\n1\n"},
	} {
		o := Options{Text: strings.Contains(c.data, "\t")}
		rest := ingestString(t, filepath.Join(t.TempDir(), "rest"), c.rest, o)
		o.Weights = weightsFileOf(t, c.weights)
		s := ingestString(t, filepath.Join(t.TempDir(), "set"), c.data, o)
		if s.Weight == nil && s.Fingerprint != rest.Fingerprint {
			t.Errorf("%q: another set than of %q: %v", c.data, c.rest, s.Labels)
		}
		got := s.Stats
		if got.LeftOut == 0 || (got.Weight != 0) != (s.Weight != nil) {
			t.Errorf("%+v", got)
		}
		got.LeftOut, got.Weight = 0, 0
		if got != rest.Stats {
			t.Errorf("%q: %+v, without those rows %+v", c.data, got, rest.Stats)
		}
		rest.Close()
		s.Close()
	}
}

// TestWeightsRefused checks that an invalid file of weights is refused with its line or its name.
func TestWeightsRefused(t *testing.T) {
	for lines, want := range map[string]string{
		"1\n2\n":        "w.txt:2: the weights end here, and the data goes on",
		"":              "w.txt: the weights end here",
		"1\n2\n3\n4\n":  "w.txt:4: a weight more than the 3 instances",
		"1\n2\n3\n\n4":  "w.txt:5: a weight more",
		"1\n-2\n3\n":    "w.txt:2: weight -2 is below 0",
		"1\n2\nNaN\n":   "w.txt:3: weight NaN is not finite",
		"+Inf\n2\n3\n":  "w.txt:1: weight +Inf is not finite",
		"1e999\n2\n3\n": "w.txt:1: weight 1e999 is not finite",
		"1\nmuch\n3\n":  `w.txt:2: "much" is not a number`,
		"1\n0x1p3\n3\n": `w.txt:2: "0x1p3" is not a number`,
		"1\n1_0\n3\n":   `w.txt:2: "1_0" is not a number`,
		"1\n\n3\n":      `w.txt:2: "" is not a number`,
		"1 2\n3\n4\n":   `w.txt:1: "1 2" is not a number`,
		"1e-20\n3\n4\n": "w.txt:1: weight 1e-20: want 0, or a number from 1e-15 to 1e+15",
		"1e20\n3\n4\n":  "w.txt:1: weight 1e20: want 0",
		"0\n0\n-0\n":    "w.txt: all weights are 0",
		"1\n\x00\n3\n":  "w.txt:2: NUL byte",
	} {
		out := filepath.Join(t.TempDir(), "set")
		_, err := Ingest(t.Context(), Options{Paths: []string{"-"}, Out: out, Weights: weightsFileOf(t, lines),
			FS: fs.Local{In: strings.NewReader("a 1:1\nb 2:1\nc 3:1\n")}})
		if err == nil || !fs.IsInput(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", lines, err, want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%q: something is left behind", lines)
		}
	}
}

// TestWeightsDamaged checks that weights which no ingest writes are refused even if their checksum
// is correct.
func TestWeightsDamaged(t *testing.T) {
	for _, at := range []int{8, 16, 64 + 7, 64 + 8 + 7} {
		dir := filepath.Join(t.TempDir(), "set")
		ingestString(t, dir, "a 1:1\nb 2:1\n", Options{Weights: weightsFileOf(t, "3\n0.5\n")}).Close()
		path := filepath.Join(dir, weightsFile)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[at] ^= 0x80
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		reseal(t, dir, nil)
		if s, err := Open(dir); !fs.IsInput(err) || !strings.Contains(err.Error(), weightsFile) {
			t.Errorf("byte %d: opened: %v, %v", at, s != nil, err)
		}
	}
}

// TestWeightOutOfRange checks that the error for a weight out of range, written by another program,
// names the instance and the range.
func TestWeightOutOfRange(t *testing.T) {
	for _, x := range []float64{1e-20, 0, -1, 1e16, math.NaN(), math.Inf(1)} {
		dir := filepath.Join(t.TempDir(), "set")
		ingestString(t, dir, "a 1:1\nb 2:1\n", Options{Weights: weightsFileOf(t, "3\n0.5\n")}).Close()
		path := filepath.Join(dir, weightsFile)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint64(b[64+8:], math.Float64bits(x))
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		reseal(t, dir, nil)
		want := fmt.Sprintf("instance 2: weight %g: want 0, or a number from 1e-15 to 1e+15", x)
		if s, err := Open(dir); !fs.IsInput(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%g: opened: %v, %v", x, s != nil, err)
		}
	}
}
