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

// below counts the terminals of each node's subtree, in the memory of out.
func (f *Forest) below(out []float64) []float64 {
	out = zeroed(out, len(f.Parent))
	for p := len(out) - 1; p >= 0; p-- {
		out[p] += float64(f.Terminals[p])
		if up := f.Parent[p]; up >= 0 {
			out[up] += out[p]
		}
	}
	return out
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

// Resize makes room for n nodes and so many values in all, in the memory that is there if it is
// enough. What is in them is undefined, but Begin[0] is 0.
func (v *Vectors) Resize(n, values int) {
	v.Begin, v.Feature, v.Value = resize(v.Begin, n+1), resize(v.Feature, values), resize(v.Value, values)
	v.Begin[0] = 0
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

// Grid is the vectors of some nodes over a range of features, value by value: what Vectors is for
// dense ones.
type Grid struct {
	Width int
	Value []float32 // node by node
}

// NewGrid is zero.
func NewGrid(nodes, width int) *Grid { return &Grid{width, make([]float32, nodes*width)} }

// Row is the i-th node's values.
func (g *Grid) Row(i int) []float32 { return g.Value[i*g.Width : (i+1)*g.Width] }

// Grid lays out overrides over [lo, hi). parent is the place of each node's parent; -1: zero.
func (v *Vectors) Grid(parent []int32, lo, hi uint32) *Grid {
	g := NewGrid(len(parent), int(hi-lo))
	for i, p := range parent {
		row := g.Row(i)
		if p >= 0 {
			copy(row, g.Row(int(p)))
		}
		feature, value := v.list(i)
		for k, f := range feature {
			row[f-lo] = value[k]
		}
	}
	return g
}

// Vectors lists where nodes differ from their parents; see Vectors for their ancestors. The
// range begins at lo.
func (g *Grid) Vectors(parent []int32, lo uint32) *Vectors {
	keep := make([]bool, len(g.Value))
	zero := make([]float32, g.Width)
	for i := len(parent) - 1; i >= 0; i-- {
		row, up, above := g.Row(i), zero, []bool(nil)
		if p := int(parent[i]); p >= 0 {
			up, above = g.Row(p), keep[p*g.Width:]
		}
		for f, x := range row {
			if at := i*g.Width + f; keep[at] || !same(x, up[f]) {
				if keep[at] = true; above != nil {
					above[f] = true
				}
			}
		}
	}
	v := &Vectors{Begin: make([]int64, 1, len(parent)+1)}
	for i := range parent {
		for f, x := range g.Row(i) {
			if keep[i*g.Width+f] {
				v.Feature, v.Value = append(v.Feature, lo+uint32(f)), append(v.Value, x)
			}
		}
		v.Begin = append(v.Begin, int64(len(v.Feature)))
	}
	return v
}
