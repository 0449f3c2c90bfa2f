package dataset

import (
	"fmt"
	"slices"

	"taxon/internal/data/table"
	"taxon/internal/data/text"
)

// Projection maps rows to the columns of a data set or model: libsvm rows by their feature indices,
// text rows by the vocabulary. Features without a column are dropped. A Projection is immutable:
// goroutines may share one, each with its own Vector.
type Projection struct {
	table featureTable      // index -> column+1; for text: of the numbers beside it
	words map[string]uint32 // term -> column; nil unless text
	text  text.Options
	weigh weigher
}

// NewProjection returns the projection of rows of numbers. feature[column] is the original 1-based
// index of a column, as in Set.Feature. NewProjection keeps no reference to feature.
func NewProjection(feature []uint32) *Projection {
	p := &Projection{}
	for column, index := range feature {
		p.table.put(index, uint32(column)+1)
	}
	return p
}

// NewTextProjection returns the projection of texts. o says how a text becomes terms.
// vocabulary[column] is the term of a column and idf[column] its inverse document frequency, as in
// Set.Vocabulary and Set.IDF. schema is the schema of the tables with the texts, or nil for lines.
// NewTextProjection keeps no reference to vocabulary and idf.
func NewTextProjection(o text.Options, vocabulary []string, idf []float64, schema *table.Schema) (*Projection, error) {
	if len(vocabulary) != len(idf) {
		return nil, fmt.Errorf("a vocabulary of %d words with %d weights", len(vocabulary), len(idf))
	}
	weigh, err := newWeigher(o, slices.Clone(idf), func(column int) string { return vocabulary[column] })
	if err != nil {
		return nil, err
	}
	p := &Projection{text: o, weigh: weigh, words: make(map[string]uint32, len(vocabulary))}
	for column, word := range vocabulary {
		p.words[word] = uint32(column)
	}
	if schema.Both() {
		for i, term := range schema.Terms() {
			if column, ok := p.words[term]; ok {
				p.table.put(uint32(i)+1, column+1)
			}
		}
	}
	return p, nil
}

// Projection returns the projection onto the set's columns.
func (s *Set) Projection() (*Projection, error) {
	if s.Vocabulary == nil {
		return NewProjection(s.Feature), nil
	}
	var o text.Options
	if s.Source.Words != nil {
		o = s.Source.Words.Options
	}
	return NewTextProjection(o, s.Vocabulary, s.IDF, s.Table)
}

// Vector is a projected row with its scratch memory; the zero value is ready.
type Vector struct {
	Index []uint32  // columns, strictly ascending
	Value []float32 // aligned with Index
	pairs []uint64
	// analyser keeps the columns of words that it has seen. It is of one projection.
	analyser *text.Analyser
	of       *Projection
}

// Row projects a row returned by a Reader into v and replaces v's content. Texts get unit length
// over the words of the vocabulary. Numbers beside texts are not scaled.
func (p *Projection) Row(row *Row, v *Vector) {
	v.pairs = v.pairs[:0]
	if p.words != nil {
		p.fillText(row.Text, v)
	}
	for i, index := range row.Index {
		if c := p.table.get(index); c != 0 {
			v.pairs = append(v.pairs, uint64(c-1)<<32|uint64(floatBits(row.Value[i])))
		}
	}
	if len(row.Index) > 0 {
		slices.Sort(v.pairs)
	}
	v.Index, v.Value = v.Index[:0], v.Value[:0]
	for _, pair := range v.pairs {
		v.Index = append(v.Index, uint32(pair>>32))
		v.Value = append(v.Value, floatFrom(uint32(pair)))
	}
}

// fillText fills v.pairs with column<<32 | weight bits. A word of the list of stop words is not in the
// vocabulary, so no list is needed.
func (p *Projection) fillText(t []byte, v *Vector) {
	if v.of != p {
		v.analyser, v.of = text.New(p.text, nil), p
	}
	v.analyser.Each(t, func(w *text.Word) {
		if w.IDs == nil {
			w.IDs = make([]uint32, 0, len(w.Terms))
			for _, term := range w.Terms {
				if c, ok := p.words[term]; ok {
					w.IDs = append(w.IDs, c)
				}
			}
		}
		for _, c := range w.IDs {
			v.pairs = append(v.pairs, uint64(c)<<32)
		}
	})
	slices.Sort(v.pairs)
	n := 0
	for i := 0; i < len(v.pairs); n++ {
		run := i + 1
		for run < len(v.pairs) && v.pairs[run] == v.pairs[i] {
			run++
		}
		v.pairs[n] = v.pairs[i] | uint64(run-i)
		i = run
	}
	v.pairs = v.pairs[:n]
	p.weigh.weigh(v.pairs)
}
