package reducer

import "math"

// Forest is the tree of internal nodes in depth-first preorder, numbered 0..len-1.
type Forest struct {
	Parent    []int32 // -1: the zero vector
	Terminals []int32 // number of terminal children (K_p)
	Children  []int32 // number of internal children
	Set       []int32 // independent set of each node (rule Mean)
	Inner     float64 // weight of the edges between internal nodes; 0 stands for 1
	// Edge has a weight for the edge above each node; nil: Inner between internal nodes, and 1
	// for the pull of the zero vector.
	Edge  []float64
	Below []float64 // with Edge: the sum of the edges to the internal children
	// Apart is a feature whose internals stay at zero, so that terminals are drawn to zero there
	// and not to one another; plus 1, 0 for none.
	Apart uint32
	Graph *Graph // the classes form a graph; nil: a tree
}

// edge is the weight of the edge above node p.
func (f *Forest) edge(p int32) float64 {
	switch {
	case f.Edge != nil:
		return f.Edge[p]
	case f.Inner == 0 || f.Parent[p] < 0:
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

// same tells bitwise equality, so that pruning a vector is canonical.
func same(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }
