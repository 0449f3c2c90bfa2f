package dataset

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"taxon/internal/data/table"
	"taxon/internal/fs"
)

// Words say which words of texts become features. The zero value: all single words that are in
// two rows or more, but not in all. The result is the vocabulary; with it, a text can be turned
// into features without Words.
type Words struct {
	Ngrams int `json:"ngrams,omitempty"` // up to so many consecutive words form a feature, too; 0: 1
	// words that are no features, nor parts of one: English, None or "", or the path of a file
	StopWords string `json:"stop_words,omitempty"`
	MinDF     Bound  `json:"min_df,omitzero"` // least number of rows for a feature; not set: 2
	MaxDF     Bound  `json:"max_df,omitzero"` // most rows for a feature; not set: all
}

// Values of StopWords that are no paths.
const (
	None    = "none"
	English = "english"
)

// MaxNgrams bounds Words.Ngrams.
const MaxNgrams = 5

//go:embed english.txt
var english []byte

// Flags are the command line's flags for words that are not the default.
func (w Words) Flags() (out [][2]string) {
	add := func(wanted bool, flag, value string) {
		if wanted {
			out = append(out, [2]string{flag, value})
		}
	}
	add(w.Ngrams > 1, "ngrams", strconv.Itoa(w.Ngrams))
	add(w.StopWords != "" && w.StopWords != None, "stop-words", w.StopWords)
	add(w.MinDF != Bound{}, "min-df", w.MinDF.String())
	add(w.MaxDF != Bound{}, "max-df", w.MaxDF.String())
	return out
}

// Bound is a number of rows, or a share of all rows. It is a flag's value.
type Bound struct {
	rows  int64
	share float64 // used if it is above 0
}

// Set reads a whole number of rows, at least 1, or, with a point in it, a share of all rows.
func (b *Bound) Set(s string) error {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 1 && n <= maxRows {
		*b = Bound{rows: n}
		return nil
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !strings.Contains(s, ".") || !(x > 0 && x <= 1) {
		return errors.New("must be a number of rows from 1, or a share of all rows above 0.0 and up to " +
			"1.0, with a point in it")
	}
	*b = Bound{share: x}
	return nil
}

// String is the inverse of Set; "": not set.
func (b *Bound) String() string {
	switch {
	case *b == Bound{}:
		return ""
	case b.share == 0:
		return strconv.FormatInt(b.rows, 10)
	}
	s := strconv.FormatFloat(b.share, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// Type names the values in help texts.
func (b *Bound) Type() string { return "number" }

// MarshalText implements encoding.TextMarshaler.
func (b Bound) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Bound) UnmarshalText(text []byte) error { return b.Set(string(text)) }

// of is the bound as a number of rows.
func (b Bound) of(rows int64, unset float64) float64 {
	switch {
	case b == Bound{}:
		return unset
	case b.share > 0:
		return b.share * float64(rows)
	}
	return float64(b.rows)
}

// keeps says whether a word that is in df of the rows is a feature.
func (w *Words) keeps(df, rows int64) bool {
	return float64(df) >= w.MinDF.of(rows, minDocs) && float64(df) <= w.MaxDF.of(rows, math.Inf(1))
}

// stopWords returns the list that StopWords names.
func (w *Words) stopWords(ctx context.Context, files fs.Source) (map[string]bool, error) {
	text := english
	switch w.StopWords {
	case "", None:
		return nil, nil
	case English:
	default:
		f, err := fs.Open(ctx, files, w.StopWords)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if text, err = io.ReadAll(io.LimitReader(f, maxStopWords+1)); err != nil {
			return nil, fs.Explain(w.StopWords, err)
		}
		if len(text) > maxStopWords {
			return nil, fs.Inputf(w.StopWords, 0, "is no list of stop words: it has more than %d MiB", maxStopWords>>20)
		}
	}
	stop := map[string]bool{}
	for line := range bytes.Lines(text) {
		if !bytes.HasPrefix(line, []byte{'#'}) {
			eachWord(line, nil, func(word []byte) { stop[string(word)] = true })
		}
	}
	if len(stop) == 0 {
		return nil, fs.Inputf(w.StopWords, 0, "holds no word: give a file with a word a line, or ‹stop-words=%s›", None)
	}
	return stop, nil
}

const maxStopWords = 16 << 20

// Check returns what is wrong with the options; text says whether instances are text.
func (w *Words) Check(text bool) error {
	flags := w.Flags()
	switch {
	case w.Ngrams < 0 || w.Ngrams > MaxNgrams:
		return fmt.Errorf("‹ngrams=%d›: must be from 1 to %d", w.Ngrams, MaxNgrams)
	case w.StopWords == fs.Stdin:
		return fmt.Errorf("‹stop-words=%s›: give a file, %s or %s", fs.Stdin, English, None)
	case len(flags) > 0 && !text:
		return fmt.Errorf("‹%s› is for ‹text›: add that, or leave it out", flags[0][0])
	}
	return nil
}

// terms finds the features of texts: words that are no stop words, and up to so many consecutive
// ones, joined by blanks.
type terms struct {
	ngrams int
	stop   map[string]bool
	word   []byte // memory for eachWord
	run    []byte // the last words, back to the last stop word
	starts []int  // where the words begin in run
}

// each calls f with each term, which is valid during the call.
func (t *terms) each(text []byte, f func(term []byte)) {
	t.run, t.starts = t.run[:0], t.starts[:0]
	t.word = eachWord(text, t.word, func(word []byte) {
		switch {
		case t.stop[string(word)]:
			t.run, t.starts = t.run[:0], t.starts[:0]
			return
		case t.ngrams <= 1:
			f(word)
			return
		case len(t.starts) == t.ngrams:
			first := t.starts[1]
			t.run = append(t.run[:0], t.run[first:]...)
			for i, s := range t.starts[1:] {
				t.starts[i] = s - first
			}
			t.starts = t.starts[:t.ngrams-1]
		}
		if len(t.run) > 0 {
			t.run = append(t.run, ' ')
		}
		t.starts = append(t.starts, len(t.run))
		t.run = append(t.run, word...)
		for _, s := range t.starts {
			f(t.run[s:])
		}
	})
}

// ngramsOf is the most words that a term of a vocabulary has.
func ngramsOf(vocabulary []string) int {
	most := 0
	for _, term := range vocabulary {
		if table.IsTerm(term) {
			continue
		}
		most = max(most, strings.Count(term, " "))
	}
	return most + 1
}
