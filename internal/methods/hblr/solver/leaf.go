package solver

import (
	"context"
	"math"
	"slices"
	"unsafe"

	"taxon/internal/linalg/sparse"
)

// Lanes is the greatest number of leaves that share a pass over the data.
const Lanes = 16

// These constants determine the steps of Newton's method. They change the path, never the optimum.
const (
	newtonSteps    = 100
	conjugateSteps = 200
	// conjugateShare is the greatest share of the residual at which conjugate gradients end. The
	// share falls with the gradient, as exact steps begin to pay, down to finestShare, the least
	// that float32 reaches.
	conjugateShare = 0.1
	finestShare    = 1e-5
	// lastShare bounds the accuracy of steps. No step's residual needs to be below this share of
	// the tolerance.
	lastShare = 0.5
	// sufficient is Armijo's constant, and halvings bounds the line search.
	sufficient = 1e-4
	halvings   = 40
	// unseen is the share of the objective below which a decrease is lost in rounding. The line
	// search then accepts the step, and the gradient decides.
	unseen = 1e-11
	// stuck is the share of the weights below which a gradient that no longer halves is rounding.
	stuck = 1e-7
	// boundShare is the multiple of the tolerance that the error may have where a solve ends by a
	// bound of the error itself, and not by the gradient in the metric A + h.
	boundShare = 10
)

// Block is up to Lanes leaves to be solved together. Positive, Above and Precision have an entry for
// each lane.
type Block struct {
	// Positive lists the rows of each lane's class, ascending.
	Positive [][]uint32
	// Above holds the mean of each lane's parent. A nil mean stands for zero.
	Above [][]float64
	// Precision is each lane's A_n.
	Precision []Precision
	// Offset is the soft-max's number of each row, by which the block sees the leaves of all
	// blocks. A nil Offset makes the likelihood binary.
	Offset []float64
}

// Scratch is the memory of a solve, for one goroutine. It has nine numbers per column and lane, and
// six per row and lane. A line holds the lanes of one column or row. Its length is a multiple of
// quarter, as assembly needs it. Lanes beyond the block's are zero and unused.
type Scratch struct {
	// score, trial, move, coef and curve have a line for each row: w.x, the same at a trial point,
	// step.x, t - p and p (1-p).
	score, trial, move, coef, curve []float64
	// positive holds, for each row, the mask of the lanes with t = 1.
	positive []uint16
	// size is ||x||_1 of each row of the matrix sized.
	size  []float64
	sized *sparse.Matrix
	// gradient, h, step, precision, above and w have a line for each column.
	gradient, h, step   []float64
	precision, above, w []float64
	// offset is Block.Offset.
	offset []float64
	system system
	near   *near
	// far is set in a near problem. It models the rows that are not in it.
	far         *far
	lanes, line int
	loss        [Lanes]float64
}

// Solved describes the leaves after a block's solve.
type Solved struct {
	// Objective is the sum over the leaves of 1/2 (w-m)' A (w-m) less the log-likelihood.
	Objective float64
	// Loss is each leaf's share of the negative log-likelihood.
	Loss [Lanes]float64
	// Passes is the number of passes over the data.
	Passes int
}

// sized returns a vector of n undefined numbers. It uses the memory of v if that is large enough.
func sized(v []float64, n int) []float64 {
	if cap(v) < n {
		return make([]float64, n)
	}
	return v[:n]
}

// Open lays out the lanes of a block.
func (s *Scratch) Open(r Rows, b *Block) {
	columns := r.Columns()
	s.lanes, s.offset = len(b.Positive), b.Offset
	s.line = padded(s.lanes)
	for _, v := range []*[]float64{&s.score, &s.trial, &s.move, &s.coef, &s.curve} {
		*v = sized(*v, r.X.Rows*s.line)
	}
	for _, v := range []*[]float64{&s.gradient, &s.h, &s.step, &s.precision, &s.above, &s.w} {
		*v = sized(*v, columns*s.line)
	}
	s.positive = slices.Grow(s.positive[:0], r.X.Rows)[:r.X.Rows]
	clear(s.positive)
	var precision [Lanes]Precision
	var above [Lanes][]float64
	for l := range precision {
		if precision[l] = Unit; l < s.lanes {
			precision[l], above[l] = b.Precision[l], b.Above[l]
			for _, i := range b.Positive[l] {
				s.positive[i] |= 1 << l
			}
		}
	}
	fill(s.precision, s.line, slices.ContainsFunc(precision[:s.lanes], func(p Precision) bool { return p.Step > 0 }),
		func(f, l int) float64 { return precision[l].At(f) })
	fill(s.above, s.line, slices.ContainsFunc(above[:s.lanes], func(m []float64) bool { return len(m) > 0 }),
		func(f, l int) float64 {
			if len(above[l]) == 0 {
				return 0
			}
			return above[l][f]
		})
}

// fill sets lines of lanes. If they do not vary, all are copies of the first one.
func fill(v []float64, line int, vary bool, at func(f, l int) float64) {
	for f := 0; f*line < len(v); f++ {
		if f > 0 && !vary {
			for n := line; n < len(v); n *= 2 {
				copy(v[n:], v[:n])
			}
			return
		}
		to := v[f*line:][:line]
		for l := range to {
			to[l] = at(f, l)
		}
	}
}

// lay sets s.w to the weights w, in which the block's lanes are side by side.
func (s *Scratch) lay(w []float64) {
	clear(s.w)
	for from, to := 0, 0; from < len(w); from, to = from+s.lanes, to+s.line {
		copy(s.w[to:], w[from:][:s.lanes])
	}
}

// unpack copies lines back into weights.
func (s *Scratch) unpack(from, out []float64) {
	for at, to := 0, 0; to < len(out); at, to = at+s.line, to+s.lanes {
		copy(out[to:][:s.lanes], from[at:])
	}
}

// Solve maximises each leaf's posterior in place, starting from w (columns x lanes):
//
//	min_w  f(w) = 1/2 (w-m)' A (w-m) + sum_i log(1 + exp(-y_i w.x_i))
//	f'(w) = A (w-m) - sum_i (t_i - p_i) x_i,   f''(w) = A + sum_i p_i (1-p_i) x_i x_i'
//
// (a row's terms times its weight, if rows have any) by Newton's method with conjugate gradients,
// preconditioned by the diagonal A + h. If rows are many, the steps come from those in doubt
// (near). A lane ends where the measure of its gradient that differentiate returns is within
// `tolerance`. The scratch must be open. It then holds h and the other values at the optimum.
func (s *Scratch) Solve(ctx context.Context, r Rows, w []float64, tolerance float64) (out Solved, err error) {
	s.lay(w)
	s.locate(r)
	s.stretch(r)
	var targets [Lanes]float64
	for l := range targets {
		if targets[l] = tolerance; s.splits(r) {
			targets[l] *= boundShare
		}
	}
	out.Passes, err = s.newton(ctx, r, uint32(1)<<s.lanes-1, &targets)
	if err != nil {
		return out, err
	}
	out.Passes++
	penalty := s.penalty()
	for l := range s.lanes {
		out.Loss[l] = s.loss[l]
		out.Objective += s.loss[l] + penalty[l]
	}
	s.unpack(s.w, w)
	return out, nil
}

// splits reports whether steps are computed from near problems. The bias is required because it
// gives every near problem at least one column.
func (s *Scratch) splits(r Rows) bool { return s.offset == nil && r.X.Rows >= nearLeast && r.Bias > 0 }

// newton solves the running lanes, each to its tolerance, starting from s.w, whose scores are set.
func (s *Scratch) newton(ctx context.Context, r Rows, running uint32,
	tolerance *[Lanes]float64) (passes int, err error) {
	var last, before [Lanes]float64 // length of the gradient, and loss
	split := s.far == nil && s.splits(r)
	if split && s.near == nil {
		s.near = &near{Scratch: Scratch{far: new(far)}}
	}
	for k := 0; ; k++ {
		if err := ctx.Err(); err != nil {
			return passes, err
		}
		norm, left, size := s.differentiate(r)
		passes++
		gains := k == 0
		for l := range s.lanes {
			rest := math.Sqrt(norm[l])
			scale := math.Sqrt(size[l])
			if math.Sqrt(left[l]) <= tolerance[l]*scale || norm[l] == 0 || k >= newtonSteps ||
				k > 0 && rest <= stuck*scale && rest > last[l]/2 {
				running &^= 1 << l
			}
			if running>>l&1 != 0 && (rest <= last[l]/2 || s.loss[l] <= nearGain*before[l]) {
				gains = true
			}
			last[l] = rest
		}
		if running == 0 {
			return passes, nil
		}
		before = s.loss
		if split = split && gains && k < nearSteps; split {
			if err := s.near.seek(ctx, s, r, running, &left, &size, tolerance); err != nil {
				return passes, err
			}
		} else {
			passes += s.direct(r, running, &norm, &left, &size, tolerance)
		}
		passes += s.search(r, running)
	}
}

const (
	stretches    = 8    // bounds the steps of a stretch
	leastStretch = 1e-2 // shorter steps are not taken
)

// stretch sets w to t w, with the t that maximises each posterior, by Newton's method in t. Where a
// precision has fallen by orders of magnitude, the optimum lies far out in the same direction.
// Newton's method in w would need a step, with all its passes, for each unit of the margins.
func (s *Scratch) stretch(r Rows) {
	over, e := r.Kernel.over(s.line), s.loop()
	over.spans(e)
	square, linear := &e.sum[0], &e.sum[1] // parts of the penalty: w'Aw, w'Am
	var t, length [Lanes]float64
	for l := range t {
		t[l] = 1
	}
	for k := 0; ; k++ {
		e := s.rows(s.score)
		over.bends(e)
		g, h := &e.sum[0], &e.sum[1]
		far := false
		for l, x := range t[:s.lanes] {
			step := g[l] - float64(x*square[l]) + linear[l]
			if bend := h[l] + square[l]; bend > 0 {
				if step = max(min(step/bend, x), -x/2); math.Abs(step) > leastStretch*x && k < stretches {
					t[l], far = x+step, true
				}
			}
			length[l] = t[l] - 1
		}
		if !far {
			if k == 0 {
				return
			}
			break
		}
		copy(s.move, s.score)
		s.loss = s.weigh(r, s.move, s.trial, &length)
	}
	s.score, s.trial = s.trial, s.score
	for i := 0; i < len(s.w); i += s.line {
		for l, x := range t[:s.line] {
			s.w[i+l] *= x
		}
	}
}

// locate sets the scores at s.w, and the values that depend on them.
func (s *Scratch) locate(r Rows) {
	r.scores(s.w, s.score, s.line)
	s.loss = s.weigh(r, s.score, s.score, &[Lanes]float64{})
	if s.far != nil {
		at := s.far.along(s.w, s.line)
		for l := range at {
			at[l] -= s.far.start[l]
		}
		s.addFar(at)
	}
}

// addFar adds the far rows' losses at s = at.
func (s *Scratch) addFar(at [Lanes]float64) {
	s.far.locate(at, s.lanes)
	for l, x := range s.far.loss {
		s.loss[l] += x
	}
}

// weigh sets trial to score + length move, and coef and curve to their values there. It returns the
// losses.
func (s *Scratch) weigh(r Rows, move, trial []float64, length *[Lanes]float64) [Lanes]float64 {
	if s.offset != nil {
		return r.weighShares(s.line, s.score, move, trial, s.coef, s.curve, s.positive, s.offset, length)
	}
	return r.weigh(s.line, s.score, move, trial, s.coef, s.curve, s.positive, length)
}

// differentiate sets gradient and h. It returns the gradient's squared size in the metric 1/(A+h),
// the measure by which a solve ends, and the squared size that this is compared with.
//
// These are norm and the weights' size in A + h, or where rows are many the gradient's size in 1/A
// and that of w - m in A. With Newton's matrix H >= A the distance e from the optimum has
// e'Ae <= g'(1/A)g, so this bounds the relative error of what the Gamma step and the parent get
// from a leaf. The diagonal h bounds nothing: where like instances have different labels, the
// bias's h is large, but together with the features of these instances it moves with hardly any
// curvature. And in a family of like leaves w - m is far smaller than w.
func (s *Scratch) differentiate(r Rows) (norm, left, size [Lanes]float64) {
	clear(s.gradient)
	clear(s.h)
	r.gatherBoth(s.coef, s.gradient, s.curve, s.h, s.line)
	if s.far != nil || s.splits(r) {
		e := s.loop()
		if s.far != nil {
			e.u, e.slope, e.bend = &s.far.u[0], s.far.slope, s.far.bend
			r.Kernel.over(s.line).differentiateFar(e)
			return e.sum[0], e.sum[1], s.far.size
		}
		r.Kernel.over(s.line).differentiate(e)
		return e.sum[0], e.sum[1], e.sum[2]
	}
	for i := 0; i < len(s.w); i += s.line {
		for l := range s.line {
			a, x := s.precision[i+l], s.w[i+l]
			g := float64(a*(x-s.above[i+l])) - s.gradient[i+l]
			m := a + s.h[i+l]
			s.gradient[i+l] = g
			norm[l] += float64(g*g) / m
			size[l] += float64(float64(x*x) * m)
		}
	}
	return norm, norm, size
}

// loop returns the argument of the loops over the columns.
func (s *Scratch) loop() *lineLoop {
	return &lineLoop{n: len(s.w) / s.line, stride: 8 * s.line, precision: &s.precision[0], w: &s.w[0], above: &s.above[0],
		gradient: &s.gradient[0], h: &s.h[0], step: &s.step[0]}
}

// rows returns the argument of the loops over lines of rows, w being a number of each row and lane.
func (s *Scratch) rows(w []float64) *lineLoop {
	return &lineLoop{n: len(w) / s.line, stride: 8 * s.line, w: unsafe.SliceData(w), gradient: unsafe.SliceData(s.coef),
		h: unsafe.SliceData(s.curve)}
}

// direct sets step to an approximate solution of f”(w) step = -gradient in the running lanes.
func (s *Scratch) direct(r Rows, running uint32, norm, left, size, tolerance *[Lanes]float64) (passes int) {
	var share [Lanes]float64
	for l := range s.lanes {
		share[l] = min(conjugateShare, max(finestShare, math.Sqrt(left[l]/max(size[l], left[l]))))
		if left[l] > 0 {
			share[l] = min(max(share[l], tolerance[l]*lastShare*math.Sqrt(size[l]/left[l])), lastShare)
		}
	}
	y := &s.system
	y.open(s, r, running, norm)
	clear(s.step)
	return y.solve(r, &share, s.step, s.line)
}

// search moves w along step. It halves a lane's step until f falls enough.
func (s *Scratch) search(r Rows, running uint32) (passes int) {
	r.scores(s.step, s.move, s.line)
	before, over, e := s.loss, r.Kernel.over(s.line), s.loop()
	var from, toward [Lanes]float64 // the far rows' s, and its move
	if s.far != nil {
		from, toward = s.far.at, s.far.along(s.step, s.line)
	}
	over.slopes(e)
	slope, linear, square := &e.sum[0], &e.sum[1], &e.sum[2]
	length := &e.length
	for l := range s.lanes {
		if running>>l&1 != 0 && slope[l] < 0 {
			length[l] = 1
		}
	}
	for try := 0; ; try++ {
		s.loss = s.weigh(r, s.move, s.trial, length)
		if s.far != nil {
			at := from
			for l, t := range length {
				at[l] += float64(t * toward[l])
			}
			s.addFar(at)
		}
		again := false
		for l, t := range length[:s.lanes] {
			change := s.loss[l] - before[l] + float64(t*linear[l]) + float64(float64(t*t)*square[l]/2)
			if t > 0 && try < halvings && !(change <= sufficient*t*slope[l]) && !(-slope[l] <= unseen*before[l]) {
				length[l], again = t/2, true
			}
		}
		if !again {
			break
		}
	}
	s.score, s.trial = s.trial, s.score
	over.step(e)
	return 1
}

// penalty returns 1/2 (w-m)' A (w-m) of each lane.
func (s *Scratch) penalty() (sum [Lanes]float64) {
	for i := 0; i < len(s.w); i += s.line {
		for l := range s.line {
			d := s.w[i+l] - s.above[i+l]
			sum[l] += float64(s.precision[i+l] * float64(d*d))
		}
	}
	for l := range sum {
		sum[l] /= 2
	}
	return sum
}

// Evaluate sets gradient and h at given weights, as Solve leaves them.
func (s *Scratch) Evaluate(r Rows, w []float64) {
	s.lay(w)
	s.locate(r)
	s.differentiate(r)
}

// Curvature fills out (columns x lanes) with row sums of the loss's Hessian at the optimum,
//
//	h_f = sum_i p_i (1-p_i) |x_if| ||x_i||_1
//
// As a diagonal matrix they bound it from above.
func (s *Scratch) Curvature(r Rows, out []float64) {
	if s.sized != r.X {
		s.sized, s.size = r.X, r.sizes()
	}
	clear(s.step)
	r.gatherSize(s.curve, s.size, s.step, s.line)
	s.unpack(s.step, out)
}

// Variance returns Psi of lane l at column f after Solve: 1/(h_f + A_f).
func (s *Scratch) Variance(f, l int) float64 {
	at := f*s.line + l
	return 1 / (s.h[at] + s.precision[at])
}
