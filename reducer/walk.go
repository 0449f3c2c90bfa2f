package reducer

import "slices"

// Internals are the internals' override lists over all features, range by range, for the nodes of
// one block group.
type Internals struct {
	Nodes []int32 // ascending
	Parts []*Vectors
	// Grids replaces Parts where vectors are dense.
	Grids []*Grid
	// Number identifies the vectors: different vectors have different numbers. 0 means unknown.
	Number uint64
}

// Place returns the index of node p's lists in each part. ok is false for a node outside of the
// group, which overrides nothing.
func (v *Internals) Place(p int32) (int, bool) {
	if int(p) < len(v.Nodes) && v.Nodes[p] == p { // most groups hold every internal
		return int(p), true
	}
	return slices.BinarySearch(v.Nodes, p)
}

// Dense sets dst to y = x + beta (x - x_prev) of the node at this place, from grids. The rest of
// dst becomes zero.
func (v *Internals) Dense(prev *Internals, at int, beta float32, dst []float32) {
	for r, g := range v.Grids {
		x, before := g.Row(at), prev.Grids[r].Row(at)
		out := dst[:len(x)]
		for f := range out {
			out[f] = Extrapolate(x[f], before[f], beta)
		}
		dst = dst[len(x):]
	}
	clear(dst)
}

// list returns the i-th node's overrides.
func (v *Vectors) list(i int) ([]uint32, []float32) {
	lo, hi := v.Begin[i], v.Begin[i+1]
	return v.Feature[lo:hi], v.Value[lo:hi]
}

// Walk walks the tree of internals and keeps the dense vector y = x + beta (x - x_prev) of the
// current node. Going down overrides entries and logs their old values. Going up restores them.
type Walk struct {
	// x and prev are the vectors that the walk reads. They are nil after Release.
	x, prev *Internals
	// of has the numbers of x and prev.
	of    [2]uint64
	beta  float32
	nodes []int32
	// logs has the length of undo when each node of the path was entered.
	logs []int
	undo []walkEntry
	// dense is by feature.
	dense []walkEntry
	y     []float32
	// down is scratch of Move.
	down []int32
}

// walkEntry is one feature of the vectors: in the undo log its old values, in dense its current
// ones. In dense, feature and y are unused: y is an array of its own, so that it can be copied
// whole.
type walkEntry struct {
	feature    uint32
	x, prev, y float32
}

// Reset goes to the zero vector above the roots, unless the path already walks the same vectors.
// The walk keeps x and prev until Release.
func (w *Walk) Reset(x, prev *Internals, beta float32, features uint32) {
	of := [2]uint64{x.Number, prev.Number}
	w.x, w.prev = x, prev
	if x.Number != 0 && prev.Number != 0 && w.of == of && w.beta == beta && len(w.y) == int(features) {
		return
	}
	w.up(0)
	w.of, w.beta = of, beta
	if len(w.y) != int(features) {
		w.dense, w.y = make([]walkEntry, features), make([]float32, features)
	}
}

// Release drops the vectors. If the walk is reset to the same ones, it continues from where it is.
func (w *Walk) Release() { w.x, w.prev = nil, nil }

// Move goes to internal node p of the forest.
func (w *Walk) Move(f *Forest, p int32) {
	w.down = w.down[:0]
	common := 0
	for q := p; q >= 0; q = f.Parent[q] {
		if i, ok := slices.BinarySearch(w.nodes, q); ok { // a path's nodes ascend
			common = i + 1
			break
		}
		w.down = append(w.down, q)
	}
	w.up(common)
	for i := len(w.down) - 1; i >= 0; i-- {
		w.enter(w.down[i])
	}
}

// enter goes down to node p, a child of the current one.
func (w *Walk) enter(p int32) {
	w.nodes, w.logs = append(w.nodes, p), append(w.logs, len(w.undo))
	at, ok := w.x.Place(p)
	if !ok {
		return
	}
	for r, part := range w.x.Parts {
		if w.beta == 0 { // x_prev does not enter
			w.follow(part.list(at))
			continue
		}
		feature, value := part.list(at)
		before, previous := w.prev.Parts[r].list(at)
		w.merge(feature, value, before, previous)
	}
}

// follow overrides x and y.
func (w *Walk) follow(feature []uint32, value []float32) {
	value = value[:len(feature)]
	for k, f := range feature {
		e := &w.dense[f]
		w.undo = append(w.undo, walkEntry{f, e.x, e.prev, w.y[f]})
		e.x = value[k]
		w.y[f] = e.x
	}
}

// merge overrides each feature that either list has. If a list lacks the feature, its value stays
// the value of the parent.
func (w *Walk) merge(feature []uint32, value []float32, before []uint32, previous []float32) {
	value, previous = value[:len(feature)], previous[:len(before)]
	i, j := 0, 0
	for i < len(feature) && j < len(before) {
		f, g := feature[i], before[j]
		switch {
		case f == g: // nearly always
			w.set(f, value[i], previous[j])
			i, j = i+1, j+1
		case f < g:
			w.set(f, value[i], w.dense[f].prev)
			i++
		default:
			w.set(g, w.dense[g].x, previous[j])
			j++
		}
	}
	for ; i < len(feature); i++ {
		w.set(feature[i], value[i], w.dense[feature[i]].prev)
	}
	for ; j < len(before); j++ {
		w.set(before[j], w.dense[before[j]].x, previous[j])
	}
}

// set overrides one feature.
func (w *Walk) set(f uint32, x, prev float32) {
	e, y := &w.dense[f], &w.y[f]
	w.undo = append(w.undo, walkEntry{f, e.x, e.prev, *y})
	e.x, e.prev = x, prev
	*y = Extrapolate(x, prev, w.beta)
}

// up leaves nodes of the path until n are left.
func (w *Walk) up(n int) {
	if n >= len(w.nodes) {
		return
	}
	for k := len(w.undo) - 1; k >= w.logs[n]; k-- {
		u := &w.undo[k]
		e := &w.dense[u.feature]
		e.x, e.prev = u.x, u.prev
		w.y[u.feature] = u.y
	}
	w.undo, w.nodes, w.logs = w.undo[:w.logs[n]], w.nodes[:n], w.logs[:n]
}

// CopyTo writes the vector y of the current node to dst, which may be longer. The rest becomes
// zero.
func (w *Walk) CopyTo(dst []float32) {
	clear(dst[copy(dst, w.y):])
}

// EachY calls visit for each feature at which x or x_prev of node p has an entry, with y.
func (w *Walk) EachY(p int32, visit func(i uint32, y float32)) {
	at, ok := w.x.Place(p)
	if !ok {
		return
	}
	for r, part := range w.x.Parts {
		fx, vx := part.list(at)
		if w.beta == 0 {
			for k, i := range fx {
				visit(i, vx[k])
			}
			continue
		}
		fp, vp := w.prev.Parts[r].list(at)
		for len(fx) > 0 || len(fp) > 0 {
			var i uint32
			if len(fp) == 0 || len(fx) > 0 && fx[0] < fp[0] {
				i = fx[0]
			} else {
				i = fp[0]
			}
			x, prev := float32(0), float32(0)
			if len(fx) > 0 && fx[0] == i {
				x, fx, vx = vx[0], fx[1:], vx[1:]
			}
			if len(fp) > 0 && fp[0] == i {
				prev, fp, vp = vp[0], fp[1:], vp[1:]
			}
			visit(i, Extrapolate(x, prev, w.beta))
		}
	}
}
