package reducer

import (
	"cmp"
	"fmt"
	"slices"
)

// Rule says how the internals move.
type Rule uint8

const (
	Support Rule = iota // support-aware exact solve
	Family              // exact solve, all terminals of a node stiff where anything below it has support
	Full                // plain exact solve
	Mean                // parent mean over one independent set
	Jacobi              // damped mean of all nodes at once
	None                // no move: certificate only
	Emit                // no move: the result is y itself
)

// ParseRule reads the name that tasks use.
func ParseRule(name string) (Rule, error) {
	for r, n := range [...]string{"support", "family", "full", "mean", "jacobi", "none", "emit"} {
		if n == name {
			return Rule(r), nil
		}
	}
	return 0, fmt.Errorf("unknown reduce rule %q", name)
}

// Contribution is one block's part for one parent: on Feature (ascending, within the
// range) the sum of its terminals' v_n and the number of them that are stiff there.
type Contribution struct {
	Parent  int32 // internal node; graph: fan
	Feature []uint32
	Sum     []float64
	Stiff   []uint8
}

// Task is one update over the features [Lo, Hi).
type Task struct {
	Forest  *Forest
	Lo, Hi  uint32
	Rule    Rule
	Set     int32   // rule Mean: the set that moves
	Damping float64 // rule Jacobi: weight of the new value, in (0, 1]
	Certify bool
	Beta    float32
	Smooth  bool // stiffness comes in StiffUnits, and the certificate is that of a smooth loss: see certify
	Whole   bool // graph: contributions hold the terminals' whole w_n, not their v_n (rules Mean, Jacobi and what prices them)
}

// StiffUnit is what one terminal that is stiff throughout counts in the contributions of
// smooth losses, whose terminals are stiff by degrees.
const StiffUnit = 15

// Sums are the range's shares of the joint figures.
type Sums struct {
	Primal  float64 // 1/2 sum over internal edges of ||y_p - y_parent(p)||^2 (Certify)
	Dual    float64 // -1/2 sum over internals of ||U_p||^2 (Certify)
	Restart float64 // (y - x+)' M (x+ - x), M the system's matrix
	Moved   float64 // ||x+ - y||^2 in the edge norm
	Entries int64   // (node, feature) pairs worked on
}

// Run updates the internals from the blocks' contributions, which must come in one
// fixed order: equal parents are added up in it. in is reordered by parent.
func (t Task) Run(in []Contribution, x, prev *Vectors) (*Vectors, Sums) {
	slices.SortStableFunc(in, func(a, b Contribution) int { return cmp.Compare(a.Parent, b.Parent) })
	var gradients []Contribution
	if t.Smooth {
		in, gradients = t.split(in)
	}
	r := &run{
		Task: t,
		x:    transpose(x, t.Lo, t.Hi),
		prev: transpose(prev, t.Lo, t.Hi),
		in:   gather(in, t.Lo, t.Hi),
		out:  newBuilder(len(t.Forest.Parent)),
		mark: make([]int32, len(t.Forest.Parent)),
		at:   make([]int32, len(t.Forest.Parent)),
	}
	if t.Forest.Graph == nil && (t.Rule == Full || t.Rule == Mean || t.Rule == Jacobi) {
		r.everyone = make([]int32, len(t.Forest.Parent))
		for p := range r.everyone {
			r.everyone[p] = int32(p)
		}
	}
	r.unit = 1
	if t.Smooth {
		r.unit, r.grad = 1.0/StiffUnit, gather(gradients, t.Lo, t.Hi)
	}
	if t.Forest.Graph != nil {
		r.graph()
		return r.out.vectors(), r.sums
	}
	for f := range int32(t.Hi - t.Lo) {
		r.column(f)
	}
	return r.out.vectors(), r.sums
}

// split parts the contributions of a smooth loss: those of v and, under the parents'
// numbers and as many more, those of G, that a priced block sends for the certificate.
func (t Task) split(in []Contribution) (v, g []Contribution) {
	parents := int32(len(t.Forest.Parent))
	if t.Forest.Graph != nil {
		parents = int32(len(t.Forest.Graph.Fans))
	}
	for _, c := range in {
		if c.Parent >= parents {
			c.Parent -= parents
			g = append(g, c)
			continue
		}
		v = append(v, c)
	}
	return v, g
}

// run is the state of one Task.
type run struct {
	Task
	x, prev  *columns
	in       *inputs
	out      *builder
	grad     *inputs // smooth losses: G; nil: not sent
	sums     Sums
	unit     float64 // what a contribution's unit of stiffness counts
	everyone []int32
	mark, at []int32 // node -> feature stamp, position in the column
	path     []int32
	col      column
}

// column is one feature's system over an ancestor-closed list of nodes, in preorder.
type column struct {
	node   []int32
	parent []int32   // position of the parent in node; -1
	y      []float32 // extrapolated
	x      []float32
	prev   []float32
	v      []float64 // V_p
	stiff  []float64
	edge   []float64 // weight of the edge to the parent
	diag   []float64
	w      []float64 // right-hand side, then solution
	next   []float32 // x+
	u      []float64
}

// inputs are the contributions transposed: per feature the parents, ascending, with
// equal parents added up in order.
type inputs struct {
	begin  []int32
	parent []int32
	sum    []float64
	stiff  []int32
}

func gather(in []Contribution, lo, hi uint32) *inputs {
	n := 0
	g := &inputs{begin: make([]int32, hi-lo+1)}
	for _, c := range in {
		n += len(c.Feature)
		for _, f := range c.Feature {
			g.begin[f-lo+1]++
		}
	}
	for i := 1; i < len(g.begin); i++ {
		g.begin[i] += g.begin[i-1]
	}
	g.parent, g.sum, g.stiff = make([]int32, n), make([]float64, n), make([]int32, n)
	next := append([]int32(nil), g.begin...)
	for _, c := range in {
		for e, f := range c.Feature {
			k := next[f-lo]
			g.parent[k], g.sum[k], g.stiff[k] = c.Parent, c.Sum[e], int32(c.Stiff[e])
			next[f-lo]++
		}
	}
	return g
}

// column solves feature lo+f.
func (r *run) column(f int32) {
	if r.x.empty(f) && r.prev.empty(f) && r.in.empty(f) && (r.grad == nil || r.grad.empty(f)) {
		return // nobody moves it: zero everywhere
	}
	r.layout(f)
	r.fill(f)
	c := &r.col
	r.sums.Entries += int64(len(c.node))
	if r.Certify {
		r.certify()
	}
	switch r.Rule {
	case Support:
		c.solve()
	case Family, Full:
		for i, p := range c.node {
			c.stiff[i] = float64(r.Forest.Terminals[p])
		}
		c.solve()
	case Mean:
		r.mean()
	case Jacobi:
		r.jacobi()
	case None:
		return
	case Emit:
		copy(c.next, c.y)
		r.emit(f)
		return
	}
	r.momentum()
	r.emit(f)
}

func (c *columns) empty(f int32) bool { return c.begin[f] == c.begin[f+1] }
func (g *inputs) empty(f int32) bool  { return g.begin[f] == g.begin[f+1] }

// layout sets the column's nodes: the ancestor closure of all that hold or get a value
// (all nodes for the dense rules), in preorder.
func (r *run) layout(f int32) {
	c := &r.col
	c.node = c.node[:0]
	if r.everyone != nil {
		c.node = append(c.node, r.everyone...)
	} else {
		r.closure(f)
	}
	n := len(c.node)
	c.parent = resize(c.parent, n)
	for i, p := range c.node {
		r.at[p] = int32(i)
		c.parent[i] = -1
		if q := r.Forest.Parent[p]; q >= 0 {
			c.parent[i] = r.at[q]
		}
	}
}

// closure merges the ascending node lists and inserts missing ancestors. A path
// is appended from its topmost new node down; preorder numbers make the whole list
// ascending, since a new ancestor lies beyond every node that was placed before it.
func (r *run) closure(f int32) {
	c := &r.col
	a, b, g := r.x.node[r.x.begin[f]:r.x.begin[f+1]], r.prev.node[r.prev.begin[f]:r.prev.begin[f+1]], r.in.parent[r.in.begin[f]:r.in.begin[f+1]]
	var d []int32
	if r.grad != nil {
		d = r.grad.parent[r.grad.begin[f]:r.grad.begin[f+1]]
	}
	stamp := f + 1
	for len(a)+len(b)+len(g)+len(d) > 0 {
		p := int32(1<<31 - 1)
		if len(a) > 0 {
			p = a[0]
		}
		if len(b) > 0 {
			p = min(p, b[0])
		}
		if len(g) > 0 {
			p = min(p, g[0])
		}
		if len(d) > 0 {
			p = min(p, d[0])
		}
		for len(a) > 0 && a[0] == p {
			a = a[1:]
		}
		for len(b) > 0 && b[0] == p {
			b = b[1:]
		}
		for len(g) > 0 && g[0] == p {
			g = g[1:]
		}
		for len(d) > 0 && d[0] == p {
			d = d[1:]
		}
		r.path = r.path[:0]
		for q := p; q >= 0 && r.mark[q] != stamp; q = r.Forest.Parent[q] {
			r.mark[q] = stamp
			r.path = append(r.path, q)
		}
		for i := len(r.path) - 1; i >= 0; i-- {
			c.node = append(c.node, r.path[i])
		}
	}
}

// fill looks up x, prev (inherited where not overridden), y, V and the stiffness.
func (r *run) fill(f int32) {
	c := &r.col
	n := len(c.node)
	c.x, c.prev, c.y, c.next = resize(c.x, n), resize(c.prev, n), resize(c.y, n), resize(c.next, n)
	c.v, c.stiff, c.edge = resize(c.v, n), resize(c.stiff, n), resize(c.edge, n)
	c.diag, c.w, c.u = resize(c.diag, n), resize(c.w, n), resize(c.u, n)
	kx, kp, kg, kd := r.x.begin[f], r.prev.begin[f], r.in.begin[f], int32(0)
	if r.grad != nil {
		kd = r.grad.begin[f]
	}
	for i, p := range c.node {
		x, prev := float32(0), float32(0)
		if j := c.parent[i]; j >= 0 {
			x, prev = c.x[j], c.prev[j]
		}
		if kx < r.x.begin[f+1] && r.x.node[kx] == p {
			x = r.x.value[kx]
			kx++
		}
		if kp < r.prev.begin[f+1] && r.prev.node[kp] == p {
			prev = r.prev.value[kp]
			kp++
		}
		v, stiff := 0.0, 0.0
		for kg < r.in.begin[f+1] && r.in.parent[kg] == p {
			v += r.in.sum[kg]
			stiff += float64(r.unit * float64(r.in.stiff[kg]))
			kg++
		}
		if r.grad != nil {
			c.u[i] = 0
			for kd < r.grad.begin[f+1] && r.grad.parent[kd] == p {
				c.u[i] += r.grad.sum[kd]
				kd++
			}
		} else {
			c.u[i] = v
		}
		c.x[i], c.prev[i], c.y[i] = x, prev, Extrapolate(x, prev, r.Beta)
		c.v[i], c.stiff[i], c.edge[i] = v, stiff, r.Forest.edge(p)
	}
}

// emit writes x+ as overrides: a node is kept if it differs from its parent or if a
// kept node lies below it.
func (r *run) emit(f int32) {
	c := &r.col
	keep := resize(c.u, len(c.node)) // u is free by now
	clear(keep)
	for i := len(c.node) - 1; i >= 0; i-- {
		up := float32(0)
		if j := c.parent[i]; j >= 0 {
			up = c.next[j]
		}
		if keep[i] != 0 || !same(c.next[i], up) {
			keep[i] = 1
			if j := c.parent[i]; j >= 0 {
				keep[j] = 1
			}
		}
	}
	for i, p := range c.node {
		if keep[i] != 0 {
			r.out.add(r.Lo+uint32(f), p, c.next[i])
		}
	}
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, 2*n)
	}
	return s[:n]
}
