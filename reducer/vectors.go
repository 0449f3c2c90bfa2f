package reducer

import "math"

// Forest is the tree of internal nodes in depth-first preorder, numbered 0..len-1.
type Forest struct {
	// Parent holds the parent of each node. A parent of -1 stands for the zero vector.
	Parent []int32
	// Terminals is each node's number of terminal children, K_p.
	Terminals []int32
	// Children is each node's number of internal children.
	Children []int32
	// Set is the independent set of each node, for rule Mean.
	Set []int32
	// Inner is the weight of the edges between internal nodes. 0 stands for 1.
	Inner float64
	// Edge has a weight for the edge above each node. A nil Edge stands for Inner between internal
	// nodes, and 1 for the pull of the zero vector.
	Edge []float64
	// Below has, where Edge is set, each node's sum of the edges to its internal children.
	Below []float64
	// Apart is one more than a feature at which the internals stay zero, so that terminals are
	// drawn to zero there and not to one another. If it is 0, there is no such feature.
	Apart uint32
	// Graph is set when the classes form a graph. A nil Graph stands for a tree.
	Graph *Graph
}

// edge returns the weight of the edge above node p.
func (f *Forest) edge(p int32) float64 {
	switch {
	case f.Edge != nil:
		return f.Edge[p]
	case f.Inner == 0 || f.Parent[p] < 0:
		return 1
	}
	return f.Inner
}

// below returns the number of terminals in each node's subtree, in the memory of out.
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

// Vectors are the internals' vectors over a feature range, as overrides: at the features
// Feature[Begin[p]:Begin[p+1]] (ascending) node p has the values Value, and at every other feature
// it has its parent's value (a root's parent is zero). A node that overrides a feature has all its
// ancestors override it too.
type Vectors struct {
	Begin   []int64
	Feature []uint32
	Value   []float32
}

// Resize makes room for n nodes with the given total number of values. It reuses the present memory
// if that is enough. Values are undefined afterwards, but Begin[0] is 0.
func (v *Vectors) Resize(n, values int) {
	v.Begin, v.Feature, v.Value = resize(v.Begin, n+1), resize(v.Feature, values), resize(v.Value, values)
	v.Begin[0] = 0
}

// Zero returns the all-zero vectors of n nodes.
func Zero(n int) *Vectors { return &Vectors{Begin: make([]int64, n+1)} }

// Extrapolate returns y = x + beta (x - prev). All code that needs y calls it, so that all have the
// same bits.
func Extrapolate(x, prev, beta float32) float32 {
	if beta == 0 {
		return x
	}
	return x + float32(beta*float32(x-prev))
}

// same reports whether two numbers have equal bits, so that pruning a vector always gives the same
// result.
func same(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// Grid holds all values of the vectors of some nodes over a range of features. It replaces Vectors
// for dense ones.
type Grid struct {
	Width int
	// Value holds the values node by node, Width each.
	Value []float32
}

// NewGrid returns a grid of zeros.
func NewGrid(nodes, width int) *Grid { return &Grid{width, make([]float32, nodes*width)} }

// Row returns the i-th node's values.
func (g *Grid) Row(i int) []float32 { return g.Value[i*g.Width : (i+1)*g.Width] }

// Grid returns the vectors over [lo, hi) as a grid. parent has the place of each node's parent, or
// -1 for the zero vector.
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

// Vectors returns the overrides where nodes, or nodes below them, differ from their parents. The
// range begins at feature lo.
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
