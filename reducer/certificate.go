package reducer

// certify adds the column's share of P(W) at W = y and of D(a):
//
//	P: 1/2 sum_p e_p (y_p - y_parent(p))^2       D: -1/2 sum_p U_p^2 / e_p,  U_p = V_p + sum of the children's U
//
// in float64 over the float32 y. Nodes outside the column add nothing to either.
//
// With a smooth loss and the duals that its gradient gives at W, P - D is half the squared length of
// P's gradient in the metric of the inverse Laplacian: 1/2 sum_p R_p^2 / e_p, where
// R_p = e_p (y_p - y_parent(p)) - U_p is the gradient's sum over p's subtree. D computed as P less
// this has no first-order error from the rounding of V.
func (r *run) certify() {
	cells := r.col.cell
	primal, dual := 0.0, 0.0
	for i := len(cells) - 1; i >= 0; i-- {
		c, up := &cells[i], 0.0
		if j := c.parent; j >= 0 {
			cells[j].u += c.u
			up = float64(cells[j].y)
		}
		e := float64(c.y) - up
		p := float64(c.edge*float64(e*e)) / 2
		primal += p
		u := c.u
		if r.Smooth {
			dual += p
			u = float64(c.edge*e) - u
		}
		dual -= float64(u*u) / (2 * c.edge)
	}
	r.sums.Primal += primal
	r.sums.Dual += dual
}

// momentum adds the column's share of the restart test (y - x+)' M (x+ - x), M the
// matrix of the system (edges and curvature): positive when the step turns against the
// momentum (O'Donoghue & Candes 2015, gradient restart).
func (r *run) momentum() {
	cells := r.col.cell
	restart, moved := 0.0, 0.0
	for i := range cells {
		c := &cells[i]
		back, on := float64(c.y)-float64(c.next), float64(c.next)-float64(c.x)
		restart += float64(c.curvature * back * on)
		if j := c.parent; j >= 0 {
			m := &cells[j]
			back -= float64(m.y) - float64(m.next)
			on -= float64(m.next) - float64(m.x)
		}
		restart += float64(c.edge * float64(back*on))
		moved += float64(c.edge * float64(back*back))
	}
	r.sums.Restart += restart
	r.sums.Moved += moved
}
