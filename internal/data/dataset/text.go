package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"
)

// parseTextLine parses label[,label...]<TAB>text. A line that begins with the tab, or consists of
// blanks, has no label. Text has no comments.
func parseTextLine(line []byte, row *Row) error {
	if len(skipBlanks(line)) == 0 {
		return nil
	}
	labels, text, ok := bytes.Cut(line, []byte{'\t'})
	if !ok {
		return errors.New("no tab in the line: want LABEL[,LABEL...]<TAB>TEXT (begin with the tab where there is no label; " +
			"of a table name the columns with ‹text-column› and ‹label-column›)")
	}
	if len(labels) > 0 {
		if bytes.IndexByte(labels, '"') < 0 && bytes.IndexByte(labels, ' ') >= 0 {
			return fmt.Errorf("label %s holds a blank: such a name stands in quotes, as a JSON string", show(labels))
		}
		rest, err := parseLabels(labels, row)
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("blank between the labels %s: they are separated by single commas", show(labels))
		}
		if err != nil {
			return err
		}
	}
	if !utf8.Valid(text) {
		return errors.New("the text is not UTF-8: convert the file (iconv -t UTF-8)")
	}
	row.Text = text
	return nil
}

// EachWord calls f with each word of a text. docs/formats.md defines what a word is. See eachWord.
func EachWord(text, scratch []byte, f func(word []byte)) []byte { return eachWord(text, scratch, f) }

// eachWord calls f with each word of the text. A word is a maximal run of letters and numbers
// (categories L and N), lower-cased rune by rune. It is valid only until f returns. eachWord writes
// the words to scratch and returns scratch, which may have grown, for the next call.
func eachWord(text, scratch []byte, f func(word []byte)) []byte {
	word := scratch[:0]
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
				word = append(word, c)
				continue
			}
		} else {
			r, size := utf8.DecodeRune(text[i:])
			i += size
			if unicode.IsLetter(r) || unicode.IsNumber(r) {
				word = utf8.AppendRune(word, unicode.ToLower(r))
				continue
			}
		}
		if len(word) > 0 {
			f(word)
			word = word[:0]
		}
	}
	if len(word) > 0 {
		f(word)
	}
	return word
}

// words numbers the terms of texts by first appearance, from 1, during the first pass.
type words struct {
	terms
	ids   map[string]uint32
	above uint32   // ids taken by numbers; the ids of terms follow
	list  []string // list[id-above-1]
	index []uint32
	tf    []uint32
	seen  map[uint32]uint32 // id -> count within the row
}

func newWords(t terms) *words {
	return &words{terms: t, ids: map[string]uint32{}, seen: map[uint32]uint32{}}
}

// count returns the ids of the distinct terms of a text, ascending, and the number of times each
// occurs.
func (w *words) count(text []byte) (index, tf []uint32) {
	clear(w.seen)
	w.index, w.tf = w.index[:0], w.tf[:0]
	w.each(text, func(word []byte) {
		id, ok := w.ids[string(word)]
		if !ok {
			own := string(word)
			w.list = append(w.list, own)
			id = w.above + uint32(len(w.list))
			w.ids[own] = id
		}
		if w.seen[id]++; w.seen[id] == 1 {
			w.index = append(w.index, id)
		}
	})
	slices.Sort(w.index)
	for _, id := range w.index {
		w.tf = append(w.tf, w.seen[id])
	}
	return w.index, w.tf
}

// minDocs is the default for the number of rows that must have a word for it to become a feature.
const minDocs = 2

// inverseFrequency returns ln(N/df). It is 0 for a word that every row has, which does not become a
// feature.
func inverseFrequency(rows, df int64) float64 {
	if df >= rows {
		return 0
	}
	return ln(float64(rows) / float64(df))
}

// weigh replaces the counts of a row by the weights (1+ln tf) idf, scaled to unit length. pairs
// holds column<<32 | tf, ascending by column; the weights take the place of tf. The sum of squares
// is added up in that order, so it does not depend on the order of the words in the text.
func weigh(pairs []uint64, idf []float64) {
	var sum float64
	for _, p := range pairs {
		w := termWeight(uint32(p), idf[p>>32])
		sum = float64(w*w) + sum
	}
	norm := math.Sqrt(sum)
	for i, p := range pairs {
		w := termWeight(uint32(p), idf[p>>32])
		pairs[i] = p&^(1<<32-1) | uint64(floatBits(float32(w/norm)))
	}
}

func termWeight(tf uint32, idf float64) float64 {
	if tf == 1 {
		return idf
	}
	return (1 + ln(float64(tf))) * idf
}

// ln is the natural logarithm of x >= 1, with the same bits on every CPU. math.Log is implemented
// in assembly on some CPUs and with fused operations on others; a difference in its last bit would
// change fingerprints.
//
//	x = m 2^e, m in [sqrt(1/2), sqrt(2)); s = (m-1)/(m+1)
//	ln x = e ln 2 + 2 (s + s^3/3 + s^5/5 + ...)
//
// |s| < 0.1716, so the error after 12 terms is below 1e-18. The conversions prevent fused
// operations.
func ln(x float64) float64 {
	const ln2Hi, ln2Lo = 6.93147180369123816490e-01, 1.90821492927058770002e-10
	m, exp := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, exp = 2*m, exp-1
	}
	e := float64(exp)
	s := (m - 1) / (m + 1)
	square := float64(s * s)
	series := 0.0
	for k := 23; k >= 3; k -= 2 {
		series = float64((series + 1/float64(k)) * square)
	}
	rest := 2*s + (float64(2*s*series) + float64(e*ln2Lo))
	return float64(e*ln2Hi) + rest
}
