package generate

import (
	"math/rand/v2"
	"slices"
)

// Tree is a generated hierarchy. Node 0 is the root; 1..Internals-1 are the other internal nodes,
// each after its parent; then come the classes, as Internals+class. Without a hierarchy the root is
// a placeholder that is not written.
type Tree struct {
	Internals int

	// Parent holds the first parent of each node. That of the root is -1.
	Parent []int32

	// MoreFrom has nodes+1 entries. The further parents of node n are
	// More[MoreFrom[n]:MoreFrom[n+1]].
	MoreFrom []int32
	More     []int32
	order    []int32 // classes in depth-first order of the first parents
	place    []int32 // class -> its index in order
	begin    []int32 // node -> index in order of the first class below it
	end      []int32 // node -> index in order after the last
}

// Edges returns the number of lines of the hierarchy's file.
func (t *Tree) Edges() int { return len(t.Parent) - 1 + len(t.More) }

// attachment is the share of children, in thousandths, that choose a parent with probability
// proportional to its current number of children (they take the parent of a random node). The
// others choose uniformly. The number of children then has a density of exponent 1 + 1/0.75 = 7/3.
const attachment = 750

// NewTree generates a hierarchy. Every internal node has at least one class below it.
func NewTree(s Shape, seed uint64) *Tree {
	in := max(1, s.Internals)
	n := in + s.Classes
	t := &Tree{Internals: in, Parent: make([]int32, n)}
	rng := rand.New(rand.NewPCG(seed, 1))
	depth := make([]int32, in)
	children := make([]int32, in)
	pick := func(before int) int32 {
		for {
			var p int32
			if before > 1 && rng.IntN(1000) < attachment {
				p = t.Parent[1+rng.IntN(before-1)]
			} else {
				p = int32(rng.IntN(min(before, in)))
			}
			if s.Depth == 0 || int(depth[p])+2 <= s.Depth || p == 0 {
				return p
			}
		}
	}
	t.Parent[0] = -1
	for i := 1; i < in; i++ {
		p := pick(i)
		t.Parent[i], depth[i] = p, depth[p]+1
		children[p]++
	}
	t.assignParents(s.Classes, children, pick)
	if s.DAG && s.Internals > 0 {
		t.addParents(s.MoreParent, rng)
	}
	t.number(children)
	return t
}

// assignParents assigns parents to the classes. Each internal node without a child gets a class
// first.
func (t *Tree) assignParents(classes int, children []int32, pick func(int) int32) {
	c := 0
	for i := range children {
		if children[i] == 0 {
			t.Parent[t.Internals+c] = int32(i)
			c++
		}
	}
	for ; c < classes; c++ {
		t.Parent[t.Internals+c] = pick(t.Internals + c)
	}
	for _, p := range t.Parent[t.Internals:] {
		children[p]++
	}
}

// addParents draws further parents, on average `mean` per node. They have smaller numbers than the
// node, which rules out cycles.
func (t *Tree) addParents(mean float64, rng *rand.Rand) {
	t.MoreFrom = make([]int32, 1, len(t.Parent)+1)
	for n := range t.Parent {
		for n > 1 && rng.Float64() < mean/(1+mean) {
			p := int32(rng.IntN(min(n, t.Internals)))
			if p != t.Parent[n] && !slices.Contains(t.More[t.MoreFrom[n]:], p) {
				t.More = append(t.More, p)
			}
		}
		t.MoreFrom = append(t.MoreFrom, int32(len(t.More)))
	}
}

// number computes the depth-first order of the classes.
func (t *Tree) number(children []int32) {
	first := make([]int32, t.Internals+1)
	for i, c := range children {
		first[i+1] = first[i] + c
	}
	list := make([]int32, len(t.Parent)-1)
	next := slices.Clone(first)
	for n := 1; n < len(t.Parent); n++ {
		p := t.Parent[n]
		list[next[p]] = int32(n)
		next[p]++
	}
	t.begin, t.end = make([]int32, len(t.Parent)), make([]int32, len(t.Parent))
	t.place = make([]int32, len(t.Parent)-t.Internals)
	copy(next, first)
	for n := int32(0); n >= 0; {
		switch {
		case int(n) >= t.Internals:
			t.begin[n] = int32(len(t.order))
			t.place[int(n)-t.Internals] = t.begin[n]
			t.order = append(t.order, n-int32(t.Internals))
		case next[n] == first[n]:
			t.begin[n] = int32(len(t.order))
			fallthrough
		default:
			if next[n] < first[n+1] {
				next[n]++
				n = list[next[n]-1]
				continue
			}
		}
		t.end[n] = int32(len(t.order))
		n = t.Parent[n]
	}
}

// parent returns one of n's parents, chosen by the random bits.
func (t *Tree) parent(n int32, random uint64) int32 {
	if t.More == nil {
		return t.Parent[n]
	}
	more := t.More[t.MoreFrom[n]:t.MoreFrom[n+1]]
	if i := below(random, len(more)+1); i > 0 {
		return more[i-1]
	}
	return t.Parent[n]
}

// Sizes draws the number of documents that have each class as their first label. The sizes follow a
// power law over the ranks, in random order. Each is at least one, and they add up to s.Instances.
func Sizes(s Shape, seed uint64) []int32 {
	sizes := make([]int32, s.Classes)
	// Find the largest k for which floor(k * law), plus one each, sums to at most instances.
	sum := func(k float64) (n int) {
		for r := range sizes {
			n += max(1, int(float64(k*classShare(r))))
		}
		return n
	}
	lo, hi := 0.0, 2*float64(s.Instances)/classShare(0)
	for range 60 {
		if mid := (lo + hi) / 2; sum(mid) <= s.Instances {
			lo = mid
		} else {
			hi = mid
		}
	}
	left := s.Instances
	for r := range sizes {
		sizes[r] = int32(max(1, int(float64(lo*classShare(r)))))
		left -= int(sizes[r])
	}
	for r := 0; left > 0; r = (r + 1) % len(sizes) { // distribute what rounding down has lost
		sizes[r]++
		left--
	}
	rand.New(rand.NewPCG(seed, 2)).Shuffle(len(sizes), func(a, b int) { sizes[a], sizes[b] = sizes[b], sizes[a] })
	return sizes
}
