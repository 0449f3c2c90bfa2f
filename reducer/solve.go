package reducer

// solve is the exact elimination on a tree, leaf to root and root to leaf:
//
//	(e_i + sum_children e_j + s_i) w_i - e_i w_parent(i) - sum_children e_j w_j = s_i y_i + V_i
//
// e_i is the weight of the edge above i. Nodes outside the column follow their parent and drop out
// of the equations. Pivots are at least their edges, so the elimination is stable. It costs
// O(nodes).
func (c *column) solve() {
	cells := c.cell
	for i := range cells {
		n := &cells[i]
		n.diag = n.edge + n.curvature
		n.w = float64(n.curvature*float64(n.y)) + n.v
	}
	for i := len(cells) - 1; i >= 0; i-- {
		n := &cells[i]
		n.diag = 1 / n.diag
		if j := n.parent; j >= 0 {
			m, e := &cells[j], n.edge
			share := float64(e * n.diag)
			m.diag += e - float64(e*share)
			m.w += float64(n.w * share)
		}
	}
	for i := range cells {
		n, up := &cells[i], 0.0
		if j := n.parent; j >= 0 {
			up = float64(n.edge * cells[j].w)
		}
		n.w = (n.w + up) * n.diag // diag holds the inverses by now
		n.next = float32(n.w) + 0
	}
}
