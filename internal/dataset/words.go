package dataset

import (
	"math"
	"slices"
)

// words numbers the words of text by first appearance, from 1, for the first pass.
type words struct {
	ids   map[string]uint32
	list  []string // list[id-1]
	index []uint32
	tf    []uint32
	seen  map[uint32]uint32 // id -> count within the row
	word  []byte
}

func newWords() *words {
	return &words{ids: map[string]uint32{}, seen: map[uint32]uint32{}}
}

// count returns the distinct words of a text, ascending by id, with their counts.
func (w *words) count(text []byte) (index, tf []uint32) {
	clear(w.seen)
	w.index, w.tf = w.index[:0], w.tf[:0]
	w.word = eachWord(text, w.word, func(word []byte) {
		id, ok := w.ids[string(word)]
		if !ok {
			own := string(word)
			w.list = append(w.list, own)
			id = uint32(len(w.list))
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

// minDocs is how many rows must hold a word for it to become a feature.
const minDocs = 2

// inverseFrequency is ln(N/df). It is 0, and the word no feature, where every row has it.
func inverseFrequency(rows, df int64) float64 {
	if df >= rows {
		return 0
	}
	return ln(float64(rows) / float64(df))
}

// weigh turns counts into weights (1+ln tf) idf of a unit row. pairs hold (column, tf)
// as column<<32 | tf, ascending; the sum of squares runs in that order, so it does not
// depend on the words' order in the text. The weights are put in tf's place.
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
