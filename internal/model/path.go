package model

// path holds the effective vector of one node while a walk goes through the tree in
// node order: each node on the way down is applied as overrides and undone on the way
// back, so that a walk over all nodes costs the stored weights, not nodes x columns.
type path struct {
	current []float32 // effective vector of the last node entered
	frames  []frame
}

type frame struct {
	node int32
	rec  record
	old  []float32 // values that rec replaced
}

func newPath(columns int) *path { return &path{current: make([]float32, columns)} }

// leaveTo undoes nodes until node p (-1: none) is the last one entered.
func (w *path) leaveTo(p int32) {
	for k := len(w.frames) - 1; k >= 0 && w.frames[k].node != p; k-- {
		f := &w.frames[k]
		for i, c := range f.rec.columns {
			w.current[c] = f.old[i]
		}
		w.frames = w.frames[:k]
	}
}

// enter applies node n; its parent must be the last one entered. The frames' buffers are reused.
func (w *path) enter(n int32, rec record) {
	k := len(w.frames)
	if k < cap(w.frames) {
		w.frames = w.frames[:k+1]
	} else {
		w.frames = append(w.frames, frame{})
	}
	f := &w.frames[k]
	f.node, f.rec, f.old = n, rec, f.old[:0]
	for i, c := range rec.columns {
		f.old = append(f.old, w.current[c])
		w.current[c] = rec.values[i]
	}
}
