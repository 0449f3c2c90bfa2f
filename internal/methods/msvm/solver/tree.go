package solver

import (
	"math"
	"slices"

	"taxon/internal/linalg/treeldl"
)

// Tree turns a Problem into one over the nodes n of a tree. All nodes but its root have a vector:
//
//	min_W  P(W) = R(W) + sum_i C_i max(0, max_r s_r (e_r - m_r))
//
// An instance at leaf y has choices r that depend on the form. m_r is the margin of what is right
// over r. The dual has b_ir >= 0 for each choice, with sum_r b_ir <= C_i:
//
//	max_b  D(b) = sum b_ir s_r e_r - 1/2 v'M^-1 v,   R(W) = 1/2 W'M W,   v_n = sum of the s_r b_ir x_i of margins
//	              in which w_n.x_i counts, with its sign
//
// The forms:
//
//   - Paths: the choices are the other leaves, m_r = sum over the path to y of w_n.x - the same to r, M = I.
//   - Transfer: the choices are the siblings of nodes n on the path to y, m_r = w_n.x - w_r.x, and
//     R = 1/2 sum_n (||w_n||^2 + sum over children ||w_n - w_c||^2).
//   - Orthogonal: choices and margins are as with Transfer, and R = 1/2 sum_n K_n ||w_n||^2 + Alpha sum over
//     n and ancestors a of |w_n.w_a|, K_n being the number of nodes at and below n.
//
// With Orthogonal's signs S_na in [-1, 1] for each pair, M is a matrix of the same form, with K_n
// on its diagonal and Alpha S_na off it. For any S the optimum of its problem is not above that of
// P, and D is jointly concave in b and S. The solver raises D in both in turn (signs.go).
type Tree struct {
	// Parent is -1 for node 0, the root. Parents come before their children, and subtrees are contiguous.
	Parent []int32
	Leaf   []bool
	// Form says what R and the choices are.
	Form Form
	// Margin belongs to Paths: s = 1 and e = Delta, else s = Delta and e = 1. Delta is half the leaves' distance.
	Margin bool
	// Unit makes every Delta 1.
	Unit bool
	// Alpha belongs to Orthogonal.
	Alpha float64
}

// Form says what R, and the choices of an instance, are. Type Tree describes the forms.
type Form uint8

// These are the forms.
const (
	Paths Form = iota
	Transfer
	Orthogonal
)

// nodes is a tree with what is computed from it, and scratch.
type nodes struct {
	*Tree
	form     Form
	end      []int32 // end of each node's subtree
	level    []int32 // depth; the root's is 0
	top      []int32 // ancestor at level 1, or the node itself
	kids     []int32 // children of node n, from kidsFrom[n] on
	kidsFrom []int32
	leaves   []uint32
	place    []int32 // index of a leaf in leaves
	most     float64 // bounds Delta
	meet     []int32 // common of two nodes; nil for many nodes

	m, f *treeldl.Matrix // M and its factors
	// g is M^-1, dense, of the nodes below each node of level 1, and below their number.
	g     [][]float64
	below []int

	path    []int32   // path of the current instance, by level
	delta   []float64 // Delta of each node
	mark    []bool
	touched []int32
	z       []float64
	need    []uint32
	score   []float64
	column  []float64
	s, h    []float64 // s, h and b of an instance's choices
	b       []float64
}

// newNodes computes what the solver needs of the problem's tree.
func newNodes(p *Problem) *nodes {
	tr := p.Tree
	n := len(tr.Parent)
	t := &nodes{Tree: tr, form: tr.Form, end: make([]int32, n), level: make([]int32, n), top: make([]int32, n),
		kidsFrom: make([]int32, n+1), place: make([]int32, n),
		g: make([][]float64, n), below: make([]int, n), delta: make([]float64, n), mark: make([]bool, n),
		z: make([]float64, n), column: make([]float64, n)}
	for k := 1; k < n; k++ {
		a := tr.Parent[k]
		t.level[k], t.top[k] = t.level[a]+1, t.top[a]
		if a == 0 {
			t.top[k] = int32(k)
		}
		t.kidsFrom[a+1]++
	}
	for k := n - 1; k >= 0; k-- {
		if t.end[k] = max(t.end[k], int32(k+1)); k > 0 {
			t.end[tr.Parent[k]] = max(t.end[tr.Parent[k]], t.end[k])
		}
	}
	at := make([]int32, n)
	for k := range n {
		t.kidsFrom[k+1] += t.kidsFrom[k]
		at[k] = t.kidsFrom[k]
		if tr.Leaf[k] {
			t.place[k] = int32(len(t.leaves))
			t.leaves = append(t.leaves, uint32(k))
			t.most = max(t.most, float64(t.level[k]))
		}
	}
	if tr.Unit {
		t.most = 1
	}
	t.kids = make([]int32, n)
	for k := 1; k < n; k++ {
		t.kids[at[tr.Parent[k]]] = int32(k)
		at[tr.Parent[k]]++
	}
	if n <= interleaved {
		meet := make([]int32, 0, n*n)
		for k := range n * n {
			meet = append(meet, t.common(int32(k/n), int32(k%n)))
		}
		t.meet = meet
	}
	if t.form == Paths {
		return t
	}
	shape := treeldl.NewShape(tr.Parent)
	t.m, t.f = shape.New(), shape.New()
	for k := 1; k < n; k++ {
		if t.form == Orthogonal {
			t.m.Diagonal[k] = float64(t.end[k] - int32(k))
			continue
		}
		t.m.Diagonal[k] += 1
		if a := tr.Parent[k]; a > 0 {
			t.m.Diagonal[k]++
			t.m.Diagonal[a]++
			t.m.Entry[shape.Begin[k]] = -1
		}
	}
	t.m.Diagonal[0], t.f.Diagonal[0] = 1, 1
	t.invert()
	return t
}

// invert computes the factors and M^-1 anew.
func (t *nodes) invert() {
	for k := 1; k < len(t.Parent); k = int(t.end[k]) {
		t.invertBelow(k)
	}
}

// invertBelow computes the factors and M^-1 anew for the subtree of node k, which is on level 1.
func (t *nodes) invertBelow(k int) {
	n := int(t.end[k]) - k
	t.m.Factor(t.f, 0, k, k+n)
	if t.g[k] == nil {
		t.g[k], t.below[k] = make([]float64, n*n), n
	}
	clear(t.g[k])
	for j := range n {
		t.g[k][j*n+j] = 1
		t.f.Solve(t.g[k][j*n:(j+1)*n], k, k+n)
	}
}

// at returns the entry of M^-1 in row a and column b.
func (t *nodes) at(a, b int32) float64 {
	k := t.top[a]
	if k != t.top[b] {
		return 0
	}
	return t.g[k][int(a-k)*t.below[k]+int(b-k)]
}

// common returns the level of the last common node on the paths to a and b.
func (t *nodes) common(a, b int32) int32 {
	if t.meet != nil {
		return t.meet[int(a)*len(t.Parent)+int(b)]
	}
	for a != b {
		if a > b {
			a = t.Parent[a]
		} else {
			b = t.Parent[b]
		}
	}
	return t.level[a]
}

// apart returns Delta of two leaves.
func (t *nodes) apart(a, b int32) float64 {
	if t.Unit {
		return 1
	}
	return float64(t.level[a]+t.level[b]-2*t.common(a, b)) / 2
}

// scale returns s_r and e_r for an instance at leaf y.
func (t *nodes) scale(y, r int32) (s, e float64) {
	switch {
	case t.form != Paths:
		return 1, 1
	case t.Margin:
		return 1, t.apart(y, r)
	}
	return t.apart(y, r), 1
}

// choices returns the number of choices of an instance at leaf y.
func (t *nodes) choices(y int32) (n int) {
	if t.form == Paths {
		return len(t.leaves) - 1
	}
	for ; y > 0; y = t.Parent[y] {
		n += int(t.kidsFrom[t.Parent[y]+1]-t.kidsFrom[t.Parent[y]]) - 1
	}
	return n
}

// choice returns the k-th choice of an instance at leaf y.
func (t *nodes) choice(y int32, k int) uint32 {
	if t.form == Paths {
		if k >= int(t.place[y]) {
			k++
		}
		return t.leaves[k]
	}
	for ; ; y = t.Parent[y] {
		family := t.kids[t.kidsFrom[t.Parent[y]]:t.kidsFrom[t.Parent[y]+1]]
		if k < len(family)-1 {
			if family[k] >= y {
				k++
			}
			return uint32(family[k])
		}
		k -= len(family) - 1
	}
}

// chooses reports whether r is a choice of an instance at leaf y.
func (t *nodes) chooses(y, r int32) bool {
	if t.form == Paths {
		return r != y && t.Leaf[r]
	}
	a := t.Parent[r]
	return r > 0 && a <= y && y < t.end[a] && !(r <= y && y < t.end[r])
}

// lost returns the loss of an instance without features at leaf y, which does not depend on W.
func (t *nodes) lost(y int32) (most float64) {
	if t.form != Paths {
		return float64(min(t.choices(y), 1))
	}
	for _, r := range t.leaves {
		if int32(r) != y {
			most = max(most, t.apart(y, int32(r)))
		}
	}
	return most
}

// startTree does what start does on a tree: each instance has a few choices.
func (p *Problem) startTree() *State {
	t := newNodes(p)
	s := &State{Begin: make([]uint64, 1, len(p.Class)+1)}
	for i, y := range p.Class {
		n, at := t.choices(y), len(s.Class)
		each := min(n, startClasses)
		for k := range each {
			s.Class = append(s.Class, t.choice(y, (i+k*n/each)%n))
		}
		slices.Sort(s.Class[at:])
		s.Begin = append(s.Begin, uint64(len(s.Class)))
	}
	s.Value = make([]float64, len(s.Class))
	return s
}

// follow sets the path to leaf y.
func (t *nodes) follow(y int32) {
	t.path = resized(t.path, int(t.level[y])+1)
	for ; ; y = t.Parent[y] {
		if t.path[t.level[y]] = y; y == 0 {
			return
		}
	}
}

// right returns the node whose vector counts for the instance in a margin over r.
func (t *nodes) right(r int32) int32 {
	if t.form == Paths {
		return t.path[len(t.path)-1]
	}
	return t.path[t.level[r]]
}

// costsTree sets g to s_r (e_r - m_r).
func (s *Solver) costsTree(i int, classes []uint32, g []float64) {
	t, y := s.t, s.p.Class[i]
	t.follow(y)
	t.need = append(t.need[:0], classes...)
	for l, n := range t.path[1:] {
		if t.form == Paths || slices.ContainsFunc(classes, func(r uint32) bool { return int(t.level[r]) == l+1 }) {
			t.need = append(t.need, uint32(n))
			t.mark[n] = true
		}
	}
	if t.form == Paths {
		for k := range classes {
			for n := t.Parent[classes[k]]; n > 0 && !t.mark[n]; n = t.Parent[n] {
				t.need = append(t.need, uint32(n))
				t.mark[n] = true
			}
		}
		slices.Sort(t.need)
	}
	t.score = resized(t.score, len(t.need))
	s.scores(i, int(y), t.need, t.score)
	for k, n := range t.need {
		t.mark[n], t.z[n] = false, t.score[k]
		if a := t.Parent[n]; t.form == Paths && a > 0 {
			t.z[n] += t.z[a]
		}
	}
	for k, r := range classes {
		scale, e := t.scale(y, int32(r))
		g[k] = float64(scale * (e - (t.z[t.right(int32(r))] - t.z[r])))
	}
}

// cross returns the product of the directions of choices p and q, for ||x|| = 1 and s = 1.
func (t *nodes) cross(p, q int32) float64 {
	a, b := t.right(p), t.right(q)
	if t.form == Paths {
		return float64(t.level[a] - t.common(a, p) - t.common(a, q) + t.common(p, q))
	}
	return t.at(a, b) - t.at(a, q) - t.at(p, b) + t.at(p, q)
}

// The steps on an instance's problem end at a stepShare of the violation that they began with, or
// after maxSteps times the number of choices.
const (
	stepShare = 0.01
	maxSteps  = 8
)

// improveTree solves the problem of instance i approximately. Each step takes the two choices that
// promise most: one gains what the other loses. The unused part of C counts as a choice at no cost.
func (s *Solver) improveTree(i int, g []float64, class []uint32, b []float64, c float64) {
	t, y, n := s.t, s.p.Class[i], len(g)
	a := s.p.Rows.Norm(i)
	t.s, t.h, t.b = resized(t.s, n), resized(t.h, 2*n), append(t.b[:0], b[:n]...)
	for k := range n {
		t.s[k], _ = t.scale(y, int32(class[k]))
		t.h[k] = float64(a*t.s[k]*t.s[k]) * t.cross(int32(class[k]), int32(class[k]))
	}
	row := t.h[n:] // row of the choice that gains
	rest, first := c-s.total[i], 0.0
	for step := 0; step <= maxSteps*n; step++ {
		gain, best := -1, 0.0 // -1: what is not used
		for k, x := range g {
			if x > best {
				gain, best = k, x
			}
		}
		lose, worth, least, length := -2, 0.0, best, 0.0
		if gain >= 0 {
			for k := range row {
				row[k] = float64(a*t.s[gain]*t.s[k]) * t.cross(int32(class[gain]), int32(class[k]))
			}
		}
		consider := func(k int, x, curvature float64) {
			least = min(least, x)
			if d := best - x; d > 0 && float64(d*d) > float64(worth*curvature) {
				lose, worth, length = k, float64(d*d)/curvature, d/curvature
			}
		}
		if rest > 0 && gain >= 0 {
			consider(-1, 0, t.h[gain])
		}
		for k, x := range g {
			if b[k] > 0 && k != gain {
				if curvature := t.h[k]; gain >= 0 {
					consider(k, x, curvature+t.h[gain]-2*row[k])
				} else {
					consider(k, x, curvature)
				}
			}
		}
		if first == 0 {
			first = best - least
		}
		if lose == -2 || best-least <= max(still, stepShare*first) {
			break
		}
		if lose >= 0 && length >= b[lose] {
			length, b[lose] = b[lose], 0
		} else if lose >= 0 {
			b[lose] -= length
		} else if length = min(length, rest); length == rest {
			rest = 0
		} else {
			rest -= length
		}
		if gain >= 0 {
			b[gain] += length
		} else {
			rest += length
		}
		for k := range g {
			if gain >= 0 {
				g[k] -= float64(length * row[k])
			}
			if lose >= 0 {
				g[k] += float64(length * a * t.s[lose] * t.s[k] * t.cross(int32(class[lose]), int32(class[k])))
			}
		}
	}
	for k, old := range t.b {
		if b[k] != old {
			t.put(int32(class[k]), float64((b[k]-old)*t.s[k]))
		}
	}
	s.sum(i, b, c)
	s.flush(i, t.form != Paths)
}

// put adds by times the direction of a margin over r to delta.
func (t *nodes) put(r int32, by float64) {
	a := t.right(r)
	if t.form != Paths {
		t.touch(a, by)
		t.touch(r, -by)
		return
	}
	for a != r {
		if a > r {
			t.touch(a, by)
			a = t.Parent[a]
		} else {
			t.touch(r, -by)
			r = t.Parent[r]
		}
	}
}

// touch adds to the delta of a node.
func (t *nodes) touch(n int32, by float64) {
	if !t.mark[n] {
		t.mark[n] = true
		t.touched = append(t.touched, n)
	}
	t.delta[n] += by
}

// flush adds delta x_i to v. If invert is set, it adds M^-1 delta x_i to w instead.
func (s *Solver) flush(i int, invert bool) {
	t, moves := s.t, s.moves[:0]
	for _, n := range t.touched {
		if !t.mark[n] {
			continue
		}
		t.mark[n] = false
		if !invert {
			moves = append(moves, move{n, t.delta[n]})
			continue
		}
		k := t.top[n]
		size := t.below[k]
		column := t.column[:size]
		clear(column)
		for _, m := range t.touched {
			if t.top[m] != k {
				continue
			}
			t.mark[m] = false
			d := t.delta[m]
			for j, x := range t.g[k][int(m-k)*size:][:size] {
				column[j] += float64(d * x)
			}
		}
		for j, x := range column {
			if x != 0 {
				moves = append(moves, move{k + int32(j), x})
			}
		}
	}
	for _, n := range t.touched {
		t.delta[n] = 0
	}
	t.touched = t.touched[:0]
	s.add(i, moves)
	s.moves = moves
}

// sumUp sets v to the sum over the duals.
func (s *Solver) sumUp() {
	clear(s.w)
	for i, y := range s.p.Class {
		s.t.follow(y)
		for k := s.state.Begin[i]; k < s.state.Begin[i+1]; k++ {
			if b := s.state.Value[k]; b != 0 {
				r := int32(s.state.Class[k])
				scale, _ := s.t.scale(y, r)
				s.t.put(r, float64(b*scale))
			}
		}
		if len(s.t.touched) > 0 {
			s.flush(i, false)
		}
	}
}

// sign computes M from Orthogonal's signs.
func (s *Solver) sign() {
	if s.state.Sign == nil {
		s.state.Sign = make([]float64, len(s.t.m.Entry))
	}
	s.t.sign(s.state.Sign)
	s.t.invert()
}

// solveAll sets w = M^-1 v.
func (s *Solver) solveAll() {
	n := s.p.Classes
	for f := range s.width {
		s.eachNode(f, func(v []float64) { s.t.f.Solve(v, 0, n) }, true)
	}
}

// eachNode calls visit with the nodes' weights of feature f, unless all are zero. With write it
// stores what visit made of them.
func (s *Solver) eachNode(f int, visit func(v []float64), write bool) {
	n := s.p.Classes
	v := s.t.column[:n]
	if s.classStride == 1 {
		v = s.w[f*s.step:][:n]
	} else {
		for k := range v {
			v[k] = s.w[f*s.step+k*s.classStride]
		}
	}
	if !slices.ContainsFunc(v, func(x float64) bool { return x != 0 }) {
		return
	}
	if visit(v); write && s.classStride != 1 {
		for k, x := range v {
			s.w[f*s.step+k*s.classStride] = x
		}
	}
}

// regular returns R, and 1/2 v'M^-1 v. The two differ by Orthogonal's signs alone.
func (s *Solver) regular() (primal, dual float64) {
	t := s.t
	if t == nil || t.form == Paths {
		for _, x := range s.w {
			dual += float64(x*x) / 2
		}
		return dual, dual
	}
	var products []float64 // products of the pairs
	if t.form == Orthogonal {
		products = make([]float64, len(t.m.Entry))
	}
	for f := range s.width {
		s.eachNode(f, func(v []float64) {
			for k := 1; k < len(v); k++ {
				x, a := v[k], t.Parent[k]
				if t.form == Transfer {
					dual += float64(x*x) / 2
					if a > 0 {
						dual += float64((v[a]-x)*(v[a]-x)) / 2
					}
					continue
				}
				dual += float64(t.m.Diagonal[k]*x*x) / 2
				for p := t.m.Begin[k]; p < t.m.Begin[k+1]; p++ {
					products[p] += float64(x * v[a])
					a = t.Parent[a]
				}
			}
		}, false)
	}
	primal = dual
	for p, x := range products {
		primal += float64(t.Alpha * math.Abs(x))
		dual += float64(t.m.Entry[p] * x)
	}
	return primal, dual
}
