package dataset

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func wordsOf(text string) []string {
	var out []string
	eachWord([]byte(text), nil, func(w []byte) { out = append(out, string(w)) })
	return out
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"The quick, brown fox": "the quick brown fox",
		"don't x_y a-b":        "don t x y a b",
		"ÄÖÜ Straße ΣΊΣΥΦΟΣ":   "äöü straße σίσυφοσ",
		"２ ½ x² Ⅷ 東京タワー":       "２ ½ x² ⅷ 東京タワー",
		"":                     "",
		" .,;\t":               "",
		"end":                  "end",
		"a\u0301b":             "a b", // a combining mark is neither letter nor number
		"É1é":                  "é1é",
	} {
		if got := strings.Join(wordsOf(text), " "); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

// TestTextWeights checks (1+ln tf) ln(N/df), df >= 2, unit rows, by hand.
func TestTextWeights(t *testing.T) {
	s := ingestString(t, filepath.Join(t.TempDir(), "set"), "a\tred dog dog zebra\nb\tcat dog Red DOG dog\nb\tcat\n\tred\nc\t...\n", Options{Text: true})
	defer s.Close()
	// red stands in 3 rows, cat and dog in 2 (the smaller word first), zebra in 1: dropped.
	if got := strings.Join(s.Vocabulary, " "); got != "red cat dog" || !slices.Equal(s.FeatureRows, []uint32{3, 2, 2}) || !slices.Equal(s.Feature, []uint32{1, 2, 3}) {
		t.Fatalf("vocabulary %q, rows %v, features %v", got, s.FeatureRows, s.Feature)
	}
	red, two := math.Log(5.0/3), math.Log(5.0/2)
	if math.Abs(s.IDF[0]-red) > 1e-15 || math.Abs(s.IDF[2]-two) > 1e-15 {
		t.Errorf("idf %v", s.IDF)
	}
	for i, want := range [][]float64{{red, 0, (1 + math.Log(2)) * two}, {red, two, (1 + math.Log(3)) * two}, {0, 1, 0}, {1, 0, 0}, {0, 0, 0}} {
		norm := math.Sqrt(want[0]*want[0] + want[1]*want[1] + want[2]*want[2])
		var got [3]float64
		index, value := s.Matrix.Row(i)
		for k, c := range index {
			got[c] = float64(value[k])
		}
		for c := range got {
			if norm > 0 && math.Abs(got[c]-want[c]/norm) > 1e-7 || norm == 0 && got[c] != 0 {
				t.Errorf("row %d: %v, want %v / %v", i, got, want, norm)
			}
		}
	}
	if s.Stats.ZeroRows != 1 || s.Stats.Unlabelled != 1 || s.Source.Form != "text" {
		t.Errorf("stats %+v", s.Stats)
	}
}

// TestUbiquitousWord: a word of all rows weighs nothing and is no column.
func TestUbiquitousWord(t *testing.T) {
	s := ingestString(t, filepath.Join(t.TempDir(), "set"), "a\tthe dog\nb\tthe dog\nc\tthe cat\n", Options{Text: true})
	defer s.Close()
	if got := strings.Join(s.Vocabulary, " "); got != "dog" || s.Matrix.NNZ != 2 {
		t.Errorf("vocabulary %q, %d values", got, s.Matrix.NNZ)
	}
}

// TestProjectionOfText: the training rows project onto themselves, bit for bit.
func TestProjectionOfText(t *testing.T) {
	s := ingestString(t, filepath.Join(t.TempDir(), "set"), smallText, Options{Text: true})
	defer s.Close()
	checkProjection(t, s, smallText, ReaderOptions{Text: true})
	p, err := NewProjection(s.Feature, s.Vocabulary, s.IDF)
	if err != nil {
		t.Fatal(err)
	}
	var v Vector
	p.Row(&Row{Text: []byte("unknown words only")}, &v)
	if len(v.Index) != 0 {
		t.Errorf("got %v", v.Index)
	}
	if _, err := NewProjection(nil, []string{"a"}, nil); err == nil {
		t.Error("a vocabulary without weights was taken")
	}
}

func TestProjectionOfFeatures(t *testing.T) {
	text := string(generate(4, 500, 8, 40)) + "z 2147483647:1 5000000:2\nz 2147483647:1\n"
	s := ingestString(t, filepath.Join(t.TempDir(), "set"), text, Options{})
	defer s.Close()
	checkProjection(t, s, text, ReaderOptions{})
	p, _ := NewProjection(s.Feature, nil, nil)
	var v Vector
	p.Row(&Row{Index: []uint32{100, 4999999, 5000000, 2147483646}, Value: []float32{1, 2, 3, 4}}, &v)
	if len(v.Index) != 1 || s.Feature[v.Index[0]] != 5000000 || v.Value[0] != 3 {
		t.Errorf("unknown features: %v %v", v.Index, v.Value)
	}
}

func checkProjection(t *testing.T, s *Set, text string, o ReaderOptions) {
	t.Helper()
	p, err := NewProjection(s.Feature, s.Vocabulary, s.IDF)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(strings.NewReader(text), o)
	var v Vector
	for i := range s.Matrix.Rows {
		row, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		p.Row(row, &v)
		if index, value := s.Matrix.Row(i); !slices.Equal(index, v.Index) || !slices.Equal(value, v.Value) {
			t.Fatalf("row %d: %v %v, want %v %v", i, v.Index, v.Value, index, value)
		}
	}
}
