package reducer

// stiffen counts at each node the terminals below it that are below no child in the column:
// under full stiffness and Ties all terminals of nodes that are not in the column are those
// of the node that they follow.
func (c *column) stiffen(f *Forest) {
	for i, p := range c.node {
		c.stiff[i] = float64(f.Below[p])
		if j := c.parent[i]; j >= 0 {
			c.stiff[j] -= c.stiff[i]
		}
	}
}
