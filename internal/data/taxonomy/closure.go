package taxonomy

import "errors"

// Closure answers queries about a structure as it was given, before spawning and pruning: levels,
// ancestors, distances. The evaluation measures use it. It is immutable, so goroutines may share
// it.
//
// In a DAG, ancestors are those over all parents. Depth, order, subtree sizes and distances refer
// to the first-parent tree, which keeps only the first parent of each node.
type Closure struct {
	names   []string
	index   map[string]int32
	parents Lists   // all parents, in file order
	depth   []int32 // depth of each node in the first-parent tree, 0 for roots
	order   []int32 // the first-parent tree, parents before children
	kids    []int32 // number of children in the first-parent tree

	// below counts the nodes of each subtree of the first-parent tree, including its root.
	below []int32
	roots int
	dag   bool
}

// NewClosure prepares the queries for a structure in O(nodes + edges). It returns the errors of
// Structure.Check.
func NewClosure(s *Structure) (*Closure, error) {
	index, err := s.index()
	if err != nil {
		return nil, err
	}
	if cycle := s.cycle(); cycle != nil {
		return nil, errors.New(s.describeCycle(cycle))
	}
	n := len(s.Names)
	c := &Closure{
		names: s.Names, index: index, parents: s.parentLists(), dag: s.IsDAG(),
		depth: make([]int32, n), kids: make([]int32, n), below: make([]int32, n),
		order: make([]int32, 0, n),
	}
	kids := s.FirstParent().childLists()
	for v := range int32(n) {
		c.kids[v] = int32(len(kids.Of(v)))
		if c.First(v) < 0 {
			c.order = append(c.order, v)
		}
	}
	c.roots = len(c.order)
	for head := 0; head < len(c.order); head++ {
		v := c.order[head]
		for _, w := range kids.Of(v) {
			c.depth[w] = c.depth[v] + 1
			c.order = append(c.order, w)
		}
	}
	for i := n - 1; i >= 0; i-- {
		v := c.order[i]
		c.below[v]++
		if p := c.First(v); p >= 0 {
			c.below[p] += c.below[v]
		}
	}
	return c, nil
}

// Len returns the number of nodes.
func (c *Closure) Len() int { return len(c.names) }

// Node returns the node of a name. ok is false if the structure does not have the name.
func (c *Closure) Node(name string) (node int32, ok bool) {
	node, ok = c.index[name]
	return node, ok
}

// Name returns the name of a node.
func (c *Closure) Name(node int32) string { return c.names[node] }

// Parents lists all parents of a node, in file order. The list must not be changed.
func (c *Closure) Parents(node int32) []int32 { return c.parents.Of(node) }

// First returns the first parent of a node, or -1 for a root.
func (c *Closure) First(node int32) int32 {
	if p := c.parents.Of(node); len(p) > 0 {
		return p[0]
	}
	return -1
}

// IsDAG reports whether some node has more than one parent.
func (c *Closure) IsDAG() bool { return c.dag }

// Roots returns the number of nodes without a parent.
func (c *Closure) Roots() int { return c.roots }

// Depth returns the number of edges from the root of the first-parent tree to a node.
func (c *Closure) Depth(node int32) int32 { return c.depth[node] }

// Order lists all nodes so that first parents come before their children. The list must not be
// changed.
func (c *Closure) Order() []int32 { return c.order }

// Children returns the number of children of a node in the first-parent tree.
func (c *Closure) Children(node int32) int { return int(c.kids[node]) }

// SubtreeSize returns the number of nodes at and below a node in the first-parent tree.
func (c *Closure) SubtreeSize(node int32) int { return int(c.below[node]) }

// Distance returns the number of edges between two nodes in the first-parent tree. If there are
// several roots, they count as children of an additional node. Distance takes O(depth).
func (c *Closure) Distance(a, b int32) int {
	steps := 0
	for a != b {
		if a >= 0 && (b < 0 || c.depth[a] >= c.depth[b]) {
			a = c.First(a)
		} else {
			b = c.First(b)
		}
		steps++
	}
	return steps
}

// Walker collects ancestors. Its scratch memory has one entry per node, so a goroutine should keep
// a Walker and reuse it. It must not be shared by goroutines.
type Walker struct {
	c     *Closure
	round uint32
	seen  []uint32 // the round in which each node was last visited
}

// NewWalker returns a Walker over c.
func (c *Closure) NewWalker() *Walker { return &Walker{c: c, seen: make([]uint32, c.Len())} }

// Ancestors appends to dst the given nodes and all their ancestors over all parents, each once. The
// order depends on the order of nodes only.
func (w *Walker) Ancestors(dst []int32, nodes []int32) []int32 {
	return w.collect(dst, nodes, len(w.c.names))
}

// FirstAncestors is like Ancestors, but follows first parents only.
func (w *Walker) FirstAncestors(dst []int32, nodes []int32) []int32 {
	return w.collect(dst, nodes, 1)
}

// collect visits the nodes and their ancestors over the first `most` parents of each node.
func (w *Walker) collect(dst, nodes []int32, most int) []int32 {
	if w.round++; w.round == 0 { // wrapped around: marks of old rounds would look new
		clear(w.seen)
		w.round = 1
	}
	begin := len(dst)
	dst = w.meet(dst, nodes)
	for head := begin; head < len(dst); head++ {
		parents := w.c.parents.Of(dst[head])
		dst = w.meet(dst, parents[:min(most, len(parents))])
	}
	return dst
}

// meet appends the nodes that have not been visited in this round.
func (w *Walker) meet(dst, nodes []int32) []int32 {
	for _, n := range nodes {
		if w.seen[n] != w.round {
			w.seen[n] = w.round
			dst = append(dst, n)
		}
	}
	return dst
}
