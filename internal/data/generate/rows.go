package generate

import (
	"math"
	"math/bits"
	"slices"
	"sort"
	"strconv"
)

// Source generates the documents of a shape. It is immutable; goroutines may share it.
type Source struct {
	Shape Shape
	Tree  *Tree
	// Sizes maps a class to the number of documents of which it is the first label.
	Sizes []int32

	seed   uint64
	words  *vocabulary
	topics *topics

	// before maps a class's place in depth-first order to the number of documents of the preceding
	// classes.
	before     []int64
	classOrder shuffle // document -> its place in the order by class
	renumber   shuffle // word -> feature
}

// New prepares the documents of a shape. Another seed gives other documents and another hierarchy.
func New(s Shape, seed uint64) (*Source, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	g := &Source{Shape: s, seed: seed, Tree: NewTree(s, seed), Sizes: Sizes(s, seed)}
	g.words = newVocabulary(s.Features, s.Nonzeros)
	g.topics = &topics{tree: g.Tree, words: g.words, seed: mix(seed, 3)}
	g.before = make([]int64, s.Classes+1)
	for place, class := range g.Tree.order {
		g.before[place+1] = g.before[place] + int64(g.Sizes[class])
	}
	g.classOrder = newShuffle(s.Instances, mix(seed, 4))
	g.renumber = newShuffle(s.Features, mix(seed, 5))
	return g, nil
}

// topicShare is the share of a document's words, in thousandths, that come from the topics of its
// labels. The others are drawn by their frequency in all text.
const topicShare = 450

// maker generates documents. It is the scratch memory of one goroutine.
type maker struct {
	g       *Source
	state   uint64
	classes []int32
	ranks   []uint32
	pairs   []pair
	total   int // labels of all rows so far, for tests and reports
}

type pair struct {
	index uint32
	value float64
}

func (m *maker) next() uint64 {
	m.state++
	return mix(m.state)
}

// row generates document i, of the test data if test is set, and appends its line to out.
func (m *maker) row(out []byte, i int, test bool) []byte {
	g := m.g
	kind := uint64(6)
	if test {
		kind = 7
	}
	m.state = mix(g.seed, kind, uint64(i))
	place := int64(0)
	if test {
		place = int64(below(m.next(), g.Shape.Instances))
	} else {
		place = int64(g.classOrder.at(i))
	}
	m.label(g.at(place))
	m.fill()
	for k, c := range m.classes {
		if k > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(append(out, 'c'), int64(c), 10)
	}
	for _, p := range m.pairs {
		out = strconv.AppendUint(append(out, ' '), uint64(p.index), 10)
		out = strconv.AppendFloat(append(out, ':'), p.value, 'g', 4, 64)
	}
	return append(out, '\n')
}

// at returns the class that is the first label of the document at a place.
func (g *Source) at(place int64) int32 {
	k, found := slices.BinarySearch(g.before, place)
	if !found {
		k--
	}
	return g.Tree.order[k]
}

// label draws the labels: the first label and, on average, Labels-1 of its relatives. Relatives are
// drawn in proportion to their sizes from the classes below an ancestor, so that all sizes grow by
// the same factor.
func (m *maker) label(first int32) {
	g := m.g
	m.classes = append(m.classes[:0], first)
	more := g.Shape.Labels - 1
	for unit(m.next()) < more/(1+more) {
		n := g.Tree.Parent[g.Tree.Internals+int(first)]
		for g.Tree.Parent[n] >= 0 && m.next()&1 == 0 {
			n = g.Tree.Parent[n]
		}
		for range 8 {
			lo, hi := g.before[g.Tree.begin[n]], g.before[g.Tree.end[n]]
			c := g.at(lo + int64(below(m.next(), int(hi-lo))))
			if !slices.Contains(m.classes, c) {
				m.classes = append(m.classes, c)
				break
			}
			if p := g.Tree.Parent[n]; p >= 0 {
				n = p
			}
		}
	}
	m.total += len(m.classes)
}

// fill draws the words of a document and converts them to a row of unit length.
func (m *maker) fill() {
	g := m.g
	want := length(m.next(), g.Shape.Nonzeros)
	want = min(want, g.Shape.Features/2)
	m.ranks = m.ranks[:0]
	for distinct := 0; distinct < want; {
		for range want - distinct {
			m.ranks = append(m.ranks, m.word())
		}
		slices.Sort(m.ranks)
		distinct = 1
		for k := 1; k < len(m.ranks); k++ {
			if m.ranks[k] != m.ranks[k-1] {
				distinct++
			}
		}
		if len(m.ranks) > 4*want { // words of a small topic repeat
			break
		}
	}
	m.weigh()
}

func (m *maker) word() uint32 {
	r := m.next()
	if below(r, 1000) >= topicShare {
		return m.g.words.word(mix(r))
	}
	c := m.classes[below(mix(r, 1), len(m.classes))]
	u := unit(mix(r, 2))
	slot := int(float64(u*u) * slots) // squaring u*u prefers the first slots
	return m.g.topics.word(int32(m.g.Tree.Internals)+c, slot)
}

// weigh converts the sorted words to pairs with tf-idf weights, scaled to unit length.
func (m *maker) weigh() {
	m.pairs = m.pairs[:0]
	sum := 0.0
	for k := 0; k < len(m.ranks); {
		run := k + 1
		for run < len(m.ranks) && m.ranks[run] == m.ranks[k] {
			run++
		}
		tf := 1.0
		for n := run - k; n > 1; n >>= 1 { // 1 + log2, rounded down
			tf++
		}
		w := float64(tf * m.g.words.inverse(m.ranks[k]))
		sum += float64(w * w)
		m.pairs = append(m.pairs, pair{uint32(m.g.renumber.at(int(m.ranks[k]))) + 1, w})
		k = run
	}
	norm := math.Sqrt(sum)
	for k := range m.pairs {
		m.pairs[k].value /= norm
	}
	slices.SortFunc(m.pairs, func(a, b pair) int { return int(a.index) - int(b.index) })
}

// classShare returns the relative size of the class of rank r, from 0: (r+11)^-3/4. It is computed
// by square roots, whose bits are the same on every CPU, unlike those of math.Pow.
func classShare(r int) float64 {
	root := math.Sqrt(float64(r + 11))
	return 1 / float64(root*math.Sqrt(root))
}

// vocabulary draws words by their frequency. A word is its rank; the most frequent word has rank 0.
type vocabulary struct {
	upto []float64 // upto[r] is the sum of 1/(k+4) for k <= r: p_r ~ 1/(r+1+3)
	mean float64   // words per document, for the inverse frequency
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

// inverse returns about log2 of (documents / documents with the word), at least 0.1. Between powers
// of two the logarithm is interpolated linearly, which is exact on every CPU.
func (v *vocabulary) inverse(rank uint32) float64 {
	p := 1 / float64(float64(rank+4)*v.upto[len(v.upto)-1]) * v.mean
	m, e := math.Frexp(1 / p)
	return max(0.1, float64(e-2)+2*m)
}

// topics assigns every node the words of its topic. Nothing is stored: the word of a slot is found
// by walking up to the ancestor that drew it.
type topics struct {
	tree  *Tree
	words *vocabulary
	seed  uint64
}

const (
	slots = 64 // words of a topic

	// kept is the share of slots, in thousandths, that a node inherits from its parent.
	kept = 800

	// common is the share of the vocabulary that no topic contains: 1/common of it, the most
	// frequent words.
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

// fresh draws a word outside the most frequent ones. It gives up after a few tries.
func (t *topics) fresh(random uint64) (w uint32) {
	for range 16 {
		if w = t.words.word(random); int(w) >= len(t.words.upto)/common {
			break
		}
		random = mix(random)
	}
	return w
}

// mix hashes words with SplitMix64's finaliser between them, so that all bits of the result are
// well mixed.
func mix(words ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range words {
		h ^= w
		h += 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// below maps 64 random bits uniformly to 0..n-1.
func below(random uint64, n int) int {
	hi, _ := bits.Mul64(random, uint64(n))
	return int(hi)
}

// unit maps 64 random bits uniformly to [0,1).
func unit(random uint64) float64 { return float64(random>>11) * 0x1p-53 }

// shuffle is a seeded permutation of 0..n-1 that takes no memory. It applies four rounds of a
// Feistel network over the next even power of two, and repeats this until the result is below n.
type shuffle struct {
	n    int
	half uint
	seed uint64
}

func newShuffle(n int, seed uint64) shuffle {
	return shuffle{n: n, half: uint(bits.Len(uint(max(n-1, 1)))+1) / 2, seed: seed}
}

func (s shuffle) at(i int) int {
	mask := uint64(1)<<s.half - 1
	for x := uint64(i); ; {
		l, r := x>>s.half, x&mask
		for round := range uint64(4) {
			l, r = r, l^mix(s.seed, round, r)&mask
		}
		if x = l<<s.half | r; x < uint64(s.n) {
			return int(x)
		}
	}
}

// lengths holds the quantiles 0, 1/32 .. 1 of a log-normal distribution with sigma 0.6, truncated
// at both ends. Interpolated linearly, its mean is 1. The values are tabulated because the last
// bits of exp differ between CPUs.
var lengths = [...]float64{0.147, 0.27, 0.329, 0.375, 0.414, 0.451, 0.485, 0.518, 0.551, 0.584, 0.616, 0.649, 0.682,
	0.716, 0.752, 0.788, 0.826,
	0.866, 0.908, 0.952, 1.0, 1.052, 1.108, 1.169, 1.238, 1.316, 1.407, 1.514, 1.647, 1.822, 2.074, 2.526, 4.645}

// length draws the number of nonzeros of a document, whose expectation is about mean.
func length(random uint64, mean float64) int {
	i := below(random, len(lengths)-1)
	f := unit(mix(random))
	l := lengths[i] + float64(f*(lengths[i+1]-lengths[i]))
	return max(1, int(float64(l*mean)+0.5))
}
