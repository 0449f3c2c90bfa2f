package dataset

import (
	"fmt"
	"slices"

	"taxon/internal/data/table"
)

// Projection maps rows to the columns of a data set or model: libsvm rows by their feature
// indices, text rows by the vocabulary. What has no column is dropped. It is immutable:
// goroutines may share one, each with its own Vector.
type Projection struct {
	table featureTable      // index -> column+1; for text: of the numbers beside it
	words map[string]uint32 // word -> column; nil unless text
	most  int               // most words of a term
	idf   []float64
}

// NewProjection takes feature[column], the original 1-based index, or, if vocabulary is not nil,
// vocabulary[column] and idf[column], as a Set holds them. schema is that of tables, or nil. It
// keeps copies.
func NewProjection(feature []uint32, vocabulary []string, idf []float64, schema *table.Schema) (*Projection, error) {
	p := &Projection{}
	if vocabulary == nil {
		for column, index := range feature {
			p.table.put(index, uint32(column)+1)
		}
		return p, nil
	}
	if len(vocabulary) != len(idf) {
		return nil, fmt.Errorf("a vocabulary of %d words with %d weights", len(vocabulary), len(idf))
	}
	p.idf = slices.Clone(idf)
	p.words, p.most = make(map[string]uint32, len(vocabulary)), ngramsOf(vocabulary)
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

// Vector is a projected row with its scratch memory; the zero value is ready.
type Vector struct {
	Index []uint32  // columns, strictly ascending
	Value []float32 // aligned with Index
	pairs []uint64
	terms terms
}

// Row projects a row that the Reader gave into v, replacing its content. Texts get unit length
// over the words of the vocabulary. Numbers beside them stay as they are.
func (p *Projection) Row(row *Row, v *Vector) {
	v.pairs = v.pairs[:0]
	if p.words != nil {
		p.text(row.Text, v)
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

// text fills v.pairs with column<<32 | weight bits.
func (p *Projection) text(text []byte, v *Vector) {
	// a term with a stop word in it is not in the vocabulary, so stop words need no list here
	v.terms.ngrams = p.most
	v.terms.each(text, func(word []byte) {
		if c, ok := p.words[string(word)]; ok {
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
	weigh(v.pairs, p.idf)
}
