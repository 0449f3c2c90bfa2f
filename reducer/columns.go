package reducer

import (
	"math"
	"slices"

	"taxon/internal/linalg/contribution"
)

// columns holds Vectors transposed: for each feature the nodes that override it, in ascending
// order. Each feature's list is followed by a sentinel whose node is end.
type columns struct {
	begin []int32
	entry []override
}

// end is greater than all nodes. It ends lists.
const end = math.MaxInt32

// override is a node's own value of a feature.
type override struct {
	node  int32
	value float32
}

// of returns the overrides of feature lo+f.
func (c *columns) of(f int32) []override { return c.entry[c.begin[f] : c.begin[f+1]-1] }

// ended returns the overrides of feature lo+f with the sentinel.
func (c *columns) ended(f int32) []override { return c.entry[c.begin[f]:c.begin[f+1]] }

// transpose sets c to the columns of v, by a counting sort. v's features must lie in [lo, hi).
func (s *Scratch) transpose(c *columns, v *Vectors, lo, hi uint32) {
	c.begin, c.entry = zeroed(c.begin, int(hi-lo)+1), resize(c.entry, len(v.Feature)+int(hi-lo))
	for _, f := range v.Feature {
		c.begin[f-lo+1]++
	}
	next := s.places(c.begin)
	for p := range len(v.Begin) - 1 {
		feature, value := v.list(p)
		value = value[:len(feature)]
		for e, f := range feature {
			at := &next[f-lo]
			c.entry[*at] = override{int32(p), value[e]}
			*at++
		}
	}
	for _, at := range next[:hi-lo] {
		c.entry[at].node = end
	}
}

// inputs holds the contributions transposed: for each feature the parents in ascending order. What
// several blocks send to one parent is added up in the contributions' order. Lists end as those of
// columns do.
type inputs struct {
	begin []int32
	// end has the end of each feature's list, before the sentinel.
	end   []int32
	entry []input
}

// input is the sum of the contributions to a parent at a feature.
type input struct {
	sum       float64
	curvature float64
	parent    int32
}

// of returns the inputs of feature lo+f.
func (g *inputs) of(f int32) []input { return g.entry[g.begin[f]:g.end[f]] }

// ended returns the inputs of feature lo+f with the sentinel.
func (g *inputs) ended(f int32) []input { return g.entry[g.begin[f] : g.end[f]+1] }

// gather sets g to the transposed contributions, which must be sorted by parent. degrees holds the
// number for which each value of their curvature stands.
func (s *Scratch) gather(g *inputs, in []contribution.Contribution, lo, hi uint32, degrees *[256]float64) {
	g.begin = zeroed(g.begin, int(hi-lo)+1)
	n := int(hi - lo)
	for _, c := range in {
		n += len(c.Feature)
		for _, f := range c.Feature {
			g.begin[f-lo+1]++
		}
	}
	g.entry = resize(g.entry, n)
	g.end = append(g.end[:0], s.places(g.begin)[:hi-lo]...)
	for _, c := range in {
		sum, curvature := c.Sum[:len(c.Feature)], c.Curvature[:len(c.Feature)]
		for e, f := range c.Feature {
			at := &g.end[f-lo]
			if *at > g.begin[f-lo] {
				if last := &g.entry[*at-1]; last.parent == c.Parent {
					last.sum += sum[e]
					last.curvature += degrees[curvature[e]]
					continue
				}
			}
			g.entry[*at] = input{sum[e], degrees[curvature[e]], c.Parent}
			*at++
		}
	}
	for _, at := range g.end {
		g.entry[at] = input{parent: end}
	}
}

// places turns counts, shifted by one, into the beginnings of the features' lists, with room for
// the sentinels. It returns a copy to count up while the entries are placed.
func (s *Scratch) places(begin []int32) []int32 {
	for i := 1; i < len(begin); i++ {
		begin[i] += begin[i-1] + 1
	}
	s.next = append(s.next[:0], begin...)
	return s.next
}

// builder collects columns feature by feature, in order, and transposes them back to Vectors.
type builder struct {
	// begin first holds each feature's number of entries, shifted by one.
	begin []int32
	entry []override
	count []int64 // per node
	spare *Vectors
}

// reset empties the builder and makes room for these numbers of nodes and features.
func (b *builder) reset(nodes, features int) {
	b.begin, b.entry, b.count = zeroed(b.begin, features+1), b.entry[:0], zeroed(b.count, nodes)
}

// open moves to feature f and returns memory for its n entries, which the caller sets.
func (b *builder) open(f int32, n int) []override {
	b.begin[f+1] = int32(n)
	from := len(b.entry)
	b.entry = slices.Grow(b.entry, n)[:from+n]
	return b.entry[from:]
}

// vectors returns what was collected. Features begin at lo.
func (b *builder) vectors(lo uint32) *Vectors {
	v := b.spare
	if b.spare = nil; v == nil {
		v = new(Vectors)
	}
	v.Resize(len(b.count), len(b.entry))
	for _, e := range b.entry {
		b.count[e.node]++
	}
	next := b.count
	for p, n := range b.count {
		v.Begin[p+1] = v.Begin[p] + n
		next[p] = v.Begin[p]
	}
	rest := b.entry
	for f, n := range b.begin[1:] {
		for _, e := range rest[:n] {
			at := &next[e.node]
			v.Feature[*at], v.Value[*at] = lo+uint32(f), e.value
			*at++
		}
		rest = rest[n:]
	}
	return v
}

// resize returns a slice of n elements with undefined values. New memory has some room for later
// growth.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n+n/8)[:n]
	}
	return s[:n]
}

// zeroed returns a slice of n zeros, in the memory of s if that is enough.
func zeroed[T any](s []T, n int) []T {
	s = resize(s, n)
	clear(s)
	return s
}
