package solver

import (
	"context"
	"math"
	"math/bits"
	"unsafe"

	"taxon/internal/linalg/sparse"
)

// near is a block's problem over its near rows, those that are positive or have a large curvature
// p (1-p) in some lane, and their features alone. Solving it costs
// little and gives a step of the whole block. The gradient, the losses and the search along the
// step are over all rows, so only the direction is approximate.
//
// The other rows are far: they are negative in all lanes, with small p. From w on their loss is
// about sum_i a_i exp(x_i.d), a_i = p_i. With L = sum a_i and u = sum a_i x_i, by Jensen's
// inequality,
//
//	sum_i a_i exp(x_i.d) >= L exp(u.d/L)
//
// with equality wherever these rows are alike, above all along the bias. Of their curvature, u u'/L
// lacks on the diagonal D = sum a_i x_i^2 - u^2/L, which is added to A around w.
//
// With t = exp(u.d/L), a feature that no near row has moves to A (w+d-m) + D d + t u = 0. Inserted,
// the far rows' loss is a function of s = u.d over the near rows' features:
//
//	phi(s) = min_t  b t^2/2 + L exp((s + c - b t)/L),   phi'(s) = t,   phi''(s) = t/(L + b t)
//
// where over the other features b = sum u^2/(A+D) and c = -sum u A (w-m)/(A+D).
type near struct {
	Scratch
	x sparse.Matrix
	// shards is the memory of the shards of x.
	shards []sparse.Shard
	rows   []uint32
	weight []float64
	// at maps each column to its place among the columns of the near rows, from 1. It is 0 for a
	// column that none of them has.
	at []uint32
	// column holds the column of each place.
	column []uint32
	// doubt holds, for each row, the greatest curvature of a lane, relative to the lane's mean.
	doubt []float64
	// drawn is 1 for a near row, and 0 for another.
	drawn []uint32
}

const (
	// nearLeast is the number of rows from which a block's steps come from near problems.
	nearLeast = 1 << 14
	// nearShare limits the near rows that are not positive to one in nearShare of all rows.
	nearShare = 16
	// nearSteps is the number of steps after which steps are Newton's over all rows. The same
	// follows when a step neither halved the gradient of any running lane nor took its loss down to a
	// share of nearGain.
	nearSteps, nearGain = 8, 0.9
	// nearTolerance is the share of the remaining gradient to which a near problem is solved.
	nearTolerance = 0.01
	// leastFar is the share of the near rows' sum of |t-p| below which u is rounding. L then counts
	// as 0, and also if it is below tiniest.
	leastFar, tiniest = 1e-12, 1e-200
)

// far is the model of the far rows' loss in a near problem, for each lane.
type far struct {
	// u holds the vector u of the model, one line per column.
	u     []float64
	start [Lanes]float64
	// total, own and shift are L, b and c. With L = 0 there are no far rows.
	total, own, shift [Lanes]float64
	// at, loss, slope and bend are s, phi, phi' and phi''.
	at, loss, slope, bend [Lanes]float64
	// size is the size of the whole problem, as differentiate returns it.
	size [Lanes]float64
}

// along returns u.v.
func (a *far) along(v []float64, line int) (sum [Lanes]float64) {
	for i := 0; i < len(v); i += line {
		u, v := a.u[i:][:line], v[i:][:line]
		for l, x := range u {
			sum[l] += float64(x * v[l])
		}
	}
	return sum
}

// phi returns phi(s) of lane l, and its derivatives.
func (a *far) phi(l int, s float64) (value, slope, bend float64) {
	total, own := a.total[l], a.own[l]
	if total == 0 {
		return 0, 0, 0
	}
	// y = log t solves L y + b exp(y) = s + c. The left side is convex and rises, so Newton's method
	// converges from the right.
	s += a.shift[l]
	y := s / total
	if own > 0 && s > 0 {
		y = min(y, max(0, Log(s)-Log(own)))
	}
	t := Exp(min(y, largestLog))
	for range phiSteps {
		step := (float64(total*y) + float64(own*t) - s) / (total + float64(own*t))
		y -= step
		t = Exp(min(y, largestLog))
		if math.Abs(step) <= phiTolerance*max(1, math.Abs(y)) {
			break
		}
	}
	return float64(own*float64(t*t))/2 + float64(total*t), t, t / (total + float64(own*t))
}

// phiSteps and phiTolerance end Newton's method in phi. largestLog bounds y = log t.
const phiSteps, phiTolerance, largestLog = 60, 1e-13, 700

// locate sets the loss at s.
func (a *far) locate(s [Lanes]float64, lanes int) {
	a.at = s
	for l := range lanes {
		a.loss[l], a.slope[l], a.bend[l] = a.phi(l, s[l])
	}
}

// draw lists the near rows. They are the rows that are positive in a running lane and, among the
// others, the rows with the greatest curvatures.
func (n *near) draw(s *Scratch, r Rows, running uint32) {
	rows, over := len(s.positive), r.Kernel.over(s.line)
	if cap(n.doubt) < rows {
		n.doubt, n.drawn = make([]float64, rows), make([]uint32, rows)
	}
	n.doubt, n.drawn = n.doubt[:rows], n.drawn[:rows]
	clear(n.doubt)
	clear(n.drawn)
	sums, e := s.rows(s.curve), s.rows(s.curve)
	sums.place = unsafe.Pointer(&n.drawn[0])
	over.totals(sums)
	for l, sum := range sums.sum[0] {
		if inverse := float64(rows) / sum; running>>l&1 != 0 && inverse < math.MaxFloat64 { // 1 / mean
			e.length[l] = inverse
		}
	}
	e.place = unsafe.Pointer(&n.doubt[0])
	over.doubts(e)
	var counts [32]int // number of rows by powers of two
	for i, own := range s.positive {
		if uint32(own)&running != 0 {
			n.doubt[i] = math.MaxFloat64
		} else if most := n.doubt[i]; most >= 1 {
			counts[min(math.Float64bits(most)>>52-1023, uint64(len(counts)-1))]++
		}
	}
	level := len(counts) - 1
	for sum := 0; level >= 0; level-- {
		if sum += counts[level]; sum > rows/nearShare {
			break
		}
	}
	limit := math.Ldexp(1, level+1)
	n.rows = n.rows[:0]
	for i, x := range n.doubt {
		if x >= limit {
			n.rows = append(n.rows, uint32(i))
			n.drawn[i] = 1
		}
	}
}

// cut returns the near rows as a matrix of their own.
func (n *near) cut(r Rows) Rows {
	if len(n.at) != r.Columns() {
		n.at = make([]uint32, r.Columns())
	}
	clear(n.at)
	for _, i := range n.rows {
		index, _ := r.X.Row(int(i))
		for _, f := range index {
			n.at[f] = 1
		}
	}
	n.at[r.X.Cols] = 1 // the bias
	n.column = n.column[:0]
	for f, in := range n.at {
		if in != 0 {
			n.column = append(n.column, uint32(f))
			n.at[f] = uint32(len(n.column))
		}
	}
	n.x = sparse.Matrix{Shards: n.x.Shards[:0], Rows: len(n.rows), Cols: len(n.column) - 1}
	n.weight = n.weight[:0]
	for len(n.shards)<<sparse.RowShift < len(n.rows) {
		n.shards = append(n.shards, sparse.Shard{})
	}
	for k, rows := 0, n.rows; len(rows) > 0; k++ {
		shard, count := &n.shards[k], min(len(rows), 1<<sparse.RowShift)
		shard.Begin, shard.Index, shard.Value = append(shard.Begin[:0], 0), shard.Index[:0], shard.Value[:0]
		for _, i := range rows[:count] {
			index, value := r.X.Row(int(i))
			for _, f := range index {
				shard.Index = append(shard.Index, n.at[f]-1)
			}
			shard.Value, n.weight = append(shard.Value, value...), append(n.weight, r.WeightOf(int(i)))
			shard.Begin = append(shard.Begin, uint64(len(shard.Index)))
		}
		n.x.Shards, rows = append(n.x.Shards, *shard), rows[count:]
	}
	out := Rows{X: &n.x, Bias: r.Bias, Kernel: r.Kernel}
	if r.Weight != nil {
		out.Weight = n.weight
	}
	return out
}

// seek sets s.step to the solution of the near problem. s must have the gradient and h at s.w.
func (n *near) seek(ctx context.Context, s *Scratch, r Rows, running uint32, left, size,
	tolerance *[Lanes]float64) error {
	n.draw(s, r, running)
	rows := n.cut(r)
	n.open(s, rows, running)
	n.far.size = *size
	var share [Lanes]float64
	for m := running; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		share[l] = max(nearTolerance*math.Sqrt(left[l]/max(size[l], left[l])), tolerance[l]*lastShare)
	}
	n.Scratch.locate(rows)
	if _, err := n.newton(ctx, rows, running, &share); err != nil {
		return err
	}
	e := n.loop(s)
	for m := running; m != 0; m &= m - 1 {
		mask(&e.running, bits.TrailingZeros32(m))
	}
	e.slope = n.far.slope
	r.Kernel.over(s.line).follow(e)
	for place, f := range n.column {
		from, to := n.w[place*s.line:][:s.line], int(f)*s.line
		for l, x := range from {
			s.step[to+l] = masked(&e.running, l, x-s.w[to+l])
		}
	}
	return nil
}

// loop returns the argument of the loops over the columns of s that no near row has.
func (n *near) loop(s *Scratch) *lineLoop {
	e := s.loop()
	e.place, e.total = unsafe.Pointer(&n.at[0]), n.far.total
	for l, total := range e.total {
		if total == 0 {
			e.total[l] = 1
		} else {
			mask(&e.far, l)
		}
	}
	return e
}

// prior returns A (w-m) at place i.
func (s *Scratch) prior(i int) float64 { return float64(s.precision[i] * (s.w[i] - s.above[i])) }

// pull returns u and D at place i of lane l. What the near rows pull there is -sum, and their h is h.
func (n *near) pull(s *Scratch, i, l int, sum, h float64) (u, more float64) {
	total := n.far.total[l]
	if total == 0 {
		return 0, 0
	}
	u = s.gradient[i] - s.prior(i) + sum
	return u, max(s.h[i]-h-float64(u*u)/total, 0)
}

// open lays out the near problem.
func (n *near) open(s *Scratch, rows Rows, running uint32) {
	columns, line, a := rows.Columns(), s.line, n.far
	n.lanes, n.line = s.lanes, line
	for _, v := range []*[]float64{&n.score, &n.trial, &n.move, &n.coef, &n.curve} {
		*v = sized(*v, len(n.rows)*line)
	}
	for _, v := range []*[]float64{&n.gradient, &n.h, &n.step, &n.precision, &n.above, &n.w, &a.u} {
		*v = sized(*v, columns*line)
	}
	n.positive = n.positive[:0]
	for k, i := range n.rows {
		n.positive = append(n.positive, s.positive[i])
		copy(n.coef[k*line:][:line], s.coef[int(i)*line:])
		copy(n.curve[k*line:][:line], s.curve[int(i)*line:])
	}
	e := s.rows(s.coef)
	e.place = unsafe.Pointer(&n.drawn[0])
	rows.Kernel.over(line).totals(e)
	var pulls [Lanes]float64 // pulls of the near rows
	for i := 0; i < len(n.coef); i += line {
		for l, c := range n.coef[i:][:line] {
			pulls[l] += math.Abs(c)
		}
	}
	for l, sum := range e.sum[0] {
		a.total[l] = -sum
	}
	for l := range a.total {
		if running>>l&1 == 0 || !(a.total[l] > max(leastFar*pulls[l], tiniest)) {
			a.total[l] = 0
		}
	}
	clear(n.gradient)
	clear(n.h)
	rows.gatherBoth(n.coef, n.gradient, n.curve, n.h, line)
	for place, f := range n.column {
		for l := range line {
			i, to := int(f)*line+l, place*line+l
			own := s.prior(i)
			u, more := n.pull(s, i, l, n.gradient[to], n.h[to])
			precision := s.precision[i] + more
			a.u[to], n.precision[to], n.w[to], n.above[to] = u, precision, s.w[i], s.w[i]-own/precision
		}
	}
	e = n.loop(s)
	rows.Kernel.over(line).eliminate(e)
	a.own, a.shift = e.sum[0], e.sum[1]
	a.start = a.along(n.w, line)
}
