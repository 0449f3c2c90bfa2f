package reducer

import (
	"cmp"
	"slices"

	"taxon/internal/coupling"
)

// stripWidth features are solved together where contributions are dense, as with the logistic loss.
// Nothing is transposed then: a strip reads the values where they lie.
const stripWidth = 8

// strip is what column has of one node, for the features of a strip.
type strip struct {
	v, curvature, u, w [stripWidth]float64 // curvature becomes the inverse of the pivot
	x, prev, y, next   [stripWidth]float32
}

// strips is the scratch of a range that is solved in strips.
type strips struct {
	node     []strip
	in, grad lists
}

// lists are contributions by parent: those of node p are all[begin[p]:begin[p+1]].
type lists struct {
	all   []coupling.Dense
	begin []int
}

// RunDense is Run for dense contributions, which need not have one order, and dense vectors.
// With rule None there is no result.
func (s *Scratch) RunDense(t Task, in []coupling.Dense, x, prev *Grid) (*Grid, Sums) {
	slices.SortStableFunc(in, func(a, b coupling.Dense) int { return cmp.Compare(a.Parent, b.Parent) })
	if !t.inStrips() {
		of := x.Vectors(t.Forest.Parent, t.Lo)
		before := of
		if prev != x {
			before = prev.Vectors(t.Forest.Parent, t.Lo)
		}
		next, sums := s.Run(t, listed(in, t.Lo), of, before)
		return next.Grid(t.Forest.Parent, t.Lo, t.Hi), sums
	}
	parents := int32(len(t.Forest.Parent))
	n, _ := slices.BinarySearchFunc(in, parents, func(c coupling.Dense, parent int32) int { return cmp.Compare(c.Parent, parent) })
	r := &run{Scratch: s, Task: t, degrees: t.degreesOf(), full: t.Rule == Full}
	return r.strips(in[:n], in[n:], x, prev), r.sums
}

// inStrips says whether the range can be solved in strips. They hold all nodes, which is the same
// problem with all rules but Family, whose curvature depends on which nodes have a value.
func (t *Task) inStrips() bool {
	switch t.Rule {
	case Mean, Jacobi, Family, Emit:
		return false
	}
	return t.Forest.Graph == nil && t.Forest.Edge == nil && (t.Forest.Inner == 0 || t.Forest.Inner == 1)
}

// listed lists the values of dense contributions, which begin at feature lo.
func listed(in []coupling.Dense, lo uint32) []coupling.Contribution {
	out := make([]coupling.Contribution, len(in))
	for k, d := range in {
		c := coupling.Contribution{Parent: d.Parent}
		for f, sum := range d.Sum {
			curvature := uint8(0)
			if d.Curvature != nil {
				curvature = d.Curvature[f]
			}
			if sum != 0 || curvature != 0 {
				c.Feature, c.Sum, c.Curvature = append(c.Feature, lo+uint32(f)), append(c.Sum, float64(sum)), append(c.Curvature, curvature)
			}
		}
		out[k] = c
	}
	return out
}

// strips solves the range strip by strip.
func (r *run) strips(in, grad []coupling.Dense, x, prev *Grid) *Grid {
	s, nodes := &r.Scratch.strips, len(r.Forest.Parent)
	s.node = resize(s.node, nodes)
	s.in.open(in, 0, nodes)
	s.grad.open(grad, int32(nodes), nodes)
	var next *Grid
	if r.Rule != None {
		next = NewGrid(nodes, int(r.Hi-r.Lo))
	}
	for from := r.Lo; from < r.Hi; from += stripWidth {
		s.fill(r, int(from-r.Lo), x, prev)
		n := min(r.Hi-from, stripWidth)
		all := uint8(1)<<n - 1
		if apart := r.Forest.Apart - 1; apart-from < n {
			all &^= 1 << (apart - from)
		}
		r.sums.Entries += int64(nodes) * int64(n)
		if r.Certify {
			s.certify(r, all)
		}
		if r.Rule == None {
			continue
		}
		s.solve(r.Forest)
		s.momentum(r, all)
		for i := range s.node {
			out := next.Row(i)[from-r.Lo:][:n]
			copy(out, s.node[i].next[:])
			for k := range out {
				if all>>k&1 == 0 {
					out[k] = 0
				}
			}
		}
	}
	return next
}

// open takes contributions that are sorted by parent, whose numbers begin at first.
func (l *lists) open(in []coupling.Dense, first int32, nodes int) {
	l.all, l.begin = in, zeroed(l.begin, nodes+1)
	for _, c := range in {
		l.begin[c.Parent-first+1]++
	}
	for p := range nodes {
		l.begin[p+1] += l.begin[p]
	}
}

// fill lays out the strip from the range's feature at on.
func (s *strips) fill(r *run, at int, x, prev *Grid) {
	end := min(at+stripWidth, x.Width)
	for i := range s.node {
		n := &s.node[i]
		n.v, n.curvature, n.x = [stripWidth]float64{}, [stripWidth]float64{}, [stripWidth]float32{}
		copy(n.x[:], x.Row(i)[at:end])
		n.prev = n.x
		if x != prev {
			copy(n.prev[:], prev.Row(i)[at:end])
		}
		for k := range n.y {
			n.y[k] = Extrapolate(n.x[k], n.prev[k], r.Beta)
		}
		for k := s.in.begin[i]; k < s.in.begin[i+1]; k++ {
			add(&s.in.all[k], at, &n.v, &n.curvature, &r.degrees)
		}
		n.u = n.v
		if r.Smooth {
			n.u = [stripWidth]float64{}
			for k := s.grad.begin[i]; k < s.grad.begin[i+1]; k++ {
				add(&s.grad.all[k], at, &n.u, nil, nil)
			}
		}
		if r.full {
			for k := range n.curvature {
				n.curvature[k] = float64(r.Forest.Terminals[i])
			}
		}
	}
}

// add adds what a contribution has at the strip's features.
func add(c *coupling.Dense, at int, sum, curvature *[stripWidth]float64, degrees *[256]float64) {
	end := min(at+stripWidth, len(c.Sum))
	for k, x := range c.Sum[at:end] {
		sum[k&(stripWidth-1)] += float64(x)
	}
	if curvature != nil && c.Curvature != nil {
		for k, code := range c.Curvature[at:end] {
			curvature[k&(stripWidth-1)] += degrees[code]
		}
	}
}

// certify is run.certify for a strip.
func (s *strips) certify(r *run, all uint8) {
	var primal, dual [stripWidth]float64
	for i := len(s.node) - 1; i >= 0; i-- {
		n, up, edge := &s.node[i], &[stripWidth]float32{}, r.Forest.edge(int32(i))
		if j := r.Forest.Parent[i]; j >= 0 {
			m := &s.node[j]
			for k, u := range &n.u {
				m.u[k] += u
			}
			up = &m.y
		}
		for k, u := range &n.u {
			e := float64(n.y[k]) - float64(up[k])
			p := float64(edge*float64(e*e)) / 2
			primal[k] += p
			if r.Smooth {
				dual[k] += p
				u = float64(edge*e) - u
			}
			dual[k] -= float64(u*u) / (2 * edge)
		}
	}
	for k := range primal {
		if all>>k&1 != 0 {
			r.sums.Primal += primal[k]
			r.sums.Dual += dual[k]
		}
	}
}

// solve is column.solve for a strip.
func (s *strips) solve(f *Forest) {
	for i := range s.node {
		n, edge := &s.node[i], f.edge(int32(i))
		for k, c := range &n.curvature {
			n.w[k] = float64(c*float64(n.y[k])) + n.v[k]
			n.u[k] = c // u has served: it keeps the curvature
			n.curvature[k] = edge + c
		}
	}
	for i := len(s.node) - 1; i >= 0; i-- {
		n, edge := &s.node[i], f.edge(int32(i))
		for k, d := range &n.curvature {
			n.curvature[k] = 1 / d
		}
		if j := f.Parent[i]; j >= 0 {
			m := &s.node[j]
			for k, d := range &n.curvature {
				share := float64(edge * d)
				m.curvature[k] += edge - float64(edge*share)
				m.w[k] += float64(n.w[k] * share)
			}
		}
	}
	for i := range s.node {
		n, up, edge := &s.node[i], &[stripWidth]float64{}, f.edge(int32(i))
		if j := f.Parent[i]; j >= 0 {
			up = &s.node[j].w
		}
		for k, d := range &n.curvature {
			w := (n.w[k] + float64(edge*up[k])) * d
			n.w[k] = w
			n.next[k] = float32(w) + 0
		}
	}
}

// momentum is run.momentum for a strip.
func (s *strips) momentum(r *run, all uint8) {
	var restart, moved [stripWidth]float64
	none := &strip{}
	for i := range s.node {
		n, up, edge := &s.node[i], none, r.Forest.edge(int32(i))
		if j := r.Forest.Parent[i]; j >= 0 {
			up = &s.node[j]
		}
		for k, c := range &n.u {
			back, on := float64(n.y[k])-float64(n.next[k]), float64(n.next[k])-float64(n.x[k])
			restart[k] += float64(c * back * on)
			back -= float64(up.y[k]) - float64(up.next[k])
			on -= float64(up.next[k]) - float64(up.x[k])
			restart[k] += float64(edge * float64(back*on))
			moved[k] += float64(edge * float64(back*back))
		}
	}
	for k := range restart {
		if all>>k&1 != 0 {
			r.sums.Restart += restart[k]
			r.sums.Moved += moved[k]
		}
	}
}
