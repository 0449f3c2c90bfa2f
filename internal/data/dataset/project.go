package dataset

import (
	"fmt"
	"slices"

	"taxon/internal/data/table"
)

// Projection maps rows to the columns of a data set or model: libsvm rows by their feature indices,
// text rows by the vocabulary. Features without a column are dropped. A Projection is immutable:
// goroutines may share one, each with its own Vector.
type Projection struct {
	// table maps a feature index to its column plus 1. For text it holds only the number features
	// beside the words.
	table featureTable

	// words maps a word to its column. It is nil unless the rows are texts.
	words map[string]uint32
	most  int // the number of words in the longest term
	idf   []float64
}

// NewProjection returns the projection for a Set's or a model's arrays. feature[column] is the
// original index, which counts from 1. If vocabulary is not nil, columns are found by
// vocabulary[column] and idf[column] instead. schema describes tables and may be nil. NewProjection
// copies its arguments.
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

// Vector is a projected row with its scratch memory. The zero value is ready to use.
type Vector struct {
	Index []uint32  // columns, strictly ascending
	Value []float32 // aligned with Index
	pairs []uint64
	terms terms
}

// Row projects a row returned by a Reader into v and replaces v's content. Texts get unit length
// over the words of the vocabulary. Numbers beside texts are not scaled.
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

// text fills v.pairs with column<<32 | bits of the weight.
func (p *Projection) text(text []byte, v *Vector) {
	// terms with a stop word are not in the vocabulary, so the list is not needed here
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
