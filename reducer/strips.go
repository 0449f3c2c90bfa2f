package reducer

import "taxon/internal/coupling"

// stripWidth features are solved together where nearly every node has a value at every feature,
// as with the logistic loss. Nothing is transposed then: a strip reads the lists where they lie.
const stripWidth = 8

// strip is what column has of one node, for the features of a strip.
type strip struct {
	v, curvature, u, w [stripWidth]float64 // curvature becomes the inverse of the pivot
	x, prev, y, next   [stripWidth]float32
}

// strips is the scratch of a range that is solved in strips.
type strips struct {
	node     []strip
	x, prev  []int64 // of each node: how far its list has been read
	in, grad lists
	feature  []uint32 // overrides of x+, node by node, each with room for all features
	value    []float32
	count    []int
	kept     []uint8 // of each node: the features of a strip that are written
}

// lists are contributions by parent: those of node p are all[begin[p]:begin[p+1]].
type lists struct {
	all   []coupling.Contribution
	at    []int // how far each has been read
	begin []int
}

// stripShare: strips are for ranges that have more than this share of all (node, feature) pairs.
const stripShare = 0.5

// inStrips says whether the range is to be solved in strips. They hold all nodes, which is the
// same problem with all rules but Family, whose curvature depends on which nodes have a value.
func (t *Task) inStrips(in []coupling.Contribution, x *Vectors) bool {
	switch t.Rule {
	case Mean, Jacobi, Family:
		return false
	}
	if t.Forest.Graph != nil || t.Forest.Edge != nil || t.Forest.Inner != 0 && t.Forest.Inner != 1 {
		return false
	}
	n := 0
	for _, c := range in {
		n += len(c.Feature)
	}
	return float64(max(n, len(x.Feature))) > stripShare*float64(len(t.Forest.Parent))*float64(t.Hi-t.Lo)
}

// strips solves the range strip by strip.
func (r *run) strips(in, grad []coupling.Contribution, x, prev *Vectors) *Vectors {
	s, nodes, width := &r.Scratch.strips, len(r.Forest.Parent), int(r.Hi-r.Lo)
	s.node, s.kept = resize(s.node, nodes), resize(s.kept, nodes)
	s.feature, s.value, s.count = resize(s.feature, nodes*width), resize(s.value, nodes*width), zeroed(s.count, nodes)
	s.x = append(s.x[:0], x.Begin[:nodes]...)
	s.prev = append(s.prev[:0], prev.Begin[:nodes]...)
	s.in.open(in, nodes)
	s.grad.open(grad, nodes)
	for from := r.Lo; from < r.Hi; from += stripWidth {
		s.fill(r, from, x, prev)
		n := min(r.Hi-from, stripWidth)
		all := uint8(1)<<n - 1
		if apart := r.Forest.Apart - 1; apart-from < n {
			all &^= 1 << (apart - from)
		}
		r.sums.Entries += int64(nodes) * int64(n)
		if r.Certify {
			s.certify(r, all)
		}
		switch r.Rule {
		case None:
			continue
		case Emit:
			for i := range s.node {
				s.node[i].next = s.node[i].y
			}
		default:
			s.solve(r.Forest)
			s.momentum(r, all)
		}
		s.emit(r.Forest, from, all)
	}
	return s.vectors(width)
}

// open sorts contributions, which are sorted by parent, into lists.
func (l *lists) open(in []coupling.Contribution, nodes int) {
	l.all, l.at, l.begin = in, zeroed(l.at, len(in)), zeroed(l.begin, nodes+1)
	for _, c := range in {
		l.begin[c.Parent+1]++
	}
	for p := range nodes {
		l.begin[p+1] += l.begin[p]
	}
}

// fill lays out the strip from a feature on.
func (s *strips) fill(r *run, from uint32, x, prev *Vectors) {
	for i := range s.node {
		n := &s.node[i]
		n.v, n.curvature, n.x, n.prev = [stripWidth]float64{}, [stripWidth]float64{}, [stripWidth]float32{}, [stripWidth]float32{}
		if j := r.Forest.Parent[i]; j >= 0 {
			n.x, n.prev = s.node[j].x, s.node[j].prev
		}
		s.x[i] = override8(x, s.x[i], x.Begin[i+1], from, &n.x)
		if x == prev {
			n.prev = n.x
		} else {
			s.prev[i] = override8(prev, s.prev[i], prev.Begin[i+1], from, &n.prev)
		}
		for k := range n.y {
			n.y[k] = Extrapolate(n.x[k], n.prev[k], r.Beta)
		}
		for k := s.in.begin[i]; k < s.in.begin[i+1]; k++ {
			s.in.add(k, from, &n.v, &n.curvature, &r.degrees)
		}
		n.u = n.v
		if r.Smooth {
			n.u = [stripWidth]float64{}
			for k := s.grad.begin[i]; k < s.grad.begin[i+1]; k++ {
				s.grad.add(k, from, &n.u, nil, &r.degrees)
			}
		}
		if r.full {
			for k := range n.curvature {
				n.curvature[k] = float64(r.Forest.Terminals[i])
			}
		}
	}
}

// override8 sets the values that a node's list has from entry at on.
func override8(v *Vectors, at, end int64, from uint32, out *[stripWidth]float32) int64 {
	for ; at < end; at++ {
		k := v.Feature[at] - from
		if k >= stripWidth {
			break
		}
		out[k] = v.Value[at]
	}
	return at
}

// add adds what the k-th contribution has at the strip's features.
func (l *lists) add(k int, from uint32, sum, curvature *[stripWidth]float64, degrees *[256]float64) {
	c, at := &l.all[k], l.at[k]
	for ; at < len(c.Feature); at++ {
		f := c.Feature[at] - from
		if f >= stripWidth {
			break
		}
		sum[f] += c.Sum[at]
		if curvature != nil {
			curvature[f] += degrees[c.Curvature[at]]
		}
	}
	l.at[k] = at
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

// emit adds the strip's overrides to the nodes' lists. See run.emit.
func (s *strips) emit(f *Forest, from uint32, all uint8) {
	clear(s.kept)
	none := &strip{}
	for i := len(s.node) - 1; i >= 0; i-- {
		n, up, j := &s.node[i], none, f.Parent[i]
		if j >= 0 {
			up = &s.node[j]
		}
		kept := s.kept[i]
		for k, x := range &n.next {
			if !same(x, up.next[k]) {
				kept |= 1 << k
			}
		}
		s.kept[i] = kept
		if j >= 0 {
			s.kept[j] |= kept
		}
	}
	width := len(s.feature) / len(s.node)
	for i := range s.node {
		at := i*width + s.count[i]
		for k, x := range &s.node[i].next {
			if s.kept[i]&all>>k&1 != 0 {
				s.feature[at], s.value[at] = from+uint32(k), x
				at++
			}
		}
		s.count[i] = at - i*width
	}
}

// vectors joins the nodes' lists.
func (s *strips) vectors(width int) *Vectors {
	v := &Vectors{Begin: make([]int64, len(s.count)+1)}
	for i, n := range s.count {
		v.Begin[i+1] = v.Begin[i] + int64(n)
	}
	total := v.Begin[len(s.count)]
	v.Feature, v.Value = make([]uint32, total), make([]float32, total)
	for i, n := range s.count {
		copy(v.Feature[v.Begin[i]:], s.feature[i*width:][:n])
		copy(v.Value[v.Begin[i]:], s.value[i*width:][:n])
	}
	return v
}
