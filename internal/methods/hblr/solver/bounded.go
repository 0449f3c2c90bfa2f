package solver

import (
	"context"
	"math"

	"taxon/internal/linalg/conjugate"
)

// Bounded is the memory of a variational solve of a block of leaves, for one goroutine. It has 16
// numbers per column and lane, and 12 per row and lane. The distribution of each leaf is the normal
// N(w, diag(sigma^2)).
type Bounded struct {
	// target, score and variance have a line for each row: t, w.x (for a soft-max minus beta), and
	// sum_f sigma_f^2 x_f^2.
	target, score, variance []float64
	// tau and bend have a line for each row: 2 lambda(xi) and (2 lambda - p(1-p))/xi^2. coef and
	// line are factors of a gather.
	tau, bend, coef, line []float64
	// moveScore, moveCross and moveTwo have a line for each row, for a step (p, q): p.x,
	// sum sigma q x^2 and sum q^2 x^2.
	moveScore, moveCross, moveTwo []float64
	tryScore, tryVariance         []float64
	// above and precision have a line for each column.
	above, precision []float64
	// h is sum_x 2 lambda x^2 by column, and hMean the diagonal of the means' Hessian.
	h, hMean []float64
	// mean and sigma hold gradients and steps.
	mean, sigma half
	gradients   conjugate.Gradients
	column      []float64
	// offset is Block.Offset.
	offset []float64
	lanes  int
	loss   [Lanes]float64
}

// half holds the vectors of Newton's method, either for means or for sigmas. X is the step, and Q
// uses the memory of Z.
type half struct {
	gradient []float64
	conjugate.Vectors
}

func (v *half) all() []*[]float64 { return []*[]float64{&v.gradient, &v.R, &v.Z, &v.X, &v.P} }

// Open lays out the lanes of a block.
func (s *Bounded) Open(r Rows, b *Block) {
	columns, lanes := r.Columns(), len(b.Positive)
	s.lanes, s.offset = lanes, b.Offset
	for _, v := range []*[]float64{&s.target, &s.score, &s.variance, &s.tau, &s.bend, &s.coef, &s.line, &s.moveScore,
		&s.moveCross, &s.moveTwo, &s.tryScore, &s.tryVariance} {
		*v = sized(*v, r.X.Rows*lanes)
	}
	for _, v := range append(append(s.mean.all(), s.sigma.all()...), &s.above, &s.precision, &s.h, &s.hMean, &s.column) {
		*v = sized(*v, columns*lanes)
	}
	s.mean.Q, s.sigma.Q = s.mean.Z, s.sigma.Z
	clear(s.target)
	for l, m := range b.Above {
		for _, i := range b.Positive[l] {
			s.target[int(i)*lanes+l] = 1
		}
		for f := range columns {
			s.precision[f*lanes+l] = b.Precision[l].At(f)
			s.above[f*lanes+l] = 0
			if m != nil {
				s.above[f*lanes+l] = m[f]
			}
		}
	}
}

// Jaakkola returns the parts of the bound on a logistic at xi^2 ([TKDD] 3.1, binary form):
//
//	log(2 cosh(xi/2)),   2 lambda(xi) = tanh(xi/2) / (2 xi),   bend = (2 lambda - p(1-p)) / xi^2
//
// where p = 1/(1+exp(-xi)). At xi = 0 they are log 2, 1/4 and 1/24.
func Jaakkola(square float64) (value, tau, bend float64) {
	xi := math.Sqrt(square)
	y := xi / 2
	value = y + math.Log1p(math.Exp(-xi))
	if q := float64(y * y); y < 1e-2 {
		return value, 0.25 - float64(q*(1./12-float64(q*(1./30-float64(q*(17./1260)))))),
			1./24 - float64(q*(1./30-float64(q*(17./840))))
	}
	t := math.Tanh(y)
	tau = t / (2 * xi)
	return value, tau, (tau - float64((1-t)*(1+t))/4) / square
}

// Solve maximises each leaf's share of the lower bound in place, starting from w and sigma > 0
// (columns x lanes). At the best xi^2 = sum_f sigma_f^2 x_f^2 + (w.x)^2 the terms with lambda cancel, and
// the remaining function to minimise,
//
//	1/2 sum_f A_f (sigma_f^2 + (w-m)_f^2) - sum_f log sigma_f + sum_x [ log(2 cosh(xi/2)) - (t-1/2) w.x ],
//
// is convex in (w, sigma) together: xi is a norm of it. Its optimum is the fixed point of the
// paper's updates, Psi_f = sigma_f^2 = 1/(sum_x 2 lambda x_f^2 + A_f) and
// (sum_x 2 lambda x x' + A) w = sum_x (t-1/2) x + A m. Newton's method with conjugate gradients,
// as in Scratch.Solve; a lane ends where its gradient is at most `tolerance` of its size.
func (s *Bounded) Solve(ctx context.Context, r Rows, w, sigma []float64, tolerance float64) (passes int, err error) {
	running := uint32(1)<<s.lanes - 1
	var last [Lanes]float64
	s.Locate(r, w, sigma)
	passes = 2
	for k := 0; ; k++ {
		if err := ctx.Err(); err != nil {
			return passes, err
		}
		norm, size := s.differentiate(r, w, sigma)
		passes += 3
		for l := range s.lanes {
			rest, scale := math.Sqrt(norm[l]), math.Sqrt(size[l])
			if rest <= tolerance*scale || k >= newtonSteps || k > 0 && rest <= stuck*scale && rest > last[l]/2 {
				running &^= 1 << l
			}
			last[l] = rest
		}
		if running == 0 {
			return passes, nil
		}
		passes += s.direct(r, sigma, running, norm, size)
		s.search(r, w, sigma, running)
		passes += 3
	}
}

// Locate sets score and variance, and the values that depend on them. A soft-max's score is
// w.x - beta. With it the loss of its bound is the binary one's: the betas themselves cancel,
// because each row has one label.
func (s *Bounded) Locate(r Rows, w, sigma []float64) {
	r.scores(w, s.score, s.lanes)
	for i, beta := range s.offset {
		for l := range s.lanes {
			s.score[i*s.lanes+l] -= beta
		}
	}
	for i, x := range sigma {
		s.column[i] = x * x
	}
	r.squareScores(s.column, s.variance, s.lanes)
	s.loss = s.weigh(r, s.score, s.variance)
}

// weigh sets tau, bend and coef, which is the slope by w.x, and returns the losses.
func (s *Bounded) weigh(r Rows, score, variance []float64) (loss [Lanes]float64) {
	for i := 0; i < len(score); i += s.lanes {
		weight := r.WeightOf(i / s.lanes)
		for l := range s.lanes {
			u, t := score[i+l], s.target[i+l]-0.5
			value, tau, bend := Jaakkola(variance[i+l] + float64(u*u))
			loss[l] += float64(weight * (value - float64(t*u)))
			s.tau[i+l], s.bend[i+l] = weight*tau, weight*bend
			s.coef[i+l] = weight * (float64(tau*u) - t)
		}
	}
	return loss
}

// differentiate sets gradients and the Hessian's diagonal. It returns the squared sizes of the
// gradient and of the point in that metric.
func (s *Bounded) differentiate(r Rows, w, sigma []float64) (norm, size [Lanes]float64) {
	clear(s.mean.gradient)
	clear(s.h)
	clear(s.hMean)
	r.gather(s.coef, s.mean.gradient, s.lanes)
	r.gatherSquare(s.tau, s.h, s.lanes)
	for i, u := range s.score {
		s.line[i] = s.tau[i] - float64(s.bend[i]*float64(u*u))
	}
	r.gatherSquare(s.line, s.hMean, s.lanes)
	for i := 0; i < len(w); i += s.lanes {
		for l := range s.lanes {
			at := i + l
			a, x, v := s.precision[at], w[at], sigma[at]
			g := s.mean.gradient[at] + float64(a*(x-s.above[at]))
			gs := float64((a+s.h[at])*v) - 1/v
			s.mean.gradient[at], s.sigma.gradient[at] = g, gs
			m, ms := a+s.hMean[at], s.metric(at, sigma)
			norm[l] += float64(g*g)/m + float64(gs*gs)/ms
			size[l] += float64(float64(x*x)*m) + float64(float64(v*v)*ms)
		}
	}
	return norm, size
}

// metric returns an upper bound of the Hessian's diagonal for a sigma.
func (s *Bounded) metric(at int, sigma []float64) float64 {
	v := sigma[at]
	return s.precision[at] + s.h[at] + 1/float64(v*v)
}

// times sets z to the Hessian times along.
func (s *Bounded) times(r Rows, sigma []float64) {
	r.scores(s.mean.P, s.moveScore, s.lanes)
	for i, x := range s.sigma.P {
		s.column[i] = sigma[i] * x
	}
	r.squareScores(s.column, s.moveCross, s.lanes)
	for i, a := range s.moveScore {
		u := s.score[i]
		c := float64(s.bend[i] * (float64(u*a) + s.moveCross[i]))
		s.moveTwo[i] = c
		s.line[i] = float64(s.tau[i]*a) - float64(c*u)
	}
	for i, x := range s.mean.P {
		s.mean.Z[i] = s.precision[i] * x
	}
	r.gather(s.line, s.mean.Z, s.lanes)
	clear(s.sigma.Z)
	r.gatherSquare(s.moveTwo, s.sigma.Z, s.lanes)
	for i, x := range s.sigma.P {
		s.sigma.Z[i] = float64(s.metric(i, sigma)*x) - float64(sigma[i]*s.sigma.Z[i])
	}
}

// direct sets the steps to a solution of Hessian step = -gradient, by conjugate gradients.
func (s *Bounded) direct(r Rows, sigma []float64, running uint32, norm, size [Lanes]float64) (passes int) {
	for l := range s.lanes {
		share := min(conjugateShare, math.Sqrt(norm[l]/max(size[l], norm[l])))
		s.gradients.Size[l], s.gradients.Enough[l] = norm[l], norm[l]*share*share
	}
	for i, g := range s.mean.gradient {
		s.mean.begin(i, g, s.precision[i]+s.hMean[i])
	}
	for i, g := range s.sigma.gradient {
		s.sigma.begin(i, g, s.metric(i, sigma))
	}
	s.gradients.Running = running
	s.gradients.Solve(&hessian{s, r, sigma}, conjugateSteps)
	return 4 * s.gradients.Steps
}

// begin sets entry i before the first step, with gradient g and preconditioner m.
func (v *half) begin(i int, g, m float64) { v.R[i], v.X[i], v.Z[i] = -g, 0, -g/m }

// hessian is the system of a step.
type hessian struct {
	*Bounded
	r     Rows
	point []float64 // the sigmas
}

// Multiply implements conjugate.System.
func (s *hessian) Multiply(g *conjugate.Gradients) {
	s.mean.Turn(g, s.lanes)
	s.sigma.Turn(g, s.lanes)
	s.times(s.r, s.point)
	s.mean.Bend(g, s.lanes)
	s.sigma.Bend(g, s.lanes)
}

// Advance implements conjugate.System.
func (s *hessian) Advance(g *conjugate.Gradients) {
	s.mean.Advance(g, s.lanes)
	for i, x := range s.mean.R {
		s.mean.Z[i] = x / (s.precision[i] + s.hMean[i])
		g.Next[i%s.lanes] += float64(x * s.mean.Z[i])
	}
	s.sigma.Advance(g, s.lanes)
	for i, x := range s.sigma.R {
		s.sigma.Z[i] = x / s.metric(i, s.point)
		g.Next[i%s.lanes] += float64(x * s.sigma.Z[i])
	}
}

// search moves w and sigma along their steps. It halves a lane's step until the bound rises enough.
func (s *Bounded) search(r Rows, w, sigma []float64, running uint32) {
	r.scores(s.mean.X, s.moveScore, s.lanes)
	for i, q := range s.sigma.X {
		s.column[i] = sigma[i] * q
	}
	r.squareScores(s.column, s.moveCross, s.lanes)
	for i, q := range s.sigma.X {
		s.column[i] = q * q
	}
	r.squareScores(s.column, s.moveTwo, s.lanes)
	var slope, linear, square, length [Lanes]float64 // linear and square: coefficients of the quadratic terms
	for i, p := range s.mean.X {
		l, q, a := i%s.lanes, s.sigma.X[i], s.precision[i]
		slope[l] += float64(p*s.mean.gradient[i]) + float64(q*s.sigma.gradient[i])
		linear[l] += float64(a * (float64(p*(w[i]-s.above[i])) + float64(q*sigma[i])))
		square[l] += float64(a*(float64(p*p)+float64(q*q))) / 2
	}
	for l := range s.lanes {
		if running>>l&1 != 0 && slope[l] < 0 {
			length[l] = 1
		}
	}
	for try := 0; ; try++ {
		for i, u := range s.score {
			t := length[i%s.lanes]
			s.tryScore[i] = u + float64(t*s.moveScore[i])
			s.tryVariance[i] = max(s.variance[i]+float64(t*(2*s.moveCross[i]+float64(t*s.moveTwo[i]))), 0)
		}
		loss, again := s.weigh(r, s.tryScore, s.tryVariance), false
		var logs [Lanes]float64
		for i, q := range s.sigma.X {
			l := i % s.lanes
			if ratio := float64(length[l]*q) / sigma[i]; ratio > -1 {
				logs[l] += math.Log1p(ratio)
			} else {
				logs[l] = math.Inf(-1)
			}
		}
		for l, t := range length[:s.lanes] {
			change := loss[l] - s.loss[l] + float64(t*(linear[l]+float64(t*square[l]))) - logs[l]
			if t > 0 && try < halvings && !(change <= sufficient*t*slope[l]) && (math.IsInf(change, 1) ||
				!(-slope[l] <= unseen*math.Abs(s.loss[l]))) {
				length[l], again = t/2, true
			}
		}
		if !again {
			for i, p := range s.mean.X {
				l := i % s.lanes
				w[i] += float64(length[l] * p)
				sigma[i] += float64(length[l] * s.sigma.X[i])
			}
			s.Locate(r, w, sigma)
			return
		}
	}
}

// Negative returns a lane's share of the negative lower bound after Solve, over the columns that
// occur: the loss and the prior around the parent's mean, less the entropy. Terms that are the same
// for every w and sigma are left out, except for the 1/2 of entropies:
//
//	loss + sum_f [ 1/2 A_f (sigma_f^2 + (w-m)_f^2) - log sigma_f - 1/2 ]
func (s *Bounded) Negative(w, sigma, scale []float64, l int) float64 {
	sum := s.loss[l]
	for f, occurs := range scale {
		if occurs > 0 {
			at := f*s.lanes + l
			d, v := w[at]-s.above[at], sigma[at]
			sum += float64(s.precision[at]*(float64(v*v)+float64(d*d)))/2 - math.Log(v) - 0.5
		}
	}
	return sum
}

// Curvature fills out (columns x lanes) with row sums of the bound's Hessian at the optimum,
// sum_x 2 lambda |x_f| ||x||_1. As a diagonal matrix they bound it from above.
func (s *Bounded) Curvature(r Rows, out []float64) {
	clear(out)
	r.gatherSize(s.tau, r.sizes(), out, s.lanes)
}

// squareScores sets out[i] = sum_f v_f x_if^2 of all lanes.
func (r Rows) squareScores(v, out []float64, lanes int) {
	clear(out)
	for i := range r.X.Rows {
		at := out[i*lanes:][:lanes]
		index, value := r.X.Row(i)
		for n, f := range index {
			x := float64(value[n])
			add(at, x*x, v[int(f)*lanes:][:lanes])
		}
		if r.Bias > 0 {
			add(at, r.Bias*r.Bias, v[r.X.Cols*lanes:][:lanes])
		}
	}
}
