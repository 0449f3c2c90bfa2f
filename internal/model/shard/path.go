package shard

import "slices"

// Path holds the vector of one node while a walk visits the tree in node order. On the way down
// each node changes some columns; on the way up they are restored. So the cost of a walk over all
// nodes is the number of stored weights and not nodes x columns.
type Path[V float32 | float64] struct {
	// Current is the vector of the node entered last.
	Current []V
	frames  []frame[V]
}

// frame is an entered node.
type frame[V float32 | float64] struct {
	node    int32
	columns []uint32
	// old are the values before the node's.
	old []V
}

// NewPath returns a path before its first node, for vectors with a number of columns.
func NewPath[V float32 | float64](columns int) *Path[V] {
	return &Path[V]{Current: make([]V, columns)}
}

// LeaveTo leaves nodes until node p is the one entered last. For -1 it leaves all.
func (w *Path[V]) LeaveTo(p int32) {
	for k := len(w.frames) - 1; k >= 0 && w.frames[k].node != p; k-- {
		f := &w.frames[k]
		for i, c := range f.columns {
			w.Current[c] = f.old[i]
		}
		w.frames = w.frames[:k]
	}
}

// Enter enters node n and saves the values at its columns, which the caller then changes. n's
// parent must be the node entered last. The frames' buffers are reused.
func (w *Path[V]) Enter(n int32, columns []uint32) {
	k := len(w.frames)
	w.frames = slices.Grow(w.frames, 1)[:k+1]
	f := &w.frames[k]
	f.node, f.columns, f.old = n, columns, f.old[:0]
	for _, c := range columns {
		f.old = append(f.old, w.Current[c])
	}
}

// Override enters a node and sets its values.
func (w *Path[V]) Override(n int32, columns []uint32, values []V) {
	w.Enter(n, columns)
	for i, c := range columns {
		w.Current[c] = values[i]
	}
}

// Depth returns the number of entered nodes.
func (w *Path[V]) Depth() int { return len(w.frames) }
