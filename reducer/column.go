package reducer

// column is one feature's system over an ancestor-closed list of nodes, in preorder.
type column struct {
	// all has room for all nodes, and cell is the list in it.
	all  []cell
	cell []cell
	// keep is used by emit.
	keep []bool
}

// cell is a node of a column.
type cell struct {
	node int32
	// parent is the parent's position in the column, or -1.
	parent int32
	// y is x + beta (x - prev).
	y    float32
	x    float32
	prev float32
	// next is x+.
	next float32
	// v is V_p.
	v         float64
	curvature float64
	// edge is the weight of the edge to the parent.
	edge float64
	// u is V_p, or with a smooth loss the sum of G, for the certificate.
	u float64
	// diag is the pivot of the elimination, then its inverse.
	diag float64
	// w is the right-hand side, then the solution.
	w float64
}

// reset makes room for n nodes.
func (c *column) reset(n int) { c.all, c.keep = resize(c.all, n), resize(c.keep, n) }

// layOut lists the nodes of feature Lo+f in preorder: all that have or get a value and their
// ancestors, or for the dense rules all nodes. It sets x and prev (the parent's value where a node
// has none of its own), y, V and the curvature. It merges the sorted lists, and inserts missing
// ancestors before the first node that needs them, which is their place in preorder.
func (r *run) layOut(f int32) {
	a, b, g := r.x.ended(f), r.prev.ended(f), r.in.ended(f)
	d := noInput[:]
	if r.grad != nil {
		d = r.grad.ended(f)
	}
	all, n := r.col.all, 0
	for next := int32(0); ; next++ {
		p := min(a[0].node, b[0].node, g[0].parent, d[0].parent)
		if r.dense {
			if p = next; int(next) == len(r.Forest.Parent) {
				break
			}
		}
		if p == end {
			break
		}
		up := int32(-1)
		if q := r.Forest.Parent[p]; q >= 0 {
			if up = r.position(q, n); up < 0 {
				n = r.ancestors(q, n)
				up = int32(n - 1)
			}
		}
		c := &all[n]
		r.place(c, p, up, n)
		if a[0].node == p {
			c.x = a[0].value
			a = a[1:]
		}
		if b[0].node == p {
			c.prev = b[0].value
			b = b[1:]
		}
		// Branch-free: whether a node has an input is unpredictable.
		e, taken := &g[0], 1
		if e.parent != p {
			e, taken = &noInput[0], 0
		}
		g = g[taken:]
		c.v, c.curvature, c.u = e.sum, e.curvature, e.sum
		if r.grad != nil {
			e, taken := &d[0], 1
			if e.parent != p {
				e, taken = &noInput[0], 0
			}
			d = d[taken:]
			c.u = e.sum
		}
		r.finish(c)
		n++
	}
	r.col.cell = all[:n]
	if r.Rule == Support && r.Follower > 0 {
		r.hold()
	}
}

// mostFollowers is the number of followers of a node that count. If a root counted 100,000 of them,
// rare words would hardly move there.
const mostFollowers = 5000

// hold adds the followers' curvature, each at its lowest ancestor in the column with support below.
// Nodes without support below stay equal to their parents and out of the column.
func (r *run) hold() {
	cells := r.col.cell
	for i := range cells {
		cells[i].diag = 0 // terminals counted further below
	}
	for i := len(cells) - 1; i >= 0; i-- {
		c := &cells[i]
		if c.curvature == 0 && c.diag == 0 {
			continue
		}
		below := r.below[c.node]
		c.curvature += float64(r.Follower * min(below-c.diag-c.curvature, mostFollowers))
		if c.parent >= 0 {
			cells[c.parent].diag += below
		}
	}
}

// noInput is the input of a node to which nothing is sent.
var noInput = [1]input{{parent: end}}

// position returns the index of node p among the first n nodes of the column. It returns -1 if p is
// not there.
func (r *run) position(p int32, n int) int32 {
	if i := r.at[p]; int(i) < n && r.col.all[i].node == p {
		return i
	}
	return -1
}

// place makes c, at position n, the cell of node p, whose parent is at position up, with the
// parent's values.
func (r *run) place(c *cell, p, up int32, n int) {
	r.at[p] = int32(n)
	c.node, c.parent, c.edge = p, up, r.edges[p]
	c.x, c.prev = 0, 0
	if up >= 0 {
		top := &r.col.all[up]
		c.x, c.prev = top.x, top.prev
	}
}

// finish sets the fields of a cell that follow from its values.
func (r *run) finish(c *cell) {
	if r.full {
		c.curvature = float64(r.Forest.Terminals[c.node])
	}
	c.y = Extrapolate(c.x, c.prev, r.Beta)
}

// ancestors places node p and its missing ancestors, topmost first, from position n on. It returns
// the new number of nodes.
func (r *run) ancestors(p int32, n int) int {
	r.path = r.path[:0]
	up := int32(-1)
	for q := p; q >= 0; q = r.Forest.Parent[q] {
		if up = r.position(q, n); up >= 0 {
			break
		}
		r.path = append(r.path, q)
	}
	for i := len(r.path) - 1; i >= 0; i-- {
		c := &r.col.all[n]
		r.place(c, r.path[i], up, n)
		c.v, c.curvature, c.u = 0, 0, 0
		r.finish(c)
		up = int32(n)
		n++
	}
	return n
}

// emit writes x+ as overrides. A node is kept if it differs from its parent or if a kept node lies
// below it.
func (r *run) emit(f int32) {
	cells := r.col.cell
	keep := r.col.keep[:len(cells)]
	clear(keep)
	kept := 0
	for i := len(cells) - 1; i >= 0; i-- {
		up, j := float32(0), cells[i].parent
		if j >= 0 {
			up = cells[j].next
		}
		if keep[i] || !same(cells[i].next, up) {
			keep[i] = true
			kept++
			if j >= 0 {
				keep[j] = true
			}
		}
	}
	out := r.out.open(f, kept)
	for i := range cells {
		if keep[i] {
			out[0] = override{cells[i].node, cells[i].next}
			out = out[1:]
		}
	}
}
