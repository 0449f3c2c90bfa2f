package taxonomy

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
