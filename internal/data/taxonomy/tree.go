package taxonomy

// MaxDepth returns the largest depth of a node. It is 0 for a flat tree and -1 for a tree without
// nodes.
func (t *Tree) MaxDepth() int32 {
	deepest := int32(-1)
	for _, d := range t.Depth {
		deepest = max(deepest, d)
	}
	return deepest
}

// Children lists the children of each node in order, a spawned leaf first. It takes O(nodes) time.
func (t *Tree) Children() Lists {
	n := t.Len()
	l := Lists{Begin: make([]int32, n+1)}
	for _, p := range t.Parent {
		if p >= 0 {
			l.Begin[p+1]++
		}
	}
	for i := range n {
		l.Begin[i+1] += l.Begin[i]
	}
	l.Node = make([]int32, l.Begin[n])
	next := append([]int32(nil), l.Begin[:n]...)
	for c, p := range t.Parent {
		if p >= 0 {
			l.Node[next[p]] = int32(c)
			next[p]++
		}
	}
	return l
}

// SubtreeEnd returns for each node n the end of its subtree, which is the interval of nodes [n,
// SubtreeEnd()[n]). It takes O(nodes) time.
func (t *Tree) SubtreeEnd() []int32 {
	end := make([]int32, t.Len())
	for n := t.Len() - 1; n >= 0; n-- {
		end[n] = max(end[n], int32(n)+1)
		if p := t.Parent[n]; p >= 0 {
			end[p] = max(end[p], end[n])
		}
	}
	return end
}

// Terminals lists the nodes that have a loss, in order.
func (t *Tree) Terminals() []int32 { return t.where(true) }

// Internals lists the nodes without a loss, in order.
func (t *Tree) Internals() []int32 { return t.where(false) }

func (t *Tree) where(leaf bool) []int32 {
	var nodes []int32
	for n, l := range t.Leaf {
		if l == leaf {
			nodes = append(nodes, int32(n))
		}
	}
	return nodes
}

// Kind is the kind of a node of the training tree.
type Kind uint8

const (
	Node Kind = iota // a node of the structure, or a label outside it

	// Spawned is a leaf that was added under a labelled internal node. It has the node's label.
	Spawned
	Virtual // the root that joins several roots; it has no name

	// Dummy is an internal node of a graph that splits the edge between two terminals. It is named
	// after both.
	Dummy
)

// Tree is the tree, or the graph (see BuildGraph), that is trained. Nodes are numbered in
// depth-first preorder: a parent comes before its children, a subtree is an interval, and children
// are in the order of the structure file (a spawned leaf first). All slices have one entry per
// node.
type Tree struct {
	// Parent is -1 for a node whose parent is the zero vector.
	Parent []int32
	Kind   []Kind

	// Name of a Spawned node is the label it stands for. Name of a Virtual node is empty.
	Name []string

	// Label is an index into the data's labels, or -1 for a node without a label. A labelled
	// internal node and its spawned leaf have the same label.
	Label []int32

	// Depth is 0 for nodes whose parent is the zero vector.
	Depth []int32

	// Leaf marks the terminals, which have a loss.
	Leaf []bool

	// Adjacent lists the neighbours of each node of a graph, ascending. It is nil for a tree.
	Adjacent *Lists
}

// Len returns the number of nodes.
func (t *Tree) Len() int { return len(t.Parent) }

// Parity returns the independent set of node n in the odd/even schedule. The depths of an edge's
// nodes differ by one, so no edge lies within one set.
func (t *Tree) Parity(n int32) int { return int(t.Depth[n] % 2) }

// ParitySets lists the nodes of even depth and those of odd depth, in node order. The second list
// is empty for a flat tree.
func (t *Tree) ParitySets() [2][]int32 {
	var sets [2][]int32
	for n := range t.Depth {
		k := t.Parity(int32(n))
		sets[k] = append(sets[k], int32(n))
	}
	return sets
}

// greedy gives each node, in the given order, the smallest colour that none of its neighbours has.
// It returns the nodes of each colour, ascending. order is a permutation of 0..n-1; neighbours
// calls visit for each neighbour. It takes O(nodes + edges) time.
func greedy(order []int32, neighbours func(n int32, visit func(int32))) [][]int32 {
	colour := make([]int32, len(order))
	for n := range colour {
		colour[n] = -1
	}
	// takenBy maps a colour to the last node of which a neighbour has the colour.
	var takenBy []int32
	var sizes []int32
	for _, n := range order {
		neighbours(n, func(m int32) {
			if colour[m] >= 0 {
				takenBy[colour[m]] = n
			}
		})
		c := 0
		for c < len(takenBy) && takenBy[c] == n {
			c++
		}
		if c == len(takenBy) {
			takenBy, sizes = append(takenBy, -1), append(sizes, 0)
		}
		colour[n] = int32(c)
		sizes[c]++
	}
	sets := make([][]int32, len(sizes))
	for c := range sets {
		sets[c] = make([]int32, 0, sizes[c])
	}
	for n, c := range colour {
		sets[c] = append(sets[c], int32(n))
	}
	return sets
}
