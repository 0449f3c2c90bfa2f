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

	"taxon/internal/data/text"
	"taxon/internal/fs"
)

// Words say which terms of texts become features. The zero value takes all single words that are in
// two rows or more, but not in all. With the Options and the resulting vocabulary a text can be
// turned into features without the rest.
type Words struct {
	text.Options
	// words that are no features, nor parts of one: English, None or "", or the path of a file
	StopWords string `json:"stop_words,omitempty"`

	// MinDF is the least number of rows that must have a word. The default is 2.
	MinDF Bound `json:"min_df,omitzero"`

	// MaxDF is the largest number of rows that may have a word. By default there is no limit,
	// except that a word of all rows is not a feature.
	MaxDF Bound `json:"max_df,omitzero"`
}

// These values of StopWords are not paths.
const (
	None    = "none"
	English = "english"
)

//go:embed english.txt
var english []byte

// Flags returns the command line's flags for the options that differ from the default, as (name,
// value) pairs.
func (w Words) Flags() (out [][2]string) {
	add := func(wanted bool, flag, value string) {
		if wanted {
			out = append(out, [2]string{flag, value})
		}
	}
	add(w.Features != "", "features", w.Features)
	add(w.Chars != text.Range{}, "chars", w.Chars.String())
	for _, l := range w.Languages.List() {
		add(true, "language", l)
	}
	add(w.Ngrams > 1, "ngrams", strconv.Itoa(w.Ngrams))
	add(w.StopWords != "" && w.StopWords != None, "stop-words", w.StopWords)
	add(w.MinDF != Bound{}, "min-df", w.MinDF.String())
	add(w.MaxDF != Bound{}, "max-df", w.MaxDF.String())
	return out
}

// Bound is a number of rows, or a share of all rows. It implements the value of a flag.
type Bound struct {
	rows  int64
	share float64 // the share, in use if it is above 0
}

// Set parses a whole number of rows, at least 1, or, if it has a decimal point, a share of all
// rows.
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

// String is the inverse of Set. It is empty for a Bound that is not set.
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

// Type returns the name of the values in help texts.
func (b *Bound) Type() string { return "number" }

// MarshalText implements encoding.TextMarshaler.
func (b Bound) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Bound) UnmarshalText(text []byte) error { return b.Set(string(text)) }

// of converts the bound to a number of rows. It returns unset for a Bound that is not set.
func (b Bound) of(rows int64, unset float64) float64 {
	switch {
	case b == Bound{}:
		return unset
	case b.share > 0:
		return b.share * float64(rows)
	}
	return float64(b.rows)
}

// keeps reports whether a word that occurs in df rows may become a feature.
func (w *Words) keeps(df, rows int64) bool {
	return float64(df) >= w.MinDF.of(rows, minDocs) && float64(df) <= w.MaxDF.of(rows, math.Inf(1))
}

// stopWords returns the words that StopWords stands for.
func (w *Words) stopWords(ctx context.Context, files fs.Source) (map[string]bool, error) {
	list := english
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
		if list, err = io.ReadAll(io.LimitReader(f, maxStopWords+1)); err != nil {
			return nil, fs.Explain(w.StopWords, err)
		}
		if len(list) > maxStopWords {
			return nil, fs.Inputf(w.StopWords, 0, "is no list of stop words: it has more than %d MiB", maxStopWords>>20)
		}
	}
	stop := map[string]bool{}
	for line := range bytes.Lines(list) {
		if !bytes.HasPrefix(line, []byte{'#'}) {
			for _, word := range text.Words(line) {
				stop[word] = true
			}
		}
	}
	if len(stop) == 0 {
		return nil, fs.Inputf(w.StopWords, 0, "holds no word: give a file with a word a line, or ‹stop-words=%s›", None)
	}
	return stop, nil
}

const maxStopWords = 16 << 20

// Check returns what is wrong with the options; isText says whether instances are text.
func (w *Words) Check(isText bool) error {
	flags := w.Flags()
	switch {
	case w.StopWords == fs.Stdin:
		return fmt.Errorf("‹stop-words=%s›: give a file, %s or %s", fs.Stdin, English, None)
	case len(flags) > 0 && !isText:
		return fmt.Errorf("‹%s› is for ‹text›: add that, or leave it out", flags[0][0])
	}
	return w.Options.Check()
}
