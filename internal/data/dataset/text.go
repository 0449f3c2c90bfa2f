package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"taxon/internal/data/table"
	"taxon/internal/data/text"
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

// words numbers terms by first appearance, from 1, in the first pass.
type words struct {
	ids   map[string]uint32
	above uint32   // ids used by numbers; those of terms follow
	list  []string // list[id-above-1]
	index []uint32
	// counter returns a new counter. own is that of tables, which one goroutine reads.
	counter func() *counter
	own     *counter
}

func newWords(counter func() *counter) *words {
	return &words{ids: map[string]uint32{}, counter: counter}
}

// of returns the ids of a row's distinct terms, with their counts. A row of a piece has them as
// index and tf, by the ids of the counter that read it.
func (w *words) of(row batchRow, index, tf []uint32) ([]uint32, []uint32) {
	terms := row.terms
	if terms == nil {
		if w.own == nil {
			w.own = w.counter()
		}
		w.own.forget()
		index, tf = w.own.count(row.text)
		terms = &countedTerms{w.own.names, w.own.names.list}
	}
	w.index = w.index[:0]
	for _, id := range index {
		w.index = append(w.index, w.id(terms, id))
	}
	return w.index, tf
}

// id returns the id of a counter's term, which gets one where it is new.
func (w *words) id(terms *countedTerms, own uint32) uint32 {
	n := terms.names
	if missing := len(terms.list) - len(n.joined); missing > 0 {
		n.joined = append(n.joined, make([]uint32, missing)...)
	}
	id := n.joined[own]
	if id == 0 {
		term := terms.list[own]
		if id = w.ids[term]; id == 0 {
			w.list = append(w.list, term)
			id = w.above + uint32(len(w.list))
			w.ids[term] = id
		}
		n.joined[own] = id
	}
	return id
}

// termNames are the terms that a counter has numbered. joined has their ids in words, or 0, and
// belongs to the goroutine that joins the rows; the rest belongs to the counter's.
type termNames struct {
	ids    map[string]uint32
	list   []string
	joined []uint32
}

// countedTerms are the names of the terms of a piece's rows, as they were when it was read: the
// counter may have more by now.
type countedTerms struct {
	names *termNames
	list  []string
}

// counter counts the terms of texts. Each goroutine that analyses has its own, which numbers terms
// from 0 for itself.
type counter struct {
	newAnalyser func() *text.Analyser
	most        int // terms that it remembers, as long as a piece has no more
	analyser    *text.Analyser
	names       *termNames
	index, tf   []uint32
	seen        []uint32 // the count within the row
}

func newCounter(newAnalyser func() *text.Analyser, most int) *counter {
	return &counter{newAnalyser: newAnalyser, most: most, names: &termNames{ids: map[string]uint32{}},
		analyser: newAnalyser()}
}

// forget begins a new numbering if the counter has more terms than it should remember.
func (c *counter) forget() {
	if len(c.names.list) > c.most {
		*c = *newCounter(c.newAnalyser, c.most)
	}
}

// count returns the distinct terms of a text, in the order of their first appearance, with their
// counts.
func (c *counter) count(t []byte) (index, tf []uint32) {
	c.index, c.tf = c.index[:0], c.tf[:0]
	c.analyser.Each(t, func(word *text.Word) {
		if word.IDs == nil {
			word.IDs = c.number(word.Terms)
		}
		for _, id := range word.IDs {
			seen := &c.seen[id]
			if *seen++; *seen == 1 {
				c.index = append(c.index, id)
			}
		}
	})
	for _, id := range c.index {
		c.tf, c.seen[id] = append(c.tf, c.seen[id]), 0
	}
	return c.index, c.tf
}

// number returns the counter's ids of terms.
func (c *counter) number(terms []string) []uint32 {
	out := make([]uint32, len(terms))
	n := c.names
	for i, term := range terms {
		id, ok := n.ids[term]
		if !ok {
			id = uint32(len(n.list))
			n.list, c.seen = append(n.list, term), append(c.seen, 0)
			n.ids[term] = id
		}
		out[i] = id
	}
	return out
}

// minDocs is how many rows must have a word for it to become a feature.
const minDocs = 2

// inverseFrequency returns ln(N/df). It is 0 for a word that every row has, which does not become a
// feature.
func inverseFrequency(rows, df int64) float64 {
	if df >= rows {
		return 0
	}
	return ln(float64(rows) / float64(df))
}

// maxKinds bounds the kinds of terms.
const maxKinds = 8

// weigher turns counts of terms into weights.
type weigher struct {
	idf []float64
	// part has each column's kind of terms, as an index of weight; nil where there is one kind.
	part   []uint8
	weight []float64
}

// newWeigher returns the weigher of the columns' terms. Numbers beside texts are of no kind.
func newWeigher(o text.Options, idf []float64, term func(column int) string) (weigher, error) {
	w := weigher{idf: idf}
	parts, err := o.Parts()
	if err != nil || len(parts) == 1 {
		return w, err
	}
	kinds := map[string]uint8{}
	for i, p := range parts {
		kinds[p.Kind] = uint8(i)
		w.weight = append(w.weight, p.Weight)
	}
	w.part = make([]uint8, len(idf))
	for column := range w.part {
		if t := term(column); !table.IsTerm(t) {
			w.part[column] = kinds[text.KindOf(t)]
		}
	}
	return w, nil
}

// weigh turns counts into weights, in their place: (1+ln tf) idf, divided by the length of the row's
// part of the term's kind, and times the kind's weight; the row has unit length. pairs are (column,
// tf) as column<<32 | tf, ascending. Sums of squares run in that order, so they do not depend on the
// words' order in the text.
func (w *weigher) weigh(pairs []uint64) {
	var sums [maxKinds]float64
	for _, p := range pairs {
		x := termWeight(uint32(p), w.idf[p>>32])
		sum := &sums[0]
		if w.part != nil {
			sum = &sums[w.part[p>>32]]
		}
		*sum = float64(x*x) + *sum
	}
	whole := 0.0
	for i, sum := range sums[:max(1, len(w.weight))] {
		sums[i] = math.Sqrt(sum)
		if w.part != nil && sum > 0 {
			whole += float64(w.weight[i] * w.weight[i])
		}
	}
	whole = math.Sqrt(whole)
	for i, p := range pairs {
		x := termWeight(uint32(p), w.idf[p>>32])
		if w.part == nil {
			x /= sums[0]
		} else {
			k := w.part[p>>32]
			x = float64(x/sums[k]) * (w.weight[k] / whole)
		}
		pairs[i] = p&^(1<<32-1) | uint64(floatBits(float32(x)))
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
