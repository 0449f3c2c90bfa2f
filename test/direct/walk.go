package direct

import (
	"slices"

	"taxon/reducer"
)

// walker stands at an internal node with the dense x and x_prev of it. Moving up undoes
// what moving down wrote.
type walker struct {
	forest *reducer.Forest
	from   [2][]*reducer.Vectors // x and x_prev, range by range
	dense  [2][]float32
	path   []int32
	marks  []int // length of log when a node of path was entered
	log    []overwritten
}

type overwritten struct {
	which   int
	feature uint32
	value   float32
}

// read sets the vectors to walk over; standing at none.
func (w *walker) read(x, prev []*reducer.Vectors) {
	if slices.Equal(w.from[0], x) && slices.Equal(w.from[1], prev) {
		return
	}
	w.from = [2][]*reducer.Vectors{x, prev}
	w.path, w.marks, w.log = w.path[:0], w.marks[:0], w.log[:0]
	clear(w.dense[0])
	clear(w.dense[1])
}

// y goes to node p and writes x + beta (x - x_prev) to dst.
func (w *walker) y(dst []float32, p int32, beta float32) {
	var want []int32
	for q := p; q >= 0; q = w.forest.Parent[q] {
		want = append(want, q)
	}
	slices.Reverse(want)
	common := 0
	for common < len(w.path) && common < len(want) && w.path[common] == want[common] {
		common++
	}
	w.up(common)
	for _, q := range want[common:] {
		w.down(q)
	}
	for f, x := range w.dense[0] {
		dst[f] = reducer.Extrapolate(x, w.dense[1][f], beta)
	}
}

func (w *walker) up(n int) {
	if n == len(w.path) {
		return
	}
	for k := len(w.log) - 1; k >= w.marks[n]; k-- {
		w.dense[w.log[k].which][w.log[k].feature] = w.log[k].value
	}
	w.log, w.path, w.marks = w.log[:w.marks[n]], w.path[:n], w.marks[:n]
}

func (w *walker) down(p int32) {
	w.path, w.marks = append(w.path, p), append(w.marks, len(w.log))
	for which, ranges := range w.from {
		dense := w.dense[which]
		for _, v := range ranges {
			for e := v.Begin[p]; e < v.Begin[p+1]; e++ {
				w.log = append(w.log, overwritten{which, v.Feature[e], dense[v.Feature[e]]})
				dense[v.Feature[e]] = v.Value[e]
			}
		}
	}
}
