package program

import (
	"slices"

	"taxon/internal/linalg/sparse"
	params "taxon/internal/methods/mlr/plan"
)

// history holds the last points of a range and their gradients, newest first. len(w) == len(g).
type history struct{ w, g [][]float64 }

// batchEntries is the number of entries of each vector that are processed at a time, so that those
// of all vectors fit into a core's cache.
const batchEntries = 1024

// batches divides a range's columns into runs [a, b) and calls f for each. The entries of a run in
// the range's vectors are [a*classes, b*classes).
func batches(columns, classes int, f func(a, b int)) {
	step := max(1, batchEntries/classes)
	for a := 0; a < columns; a += step {
		f(a, min(a+step, columns))
	}
}

// changes holds differences between neighbouring points of a part of the history. It begins at a
// point w_0 with gradient g_0: s[j] = w_{j-1} - w_j, u[0] = g_0, u[j] = g_{j-1} - g_j. s[0] is
// unused.
type changes struct{ s, u [params.Memory + 1][]float64 }

// of computes the changes over entries [lo, hi).
func (c *changes) of(w, g []float64, h *history, lo, hi int) {
	c.u[0] = append(c.u[0][:0], g[lo:hi]...)
	for j := range h.w {
		c.s[j+1] = subtract(c.s[j+1], w[lo:hi], h.w[j][lo:hi])
		c.u[j+1] = subtract(c.u[j+1], g[lo:hi], h.g[j][lo:hi])
		w, g = h.w[j], h.g[j]
	}
}

// subtract returns a - b in the memory of dst.
func subtract(dst, a, b []float64) []float64 {
	dst = slices.Grow(dst[:0], len(a))[:len(a)]
	b = b[:len(a)]
	for i, x := range a {
		dst[i] = x - b[i]
	}
	return dst
}

// scale returns, in the memory of dst, a with all classes of column f multiplied by inverse[f].
func scale(dst, a, inverse []float64, classes int) []float64 {
	dst = slices.Grow(dst[:0], len(a))[:len(a)]
	for f, h := range inverse {
		for k := f * classes; k < (f+1)*classes; k++ {
			dst[k] = a[k] * h
		}
	}
	return dst
}

// gathered is the report of a range about an accepted point.
type gathered struct {
	norm, gradient float64
	params.Products
}

// gather computes the inner products of a point w with gradient g over a range, whose columns have
// the metric `inverse`.
func gather(w, g []float64, past *history, inverse []float64, classes int) (out gathered) {
	var c changes
	var first, second []float64 // u_0/h, u_1/h
	n := len(past.w)
	batches(len(inverse), classes, func(a, b int) {
		c.of(w, g, past, a*classes, b*classes)
		at := w[a*classes : b*classes]
		out.norm += sparse.Dot(at, at)
		out.gradient += sparse.Dot(c.u[0], c.u[0])
		first = scale(first, c.u[0], inverse[a:b], classes)
		if n > 0 {
			second = scale(second, c.u[1], inverse[a:b], classes)
		}
		for j := range n + 1 {
			out.E0[j] += sparse.Dot(first, c.u[j])
			if j == 0 {
				continue
			}
			out.SG[j] += sparse.Dot(c.s[j], c.u[0])
			out.SY[j] += sparse.Dot(c.s[1], c.u[j])
			out.E1[j] += sparse.Dot(second, c.u[j])
			if j > 1 {
				out.YS[j] += sparse.Dot(c.s[j], c.u[1])
			}
		}
	})
	return out
}

// move returns the trial point of a range, which follows the last point of the history, and its
// squared norm.
func move(m *params.Move, h *history, inverse []float64, classes int) (trial []float64, norm float64) {
	trial = make([]float64, len(inverse)*classes)
	var c changes
	var sum []float64
	past := &history{h.w[1:], h.g[1:]}
	batches(len(inverse), classes, func(a, b int) {
		c.of(h.w[0], h.g[0], past, a*classes, b*classes)
		at := trial[a*classes : b*classes]
		sum = slices.Grow(sum[:0], len(at))[:len(at)]
		clear(sum)
		for j, x := range m.U {
			axpy(sum, x, c.u[j])
		}
		sum = scale(sum, sum, inverse[a:b], classes)
		for j := 1; j < len(m.S); j++ {
			axpy(sum, m.S[j], c.s[j])
		}
		copy(at, h.w[0][a*classes:b*classes])
		axpy(at, m.Step, sum)
		norm += sparse.Dot(at, at)
	})
	return trial, norm
}
