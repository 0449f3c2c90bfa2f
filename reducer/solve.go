package reducer

// solve is the exact elimination on a tree, leaf to root and root to leaf:
//
//	(e_i + sum_children e_j + s_i) w_i - e_i w_parent(i) - sum_children e_j w_j = s_i y_i + V_i
//
// e_i, the weight of the edge above i, is 1 but for --internal-weight.
// Nodes outside the column follow their parent and drop out of the equations. Pivots
// are at least their edges, so it is stable; cost O(nodes).
func (c *column) solve() {
	for i := range c.node {
		c.diag[i] = c.edge[i] + c.curvature[i]
		c.w[i] = float64(c.curvature[i]*float64(c.y[i])) + c.v[i]
	}
	for i := len(c.node) - 1; i >= 0; i-- {
		c.diag[i] = 1 / c.diag[i]
		if j := c.parent[i]; j >= 0 {
			e := c.edge[i]
			share := float64(e * c.diag[i])
			c.diag[j] += e - float64(e*share)
			c.w[j] += float64(c.w[i] * share)
		}
	}
	for i := range c.node {
		up := 0.0
		if j := c.parent[i]; j >= 0 {
			up = float64(c.edge[i] * c.w[j])
		}
		c.w[i] = (c.w[i] + up) * c.diag[i] // diag holds the inverses by now
		c.next[i] = float32(c.w[i]) + 0
	}
}
