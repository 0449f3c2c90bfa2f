package reducer

// solve is the exact elimination on a tree, leaf to root and root to leaf:
//
//	(1 + children + s_i) w_i - w_parent(i) - sum_children w_j = s_i y_i + V_i
//
// Nodes outside the column follow their parent and drop out of the equations. Pivots
// are at least 1, so it is stable; cost O(nodes).
func (c *column) solve() {
	for i := range c.node {
		c.diag[i] = 1 + c.stiff[i]
		c.w[i] = float64(c.stiff[i]*float64(c.y[i])) + c.v[i]
	}
	for i := len(c.node) - 1; i >= 0; i-- {
		if j := c.parent[i]; j >= 0 {
			inv := 1 / c.diag[i]
			c.diag[j] += 1 - inv
			c.w[j] += float64(c.w[i] * inv)
		}
	}
	for i := range c.node {
		up := 0.0
		if j := c.parent[i]; j >= 0 {
			up = c.w[j]
		}
		c.w[i] = (c.w[i] + up) / c.diag[i]
		c.next[i] = float32(c.w[i]) + 0
	}
}
