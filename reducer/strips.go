package reducer

import (
	"cmp"
	"slices"
	"unsafe"

	"taxon/internal/linalg/contribution"
)

// stripWidth is the number of features that are solved together where contributions are dense, as
// with the logistic loss: a cache line of float32. Nothing is transposed, because a strip reads the
// values in place.
const stripWidth = 16

// strip is what a column holds of one node, for the features of a strip. Assembly knows its layout.
type strip struct {
	// w is V, then the solution. curvature becomes the inverse of the pivot.
	w, curvature, u [stripWidth]float64
	x, y            [stripWidth]float32
}

// strips is the scratch of a range that is solved in strips.
type strips struct {
	// node has the strip of node i at i+1. The first stands above the roots and is zero.
	node     []strip
	in, grad lists
}

// lists holds contributions by parent. The contributions to node p are all[begin[p]:begin[p+1]].
type lists struct {
	all   []contribution.Dense
	begin []int
}

// RunDense does what Run does for dense contributions, which may come in any order of parents, and
// dense vectors. With rule None its first result is nil.
func (s *Scratch) RunDense(t Task, in []contribution.Dense, x, prev *Grid) (*Grid, Sums) {
	slices.SortStableFunc(in, func(a, b contribution.Dense) int { return cmp.Compare(a.Parent, b.Parent) })
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
	n, _ := slices.BinarySearchFunc(in, parents, func(c contribution.Dense,
		parent int32) int {
		return cmp.Compare(c.Parent, parent)
	})
	r := &run{Scratch: s, Task: t, degrees: t.degreesOf(), full: t.Rule == Full}
	return r.strips(in[:n], in[n:], x, prev), r.sums
}

// inStrips reports whether the range can be solved in strips. They hold all nodes, which gives the
// same problem with all rules but Family, whose curvature depends on which nodes have a value.
// There are no loops for followers, graphs and weighted edges.
func (t *Task) inStrips() bool {
	switch t.Rule {
	case Mean, Jacobi, Family, Emit, ToZero:
		return false
	}
	return t.Follower == 0 && t.Forest.Graph == nil && t.Forest.Edge == nil && (t.Forest.Inner == 0 || t.Forest.Inner == 1)
}

// listed converts dense contributions, which begin at feature lo, to lists.
func listed(in []contribution.Dense, lo uint32) []contribution.Contribution {
	out := make([]contribution.Contribution, len(in))
	for k, d := range in {
		c := contribution.Contribution{Parent: d.Parent}
		for f, sum := range d.Sum {
			curvature := uint8(0)
			if d.Curvature != nil {
				curvature = d.Curvature[f]
			}
			if sum != 0 || curvature != 0 {
				c.Feature, c.Sum, c.Curvature = append(c.Feature, lo+uint32(f)), append(c.Sum, float64(sum)),
					append(c.Curvature, curvature)
			}
		}
		out[k] = c
	}
	return out
}

// strips solves the range strip by strip. grad holds G for the certificate of a smooth loss.
func (r *run) strips(in, grad []contribution.Dense, x, prev *Grid) *Grid {
	s, nodes, width := &r.Scratch.strips, len(r.Forest.Parent), int(r.Hi-r.Lo)
	loops := fastest()
	if r.Plain {
		loops = goLoops
	}
	s.node = resize(s.node, nodes+1)
	s.in.open(in, 0, nodes)
	s.grad.open(grad, int32(nodes), nodes)
	var next *Grid
	if r.Rule != None {
		next = NewGrid(nodes, width)
	}
	if nodes == 0 {
		return next
	}
	for at := 0; at < width; at += stripWidth {
		n := min(width-at, stripWidth)
		all := uint16(1<<n - 1)
		apart := int(r.Forest.Apart) - 1 - int(r.Lo) - at
		if apart >= 0 && apart < n {
			all &^= 1 << apart
		}
		r.sums.Entries += int64(nodes) * int64(n)
		s.fill(r, &loops, at, n, x, prev)
		if r.Certify {
			s.certify(r, all)
			loops.begin(&s.node[1], nodes)
		}
		if r.Rule == None {
			continue
		}
		loops.eliminate(&s.node[0], &r.Forest.Parent[0], nodes)
		s.node[0] = strip{}
		var sums stripSums
		loops.substitute(&s.node[0], &r.Forest.Parent[0], nodes, &next.Value[at], width, n, &sums)
		for k := range n {
			if all>>k&1 != 0 {
				r.sums.Restart += sums.restart[k]
				r.sums.Moved += sums.moved[k]
				continue
			}
			for i := range nodes {
				next.Row(i)[at+k] = 0
			}
		}
	}
	return next
}

// open sets the lists to contributions that are sorted by parent, whose numbers begin at first.
func (l *lists) open(in []contribution.Dense, first int32, nodes int) {
	l.all, l.begin = in, zeroed(l.begin, nodes+1)
	for _, c := range in {
		l.begin[c.Parent-first+1]++
	}
	for p := range nodes {
		l.begin[p+1] += l.begin[p]
	}
}

// fill sets the nodes' strips for n features, from feature at of the range on.
func (s *strips) fill(r *run, loops *stripLoops, at, n int, x, prev *Grid) {
	beta := r.Beta
	if x == prev {
		beta = 0
	}
	for i := range s.node[1:] {
		node := &s.node[i+1]
		loops.open(node, &x.Value[i*x.Width+at], &prev.Value[i*prev.Width+at], n, beta)
		for k := s.in.begin[i]; k < s.in.begin[i+1]; k++ {
			c := &s.in.all[k]
			loops.add(&node.w, &c.Sum[at], n)
			if c.Curvature != nil {
				loops.addDegrees(&node.curvature, &c.Curvature[at], n, &r.degrees)
			}
		}
		if r.full {
			for k := range node.curvature {
				node.curvature[k] = float64(r.Forest.Terminals[i])
			}
		}
		switch {
		case !r.Certify:
			loops.begin(node, 1)
		case !r.Smooth:
			node.u = node.w
		default:
			node.u = [stripWidth]float64{}
			for k := s.grad.begin[i]; k < s.grad.begin[i+1]; k++ {
				loops.add(&node.u, &s.grad.all[k].Sum[at], n)
			}
		}
	}
}

// certify does what run.certify does, for the features of a strip that are in the mask all.
func (s *strips) certify(r *run, all uint16) {
	var primal, dual [stripWidth]float64
	s.node[0] = strip{}
	for i := len(s.node) - 1; i > 0; i-- {
		n, up := &s.node[i], &s.node[r.Forest.Parent[i-1]+1]
		for k, u := range &n.u {
			up.u[k] += u
			e := float64(n.y[k]) - float64(up.y[k])
			p := float64(e*e) / 2
			primal[k] += p
			if r.Smooth {
				dual[k] += p
				u = e - u
			}
			dual[k] -= float64(u*u) / 2
		}
	}
	for k := range primal {
		if all>>k&1 != 0 {
			r.sums.Primal += primal[k]
			r.sums.Dual += dual[k]
		}
	}
}

// stripLoops are the loops over a strip. All implementations give equal bits. n is the number of
// features: places beyond it are not read, and are zero or not written.
type stripLoops struct {
	// open sets x and y, and all else to zero.
	open func(node *strip, x, prev *float32, n int, beta float32)
	// add sets sum += x.
	add func(sum *[stripWidth]float64, x *float32, n int)
	// addDegrees sets sum += degrees[code].
	addDegrees func(sum *[stripWidth]float64, code *uint8, n int, degrees *[256]float64)
	// begin, eliminate and substitute are beginStrips, eliminateStrips and substituteStrips.
	begin      func(first *strip, nodes int)
	eliminate  func(all *strip, parent *int32, nodes int)
	substitute func(all *strip, parent *int32, nodes int, next *float32, width, n int, sums *stripSums)
}

// stripSums are the shares of Sums by feature.
type stripSums struct{ restart, moved [stripWidth]float64 }

// goLoops is the implementation that every other one must equal to the bit.
var goLoops = stripLoops{openStrip, addSums, addDegrees, beginStrips, eliminateStrips, substituteStrips}

func openStrip(node *strip, x, prev *float32, n int, beta float32) {
	*node = strip{}
	copy(node.x[:], unsafe.Slice(x, n))
	for k, prev := range unsafe.Slice(prev, n) {
		node.y[k] = Extrapolate(node.x[k], prev, beta)
	}
}

func addSums(sum *[stripWidth]float64, x *float32, n int) {
	for k, x := range unsafe.Slice(x, n) {
		sum[k] += float64(x)
	}
}

func addDegrees(sum *[stripWidth]float64, code *uint8, n int, degrees *[256]float64) {
	for k, c := range unsafe.Slice(code, n) {
		sum[k] += degrees[c]
	}
}

// beginStrips sets up the system of some nodes, whose edges have weight 1: w = c y + V, the pivots
// are 1 + c, and u keeps the curvature c.
func beginStrips(first *strip, nodes int) {
	node := unsafe.Slice(first, nodes)
	for i := range node {
		n := &node[i]
		for k, c := range &n.curvature {
			n.w[k] = float64(c*float64(n.y[k])) + n.w[k]
			n.u[k] = c
			n.curvature[k] = 1 + c
		}
	}
}

// eliminateStrips eliminates from the leaves to the roots. all begins with a strip above the roots.
func eliminateStrips(all *strip, parent *int32, nodes int) {
	node, parents := unsafe.Slice(all, nodes+1), unsafe.Slice(parent, nodes)
	for i := nodes; i > 0; i-- {
		n, up := &node[i], &node[parents[i-1]+1]
		for k, c := range &n.curvature {
			d := 1 / c
			n.curvature[k] = d
			up.curvature[k] += 1 - d
			up.w[k] += float64(n.w[k] * d)
		}
	}
}

// substituteStrips substitutes from the roots to the leaves. It writes the values of node i from
// next[i width] on.
func substituteStrips(all *strip, parent *int32, nodes int, next *float32, width, n int, sums *stripSums) {
	node, parents := unsafe.Slice(all, nodes+1), unsafe.Slice(parent, nodes)
	out := unsafe.Slice(next, (nodes-1)*width+n)
	for i, p := range parents {
		at, up := &node[i+1], &node[p+1]
		for k, d := range &at.curvature {
			w := (at.w[k] + up.w[k]) * d
			at.w[k] = w
			x, above := float32(w)+0, float64(float32(up.w[k])+0)
			if k < n {
				out[i*width+k] = x
			}
			back, on := float64(at.y[k])-float64(x), float64(x)-float64(at.x[k])
			sums.restart[k] += float64(at.u[k] * back * on)
			back -= float64(up.y[k]) - above
			on -= above - float64(up.x[k])
			sums.restart[k] += float64(back * on)
			sums.moved[k] += float64(back * back)
		}
	}
}
