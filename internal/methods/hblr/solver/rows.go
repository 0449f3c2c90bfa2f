package solver

import (
	"math"
	"unsafe"

	"taxon/internal/linalg/sparse"
)

// Rows are the instances. Unless Bias is 0 they have one more feature of value Bias after the last
// column.
type Rows struct {
	X    *sparse.Matrix
	Bias float64
	// Weight holds the weight of each row's likelihood. A nil Weight stands for 1 everywhere.
	Weight []float64
	// Kernel has the loops over lines of 4, 8, 12 or 16 lanes.
	Kernel Kernel
}

// WeightOf returns the weight of row i.
func (r Rows) WeightOf(i int) float64 {
	if r.Weight == nil {
		return 1
	}
	return r.Weight[i]
}

// Total returns the sum of the weights of all rows.
func (r Rows) Total() (sum float64) {
	for i := range r.X.Rows {
		sum += r.WeightOf(i)
	}
	return sum
}

// TotalOf returns the sum of the weights of some rows.
func (r Rows) TotalOf(rows []uint32) (sum float64) {
	for _, i := range rows {
		sum += r.WeightOf(int(i))
	}
	return sum
}

// Columns returns the length of a vector: the features, and one for the bias if there is one.
func (r Rows) Columns() int {
	if r.Bias > 0 {
		return r.X.Cols + 1
	}
	return r.X.Cols
}

// Squares returns sum_x x_i^2 by column, with rows by their weights. A feature with 0 does not
// occur.
func (r Rows) Squares() []float64 {
	coef := make([]float64, r.X.Rows)
	for i := range coef {
		coef[i] = r.WeightOf(i)
	}
	return r.squares(coef)
}

// squares returns sum_x weight x_i^2 by column.
func (r Rows) squares(weight []float64) []float64 {
	out := make([]float64, r.Columns())
	r.gatherSquare(weight, out, 1)
	return out
}

// Vectors over lanes are stored column by column, or row by row: all lanes side by side.

// scores sets out[i] = w x_i of all lanes.
func (r Rows) scores(w, out []float64, lanes int) {
	if kernel := r.Kernel.of(&r.Kernel.scores, lanes); kernel != nil {
		r.run(kernel, lanes, w, out, nil)
		return
	}
	clear(out)
	for i := range r.X.Rows {
		at := out[i*lanes:][:lanes]
		index, value := r.X.Row(i)
		for n, f := range index {
			add(at, float64(value[n]), w[int(f)*lanes:][:lanes])
		}
		if r.Bias > 0 {
			add(at, r.Bias, w[r.X.Cols*lanes:][:lanes])
		}
	}
}

// Scores sets out[i] = w x_i of all lanes.
func (r Rows) Scores(w, out []float64, lanes int) { r.scores(w, out, lanes) }

// Gather adds sum_i coef[i] x_i of all lanes to out.
func (r Rows) Gather(coef, out []float64, lanes int) { r.gather(coef, out, lanes) }

// gather adds sum_i coef[i] x_i of all lanes to out.
func (r Rows) gather(coef, out []float64, lanes int) {
	if kernel := r.Kernel.of(&r.Kernel.gather, lanes); kernel != nil {
		r.run(kernel, lanes, out, coef, nil)
		return
	}
	r.raise(coef, out, lanes, func(x, _ float64) float64 { return x })
}

// gatherSquare adds sum_i coef[i] x_i^2, entry by entry.
func (r Rows) gatherSquare(coef, out []float64, lanes int) {
	if kernel := r.Kernel.of(&r.Kernel.gatherSquare, lanes); kernel != nil {
		r.run(kernel, lanes, out, coef, func(e *pass, _ int) { e.bias *= r.Bias })
		return
	}
	r.raise(coef, out, lanes, func(x, _ float64) float64 { return x * x })
}

// gatherBoth does gather of coef into out, and gatherSquare of coef2 into out2.
func (r Rows) gatherBoth(coef, out, coef2, out2 []float64, lanes int) {
	kernel := r.Kernel.of(&r.Kernel.gatherBoth, lanes)
	if kernel == nil {
		r.gather(coef, out, lanes)
		r.gatherSquare(coef2, out2, lanes)
		return
	}
	none := [Lanes]float64{}
	r.run(kernel, lanes, out, coef, func(e *pass, from int) {
		e.tile2, e.last2, e.rows2, e.bias2 = unsafe.SliceData(out2), &none[0], &coef2[from*lanes], r.Bias*r.Bias
		if r.Bias > 0 {
			e.last2 = &out2[r.X.Cols*lanes]
		}
	})
}

// gatherSize adds sum_i coef[i] |x_i| ||x_i||_1, entry by entry. size has the rows' ||x_i||_1.
func (r Rows) gatherSize(coef, size, out []float64, lanes int) {
	kernel := r.Kernel.of(&r.Kernel.gatherSize, lanes)
	if kernel == nil {
		r.raise(coef, out, lanes, func(x, size float64) float64 { return math.Abs(x) * size })
		return
	}
	r.run(kernel, lanes, out, coef, func(e *pass, from int) { e.size = &size[from] })
}

// sizes returns ||x_i||_1 of all rows.
func (r Rows) sizes() []float64 {
	out := make([]float64, r.X.Rows)
	for i := range out {
		out[i] = r.size(i)
	}
	return out
}

// size returns ||x_i||_1.
func (r Rows) size(i int) float64 {
	_, value := r.X.Row(i)
	sum := r.Bias
	for _, x := range value {
		sum += math.Abs(float64(x))
	}
	return sum
}

// raise adds sum_i coef[i] factor(x_i, ||x_i||_1), entry by entry.
func (r Rows) raise(coef, out []float64, lanes int, factor func(x, size float64) float64) {
	for i := range r.X.Rows {
		at := coef[i*lanes:][:lanes]
		index, value := r.X.Row(i)
		size := r.size(i)
		for n, f := range index {
			add(out[int(f)*lanes:][:lanes], factor(float64(value[n]), size), at)
		}
		if r.Bias > 0 {
			add(out[r.X.Cols*lanes:][:lanes], factor(r.Bias, size), at)
		}
	}
}

// add sets y += a x. Products are rounded before they are added, for equal bits on every machine.
func add(y []float64, a float64, x []float64) {
	if len(y) == Lanes && len(x) >= Lanes {
		y, x := (*[Lanes]float64)(y), (*[Lanes]float64)(x)
		for k := range y {
			y[k] += float64(a * x[k])
		}
		return
	}
	x = x[:len(y)]
	for k := range y {
		y[k] += float64(a * x[k])
	}
}
