package reducer

import "math"

// column is one feature's system over an ancestor-closed list of nodes, in preorder. Its
// slices are as long as the list and have room for all nodes.
type column struct {
	node      []int32
	parent    []int32   // position of the parent in node; -1
	y         []float32 // extrapolated
	x         []float32
	prev      []float32
	v         []float64 // V_p
	curvature []float64
	edge      []float64 // weight of the edge to the parent
	u         []float64 // V_p, or what the certificate has in its place
	diag      []float64 // of the elimination
	w         []float64 // right-hand side, then solution
	next      []float32 // x+
	keep      []bool
}

// reset makes room for n nodes.
func (c *column) reset(n int) {
	c.node, c.parent = resize(c.node, n), resize(c.parent, n)
	c.y, c.x, c.prev, c.next = resize(c.y, n), resize(c.x, n), resize(c.prev, n), resize(c.next, n)
	c.v, c.curvature, c.edge, c.u = resize(c.v, n), resize(c.curvature, n), resize(c.edge, n), resize(c.u, n)
	c.diag, c.w, c.keep = resize(c.diag, n), resize(c.w, n), resize(c.keep, n)
}

// cut sets the length of the list.
func (c *column) cut(n int) {
	c.node, c.parent = c.node[:n], c.parent[:n]
	c.y, c.x, c.prev, c.next = c.y[:n], c.x[:n], c.prev[:n], c.next[:n]
	c.v, c.curvature, c.edge, c.u = c.v[:n], c.curvature[:n], c.edge[:n], c.u[:n]
	c.diag, c.w, c.keep = c.diag[:n], c.w[:n], c.keep[:n]
}

// layOut lists the nodes of feature lo+f in preorder: all that hold or get a value, and their
// ancestors; for the dense rules all nodes. It sets x and prev (the parent's value if not
// overridden), y, V and the curvature. It merges the sorted lists, and inserts missing ancestors
// before the first node that needs them, which is their place in preorder.
func (r *run) layOut(f int32) {
	const end = math.MaxInt32
	c := &r.col
	c.cut(cap(c.node))
	a, b, g := r.x.of(f), r.prev.of(f), r.in.of(f)
	var d []input
	if r.grad != nil {
		d = r.grad.of(f)
	}
	n := 0
	for next := int32(0); ; next++ {
		p := int32(end)
		if r.dense {
			if int(next) == len(r.Forest.Parent) {
				break
			}
			p = next
		} else {
			if len(a) > 0 {
				p = a[0].node
			}
			if len(b) > 0 {
				p = min(p, b[0].node)
			}
			if len(g) > 0 {
				p = min(p, g[0].parent)
			}
			if len(d) > 0 {
				p = min(p, d[0].parent)
			}
			if p == end {
				break
			}
		}
		up := int32(-1)
		if q := r.Forest.Parent[p]; q >= 0 {
			if up = r.position(q, n); up < 0 {
				n = r.ancestors(q, n)
				up = int32(n - 1)
			}
		}
		r.place(p, up, n)
		if len(a) > 0 && a[0].node == p {
			c.x[n] = a[0].value
			a = a[1:]
		}
		if len(b) > 0 && b[0].node == p {
			c.prev[n] = b[0].value
			b = b[1:]
		}
		for len(g) > 0 && g[0].parent == p {
			c.v[n] += g[0].sum
			c.curvature[n] += float64(r.degrees[g[0].curvature])
			g = g[1:]
		}
		if r.grad == nil {
			c.u[n] = c.v[n]
		}
		for len(d) > 0 && d[0].parent == p {
			c.u[n] += d[0].sum
			d = d[1:]
		}
		if r.full {
			c.curvature[n] = float64(r.Forest.Terminals[p])
		}
		c.y[n] = Extrapolate(c.x[n], c.prev[n], r.Beta)
		n++
	}
	c.cut(n)
}

// position is the index of node p among the first n of the column, or -1.
func (r *run) position(p int32, n int) int32 {
	if i := r.at[p]; int(i) < n && r.col.node[i] == p {
		return i
	}
	return -1
}

// place inserts node p at position n. Its parent is at position up. p has no value of its own.
func (r *run) place(p, up int32, n int) {
	c := &r.col
	r.at[p] = int32(n)
	c.node[n], c.parent[n], c.edge[n] = p, up, r.Forest.edge(p)
	c.x[n], c.prev[n], c.v[n], c.curvature[n], c.u[n] = 0, 0, 0, 0, 0
	if up >= 0 {
		c.x[n], c.prev[n] = c.x[up], c.prev[up]
	}
}

// ancestors places node p and those above it that are missing, topmost first, from
// position n on; it returns the number of nodes then.
func (r *run) ancestors(p int32, n int) int {
	r.path = r.path[:0]
	up := int32(-1)
	for q := p; q >= 0; q = r.Forest.Parent[q] {
		if up = r.position(q, n); up >= 0 {
			break
		}
		r.path = append(r.path, q)
	}
	c := &r.col
	for i := len(r.path) - 1; i >= 0; i-- {
		r.place(r.path[i], up, n)
		if r.full {
			c.curvature[n] = float64(r.Forest.Terminals[r.path[i]])
		}
		c.y[n] = Extrapolate(c.x[n], c.prev[n], r.Beta)
		up = int32(n)
		n++
	}
	return n
}

// emit writes x+ as overrides. A node is kept if it differs from its parent or if a kept node
// lies below it.
func (r *run) emit(f int32) {
	c := &r.col
	clear(c.keep)
	kept := 0
	for i := len(c.node) - 1; i >= 0; i-- {
		up, j := float32(0), c.parent[i]
		if j >= 0 {
			up = c.next[j]
		}
		if c.keep[i] || !same(c.next[i], up) {
			c.keep[i] = true
			kept++
			if j >= 0 {
				c.keep[j] = true
			}
		}
	}
	r.out.open(f, kept)
	for i, p := range c.node {
		if c.keep[i] {
			r.out.add(p, c.next[i])
		}
	}
}
