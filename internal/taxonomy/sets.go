package taxonomy

import (
	"cmp"
	"slices"
)

// Parity is the independent set of node n under the odd/even schedule: an edge joins
// two depths that differ by one, so it never lies within one set.
func (t *Tree) Parity(n int32) int { return int(t.Depth[n] % 2) }

// ParitySets lists the nodes of even depth and those of odd depth, in node order.
// The second list is empty in a flat tree.
func (t *Tree) ParitySets() [2][]int32 {
	var sets [2][]int32
	for n := range t.Depth {
		k := t.Parity(int32(n))
		sets[k] = append(sets[k], int32(n))
	}
	return sets
}

// Colours returns the classes of a proper colouring, nodes in order within each: greedy,
// largest degree first, ties by node number (Welsh and Powell 1967). Two colours suffice
// for a tree and greedy mostly finds them, but it may need a few more: use len(result).
func (t *Tree) Colours() [][]int32 {
	kids := t.Children()
	degree := func(n int32) int32 {
		d := kids.Begin[n+1] - kids.Begin[n]
		if t.Parent[n] >= 0 {
			d++
		}
		return d
	}
	order := make([]int32, t.Len())
	for n := range order {
		order[n] = int32(n)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(degree(b), degree(a)) })
	return greedy(order, func(n int32, visit func(int32)) {
		if p := t.Parent[n]; p >= 0 {
			visit(p)
		}
		for _, c := range kids.Of(n) {
			visit(c)
		}
	})
}

// greedy gives each node, in the order given, the smallest colour that none of its
// neighbours has, and returns the colours' nodes in ascending order. order is a
// permutation of 0..n-1; neighbours calls visit for each neighbour. O(nodes + edges).
func greedy(order []int32, neighbours func(n int32, visit func(int32))) [][]int32 {
	colour := make([]int32, len(order))
	for n := range colour {
		colour[n] = -1
	}
	var takenBy []int32 // colour -> the node whose neighbour has it
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
