package reducer

// Graph is what a Forest needs in addition when the classes form a graph. All Parents of the
// forest are -1 then, and every vector is stored whole.
//
// Leaf group g is the K_g terminals with the same neighbours. Each has the pull S'_g = number of
// neighbours + Anchor, and the vector w_n = m_g + v_n, m_g = sum_{j in g} w_j / S'_g. Let M_g =
// K_g - s_g of the group's terminals follow its mean (docs/methods.md, Graphs). Then the
// internals' system on one feature is
//
//	(deg_p + Anchor) w_p - sum_{internal q~p} b w_q - sum_{g at p} M_g m_g(w) = sum_{g at p} (V_g + s_g m_g_old)
//
// deg_p counts the terminals too. The leaf group's mean is an unknown of its own, M_g S'_g u_g -
// M_g sum_{j in g} w_j = 0, so that the matrix stays as sparse as the graph. It is factored in an
// order of minimum degree that is found once (see equations).
type Graph struct {
	// Edges lists the edges between internal nodes, the smaller number first.
	Edges [][2]int32
	// Weight is b, the weight of these edges.
	Weight float64
	// LeafGroups has all terminals by their neighbours.
	LeafGroups []LeafGroup
	// Anchor is the pull of every linked class towards zero. If it is 0, there is no certificate.
	Anchor float64
	// Linked says for each internal node whether it has an edge. The anchor holds only nodes that
	// have one.
	Linked []bool

	// degree is each node's sum of edge weights, those to terminals included.
	degree []float64
	// near lists each node's internal neighbours, and at the leaf groups beside it.
	near  [][]int32
	at    [][]int32
	order *factor
	// withNone and withAll are the factorisations of the systems without any curvature and with all
	// of it. They are nil if order.dense.
	withNone, withAll *factored
	// steps is the number of steps of conjugate gradients that cost as much as a factorisation.
	steps int
}

// LeafGroup is the terminals that have the same internal neighbours.
type LeafGroup struct {
	// Nodes lists these neighbours, ascending.
	Nodes []int32
	// Terminals is K_g, their number.
	Terminals float64
	// Pull is S'_g, the number of neighbours plus the anchor.
	Pull float64
}

// ridge is the weight of a term ridge ||w - y||^2 / 2 that replaces the anchor where there is none.
// Without it the system of a feature on which a component has no curvature would be singular. At a
// fixed point w = y, so the solution is unchanged.
const ridge = 1e-4

// Prepare computes what all tasks share. nodes is the number of internals. unwanted is called
// during long work. When it returns true, Prepare ends early and the graph is invalid. A nil
// unwanted is never called.
func (g *Graph) Prepare(nodes int, unwanted func() bool) {
	g.degree, g.near, g.at = make([]float64, nodes), make([][]int32, nodes), make([][]int32, nodes)
	for _, e := range g.Edges {
		for k := range 2 {
			g.degree[e[k]] += g.Weight
			g.near[e[k]] = append(g.near[e[k]], e[1-k])
		}
	}
	for i, f := range g.LeafGroups {
		for _, p := range f.Nodes {
			g.degree[p] += f.Terminals
			g.at[p] = append(g.at[p], int32(i))
		}
	}
	g.order = newFactor(g.pattern(nodes), unwanted)
	if !g.order.dense {
		all := make([]float64, len(g.LeafGroups))
		for i, f := range g.LeafGroups {
			all[i] = f.Terminals
		}
		scratch := newNumbers(nodes + len(g.LeafGroups))
		g.withNone, g.withAll = newFactored(g.order), newFactored(g.order)
		g.withNone.factorise(g, nil, scratch)
		g.withAll.factorise(g, all, scratch)
		g.steps = g.stepsWorth()
	}
}

// pattern lists the neighbours of each unknown: the nodes first, then the leaf groups' means.
func (g *Graph) pattern(nodes int) [][]int32 {
	adjacent := make([][]int32, nodes+len(g.LeafGroups))
	for p := range nodes {
		list := append([]int32(nil), g.near[p]...)
		for _, f := range g.at[p] {
			list = append(list, int32(nodes)+f)
		}
		adjacent[p] = list
	}
	for i, f := range g.LeafGroups {
		adjacent[nodes+i] = f.Nodes
	}
	return adjacent
}

// MeanAt returns a leaf group's mean at one feature, rounded to float32. All code that needs the
// mean calls it, so that all have the same bits.
func MeanAt(sum, pull float64) float32 { return float32(sum/pull) + 0 }

// diagonalShift returns the amount by which the diagonal at node p exceeds the degree.
func (g *Graph) diagonalShift(p int32) float64 {
	switch {
	case !g.Linked[p]:
		// An internal node without edges stays at zero.
		return 1
	case g.Anchor == 0:
		return ridge
	}
	return g.Anchor
}

// graphRun is one Task on a graph. Slices are per node or per leaf group.
type graphRun struct {
	*run
	g                *Graph
	x, prev, y, next []float32
	// v is V_g per group (with Task.Whole the sum of the terminals' w_n), and curvature is s_g.
	v, curvature []float64
	// gradient is per group what the certificate has in V's place.
	gradient []float64
	// right to back are per node.
	right, w, tmp []float64
	dir, back     []float64
	sys           *equations
}

// graph runs the task feature by feature. A feature without any entry is zero everywhere.
func (r *run) graph() {
	g := r.Forest.Graph
	n, f := len(r.Forest.Parent), len(g.LeafGroups)
	q := &graphRun{
		run: r, g: g, x: make([]float32, n), prev: make([]float32, n), y: make([]float32, n), next: make([]float32, n),
		v: make([]float64, f), curvature: make([]float64, f), gradient: make([]float64, f), right: make([]float64, n),
		w:   make([]float64, n),
		tmp: make([]float64, n), dir: make([]float64, n), back: make([]float64, n), sys: newEquations(g, n),
	}
	for c := range int32(r.Hi - r.Lo) {
		if r.unwanted() {
			return
		}
		if r.empty(c) {
			continue
		}
		q.fill(c)
		r.sums.Entries += int64(n)
		q.column(c)
	}
}

// fill sets the feature's values per node and group.
func (q *graphRun) fill(c int32) {
	clear(q.x)
	clear(q.prev)
	clear(q.v)
	clear(q.curvature)
	for _, e := range q.run.x.of(c) {
		q.x[e.node] = e.value
	}
	for _, e := range q.run.prev.of(c) {
		q.prev[e.node] = e.value
	}
	for p := range q.y {
		q.y[p] = Extrapolate(q.x[p], q.prev[p], q.Beta)
	}
	for _, e := range q.in.of(c) {
		q.v[e.parent] += e.sum
		q.curvature[e.parent] += e.curvature
	}
	copy(q.gradient, q.v)
	if q.grad != nil {
		clear(q.gradient)
		for _, e := range q.grad.of(c) {
			q.gradient[e.parent] += e.sum
		}
	}
}

// column computes one feature's terms of the certificate, if Certify is set, and then the feature's
// new values for all internals.
func (q *graphRun) column(c int32) {
	if q.Certify {
		q.certify()
	}
	switch q.Rule {
	case Support, Family, Full:
		if q.Rule != Support {
			for i := range q.curvature {
				q.curvature[i] = q.g.LeafGroups[i].Terminals
			}
		}
		q.solve()
		q.momentum()
	case Mean, Jacobi:
		q.neighbours()
	case None:
		return
	case Emit:
		copy(q.next, q.y)
	}
	kept := 0
	for _, v := range q.next {
		if v != 0 {
			kept++
		}
	}
	out := q.out.open(c, kept)
	for p, v := range q.next {
		if v != 0 {
			out[0] = override{int32(p), v}
			out = out[1:]
		}
	}
}

// sum returns the sum of x over the group's nodes.
func (f *LeafGroup) sum(x []float32) float64 {
	s := 0.0
	for _, p := range f.Nodes {
		s += float64(x[p])
	}
	return s
}

// solve computes the exact step from the terminals solved at y.
func (q *graphRun) solve() {
	clear(q.right)
	if q.g.Anchor == 0 {
		for p := range q.right {
			q.right[p] = float64(q.g.diagonalShift(int32(p)) * float64(q.y[p]))
		}
	}
	for i := range q.g.LeafGroups {
		f := &q.g.LeafGroups[i]
		add := q.v[i]
		if q.curvature[i] > 0 {
			add += float64(q.curvature[i] * float64(MeanAt(f.sum(q.y), f.Pull)))
		}
		if add != 0 {
			for _, p := range f.Nodes {
				q.right[p] += add
			}
		}
	}
	for p, y := range q.y {
		q.w[p] = float64(y)
	}
	q.sys.solve(q.curvature, q.right, q.w)
	for p, w := range q.w {
		q.next[p] = float32(w) + 0
	}
}

// neighbours moves the nodes of one set, or all of them damped, to the (anchored) mean of their
// neighbours. Terminals stay at their last solutions.
func (q *graphRun) neighbours() {
	for p := range q.next {
		q.next[p] = q.x[p]
		if q.Rule == Mean && q.Forest.Set[p] != q.Set || q.g.degree[p] == 0 {
			continue
		}
		sum := 0.0
		for _, o := range q.g.near[p] {
			sum += float64(q.g.Weight * float64(q.x[o]))
		}
		for _, f := range q.g.at[p] {
			sum += q.v[f]
		}
		mean := sum / (q.g.degree[p] + q.g.Anchor)
		if q.Rule == Jacobi {
			mean = float64(q.x[p]) + float64(q.Damping*(mean-float64(q.x[p])))
		}
		q.next[p] = float32(mean) + 0
	}
}

// momentum adds (y - x+)' M (x+ - x), M the step's matrix.
func (q *graphRun) momentum() {
	for p := range q.dir {
		q.dir[p] = float64(q.next[p]) - float64(q.x[p])
		q.back[p] = float64(q.y[p]) - float64(q.next[p])
	}
	q.g.mul(q.curvature, q.dir, q.tmp)
	for p, d := range q.tmp {
		q.sums.Restart += float64(d * q.back[p])
		q.sums.Moved += float64(q.back[p] * q.back[p])
	}
}

// certify adds the feature's share of P(W) at W = y and, if there is an anchor, of D(a). The
// blocks add the terminals' shares. Let V_p be the sum of v'_n over p's terminals, and A the
// system without curvature. Then sum_n w_n(a).v_n = sum S'_n ||v'_n||^2 + V'A^-1 V, and for any w
//
//	V'A^-1 V <= 2 V.w - w'Aw + ||V - Aw||^2 / Anchor
//
// because A's eigenvalues are at least Anchor. This is a bound whatever the solver rounded. For a
// smooth loss the same bound of r'A^-1 r, r = Ay - V, is P - D.
func (q *graphRun) certify() {
	g, primal := q.g, 0.0
	for _, e := range g.Edges {
		d := float64(q.y[e[0]]) - float64(q.y[e[1]])
		primal += float64(g.Weight*float64(d*d)) / 2
	}
	for p, y := range q.y {
		if g.Linked[p] {
			primal += float64(g.Anchor*float64(float64(y)*float64(y))) / 2
		}
	}
	q.sums.Primal += primal
	if g.Anchor == 0 {
		return
	}
	clear(q.right)
	for i := range g.LeafGroups {
		f := &g.LeafGroups[i]
		v := q.gradient[i]
		if q.Whole && !q.Smooth {
			v -= float64(f.Terminals * float64(MeanAt(f.sum(q.y), f.Pull)))
		}
		if v != 0 {
			for _, p := range f.Nodes {
				q.right[p] += v
			}
		}
	}
	if q.Smooth {
		for p, y := range q.y {
			q.dir[p] = float64(y)
		}
		q.g.mul(nil, q.dir, q.tmp)
		for p := range q.right {
			q.right[p] = q.tmp[p] - q.right[p]
		}
		q.sums.Dual += primal
	}
	clear(q.w)
	q.sys.solve(nil, q.right, q.w)
	q.g.mul(nil, q.w, q.tmp)
	rest, value := 0.0, 0.0
	for p, v := range q.right {
		value += float64(q.w[p]*v) + float64(q.w[p]*(v-q.tmp[p]))
		rest += float64((v - q.tmp[p]) * (v - q.tmp[p]))
	}
	q.sums.Dual -= (value + rest/g.Anchor) / 2
}
