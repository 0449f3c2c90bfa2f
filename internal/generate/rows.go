package generate

import (
	"math"
	"slices"
	"strconv"
)

// Source makes the documents of a shape. It is immutable; goroutines may share it.
type Source struct {
	Shape Shape
	Tree  *Tree
	Sizes []int32 // class -> documents with it for their first label

	seed     uint64
	words    *vocabulary
	topics   *topics
	before   []int64 // place in depth-first order -> documents of the classes before it
	deal     shuffle // document -> place among all, by class
	renumber shuffle // word's rank -> feature
}

// New prepares the documents of a shape; the seed changes all of them.
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
	g.deal = newShuffle(s.Instances, mix(seed, 4))
	g.renumber = newShuffle(s.Features, mix(seed, 5))
	return g, nil
}

// topicShare is how many in a thousand of a document's words come from its labels'
// topics; the others are drawn by their frequency in all text.
const topicShare = 450

// maker is the scratch memory of one goroutine.
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

// row makes document i, of the test data if test is set, and appends its line to out.
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
		place = int64(g.deal.at(i))
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

// at is the class that the document at a place among all has for its first label.
func (g *Source) at(place int64) int32 {
	k, found := slices.BinarySearch(g.before, place)
	if !found {
		k--
	}
	return g.Tree.order[k]
}

// label draws the labels: the first one and, on average, Labels-1 relatives of it.
// Relatives are drawn by size from below an ancestor, so that all sizes grow by the
// same factor.
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

// fill draws the words and turns them into a unit row.
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
		if len(m.ranks) > 4*want { // a topic of few words repeats itself
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
	slot := int(float64(u*u) * slots) // the first slots most often
	return m.g.topics.word(int32(m.g.Tree.Internals)+c, slot)
}

// weigh makes pairs of the sorted ranks: tf-idf weights, unit length.
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
