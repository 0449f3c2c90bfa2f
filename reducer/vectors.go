package reducer

import "math"

// Forest is the tree of internal nodes in depth-first preorder, numbered 0..len-1.
type Forest struct {
	Parent    []int32 // -1: the zero vector
	Terminals []int32 // number of terminal children (K_p)
	Children  []int32 // number of internal children
	Set       []int32 // independent set of each node (rule Mean)
	Inner     float64 // weight of the edges between internal nodes; 0 stands for 1
	Graph     *Graph  // the classes form a graph; nil: a tree
}

// edge is the weight of the edge above node p: the pull of the zero vector is always 1.
func (f *Forest) edge(p int32) float64 {
	if f.Inner == 0 || f.Parent[p] < 0 {
		return 1
	}
	return f.Inner
}

// Vectors are the internals' vectors over a feature range, as overrides: node p's
// features Feature[Begin[p]:Begin[p+1]] (ascending) have the values Value, every other
// feature has p's parent's value (a root's parent: 0). A node that overrides a feature
// has all its ancestors override it too.
type Vectors struct {
	Begin   []int64
	Feature []uint32
	Value   []float32
}

// Zero is the all-zero vectors of n nodes.
func Zero(n int) *Vectors { return &Vectors{Begin: make([]int64, n+1)} }

// Extrapolate is y = x + beta (x - prev), in the one rounding that everybody uses.
func Extrapolate(x, prev, beta float32) float32 {
	if beta == 0 {
		return x
	}
	return x + float32(beta*float32(x-prev))
}

// columns is Vectors transposed: feature by feature the overriding nodes, ascending.
type columns struct {
	begin []int32
	node  []int32
	value []float32
}

// transpose by counting; features must lie in [lo, hi).
func transpose(v *Vectors, lo, hi uint32) *columns {
	c := &columns{begin: make([]int32, hi-lo+1), node: make([]int32, len(v.Feature)), value: make([]float32, len(v.Feature))}
	for _, f := range v.Feature {
		c.begin[f-lo+1]++
	}
	for i := 1; i < len(c.begin); i++ {
		c.begin[i] += c.begin[i-1]
	}
	next := append([]int32(nil), c.begin...)
	for p := range len(v.Begin) - 1 {
		for e := v.Begin[p]; e < v.Begin[p+1]; e++ {
			f := v.Feature[e] - lo
			c.node[next[f]], c.value[next[f]] = int32(p), v.Value[e]
			next[f]++
		}
	}
	return c
}

// builder collects columns feature by feature and transposes them back to Vectors.
type builder struct {
	feature []uint32
	node    []int32
	value   []float32
	count   []int64 // per node, shifted by one
}

func newBuilder(nodes int) *builder { return &builder{count: make([]int64, nodes+1)} }

func (b *builder) add(f uint32, node int32, value float32) {
	b.feature = append(b.feature, f)
	b.node = append(b.node, node)
	b.value = append(b.value, value)
	b.count[node+1]++
}

func (b *builder) vectors() *Vectors {
	for i := 1; i < len(b.count); i++ {
		b.count[i] += b.count[i-1]
	}
	v := &Vectors{Begin: b.count, Feature: make([]uint32, len(b.feature)), Value: make([]float32, len(b.feature))}
	next := append([]int64(nil), b.count...)
	for e, p := range b.node {
		v.Feature[next[p]], v.Value[next[p]] = b.feature[e], b.value[e]
		next[p]++
	}
	return v
}

// same tells bitwise equality, so that pruning a vector is canonical.
func same(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
