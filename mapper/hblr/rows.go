package hblr

import (
	"math"

	"taxon/internal/sparse"
)

// Rows are the instances, with one more feature of value Bias behind the last column, unless
// Bias is 0.
type Rows struct {
	X      *sparse.Matrix
	Bias   float64
	Weight []float64 // of each row, of its likelihood; nil: all are 1
}

// weight is that of row i.
func (r Rows) weight(i int) float64 {
	if r.Weight == nil {
		return 1
	}
	return r.Weight[i]
}

// Total is the sum of the weights of all rows.
func (r Rows) Total() (sum float64) {
	for i := range r.X.Rows {
		sum += r.weight(i)
	}
	return sum
}

// TotalOf is the sum of the weights of some rows.
func (r Rows) TotalOf(rows []uint32) (sum float64) {
	for _, i := range rows {
		sum += r.weight(int(i))
	}
	return sum
}

// Columns is the length of a vector.
func (r Rows) Columns() int {
	if r.Bias > 0 {
		return r.X.Cols + 1
	}
	return r.X.Cols
}

// Squares are sum_x x_i^2 by column, rows by their weights; 0: the feature does not occur.
func (r Rows) Squares() []float64 {
	out, coef := make([]float64, r.Columns()), make([]float64, r.X.Rows)
	for i := range coef {
		coef[i] = r.weight(i)
	}
	r.gather(coef, out, 1, 2)
	return out
}

// Vectors over lanes are stored column by column, or row by row: all lanes side by side.

// scores sets out[i] = w x_i of all lanes.
func (r Rows) scores(w, out []float64, lanes int) {
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

// gather adds sum_i coef[i] f(x_i) of all lanes to out, entry by entry: x for power 1, x^2 for
// power 2, and |x| ||x||_1 for power 0.
func (r Rows) gather(coef, out []float64, lanes, power int) {
	for i := range r.X.Rows {
		at := coef[i*lanes:][:lanes]
		index, value := r.X.Row(i)
		size := 0.0
		if power == 0 {
			size = r.Bias
			for _, x := range value {
				size += math.Abs(float64(x))
			}
		}
		for n, f := range index {
			add(out[int(f)*lanes:][:lanes], raised(float64(value[n]), size, power), at)
		}
		if r.Bias > 0 {
			add(out[r.X.Cols*lanes:][:lanes], raised(r.Bias, size, power), at)
		}
	}
}

func raised(x, size float64, power int) float64 {
	switch power {
	case 0:
		return math.Abs(x) * size
	case 2:
		return x * x
	}
	return x
}

// add is y += a x. Products are rounded before they are added, on every machine alike.
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
