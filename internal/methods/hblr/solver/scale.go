package solver

import (
	"math"
	"slices"
)

// Scales are [I^-1]_ii, I = sum_x x x', of the features that occur; 0 marks one that does not.
// Of a leaf that has been solved, I = sum_x p (1-p) x x'.

// DiagonalScales returns 1/sum_x x_i^2 for each feature. It uses the diagonal of I instead of all
// of I.
func (r Rows) DiagonalScales() []float64 { return inverse(r.Squares()) }

// inverse replaces each number above 0 by its inverse.
func inverse(out []float64) []float64 {
	for i, s := range out {
		if s > 0 {
			out[i] = 1 / s
		}
	}
	return out
}

// FullScales inverts I by its Cholesky factor L, where I = L L' and [I^-1]_ii = sum_k (L^-1)_ki^2.
// It returns false if I has no inverse. It takes memory of twice the features squared, and time of
// the features cubed.
func (r Rows) FullScales() ([]float64, bool) {
	weight := make([]float64, r.X.Rows)
	for i := range weight {
		weight[i] = r.WeightOf(i)
	}
	return r.fullScales(weight)
}

// Scales returns the scales of lane l after Solve. If full is set, they are computed from the whole
// inverse.
func (s *Scratch) Scales(r Rows, l int, full bool) ([]float64, bool) {
	weight := make([]float64, r.X.Rows)
	for i := range weight {
		weight[i] = s.curve[i*s.line+l]
	}
	if full {
		return r.fullScales(weight)
	}
	return inverse(r.squares(weight)), true
}

// fullScales returns the scales of rows with these weights.
func (r Rows) fullScales(weight []float64) ([]float64, bool) {
	scale := r.squares(weight)
	var columns []int
	place := make([]int, len(scale))
	for f, s := range scale {
		if s > 0 {
			place[f] = len(columns)
			columns = append(columns, f)
		}
	}
	d := len(columns)
	a := make([]float64, d*d)
	row := make([]float64, d)
	for i := range r.X.Rows {
		clear(row)
		index, value := r.X.Row(i)
		for n, f := range index {
			row[place[f]] += float64(value[n])
		}
		if r.Bias > 0 {
			row[d-1] = r.Bias
		}
		for p, x := range row {
			if x != 0 {
				add(a[p*d:][:p+1], weight[i]*x, row)
			}
		}
	}
	for i := range d {
		for j := range i + 1 {
			x := a[i*d+j]
			for k, y := range a[i*d:][:j] {
				x -= float64(y * a[j*d+k])
			}
			switch {
			case i > j:
				a[i*d+j] = x / a[j*d+j]
			case x > singular*scale[columns[i]]:
				a[i*d+i] = math.Sqrt(x)
			default:
				return nil, false
			}
		}
	}
	inverse := make([]float64, d) // a column of L^-1
	for i, f := range columns {
		sum := 0.0
		for k := i; k < d; k++ {
			x := 0.0
			if k == i {
				x = 1
			}
			for j := i; j < k; j++ {
				x -= float64(a[k*d+j] * inverse[j])
			}
			inverse[k] = x / a[k*d+k]
			sum += float64(inverse[k] * inverse[k])
		}
		scale[f] = sum
	}
	return scale, true
}

// Frequencies returns, for each column, the sum of the weights of the rows that have it.
func (r Rows) Frequencies() []float64 {
	out := make([]float64, r.Columns())
	for i := range r.X.Rows {
		index, value := r.X.Row(i)
		for n, f := range index {
			if value[n] != 0 {
				out[f] += r.WeightOf(i)
			}
		}
	}
	if r.Bias > 0 {
		out[r.X.Cols] = r.Total()
	}
	return out
}

// singular is the least share of a feature's squares that must be left after the features before it
// have explained theirs. Below it I has no inverse.
const singular = 1e-12

// Occurring returns the number of features that occur, and the mean of their scales, weighted by
// weight. A nil weight stands for 1 everywhere.
func Occurring(scale, weight []float64) (d int, mean float64) {
	sum, total := 0.0, 0.0
	for i, s := range scale {
		if s > 0 {
			w := 1.0
			if weight != nil {
				w = weight[i]
			}
			d++
			sum += float64(w * s)
			total += w
		}
	}
	return d, sum / max(total, math.SmallestNonzeroFloat64)
}

// Median returns the median scale of the features that occur.
func Median(scale []float64) float64 {
	all := slices.DeleteFunc(slices.Clone(scale), func(s float64) bool { return s == 0 })
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}
