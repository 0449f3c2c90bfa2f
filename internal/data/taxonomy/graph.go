package taxonomy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"taxon/internal/data/textio"
)

// Edge joins two nodes of a graph. A is less than B.
type Edge struct{ A, B int32 }

// BuildGraph turns an undirected structure, or a DAG whose directions are ignored, into the
// training graph. Its terminals are the nodes with a positive training instance. Nothing is spawned
// or pruned, and there is no root. An edge between two terminals is split by a dummy internal node,
// so that no two terminals are neighbours ([TKDD] 5.1). Labels outside the structure become
// isolated terminals and are counted in a warning.
//
// The nodes of the structure come first, in its order, then the labels outside it, then the dummies
// in the order of the edges that they split. Every Parent is -1; Tree.Adjacent has the edges.
// Repeated edges and self-loops are dropped. BuildGraph takes O(nodes + edges log edges) time.
func BuildGraph(s *Structure, labels []string, counts []int) (*Tree, []string, error) {
	if len(labels) != len(counts) {
		return nil, nil, fmt.Errorf("%d labels with %d counts", len(labels), len(counts))
	}
	if !anyPositive(counts) {
		return nil, nil, errors.New("no instance has a label: there is nothing to learn from")
	}
	index, err := s.indexGraph()
	if err != nil {
		return nil, nil, err
	}
	if len(s.Names)+len(labels)+len(s.Parents) > maxNodes {
		return nil, nil, fmt.Errorf("graph of %d names and %d edges: more than %d nodes", len(s.Names)+len(labels),
			len(s.Parents), maxNodes)
	}
	t := &Tree{}
	add := func(name string, kind Kind, label int32, terminal bool) int32 {
		t.Parent, t.Depth = append(t.Parent, -1), append(t.Depth, 0)
		t.Kind, t.Name = append(t.Kind, kind), append(t.Name, name)
		t.Label, t.Leaf = append(t.Label, label), append(t.Leaf, terminal)
		return int32(len(t.Parent) - 1)
	}
	for _, name := range s.Names {
		add(name, Node, -1, false)
	}
	var outside []string
	for l, name := range labels {
		if n, ok := index[name]; ok {
			t.Label[n], t.Leaf[n] = int32(l), counts[l] > 0
		} else if counts[l] > 0 {
			add(name, Node, int32(l), true)
			outside = append(outside, name)
		}
	}
	var edges []Edge
	for _, e := range s.undirected() {
		if t.Leaf[e.A] && t.Leaf[e.B] {
			d := add(string(textio.AppendNames(nil, t.Name[e.A], t.Name[e.B])), Dummy, -1, false)
			edges = append(edges, Edge{e.A, d}, Edge{e.B, d})
			continue
		}
		edges = append(edges, e)
	}
	t.Adjacent = adjacency(t.Len(), edges)
	var warnings []string
	if len(outside) > 0 {
		warnings = append(warnings, fmt.Sprintf("labels that are not in the graph, trained for themselves: %d (%s)",
			len(outside), quoteSome(outside)))
	}
	return t, warnings, nil
}

// indexGraph is like index, but accepts self-loops.
func (s *Structure) indexGraph() (map[string]int32, error) {
	straight := &Structure{Names: s.Names}
	if len(s.Parents) != len(s.Children) {
		return nil, fmt.Errorf("graph with %d and %d ends of its edges", len(s.Parents), len(s.Children))
	}
	for e, p := range s.Parents {
		if p != s.Children[e] {
			straight.Parents, straight.Children = append(straight.Parents, p), append(straight.Children, s.Children[e])
		}
	}
	return straight.index()
}

// undirected lists the edges by first appearance, each once, without self-loops.
func (s *Structure) undirected() []Edge {
	seen := make(map[Edge]struct{}, len(s.Parents))
	var edges []Edge
	for i, p := range s.Parents {
		e := Edge{int32(min(p, s.Children[i])), int32(max(p, s.Children[i]))}
		if _, twice := seen[e]; twice || e.A == e.B {
			continue
		}
		seen[e] = struct{}{}
		edges = append(edges, e)
	}
	return edges
}

// adjacency lists the neighbours of each node, ascending.
func adjacency(n int, edges []Edge) *Lists {
	l := &Lists{Begin: make([]int32, n+1), Node: make([]int32, 2*len(edges))}
	for _, e := range edges {
		l.Begin[e.A+1]++
		l.Begin[e.B+1]++
	}
	for i := range n {
		l.Begin[i+1] += l.Begin[i]
	}
	next := append([]int32(nil), l.Begin[:n]...)
	for _, e := range edges {
		l.Node[next[e.A]], l.Node[next[e.B]] = e.B, e.A
		next[e.A]++
		next[e.B]++
	}
	for i := range n {
		slices.Sort(l.Node[l.Begin[i]:l.Begin[i+1]])
	}
	return l
}

// IsGraph reports whether t is a graph and not a tree.
func (t *Tree) IsGraph() bool { return t.Adjacent != nil }

// neighbours calls visit for each neighbour of node n, in a tree or graph. kids is the tree's
// Children.
func (t *Tree) neighbours(n int32, kids Lists, visit func(int32)) {
	if t.Adjacent != nil {
		for _, m := range t.Adjacent.Of(n) {
			visit(m)
		}
		return
	}
	if p := t.Parent[n]; p >= 0 {
		visit(p)
	}
	for _, c := range kids.Of(n) {
		visit(c)
	}
}

// Colouring selects the order in which a greedy colouring visits the nodes.
type Colouring uint8

const (
	// LargestFirst orders the nodes by falling degree (Welsh and Powell 1967).
	LargestFirst Colouring = iota

	// SmallestLast repeatedly removes a node of least degree, and colours in reverse order (Matula
	// and Beck 1983).
	SmallestLast

	// DSATUR always takes a node whose neighbours have the largest number of colours (Brelaz 1979).
	DSATUR
)

// ParseColouring parses the option's value. "" stands for largest-first.
func ParseColouring(s string) (Colouring, error) {
	switch s {
	case "", "largest-first":
		return LargestFirst, nil
	case "smallest-last":
		return SmallestLast, nil
	case "dsatur":
		return DSATUR, nil
	}
	return 0, fmt.Errorf("colouring %s: use largest-first, smallest-last or dsatur", strconv.Quote(s))
}

// Colours returns the colour classes of a proper colouring, with the nodes of each in order. The
// colouring is greedy; ties are broken by node number. A tree needs two colours. The number of
// colours of a graph is not known in advance.
func (t *Tree) Colours(by Colouring) [][]int32 {
	kids := t.Children()
	near := func(n int32, visit func(int32)) { t.neighbours(n, kids, visit) }
	degree := make([]int32, t.Len())
	for n := range degree {
		near(int32(n), func(int32) { degree[n]++ })
	}
	switch by {
	case SmallestLast:
		return greedy(smallestLast(degree, near), near)
	case DSATUR:
		return greedy(saturation(degree, near), near)
	}
	order := make([]int32, t.Len())
	for n := range order {
		order[n] = int32(n)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(degree[b], degree[a]) })
	return greedy(order, near)
}

// smallestLast removes nodes in the order of least remaining degree, with one bucket per degree. It
// takes O(nodes + edges) time.
func smallestLast(degree []int32, near func(int32, func(int32))) []int32 {
	left := slices.Clone(degree)
	buckets := make([][]int32, 1)
	put := func(n int32) {
		for int(left[n]) >= len(buckets) {
			buckets = append(buckets, nil)
		}
		buckets[left[n]] = append(buckets[left[n]], n)
	}
	for n := len(degree) - 1; n >= 0; n-- { // the smallest number ends up on top
		put(int32(n))
	}
	gone := make([]bool, len(degree))
	order := make([]int32, len(degree))
	for at, d := len(order)-1, 0; at >= 0; {
		if len(buckets[d]) == 0 {
			d++
			continue
		}
		n := buckets[d][len(buckets[d])-1]
		buckets[d] = buckets[d][:len(buckets[d])-1]
		if gone[n] || int(left[n]) != d {
			continue // the node has moved to another bucket
		}
		gone[n], order[at] = true, n
		at--
		near(n, func(m int32) {
			if !gone[m] {
				left[m]--
				put(m)
				d = min(d, int(left[m]))
			}
		})
	}
	return order
}

// saturation returns DSATUR's order: by falling number of colours among the neighbours, then by
// falling degree, then by number, with the colours of the greedy algorithm. It takes O((nodes +
// edges) log nodes) time.
func saturation(degree []int32, near func(int32, func(int32))) []int32 {
	n := len(degree)
	colour := make([]int32, n)
	seen := make([]map[int32]struct{}, n)
	for i := range colour {
		colour[i], seen[i] = -1, map[int32]struct{}{}
	}
	h := saturationHeap{degree: degree}
	for i := range n {
		h.push(saturated{0, int32(i)})
	}
	order := make([]int32, 0, n)
	for len(order) < n {
		top := h.pop()
		if colour[top.node] >= 0 || top.colours != len(seen[top.node]) {
			continue // outdated entry
		}
		c := int32(0)
		for _, taken := seen[top.node][c]; taken; _, taken = seen[top.node][c] {
			c++
		}
		colour[top.node] = c
		order = append(order, top.node)
		near(top.node, func(m int32) {
			if _, known := seen[m][c]; !known && colour[m] < 0 {
				seen[m][c] = struct{}{}
				h.push(saturated{len(seen[m]), m})
			}
		})
	}
	return order
}

type saturated struct {
	colours int
	node    int32
}

// saturationHeap is a binary heap with the most urgent node on top.
type saturationHeap struct {
	degree []int32
	item   []saturated
}

func (h *saturationHeap) before(a, b saturated) bool {
	if c := cmp.Or(cmp.Compare(b.colours, a.colours), cmp.Compare(h.degree[b.node], h.degree[a.node])); c != 0 {
		return c < 0
	}
	return a.node < b.node
}

func (h *saturationHeap) push(s saturated) {
	h.item = append(h.item, s)
	for i := len(h.item) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.before(h.item[i], h.item[up]) {
			return
		}
		h.item[i], h.item[up] = h.item[up], h.item[i]
		i = up
	}
}

func (h *saturationHeap) pop() saturated {
	top := h.item[0]
	last := len(h.item) - 1
	h.item[0] = h.item[last]
	h.item = h.item[:last]
	for i := 0; ; {
		best := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < last && h.before(h.item[c], h.item[best]) {
				best = c
			}
		}
		if best == i {
			return top
		}
		h.item[i], h.item[best] = h.item[best], h.item[i]
		i = best
	}
}
