package solver

import (
	"context"
	"math"
)

// Full is the memory of a variational solve with full covariances. It is the memory of Bounded for
// one lane, and another columns squared numbers.
type Full struct {
	Bounded
	// factor is L, row by row, where Psi^-1 = L L'.
	factor []float64
	row    []float64
	step   []float64
	// logs is log L_ff by column.
	logs []float64
}

// These constants determine how one leaf is solved. They change the path, never the optimum.
const (
	fullRounds = 500
	// settling is a bound on changes. A change below it that no longer shrinks is due to rounding.
	settling = 1e-9
)

// SolveOne maximises the lower bound of a block's only leaf, N(w, Psi) with a full Psi. It starts
// from w and the square roots sigma of Psi's diagonal, and overwrites them:
//
//	Psi^-1 = sum_x 2 lambda(xi) x x' + A,   xi^2 = x' Psi x + (w.x)^2
//	Psi^-1 w = sum_x (t-1/2) x + A m
//
// A round sets Psi at the best xi, and then moves w by Newton's method with x' Psi x fixed. The
// bound is concave in w and Psi's root together, so there is one optimum. A round costs columns
// cubed, and columns squared for each entry of a row.
func (s *Full) SolveOne(ctx context.Context, r Rows, w, sigma []float64, tolerance float64) (passes int, err error) {
	d := r.Columns()
	s.factor, s.row, s.step, s.logs = sized(s.factor, d*d), sized(s.row, d), sized(s.step, d), sized(s.logs, d)
	s.Locate(r, w, sigma) // with Psi's diagonal in its place
	last := math.Inf(1)
	for range fullRounds {
		if err := ctx.Err(); err != nil {
			return passes, err
		}
		change := s.setVariance(r)
		s.loss = s.weigh(r, s.score, s.variance)
		change = max(change, s.newton(r, w))
		passes += 4
		if change <= tolerance || change <= settling && change > 0.9*last {
			break
		}
		last = change
	}
	// The variances for the last means.
	s.setVariance(r)
	s.loss = s.weigh(r, s.score, s.variance)
	for f := range d { // the diagonal of Psi
		clear(s.row)
		s.row[f] = 1
		sigma[f] = math.Sqrt(forward(s.factor, s.row, f))
		s.logs[f] = math.Log(s.factor[f*d+f])
	}
	return passes + 1, nil
}

// information sets factor to the Cholesky factor of sum_x c_x x x' + A.
func (s *Full) information(r Rows, c []float64) {
	d := r.Columns()
	clear(s.factor)
	for f, a := range s.precision {
		s.factor[f*d+f] = a
	}
	for i := range r.X.Rows {
		index, value := r.X.Row(i)
		for n, f := range index {
			x := float64(c[i] * float64(value[n]))
			row := s.factor[int(f)*d:]
			for k, g := range index[:n+1] {
				row[g] += float64(x * float64(value[k]))
			}
		}
		if r.Bias > 0 {
			x, row := float64(c[i]*r.Bias), s.factor[(d-1)*d:]
			for k, g := range index {
				row[g] += float64(x * float64(value[k]))
			}
			row[d-1] += float64(x * r.Bias)
		}
	}
	cholesky(s.factor, s.precision)
}

// setVariance computes Psi at the present xi, and sets variance to x' Psi x. It returns the
// greatest relative change of an xi^2.
func (s *Full) setVariance(r Rows) (change float64) {
	s.information(r, s.tau)
	for i := range r.X.Rows {
		from := r.lay(i, s.row)
		q := forward(s.factor, s.row, from)
		u := s.score[i]
		if scale := q + float64(u*u); scale > 0 {
			change = max(change, math.Abs(q-s.variance[i])/scale)
		}
		s.variance[i] = q
	}
	return change
}

// newton moves w one step with x' Psi x fixed. It returns the step's length relative to w, in the
// metric of the Hessian sum_x (2 lambda - bend (w.x)^2) x x' + A.
func (s *Full) newton(r Rows, w []float64) float64 {
	clear(s.mean.gradient)
	r.gather(s.coef, s.mean.gradient, 1)
	for i, u := range s.score {
		s.line[i] = s.tau[i] - float64(s.bend[i]*float64(u*u))
	}
	for f, x := range w {
		s.mean.gradient[f] += float64(s.precision[f] * (x - s.above[f]))
		s.step[f] = -s.mean.gradient[f]
	}
	clear(s.h)
	r.gatherSquare(s.line, s.h, 1)
	s.information(r, s.line)
	decrement := forward(s.factor, s.step, 0)
	backward(s.factor, s.step)
	size := 0.0
	for f, x := range w {
		size += float64(float64(x*x) * (s.precision[f] + s.h[f]))
	}
	s.searchMean(r, w, decrement)
	if size == 0 {
		size = decrement
	}
	return math.Sqrt(decrement / max(size, math.SmallestNonzeroFloat64))
}

// searchMean halves the step until the bound rises enough.
func (s *Full) searchMean(r Rows, w []float64, decrement float64) {
	r.scores(s.step, s.moveScore, 1)
	before, linear, square := s.loss[0], 0.0, 0.0
	for f, p := range s.step {
		ap := float64(s.precision[f] * p)
		linear += float64(ap * (w[f] - s.above[f]))
		square += float64(ap*p) / 2
	}
	t := 1.0
	for try := 0; ; try++ {
		for i, u := range s.score {
			s.tryScore[i] = u + float64(t*s.moveScore[i])
		}
		s.loss = s.weigh(r, s.tryScore, s.variance)
		change := s.loss[0] - before + float64(t*(linear+float64(t*square)))
		if try >= halvings || change <= -sufficient*t*decrement || decrement <= unseen*math.Abs(before) {
			break
		}
		t /= 2
	}
	s.score, s.tryScore = s.tryScore, s.score
	for f, p := range s.step {
		w[f] += float64(t * p)
	}
}

// Negative does what Bounded.Negative does, with the determinant of the full Psi.
func (s *Full) Negative(w, sigma, scale []float64) float64 {
	sum := s.Bounded.Negative(w, sigma, scale, 0)
	for f, occurs := range scale {
		if occurs > 0 {
			// The logarithm of Psi's determinant replaces the diagonal's.
			sum += math.Log(sigma[f]) + s.logs[f]
		}
	}
	return sum
}

// lay writes row i as a dense vector, and returns its first nonzero column.
func (r Rows) lay(i int, out []float64) (from int) {
	clear(out)
	index, value := r.X.Row(i)
	from = len(out)
	for n, f := range index {
		out[f] = float64(value[n])
		from = min(from, int(f))
	}
	if r.Bias > 0 {
		out[r.X.Cols] = r.Bias
		from = min(from, r.X.Cols)
	}
	return from
}

// cholesky overwrites the lower half of a, row by row, with L, a = L L'. Pivots that are smaller
// than the same pivot of `least` are raised to it. Only rounding can make them so small, because a
// is `least` and a sum of squares.
func cholesky(a, least []float64) {
	d := len(least)
	for i := range d {
		for j := range i + 1 {
			x := a[i*d+j] - dot(a[i*d:][:j], a[j*d:][:j])
			if i == j {
				a[i*d+i] = math.Sqrt(max(x, least[i]))
			} else {
				a[i*d+j] = x / a[j*d+j]
			}
		}
	}
}

// forward solves L y = x in place, x being 0 before `from`, and returns ||y||^2.
func forward(l, x []float64, from int) (square float64) {
	d := len(x)
	for i := from; i < d; i++ {
		y := (x[i] - dot(l[i*d+from:i*d+i], x[from:i])) / l[i*d+i]
		x[i] = y
		square += float64(y * y)
	}
	return square
}

// backward solves L' y = x in place.
func backward(l, x []float64) {
	d := len(x)
	for i := d - 1; i >= 0; i-- {
		x[i] /= l[i*d+i]
		add(x[:i], -x[i], l[i*d:])
	}
}

// dot returns a.b, added up in four independent sums.
func dot(a, b []float64) (sum float64) {
	var s [4]float64
	b = b[:len(a)]
	for len(a) >= 4 && len(b) >= 4 {
		s[0] += float64(a[0] * b[0])
		s[1] += float64(a[1] * b[1])
		s[2] += float64(a[2] * b[2])
		s[3] += float64(a[3] * b[3])
		a, b = a[4:], b[4:]
	}
	for i, x := range a {
		sum += float64(x * b[i])
	}
	return sum + (s[0] + s[1]) + (s[2] + s[3])
}
