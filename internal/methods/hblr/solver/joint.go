package solver

import "math"

// The leaves of a soft-max at their joint maximum, by Newton's method over all blocks (partial MAP):
//
//	f(W) = sum_n 1/2 (w_n-m_n)' A_n (w_n-m_n) + sum_x [ z_x - w_y.x ],   z_x = log sum_n exp(w_n.x)
//	f'   : A_n (w_n-m_n) - sum_x (t_nx - p_nx) x,                         p_nx = exp(w_n.x - z_x)
//	f'' u: A_n u_n + sum_x p_nx (u_n.x - c_x) x,                          c_x = sum_n p_nx u_n.x
//
// (a row's terms times its weight). The leaves are coupled by one number per row: z for the gradient, c for
// a product with the Hessian. A task of its own computes these from the blocks' messages (LogSums, Couple).
//
// Where a row is on the wrong side, with p of its class near 0, the curvature p (1-p) almost vanishes, and
// Newton's step would be far too long. There f'' has other shares than p. That of the row's class is the q for
// which q (1-q) is the curvature of Jaakkola and Jordan's parabola, which lies above the logistic loss and
// touches it on either side. The others are smaller (Soften).
//
// A soft-max does not change when all leaves move by one vector v; only the prior does. In that direction
// the curvature is A, far smaller than in others, and conjugate gradients would need an iteration for each
// feature. So W begins where the prior is lowest along all such moves (Follow), sum_n A_n (w_n-m_n) = 0, and
// v is subtracted from every direction, so that sum_n A_n u_n = 0 (Couple).
//
// Conjugate gradients need one exchange of messages an iteration in the form of Chronopoulos & Gear
// (J. Comput. Appl. Math. 25, 1989): with u = M r, gamma = r.u and delta = u.Hu
//
//	beta = gamma / last gamma,   alpha = gamma / (delta - beta gamma / last alpha)
//	p = u + beta p,   q = Hu + beta q,   step += alpha p,   r -= alpha q

// Joint is a block's part of Newton's system. It consists of lines with a number for each lane,
// padded as in Scratch.
type Joint struct {
	// H, Residual, Direction, Image and Step have a line for each column.
	H, Residual, Direction, Image, Step []float64
	// Share is p, and Score is u.x. Both have a line for each row.
	Share, Score []float64
}

// NewJoint cuts a vector of length JointSize into a Joint.
func (r Rows) NewJoint(v []float64, lanes int) *Joint {
	columns, rows := r.Columns()*padded(lanes), r.X.Rows*padded(lanes)
	cut := func(n int) (part []float64) {
		part, v = v[:n:n], v[n:]
		return part
	}
	return &Joint{cut(columns), cut(columns), cut(columns), cut(columns), cut(columns), cut(rows), cut(rows)}
}

// JointSize returns the length of the vector that NewJoint needs.
func (r Rows) JointSize(lanes int) int { return padded(lanes) * (5*r.Columns() + 2*r.X.Rows) }

// padded returns the length of a line of lanes.
func padded(lanes int) int { return (lanes + quarter - 1) / quarter * quarter }

// Message is a block's message in a step of Newton's method.
type Message struct {
	// Rows holds, for each row, log sum exp(w.x) or sum p (u.x) over the block's leaves.
	Rows []float64
	// Own holds, for each row, w_y.x if y is in the block, and 0 otherwise.
	Own []float64
	// Columns holds, for each column, the sum of A (w-m) or A u, and after all these, for each
	// column, the sum of A.
	Columns []float64
	// Objective is the block's part of f without the sum of z.
	Objective float64
	// Slope is f'.step.
	Slope float64
	// Gamma and Delta are shares of gamma and delta. Couple returns what must be subtracted from
	// delta.
	Gamma, Delta float64
	// Error is the greatest bound of a leaf's relative error.
	Error float64
}

// JointStart returns the leaves' message at w, from which z is computed.
func (s *Scratch) JointStart(r Rows, w []float64) *Message {
	out := &Message{Rows: make([]float64, r.X.Rows)}
	s.lay(w)
	r.scores(s.w, s.score, s.line)
	for i := range out.Rows {
		out.Rows[i] = logSum(s.score[i*s.line:][:s.lanes])
	}
	out.Own = s.own(s.score)
	out.Columns = s.sums(s.w, s.above)
	return out
}

// own returns w_y.x of each row.
func (s *Scratch) own(score []float64) []float64 {
	out := make([]float64, len(s.positive))
	for i, own := range s.positive {
		for l, x := range score[i*s.line:][:s.lanes] {
			if own>>l&1 != 0 {
				out[i] = x
			}
		}
	}
	return out
}

// Soften returns the factor of the shares of the other classes in the Hessian of a row whose class
// has the score u. z is the row's log sum exp.
func Soften(z, u float64) float64 {
	p := min(Exp(u-z), 1)
	if p >= 0.5 {
		return 1
	}
	margin := math.Log1p(-p) - (u - z) // log (1-p)/p > 0
	_, bend, _ := Jaakkola(margin * margin)
	q := 2 * bend / (1 + math.Sqrt(max(1-4*bend, 0)))
	return min((1-q)/(1-p), 1)
}

// sums returns, by column, the sums over the lanes of A (x - less), and after these of A. A nil
// less stands for zero.
func (s *Scratch) sums(x, less []float64) []float64 {
	columns := len(s.precision) / s.line
	out := make([]float64, 2*columns)
	for f := range columns {
		from := f * s.line
		precision, x := s.precision[from:][:s.lanes], x[from:][:s.lanes]
		pull, weight := 0.0, 0.0
		for l, a := range precision {
			d := x[l]
			if less != nil {
				d -= less[from+l]
			}
			pull += float64(a * d)
			weight += a
		}
		out[f], out[columns+f] = pull, weight
	}
	return out
}

// JointMove moves w (columns x lanes) by length times a step, and by v.
func (s *Scratch) JointMove(w, step []float64, length float64, v []float64) {
	for f, x := range v {
		for l := range s.lanes {
			w[f*s.lanes+l] += float64(length*step[f*s.line+l]) + x
		}
	}
}

// JointNewton begins a Newton step at w, where Block.Offset is z. soft has Soften of each row.
func (s *Scratch) JointNewton(r Rows, w []float64, j *Joint, soft []float64) *Message {
	s.lay(w)
	s.locate(r)
	clear(j.Share)
	for i, z := range s.offset {
		weight, own := r.WeightOf(i), s.positive[i]
		for l, x := range s.score[i*s.line:][:s.lanes] {
			p := min(Exp(x-z), 1)
			if own>>l&1 != 0 {
				p = 1 - float64(soft[i]*(1-p))
			} else {
				p *= soft[i]
			}
			j.Share[i*s.line+l], s.curve[i*s.line+l] = p, float64(weight*float64(p*(1-p)))
		}
	}
	s.differentiate(r)
	var left, size [Lanes]float64
	for _, v := range [][]float64{j.H, j.Residual, j.Direction, j.Image, j.Step} {
		clear(v)
	}
	for i, a := range s.precision {
		if l := i % s.line; l < s.lanes {
			g, d := s.gradient[i], s.w[i]-s.above[i]
			left[l] += float64(g*g) / a
			size[l] += float64(a * float64(d*d))
			j.Residual[i], j.H[i] = -g, s.h[i]
		}
	}
	worst := 0.0
	for l := range s.lanes {
		if left[l] > 0 {
			worst = max(worst, left[l]/max(size[l], math.SmallestNonzeroFloat64))
		}
	}
	out := s.message(r, j)
	out.Objective, out.Error = s.Penalty()+r.less(s.own(s.score)), min(math.Sqrt(worst), math.MaxFloat32)
	return out
}

// message sets step to u = M r, and returns the message about it to the other blocks.
func (s *Scratch) message(r Rows, j *Joint) *Message {
	out := &Message{Rows: make([]float64, r.X.Rows)}
	s.precondition(j)
	for from := 0; from < len(s.step); from += s.line {
		residual, precision := j.Residual[from:][:s.lanes], s.precision[from:][:s.lanes]
		for l, u := range s.step[from:][:s.lanes] {
			out.Gamma += float64(residual[l] * u)
			out.Delta += float64(precision[l] * float64(u*u))
		}
	}
	r.scores(s.step, j.Score, s.line)
	for i := range out.Rows {
		curve := 0.0
		for l, u := range j.Score[i*s.line:][:s.lanes] {
			pull := float64(j.Share[i*s.line+l] * u)
			out.Rows[i] += pull
			curve += float64(pull * u)
		}
		out.Delta += float64(r.WeightOf(i) * curve)
	}
	out.Columns = s.sums(s.step, nil)
	return out
}

// precondition sets step to r/(A + h).
func (s *Scratch) precondition(j *Joint) {
	clear(s.step)
	for from := 0; from < len(s.step); from += s.line {
		precision, h, step := s.precision[from:][:s.lanes], j.H[from:][:s.lanes], s.step[from:][:s.lanes]
		for l, x := range j.Residual[from:][:s.lanes] {
			step[l] = x / (precision[l] + h[l])
		}
	}
}

// JointTurn does one iteration of conjugate gradients, with Couple's c by row and v by column.
func (s *Scratch) JointTurn(r Rows, j *Joint, alpha, beta float64, c, v []float64) *Message {
	s.precondition(j)
	for i, mean := range c {
		weight := r.WeightOf(i)
		for at := i * s.line; at < (i+1)*s.line; at++ {
			s.move[at] = float64(float64(weight*j.Share[at]) * (j.Score[at] - mean))
		}
	}
	clear(s.gradient)
	r.gather(s.move, s.gradient, s.line)
	for f, move := range v {
		from := f * s.line
		line := func(v []float64) []float64 { return v[from:][:s.lanes] }
		precision, gradient, step := line(s.precision), line(s.gradient), line(s.step)
		direction, image, total, residual := line(j.Direction), line(j.Image), line(j.Step), line(j.Residual)
		for l, u := range step {
			u -= move
			p := u + float64(beta*direction[l])
			q := float64(precision[l]*u) + gradient[l] + float64(beta*image[l])
			direction[l], image[l] = p, q
			total[l] += float64(alpha * p)
			residual[l] -= float64(alpha * q)
		}
	}
	return s.message(r, j)
}

// JointSearch returns the leaves' message at w + length step. With slope it also sets the slope at
// w, where Block.Offset must be z.
func (s *Scratch) JointSearch(r Rows, w []float64, j *Joint, length float64, slope bool) *Message {
	out := &Message{Rows: make([]float64, r.X.Rows), Columns: make([]float64, 2*r.Columns())}
	s.lay(w)
	if slope {
		s.locate(r)
	} else {
		r.scores(s.w, s.score, s.line)
	}
	r.scores(j.Step, s.move, s.line)
	for i := range out.Rows {
		at := i * s.line
		for l := range s.lanes {
			s.trial[at+l] = s.score[at+l] + float64(length*s.move[at+l])
			if slope {
				out.Slope -= float64(s.coef[at+l] * s.move[at+l])
			}
		}
		out.Rows[i] = logSum(s.trial[at:][:s.lanes])
	}
	for i, d := range j.Step {
		if i%s.line < s.lanes {
			x, a := s.w[i]-s.above[i], s.precision[i]
			if slope {
				out.Slope += float64(a * float64(x*d))
			}
			x += float64(length * d)
			out.Objective += float64(a*float64(x*x)) / 2
		}
	}
	out.Own = s.own(s.trial)
	out.Objective += r.less(out.Own)
	return out
}

// less returns -sum of w_y.x.
func (r Rows) less(own []float64) (sum float64) {
	for i, x := range own {
		sum -= float64(r.WeightOf(i) * x)
	}
	return sum
}

// Couple adds up the blocks' messages about u: c by row, v by column, and the number that both
// subtract from delta.
func (r Rows) Couple(rows, columns [][]float64) (c, v []float64, off float64) {
	c, v = make([]float64, r.X.Rows), make([]float64, r.Columns())
	for _, part := range rows {
		for i, x := range part {
			c[i] += x
		}
	}
	for i, x := range c {
		off += float64(r.WeightOf(i) * float64(x*x))
	}
	for f := range v {
		pull, weight := sumAt(columns, f), sumAt(columns, len(v)+f)
		v[f] = pull / weight
		off += float64(pull * v[f])
	}
	return c, v, off
}

func sumAt(parts [][]float64, i int) (sum float64) {
	for _, part := range parts {
		sum += part[i]
	}
	return sum
}
