package reducer

// mean moves the nodes of one independent set to the mean of their neighbours ([TKDD] eq. 11): the
// parent and internal children at their current vectors, and terminals at y_p + v_n. The column
// holds every node.
func (r *run) mean() {
	r.neighbours(false)
	for i := range r.col.cell {
		c := &r.col.cell[i]
		c.next = c.x
		if r.Forest.Set[c.node] == r.Set {
			c.next = float32(c.w/r.degree(c.node)) + 0
		}
	}
}

// jacobi moves all nodes at once towards the mean of their neighbours' last values. The terminals
// are at prev_p + v_n, where the previous step solved them. Without damping it need not converge.
func (r *run) jacobi() {
	r.neighbours(true)
	for i := range r.col.cell {
		c := &r.col.cell[i]
		mean := c.w / r.degree(c.node)
		c.next = float32(float64(c.x)+float64(r.Damping*(mean-float64(c.x)))) + 0
	}
}

// degree returns S_p, the sum of the weights of p's edges: to the parent (the zero parent counts),
// to internal children and to terminals.
func (r *run) degree(p int32) float64 {
	if r.Forest.Edge != nil {
		return r.Forest.Edge[p] + r.Forest.Below[p] + float64(r.Forest.Terminals[p])
	}
	inner := r.Forest.Inner
	if inner == 0 {
		inner = 1
	}
	return r.Forest.edge(p) + float64(inner*float64(r.Forest.Children[p])) + float64(r.Forest.Terminals[p])
}

// neighbours sets w_i to the weighted sum of node i's neighbours: internals at x, and terminals at
// x_i + v_n. If before is set, terminals are at prev_i + v_n, where the previous step solved them.
func (r *run) neighbours(before bool) {
	cells := r.col.cell
	for i := range cells {
		c := &cells[i]
		solved := c.x
		if before {
			solved = c.prev
		}
		c.w = float64(float64(r.Forest.Terminals[c.node])*float64(solved)) + c.v
	}
	for i := range cells {
		c := &cells[i]
		if j := c.parent; j >= 0 {
			m := &cells[j]
			c.w += float64(c.edge * float64(m.x))
			m.w += float64(c.edge * float64(c.x))
		}
	}
}
