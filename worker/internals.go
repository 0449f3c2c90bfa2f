package worker

import (
	"context"
	"slices"
	"sync"

	"taxon/reducer"
)

// vectors are the internals' override lists over all features, range by range, for the
// nodes of one block group.
type vectors struct {
	nodes []int32 // ascending
	parts []*vectorPart
}

// place is where node p's lists stand in each part; ok is false for a node that is not of
// the group: it overrides nothing.
func (v *vectors) place(p int32) (int, bool) {
	if int(p) < len(v.nodes) && v.nodes[p] == p { // most groups hold every internal
		return int(p), true
	}
	return slices.BinarySearch(v.nodes, p)
}

// list is the i-th node's overrides in one part.
func list(part *vectorPart, i int) ([]uint32, []float32) {
	lo, hi := part.Begin[i], part.Begin[i+1]
	return part.Feature[lo:hi], part.Value[lo:hi]
}

// vectorCache keeps the last few assembled vectors by what they were read from, and
// lets concurrent tasks wait for one another's reading.
type vectorCache struct {
	mu    sync.Mutex
	size  int
	order []string
	items map[string]*cached
}

type cached struct {
	ready chan struct{}
	v     *vectors
	err   error
}

func newVectorCache(size int) *vectorCache {
	return &vectorCache{size: size, items: map[string]*cached{}}
}

// get returns the vectors under key, made by load at most once at a time.
func (c *vectorCache) get(ctx context.Context, key string, load func() (*vectors, error)) (*vectors, error) {
	c.mu.Lock()
	it, ok := c.items[key]
	if !ok {
		it = &cached{ready: make(chan struct{})}
		c.items[key] = it
		c.order = append(c.order, key)
		if len(c.order) > c.size {
			delete(c.items, c.order[0])
			c.order = c.order[1:]
		}
	}
	c.mu.Unlock()
	if !ok {
		it.v, it.err = load()
		if it.err != nil {
			c.forget(key, it)
		}
		close(it.ready)
		return it.v, it.err
	}
	select {
	case <-it.ready:
		if it.err != nil { // the loader's context may have ended, ours did not
			return load()
		}
		return it.v, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *vectorCache) forget(key string, it *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.items[key] == it {
		delete(c.items, key)
		c.order = slices.DeleteFunc(c.order, func(k string) bool { return k == key })
	}
}

// path walks the tree of internals and keeps the dense vector y = x + beta (x - x_prev)
// of the node it stands at. Going down overrides entries and logs what was there; going
// up undoes.
type path struct {
	x, prev *vectors // what the entries came from
	beta    float32
	nodes   []int32
	logs    []int // length of undo when the node was entered
	undo    []entry
	dense   []entry // by feature
	y       []float32
	down    []int32 // scratch of move
}

// entry is one feature of the vectors: in the undo log what it was, in dense what it is
// (and feature and y are then unused: y lies apart, to be copied whole).
type entry struct {
	feature    uint32
	x, prev, y float32
}

// reset starts at the zero vector above the roots, unless the path already walks the
// same vectors.
func (w *path) reset(x, prev *vectors, beta float32, features uint32) {
	if w.x == x && w.prev == prev && w.beta == beta && len(w.y) == int(features) {
		return
	}
	w.up(0)
	w.x, w.prev, w.beta = x, prev, beta
	if len(w.y) != int(features) {
		w.dense, w.y = make([]entry, features), make([]float32, features)
	}
}

// move goes to internal node p of the forest.
func (w *path) move(f *reducer.Forest, p int32) {
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

// enter goes down to node p, a child of the one it stands at.
func (w *path) enter(p int32) {
	w.nodes, w.logs = append(w.nodes, p), append(w.logs, len(w.undo))
	at, ok := w.x.place(p)
	if !ok {
		return
	}
	for r, part := range w.x.parts {
		if w.beta == 0 { // x_prev does not enter
			w.follow(list(part, at))
			continue
		}
		feature, value := list(part, at)
		before, previous := list(w.prev.parts[r], at)
		w.merge(feature, value, before, previous)
	}
}

// follow overrides x and y.
func (w *path) follow(feature []uint32, value []float32) {
	value = value[:len(feature)]
	for k, f := range feature {
		e := &w.dense[f]
		w.undo = append(w.undo, entry{f, e.x, e.prev, w.y[f]})
		e.x = value[k]
		w.y[f] = e.x
	}
}

// merge overrides what either list has; what the other has not stays the parent's.
func (w *path) merge(feature []uint32, value []float32, before []uint32, previous []float32) {
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
func (w *path) set(f uint32, x, prev float32) {
	e, y := &w.dense[f], &w.y[f]
	w.undo = append(w.undo, entry{f, e.x, e.prev, *y})
	e.x, e.prev = x, prev
	*y = reducer.Extrapolate(x, prev, w.beta)
}

// up leaves nodes until n are left.
func (w *path) up(n int) {
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

// copyTo writes the vector y of the current node to dst, which may be longer; the rest
// becomes zero.
func (w *path) copyTo(dst []float32) {
	clear(dst[copy(dst, w.y):])
}
