package taxonomy

// MaxDepth is the largest depth of a node; 0 for a flat tree, -1 for one without nodes.
func (t *Tree) MaxDepth() int32 {
	deepest := int32(-1)
	for _, d := range t.Depth {
		deepest = max(deepest, d)
	}
	return deepest
}

// Children lists the children of each node in order, a spawned leaf first. O(nodes).
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

// SubtreeEnd gives for each node the number after the last node of its subtree: the
// subtree of n is the interval [n, SubtreeEnd()[n]). O(nodes).
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

// Terminals lists the nodes that bear a loss, in order.
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
