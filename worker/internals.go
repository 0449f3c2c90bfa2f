package worker

import (
	"context"
	"slices"
	"sync"

	"taxon/reducer"
)

// vectors are the internals' override lists over all features, for the nodes of one
// block group.
type vectors struct {
	nodes []int32 // ascending
	reducer.Vectors
}

// assemble puts the ranges' parts together, node by node.
func assemble(nodes []int32, parts []*vectorPart) *vectors {
	v := &vectors{nodes: nodes}
	v.Begin = make([]int64, len(nodes)+1)
	for p := range nodes {
		n := int64(0)
		for _, part := range parts {
			n += part.Begin[p+1] - part.Begin[p]
		}
		v.Begin[p+1] = v.Begin[p] + n
	}
	v.Feature, v.Value = make([]uint32, v.Begin[len(nodes)]), make([]float32, v.Begin[len(nodes)])
	for p := range nodes {
		at := v.Begin[p]
		for _, part := range parts {
			lo, hi := part.Begin[p], part.Begin[p+1]
			copy(v.Feature[at:], part.Feature[lo:hi])
			copy(v.Value[at:], part.Value[lo:hi])
			at += hi - lo
		}
	}
	return v
}

// of returns node p's overrides.
func (v *vectors) of(p int32) ([]uint32, []float32) {
	i, ok := slices.BinarySearch(v.nodes, p)
	if !ok {
		return nil, nil
	}
	return v.Feature[v.Begin[i]:v.Begin[i+1]], v.Value[v.Begin[i]:v.Begin[i+1]]
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

// path walks the tree of internals and keeps the dense vectors x and x_prev of the node
// it stands at. Going down overrides entries and logs what was there; going up undoes.
type path struct {
	x, prev       *vectors // what the entries came from
	nodes         []int32
	logs          []int // length of undo when the node was entered
	undo          []undo
	dense, before []float32
}

type undo struct {
	feature  uint32
	previous bool // of before, else of dense
	value    float32
}

// reset starts at the zero vector above the roots, unless the path already walks the
// same vectors.
func (w *path) reset(x, prev *vectors, features uint32) {
	if w.x == x && w.prev == prev && len(w.dense) == int(features) {
		return
	}
	*w = path{x: x, prev: prev, nodes: w.nodes[:0], logs: w.logs[:0], undo: w.undo[:0],
		dense: cleared(w.dense, features), before: cleared(w.before, features)}
}

func cleared(v []float32, n uint32) []float32 {
	if uint32(len(v)) != n {
		return make([]float32, n)
	}
	clear(v)
	return v
}

// move goes to internal node p of the forest.
func (w *path) move(f *reducer.Forest, p int32) {
	down := []int32(nil)
	for q := p; q >= 0; q = f.Parent[q] {
		if i, ok := slices.BinarySearch(w.nodes, q); ok { // a path's nodes ascend
			w.up(i + 1)
			break
		}
		down = append(down, q)
	}
	if len(down) > 0 && f.Parent[down[len(down)-1]] < 0 {
		w.up(0)
	}
	for i := len(down) - 1; i >= 0; i-- {
		w.down(down[i])
	}
}

func (w *path) down(p int32) {
	w.nodes, w.logs = append(w.nodes, p), append(w.logs, len(w.undo))
	feature, value := w.x.of(p)
	for k, i := range feature {
		w.undo = append(w.undo, undo{i, false, w.dense[i]})
		w.dense[i] = value[k]
	}
	feature, value = w.prev.of(p)
	for k, i := range feature {
		w.undo = append(w.undo, undo{i, true, w.before[i]})
		w.before[i] = value[k]
	}
}

// up leaves nodes until n are left.
func (w *path) up(n int) {
	if n >= len(w.nodes) {
		return
	}
	for k := len(w.undo) - 1; k >= w.logs[n]; k-- {
		u := &w.undo[k]
		if u.previous {
			w.before[u.feature] = u.value
		} else {
			w.dense[u.feature] = u.value
		}
	}
	w.undo, w.nodes, w.logs = w.undo[:w.logs[n]], w.nodes[:n], w.logs[:n]
}

// y writes the extrapolated vector x + beta (x - x_prev) of the current node to dst,
// which may be longer; the rest becomes zero.
func (w *path) y(dst []float32, beta float32) {
	for i, x := range w.dense {
		dst[i] = reducer.Extrapolate(x, w.before[i], beta)
	}
	clear(dst[len(w.dense):])
}
