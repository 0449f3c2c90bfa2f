package measure

import (
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"taxon/internal/fs"
)

// readAll reads a file whole.
func readAll(r *PredReader) ([]Prediction, error) {
	var all []Prediction
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, p)
	}
}

func TestPredReader(t *testing.T) {
	cases := []struct {
		name, text string
		labels     [][]string
		scores     [][]float64
	}{
		{"commas", "a,b\nc\n", [][]string{{"a", "b"}, {"c"}}, nil},
		{"blanks, tabs, both, CRLF, no last newline", "a \t b\r\n a, b ,c", [][]string{{"a", "b"}, {"a", "b", "c"}}, nil},
		{"empty lines are instances", "a\n\nb\n\n", [][]string{{"a"}, nil, {"b"}, nil}, nil},
		{"scores", "a:0.5,b:-1e-3\nc:.5", [][]string{{"a", "b"}, {"c"}}, [][]float64{{.5, -1e-3}, {.5}}},
		{"last colon", "n:a:1", [][]string{{"n:a"}}, [][]float64{{1}}},
		{"no number after the colon", "a:b a:inf a:nan a:0x1p2 a: a:1_0 a:-", [][]string{{"a:b", "a:inf", "a:nan", "a:0x1p2",
			"a:", "a:1_0", "a:-"}}, nil},
		{"some scores only", "a:1,b", [][]string{{"a", "b"}}, nil},
		{"known labels stay whole", "GO:0001,GO:0001:0.5", [][]string{{"GO:0001", "GO:0001"}}, nil},
		{"a hash is no comment", "#1,a", [][]string{{"#1", "a"}}, nil},
		{"names as JSON strings", "\"a b\",\"c,d:\\t\" e\n\"a:1\":2,b:3", [][]string{{"a b", "c,d:\t", "e"}, {"a:1", "b"}},
			[][]float64{nil, {2, 3}}},
		{"nothing", "", nil, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := NewPredReader(strings.NewReader(c.text), "p", len(c.labels), func(l string) bool { return l == "GO:0001" })
			got, err := readAll(r)
			if err != nil || len(got) != len(c.labels) {
				t.Fatalf("got %v, %v", got, err)
			}
			for i, p := range got {
				if !slices.Equal(p.Labels, c.labels[i]) {
					t.Errorf("line %d: %q, want %q", i+1, p.Labels, c.labels[i])
				}
				var scores []float64
				if c.scores != nil {
					scores = c.scores[i]
				}
				if !slices.Equal(p.Scores, scores) {
					t.Errorf("line %d: scores %v, want %v", i+1, p.Scores, scores)
				}
			}
		})
	}
}

func TestPredReaderRefuses(t *testing.T) {
	cases := []struct {
		name, text string
		instances  int
		want       string
	}{
		{"too few lines", "a\nb\n", 3, "p: 2 lines of predictions for 3 instances"},
		{"no lines", "", 1, "p: 0 lines of predictions for 1 instances"},
		{"too many lines", "a\nb\n\n", 2, "p:3: more lines than the data has instances (2)"},
		{"score without a label", "a\n:0.5\n", 2, `p:2: score ":0.5" without a label`},
		{"score out of range", "a:1e999\n", 1, `p:1: score "1e999" is beyond`},
		{"a quote that does not end", "a\n\"b\n", 2, "p:2: a name that begins with a quote"},
		{"text behind a quote", "\"b\"c\n", 1, `p:1: "c" behind the name "b"`},
		{"NUL", "a\n\x00", 2, "p:2: NUL byte"},
		{"UTF-16", "\xff\xfea\x00", 1, "p:1: the file is UTF-16"},
		{"junk", "a\n\xf0\x28\n", 2, "p:2: bytes that are not UTF-8"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := readAll(NewPredReader(strings.NewReader(c.text), "p", c.instances, nil))
			var input *fs.InputError
			if !errors.As(err, &input) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if all, err := readAll(NewPredReader(strings.NewReader("a\nb\n"), "p", -1, nil)); err != nil || len(all) != 2 {
		t.Errorf("unknown number of instances: %v %v", all, err)
	}
}

// FuzzPredReader: what is read has labels that a data file could have, and finite scores.
func FuzzPredReader(f *testing.F) {
	f.Add("a,b\n\nc:0.5\n")
	f.Add("a:b:1e9 :1\r\n")
	f.Add("\"\",\"a b\":1")
	f.Add("\xef\xbb\xbfa:1e999")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readAll(NewPredReader(strings.NewReader(text), "p", -1, nil))
		if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Fatalf("not one line: %q", err)
		}
		for _, p := range all {
			if p.Scores != nil && len(p.Scores) != len(p.Labels) {
				t.Fatalf("%d scores for %d labels", len(p.Scores), len(p.Labels))
			}
			for _, l := range p.Labels {
				if l == "" {
					t.Fatalf("label %q", l)
				}
			}
			for _, s := range p.Scores {
				if math.IsNaN(s) || math.IsInf(s, 0) {
					t.Fatalf("score %g", s)
				}
			}
		}
	})
}
