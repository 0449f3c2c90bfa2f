package reducer

// tie takes those nodes out of the column that hold no value of their own and whose subtree
// pulls by less than Least: they follow their parents, which get what they get. It is how
// nodes far from the data stay sparse under a smooth loss, that reaches every feature: what
// it costs is U_p^2/(2 e_p) each, to second order, and the certificate, made of all
// contributions, has it.
//
// Under the rules of full stiffness all terminals of nodes that are not in the column are
// those of the node that they follow.
func (r *run) tie() {
	if !r.Ties {
		return
	}
	c := &r.col
	if r.rigid {
		r.stiffen()
	}
	if r.Least == 0 {
		return
	}
	clear(c.keep)
	for i := len(c.node) - 1; i >= 0; i-- {
		j := c.parent[i]
		if j < 0 {
			c.keep[i] = true
			continue
		}
		own := c.keep[i] || !same(c.x[i], c.x[j]) || !same(c.prev[i], c.prev[j])
		if own || float64(c.v[i]*c.v[i]) >= float64(r.Least*r.Least)*c.edge[i] {
			c.keep[i], c.keep[j] = true, true
			continue
		}
		c.v[j] += c.v[i]
		c.stiff[j] += c.stiff[i]
	}
	c.compact()
}

// stiffen counts at each node the terminals below it that are below no child in the column.
func (r *run) stiffen() {
	c := &r.col
	for i, p := range c.node {
		c.stiff[i] = float64(r.Forest.Below[p])
		if j := c.parent[i]; j >= 0 {
			c.stiff[j] -= c.stiff[i]
		}
	}
}

// compact drops the nodes that are not kept; those above a kept one are.
func (c *column) compact() {
	n := 0
	for i, kept := range c.keep {
		if !kept {
			continue
		}
		c.moved[i] = int32(n)
		c.node[n], c.edge[n], c.parent[n] = c.node[i], c.edge[i], c.parent[i]
		if j := c.parent[i]; j >= 0 {
			c.parent[n] = c.moved[j]
		}
		c.x[n], c.prev[n], c.y[n] = c.x[i], c.prev[i], c.y[i]
		c.v[n], c.stiff[n] = c.v[i], c.stiff[i]
		n++
	}
	c.cut(n)
}

// near says whether a value is so close to the parent's that the node follows it.
func (r *run) near(value, up float32, edge float64) bool {
	d := float64(value) - float64(up)
	return float64(d*d)*edge < float64(r.Least*r.Least) && r.Rule <= Full
}
