package reducer

// certify adds the column's share of P(W) at W = y and of D(a):
//
//	P: 1/2 sum_p e_p (y_p - y_parent(p))^2       D: -1/2 sum_p U_p^2 / e_p,  U_p = V_p + sum of the children's U
//
// in float64 over the float32 y. Nodes outside the column add nothing to either.
//
// With a smooth loss, and the duals that its gradient gives at W, P - D is the gradient of
// P in the metric of the inverse Laplacian: 1/2 sum_p R_p^2 / e_p, R_p = e_p (y_p - y_parent(p)) - U_p
// the gradient's sum over p's subtree. D = P - that has no first-order error from the
// rounding of V.
func (r *run) certify() {
	c := &r.col
	primal, dual := 0.0, 0.0
	for i := len(c.node) - 1; i >= 0; i-- {
		up := 0.0
		if j := c.parent[i]; j >= 0 {
			c.u[j] += c.u[i]
			up = float64(c.y[j])
		}
		e := float64(c.y[i]) - up
		p := float64(c.edge[i]*float64(e*e)) / 2
		primal += p
		u := c.u[i]
		if r.Smooth {
			dual += p
			u = float64(c.edge[i]*e) - u
		}
		dual -= float64(u*u) / (2 * c.edge[i])
	}
	r.sums.Primal += primal
	r.sums.Dual += dual
}

// momentum adds the column's share of the restart test (y - x+)' M (x+ - x), M the
// matrix of the system (edges and curvature): positive when the step turns against the
// momentum (O'Donoghue & Candes 2015, gradient restart).
func (r *run) momentum() {
	c := &r.col
	restart, moved := 0.0, 0.0
	for i := range c.node {
		back, on := float64(c.y[i])-float64(c.next[i]), float64(c.next[i])-float64(c.x[i])
		restart += float64(c.curvature[i] * back * on)
		if j := c.parent[i]; j >= 0 {
			back -= float64(c.y[j]) - float64(c.next[j])
			on -= float64(c.next[j]) - float64(c.x[j])
		}
		restart += float64(c.edge[i] * float64(back*on))
		moved += float64(c.edge[i] * float64(back*back))
	}
	r.sums.Restart += restart
	r.sums.Moved += moved
}
