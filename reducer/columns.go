package reducer

import (
	"slices"

	"taxon/internal/coupling"
)

// columns is Vectors transposed: feature by feature the overriding nodes, ascending.
type columns struct {
	begin []int32
	entry []override
}

type override struct {
	node  int32
	value float32
}

// of lists feature lo+f's overrides.
func (c *columns) of(f int32) []override { return c.entry[c.begin[f]:c.begin[f+1]] }

// transpose by counting; features must lie in [lo, hi).
func (s *Scratch) transpose(c *columns, v *Vectors, lo, hi uint32) {
	c.begin, c.entry = zeroed(c.begin, int(hi-lo)+1), resize(c.entry, len(v.Feature))
	for _, f := range v.Feature {
		c.begin[f-lo+1]++
	}
	next := s.places(c.begin)
	for p := range len(v.Begin) - 1 {
		for e := v.Begin[p]; e < v.Begin[p+1]; e++ {
			f := v.Feature[e] - lo
			c.entry[next[f]] = override{int32(p), v.Value[e]}
			next[f]++
		}
	}
}

// inputs are the contributions transposed: per feature the parents, ascending; equal
// parents in the contributions' order.
type inputs struct {
	begin []int32
	entry []input
}

type input struct {
	sum       float64
	parent    int32
	curvature uint8
}

// of lists what comes in on feature lo+f.
func (g *inputs) of(f int32) []input { return g.entry[g.begin[f]:g.begin[f+1]] }

// gather transposes contributions, which are sorted by parent.
func (s *Scratch) gather(g *inputs, in []coupling.Contribution, lo, hi uint32) {
	g.begin = zeroed(g.begin, int(hi-lo)+1)
	n := 0
	for _, c := range in {
		n += len(c.Feature)
		for _, f := range c.Feature {
			g.begin[f-lo+1]++
		}
	}
	g.entry = resize(g.entry, n)
	next := s.places(g.begin)
	for _, c := range in {
		for e, f := range c.Feature {
			g.entry[next[f-lo]] = input{c.Sum[e], c.Parent, c.Curvature[e]}
			next[f-lo]++
		}
	}
}

// places turns counts, shifted by one, into the begin of each feature's entries. It returns a
// copy, which counts up while the entries are placed.
func (s *Scratch) places(begin []int32) []int32 {
	for i := 1; i < len(begin); i++ {
		begin[i] += begin[i-1]
	}
	s.next = append(s.next[:0], begin...)
	return s.next
}

// builder collects columns feature by feature, in order, and transposes them back to
// Vectors.
type builder struct {
	columns
	count []int64 // per node
}

// reset makes an empty builder for these numbers of nodes and features.
func (b *builder) reset(nodes, features int) {
	b.begin, b.entry, b.count = zeroed(b.begin, features+1), b.entry[:0], zeroed(b.count, nodes)
}

// open goes to a feature that will have n entries.
func (b *builder) open(f int32, n int) {
	b.begin[f+1] = int32(n)
	b.entry = slices.Grow(b.entry, n)
}

func (b *builder) add(node int32, value float32) {
	b.entry = append(b.entry, override{node, value})
	b.count[node]++
}

// vectors closes the builder; features begin at lo.
func (b *builder) vectors(lo uint32) *Vectors {
	v := &Vectors{
		Begin: make([]int64, len(b.count)+1), Feature: make([]uint32, len(b.entry)), Value: make([]float32, len(b.entry)),
	}
	next := b.count
	for p, n := range b.count {
		v.Begin[p+1] = v.Begin[p] + n
		next[p] = v.Begin[p]
	}
	rest := b.entry
	for f, n := range b.begin[1:] {
		for _, e := range rest[:n] {
			v.Feature[next[e.node]], v.Value[next[e.node]] = lo+uint32(f), e.value
			next[e.node]++
		}
		rest = rest[n:]
	}
	return v
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func zeroed[T any](s []T, n int) []T {
	s = resize(s, n)
	clear(s)
	return s
}
