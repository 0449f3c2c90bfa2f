package dataset

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	analyse "taxon/internal/data/text"
)

func wordsOf(text string) []string {
	return analyse.Words([]byte(text))
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"The quick, brown fox": "the quick brown fox",
		"don't x_y a-b":        "don't x_y a b",
		"ÄÖÜ Straße ΣΊΣΥΦΟΣ":   "äöü strasse σίσυφοσ",
		"２ ½ x² Ⅷ 東京タワー":       "2 1⁄2 x 2 viii 東京 京タ タワ ワー",
		"":                     "",
		" .,;\t":               "",
		"end":                  "end",
		"a\u0301b":             "áb", // a combining mark belongs to its letter
		"É1é":                  "é1é",
	} {
		if got := strings.Join(wordsOf(text), " "); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

// TestTextWeights checks (1+ln tf) ln(N/df), df >= 2, unit rows, by hand.
func TestTextWeights(t *testing.T) {
	s := ingestString(t, filepath.Join(t.TempDir(), "set"), "a\tred dog dog zebra\nb\tcat dog Red DOG "+
		"dog\nb\tcat\n\tred\nc\t...\n", Options{Text: true})
	defer s.Close()
	// red occurs in 3 rows, cat and dog in 2 (the smaller word first), zebra in 1: it is dropped.
	if got := strings.Join(s.Vocabulary, " "); got != "red cat dog" || !slices.Equal(s.FeatureRows, []uint32{3, 2, 2}) ||
		!slices.Equal(s.Feature, []uint32{1, 2, 3}) {
		t.Fatalf("vocabulary %q, rows %v, features %v", got, s.FeatureRows, s.Feature)
	}
	red, two := math.Log(5.0/3), math.Log(5.0/2)
	if math.Abs(s.IDF[0]-red) > 1e-15 || math.Abs(s.IDF[2]-two) > 1e-15 {
		t.Errorf("idf %v", s.IDF)
	}
	for i, want := range [][]float64{{red, 0, (1 + math.Log(2)) * two}, {red, two, (1 + math.Log(3)) * two}, {0, 1, 0},
		{1, 0, 0}, {0, 0, 0}} {
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

// TestUbiquitousWord checks that a word of all rows has weight 0 and is not a column.
func TestUbiquitousWord(t *testing.T) {
	s := ingestString(t, filepath.Join(t.TempDir(), "set"), "a\tthe dog\nb\tthe dog\nc\tthe cat\n", Options{Text: true})
	defer s.Close()
	if got := strings.Join(s.Vocabulary, " "); got != "dog" || s.Matrix.NNZ != 2 {
		t.Errorf("vocabulary %q, %d values", got, s.Matrix.NNZ)
	}
}

// TestProjectionOfText checks that the projection of the training rows gives the same rows, bit for
// bit.
func TestProjectionOfText(t *testing.T) {
	s := ingestString(t, filepath.Join(t.TempDir(), "set"), smallText, Options{Text: true})
	defer s.Close()
	checkProjection(t, s, smallText, ReaderOptions{Text: true})
	p, err := s.Projection()
	if err != nil {
		t.Fatal(err)
	}
	var v Vector
	p.Row(&Row{Text: []byte("unknown words only")}, &v)
	if len(v.Index) != 0 {
		t.Errorf("got %v", v.Index)
	}
	if _, err := NewTextProjection(analyse.Options{}, []string{"a"}, nil, nil); err == nil {
		t.Error("a vocabulary without weights was taken")
	}
}

func TestProjectionOfFeatures(t *testing.T) {
	text := string(generate(4, 500, 8, 40)) + "z 2147483647:1 5000000:2\nz 2147483647:1\n"
	s := ingestString(t, filepath.Join(t.TempDir(), "set"), text, Options{})
	defer s.Close()
	checkProjection(t, s, text, ReaderOptions{})
	p := NewProjection(s.Feature)
	var v Vector
	p.Row(&Row{Index: []uint32{100, 4999999, 5000000, 2147483646}, Value: []float32{1, 2, 3, 4}}, &v)
	if len(v.Index) != 1 || s.Feature[v.Index[0]] != 5000000 || v.Value[0] != 3 {
		t.Errorf("unknown features: %v %v", v.Index, v.Value)
	}
}

func checkProjection(t *testing.T, s *Set, text string, o ReaderOptions) {
	t.Helper()
	p, err := s.Projection()
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

// twinTerms lists the terms of a text, computed from slices of all its words.
func twinTerms(text string, n int, stop map[string]bool) (out []string) {
	all := wordsOf(text)
	for to := 1; to <= len(all); to++ {
		for from := max(0, to-n); from < to; from++ {
			if !slices.ContainsFunc(all[from:to], func(w string) bool { return stop[w] }) {
				out = append(out, strings.Join(all[from:to], " "))
			}
		}
	}
	return out
}

func TestTerms(t *testing.T) {
	stop := map[string]bool{"of": true, "the": true}
	for _, text := range []string{"", "of", "State of the art, state. ART of it", "a b c d e f g", "the a of b b b the",
		"x of the of y z"} {
		for n := 1; n <= analyse.MaxNgrams; n++ {
			for _, s := range []map[string]bool{nil, stop} {
				var got []string
				find := analyse.New(analyse.Options{Ngrams: n}, func(word string) bool { return s[word] })
				for range 2 { // it forgets the text before
					got = nil
					find.Each([]byte(text), func(w *analyse.Word) { got = append(got, w.Terms...) })
				}
				want := twinTerms(text, n, s)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%q, %d, %v: %q, want %q", text, n, s, got, want)
				}
			}
		}
	}
}

// TestWordsOfASet checks that n-grams, stop words and bounds determine the vocabulary, and that the
// vocabulary alone reproduces the rows.
func TestWordsOfASet(t *testing.T) {
	text := "a\tthe state of the art\nb\tThe art of the state art\nb\tstate art, the state art\nc\tart\n\tof no state\n"
	list := filepath.Join(t.TempDir(), "stop.txt")
	if err := os.WriteFile(list, []byte("# state is none\nThe OF\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	bound := func(s string) (b Bound) {
		if err := b.Set(s); err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, c := range []struct {
		words Words
		want  string
	}{
		{Words{}, "art state of the"},
		{Words{Options: analyse.Options{Ngrams: 1}, StopWords: None, MinDF: bound("2"), MaxDF: bound("1.0")},
			"art state of the"},
		// "the state" stands in all three
		{Words{Options: analyse.Options{Ngrams: 2}}, "art state of the of the state art the art the state"},
		{Words{StopWords: English}, "art state"},
		{Words{StopWords: list, Options: analyse.Options{Ngrams: 2}}, "art state state art"},
		{Words{StopWords: list, Options: analyse.Options{Ngrams: 2}, MinDF: bound("1")},
			"art state state art art state no no state"},
		{Words{MinDF: bound("4")}, "art state"},
		{Words{MinDF: bound("0.6")}, "art state of the"},
		{Words{MinDF: bound("0.7")}, "art state"},
		{Words{MaxDF: bound("3")}, "of the"},
		{Words{MaxDF: bound("0.6")}, "of the"},
		{Words{MinDF: bound("5")}, ""},
	} {
		s := ingestString(t, filepath.Join(t.TempDir(), "set"), text, Options{Text: true, Words: c.words})
		got := strings.Fields(strings.Join(s.Vocabulary, " "))
		want := strings.Fields(c.want)
		slices.Sort(got)
		slices.Sort(want)
		if c.words.Ngrams < 2 && !slices.Equal(got, want) {
			t.Errorf("%v: %q, want %q", c.words.Flags(), s.Vocabulary, c.want)
		}
		for _, term := range s.Vocabulary {
			if !strings.Contains(c.want, term) {
				t.Errorf("%v: %q is a feature", c.words.Flags(), term)
			}
		}
		checkProjection(t, s, text, ReaderOptions{Text: true})
		if (s.Source.Words == nil) != (len(c.words.Flags()) == 0) {
			t.Errorf("%v: the manifest has %+v", c.words.Flags(), s.Source.Words)
		}
		s.Close()
	}
	twin := map[string]map[int]bool{} // term -> rows
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		for _, term := range twinTerms(line[strings.IndexByte(line, '\t')+1:], 3, map[string]bool{"the": true, "of": true}) {
			if twin[term] == nil {
				twin[term] = map[int]bool{}
			}
			twin[term][i] = true
		}
	}
	s := ingestString(t, filepath.Join(t.TempDir(), "set"), text,
		Options{Text: true, Words: Words{Options: analyse.Options{Ngrams: 3}, StopWords: list, MinDF: bound("1")}})
	defer s.Close()
	if len(s.Vocabulary) != len(twin) {
		t.Errorf("%d terms, want %d", len(s.Vocabulary), len(twin))
	}
	for c, term := range s.Vocabulary {
		if int(s.FeatureRows[c]) != len(twin[term]) {
			t.Errorf("%q stands in %d rows, want %d", term, s.FeatureRows[c], len(twin[term]))
		}
	}
}

func TestWordsRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.txt")
	if err := os.WriteFile(empty, []byte("# nothing\n ...\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]Options{
		"‹ngrams=6›":         {Text: true, Words: Words{Options: analyse.Options{Ngrams: 6}}},
		"‹ngrams› is for":    {Words: Words{Options: analyse.Options{Ngrams: 2}}},
		"‹stop-words=-›":     {Text: true, Words: Words{StopWords: "-"}},
		empty + ": holds no": {Text: true, Words: Words{StopWords: empty}},
		empty + "x: no such": {Text: true, Words: Words{StopWords: empty + "x"}},
	} {
		o.Paths, o.Out = []string{empty}, filepath.Join(t.TempDir(), "set")
		if _, err := Ingest(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, s := range []string{"", "0", "-1", "0.0", "1.5", "1e-3", "x", "2.0", "99999999999"} {
		if b := new(Bound); b.Set(s) == nil {
			t.Errorf("%q is %+v", s, b)
		}
	}
	for s, want := range map[string]string{"1": "1", "1.0": "1.0", "0.250": "0.25", "7": "7"} {
		if b := new(Bound); b.Set(s) != nil || b.String() != want {
			t.Errorf("%q reads back as %q", s, b)
		}
	}
}

// TestTextThreads checks that neither threads nor memory change a data set of texts: with little
// memory, each thread forgets its numbers of terms several times.
func TestTextThreads(t *testing.T) {
	var lines strings.Builder
	for i := range 6000 {
		fmt.Fprintf(&lines, "a%d\tword%d other%d word%d\n", i%7, i, i%3000, i*i%5000)
	}
	want := ""
	for _, o := range []Options{{Threads: 1}, {Threads: 4}, {Threads: 1, MemoryBytes: 1 << 20},
		{Threads: 4, MemoryBytes: 1 << 20}} {
		o.Text, o.Words.Features = true, "words+chars"
		s := ingestString(t, filepath.Join(t.TempDir(), "set"), lines.String(), o)
		got := s.Fingerprint
		s.Close()
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%d threads, %d bytes: fingerprint %s, not %s", o.Threads, o.MemoryBytes, got, want)
		}
	}
}
