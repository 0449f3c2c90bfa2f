package generate

import (
	"math"
	"sort"
)

// law is the relative size of the class of rank r, from 0: (r+11)^-3/4. Square roots are
// the same on every CPU, powers are not.
func law(r int) float64 {
	root := math.Sqrt(float64(r + 11))
	return 1 / float64(root*math.Sqrt(root))
}

// vocabulary draws words by their frequency. Words are ranks, from 0 for the commonest.
type vocabulary struct {
	upto []float64 // upto[r] is the sum of 1/(k+4) for k <= r: p_r ~ 1/(r+1+3)
	mean float64   // words of a document, for the inverse frequency
}

func newVocabulary(features int, mean float64) *vocabulary {
	v := &vocabulary{upto: make([]float64, features), mean: mean}
	sum := 0.0
	for r := range v.upto {
		sum += 1 / float64(r+4)
		v.upto[r] = sum
	}
	return v
}

func (v *vocabulary) word(random uint64) uint32 {
	u := unit(random) * v.upto[len(v.upto)-1]
	return uint32(sort.SearchFloat64s(v.upto, u))
}

// inverse is about log2 of the documents a word's documents, at least 0.1: the logarithm
// is taken straight between powers of two, which is exact on every CPU.
func (v *vocabulary) inverse(rank uint32) float64 {
	p := 1 / float64(float64(rank+4)*v.upto[len(v.upto)-1]) * v.mean
	m, e := math.Frexp(1 / p)
	return max(0.1, float64(e-2)+2*m)
}

// topics gives every node the words of its subject. Nothing is stored: a slot's word is
// found by walking up to the ancestor that drew it.
type topics struct {
	tree  *Tree
	words *vocabulary
	seed  uint64
}

const (
	slots = 64 // words of a topic
	// kept is how many slots in a thousand a node takes over from its parent.
	kept = 800
	// common is the share of the vocabulary, its most frequent words, that no topic has.
	common = 50
)

func (t *topics) word(node int32, slot int) uint32 {
	for {
		h := mix(t.seed, uint64(node), uint64(slot))
		if node == 0 || below(h, 1000) >= kept {
			return t.fresh(mix(h))
		}
		node = t.tree.parent(node, mix(h, 1))
	}
}

// fresh draws a word that is not among the commonest, if a few tries find one.
func (t *topics) fresh(random uint64) (w uint32) {
	for range 16 {
		if w = t.words.word(random); int(w) >= len(t.words.upto)/common {
			break
		}
		random = mix(random)
	}
	return w
}
