package reducer

// mean moves the nodes of one independent set to the mean of their neighbours
// ([TKDD] eq. 11): parent, internal children at their current vectors, terminals at
// y_p + v_n. Dense: every node of the column is looked at.
func (r *run) mean() {
	c := &r.col
	r.neighbours(c.x, c.x)
	for i, p := range c.node {
		c.next[i] = c.x[i]
		if r.Forest.Set[p] == r.Set {
			c.next[i] = float32(c.w[i]/r.degree(p)) + 0
		}
	}
}

// jacobi moves all nodes at once towards the mean of the neighbours' last values. The terminals
// are at prev_p + v_n, where the step before solved them. Undamped it need not converge.
func (r *run) jacobi() {
	c := &r.col
	r.neighbours(c.x, c.prev)
	for i, p := range c.node {
		mean := c.w[i] / r.degree(p)
		c.next[i] = float32(float64(c.x[i])+float64(r.Damping*(mean-float64(c.x[i])))) + 0
	}
}

// degree is S_p, the sum of its edges' weights: parent (zero parent counted), internal
// children, terminals.
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

// neighbours sets w_i to the weighted sum of node i's neighbours: internals at x, terminals at
// solved_i + v_n.
func (r *run) neighbours(x, solved []float32) {
	c := &r.col
	for i, p := range c.node {
		c.w[i] = float64(float64(r.Forest.Terminals[p])*float64(solved[i])) + c.v[i]
	}
	for i := range c.node {
		if j := c.parent[i]; j >= 0 {
			c.w[i] += float64(c.edge[i] * float64(x[j]))
			c.w[j] += float64(c.edge[i] * float64(x[i]))
		}
	}
}
