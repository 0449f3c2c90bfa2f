package mapper

import (
	"context"
	"math"
	"math/bits"
)

const (
	// newtonColumns is the number of columns below which a squared hinge is solved by Newton's
	// method: a lane's Hessian stays in the cache, and its factor costs less than an epoch.
	newtonColumns = 128
	// newtonRows is the least number of instances for which Newton's method pays.
	newtonRows = 1024
	// newtonAfter is the number of epochs of descent before it, which find the rows within the
	// margin.
	newtonAfter = 6
	// newtonSteps bounds the number of steps. P is piecewise quadratic, so Newton's method ends
	// after finitely many: about six, and about a hundred where C ||x||^2 is in the thousands.
	newtonSteps = 400
	// newtonLeast is a share of a lane's P. An estimated gap below it counts as zero.
	newtonLeast = 1e-9
	// newtonCuts bounds the search for the least P along a step, and newtonCutTo is the relative
	// precision that ends it.
	newtonCuts  = 40
	newtonCutTo = 1e-6
)

// fewColumns reports whether a squared hinge is solved by Newton's method once descent has found
// the rows within the margin. On few columns with few zeros descent takes hundreds of epochs,
// because every row moves every weight.
func (p *Problem) fewColumns() bool { return p.X.Cols < newtonColumns && p.X.Rows >= newtonRows }

// newton solves the sixteen lanes' subproblems with the squared hinge in the primal, over the rows
// that a descent has listed. It reads and replaces the descent's duals. All other fields are
// scratch that keeps its memory from one block to the next.
type newton struct {
	descent *dualSolver
	// d is the number of columns, the bias's among them.
	d int
	// w holds the weights.
	w [][Lanes]float64
	// score has the listed rows' scores at w, and next those at w + delta.
	score [][Lanes]float64
	next  [][Lanes]float64
	// held is the mask of the lanes whose Hessian holds each row.
	held []uint16
	// hessian is each lane's matrix, d x d, as its lower triangle, without the unit matrix.
	hessian [Lanes][]float64
	// factor is Cholesky's factor of one lane's matrix.
	factor []float64
	// x is a dense row.
	x []float64
	// residual is w - y - v, and delta the step.
	residual [Lanes][]float64
	delta    [Lanes][]float64
	// primal is P at w over the listed rows.
	primal [Lanes]float64
	// bound estimates the gap that the duals drawn from w leave.
	bound [Lanes]float64

	// first are the duals that the steps began with, firstLive their masks, and firstDual the D
	// at them.
	first     [][Lanes]float64
	firstLive []uint16
	firstDual [Lanes]float64
}

// solve solves the lanes' subproblems over the listed rows in the primal:
//
//	P(w) = 1/2 ||w-y||^2 + sum_i C_i max(0, 1-z_i)^2
//	H = I + 2 sum_A C_i x_i x_i^T,  A = {i: z_i < 1};  delta = -H^-1 grad P(w)
//
// (Keerthi & DeCoste, JMLR 6, 2005: a step is cut at the least P along it.) The duals are
// a_i = 2 C_i max(0, 1-z_i), so that the gradient is w - y - v = r. At y + v the gap is about
// 1/2 r^T H r. A lane ends when that is at most o.InnerGap.
//
// Before convergence the duals recovered from w are worse than w by a factor of about 2 C ||x||^2.
// So a lane that does not reach its aim keeps the duals that it began with, unless the new ones
// have a greater D.
func (n *newton) solve(ctx context.Context, lanes uint16, o Options, sums *Sums) error {
	t := n.descent
	n.open(len(t.rows))
	t.rebuild()
	t.fillPrecise(n.w)
	n.first, n.firstLive = append(n.first[:0], t.a...), append(n.firstLive[:0], t.live...)
	n.dualValue(lanes, &n.firstDual)
	n.scores(n.score)
	n.primalValue(n.score, lanes, &n.primal)
	short := lanes // have not reached their aim
	for range newtonSteps {
		if err := ctx.Err(); err != nil {
			return err
		}
		n.drawDuals(lanes)
		t.rebuild()
		n.holdActive(lanes)
		for m := lanes; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			n.findResidual(l)
			if n.bound[l] <= max(o.InnerGap, newtonLeast*n.primal[l]) {
				short &^= 1 << l
				lanes &^= 1 << l
			} else if !n.findStep(l) {
				lanes &^= 1 << l
			}
		}
		sums.Epochs++
		if lanes == 0 {
			break
		}
		lanes = n.step(lanes)
		sums.Visits += int64(len(t.rows)) * int64(n.d) * int64(bits.OnesCount16(lanes))
	}
	n.keepBetter(short)
	return nil
}

// keepBetter restores the duals that a lane began with if the new ones have a smaller D.
func (n *newton) keepBetter(lanes uint16) {
	t := n.descent
	if lanes == 0 {
		return
	}
	var now [Lanes]float64
	n.dualValue(lanes, &now)
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		if now[l] >= n.firstDual[l] {
			continue
		}
		for k := range t.a {
			t.a[k][l] = n.first[k][l]
			t.live[k] = t.live[k]&^(1<<l) | n.firstLive[k]&(1<<l)
		}
	}
}

// dualValue sets dual to the lanes' D = sum_i a_i - a_i^2/(4 C_i) - v.y - 1/2 ||v||^2, at the
// duals that v was built from.
func (n *newton) dualValue(lanes uint16, dual *[Lanes]float64) {
	t := n.descent
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		sum, y := 0.0, t.parent(l)
		for k, i := range t.rows {
			if a := t.a[k][l]; a > 0 {
				sum += SquaredHinge.DualTerm(a, t.rowC(i, t.pos[k], l))
			}
		}
		for f := range t.v {
			v := t.v[f][l]
			sum -= float64(v * (float64(y[f]) + v/2))
		}
		dual[l] = sum
	}
}

// newNewton returns Newton's method behind a descent on d columns, the bias's among them.
func newNewton(descent *dualSolver, d int) *newton {
	n := &newton{descent: descent, d: d, w: make([][Lanes]float64, d), factor: make([]float64, d*d), x: make([]float64, d)}
	for l := range n.hessian {
		n.hessian[l], n.residual[l], n.delta[l] = make([]float64, d*d), make([]float64, d), make([]float64, d)
	}
	return n
}

// open clears the Hessians and makes room for this many listed rows.
func (n *newton) open(rows int) {
	for l := range n.hessian {
		clear(n.hessian[l])
	}
	n.score, n.next, n.held = resized(n.score, rows), resized(n.next, rows), resized(n.held, rows)
	clear(n.held)
}

// scores sets out to the listed rows' scores at the float64 weights, in two parts: at the
// weights rounded to float32, and at the rounding's remainder, which matters to duals of a large C.
func (n *newton) scores(out [][Lanes]float64) {
	t := n.descent
	for f := range n.w {
		for l, x := range &n.w[f] {
			t.w[f][l] = float32(x)
		}
	}
	for k, i := range t.rows {
		t.exactScores(int(i))
		out[k] = t.exact.out
	}
	for f := range n.w {
		for l, x := range &n.w[f] {
			t.w[f][l] = float32(x - float64(t.w[f][l]))
		}
	}
	for k, i := range t.rows {
		t.exactScores(int(i))
		for l, x := range &t.exact.out {
			out[k][l] += x
		}
	}
}

// primalValue sets p to the value of P, over the listed rows, in each lane.
func (n *newton) primalValue(score [][Lanes]float64, lanes uint16, p *[Lanes]float64) {
	t := n.descent
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		var pos, neg float64
		for k := range score {
			z, w := score[k][l], 1.0
			if t.p.Weight != nil {
				w = t.p.Weight[t.rows[k]]
			}
			if t.pos[k]>>l&1 != 0 {
				h := 1 - z
				h += math.Abs(h) // 2 max(0, 1-z), branch-free
				pos += float64(float64(h*h) * w)
				continue
			}
			h := 1 + z
			h += math.Abs(h)
			neg += float64(float64(h*h) * w)
		}
		edge, y := 0.0, t.parent(l)
		for f := range n.w {
			e := n.w[f][l] - float64(y[f])
			edge += float64(e * e)
		}
		p[l] = edge/2 + float64(t.cPos[l]*pos/4) + float64(t.c*neg/4)
	}
}

// drawDuals sets the lanes' duals from the scores.
func (n *newton) drawDuals(lanes uint16) {
	t := n.descent
	for k, i := range t.rows {
		for m := lanes; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			z, c := -n.score[k][l], t.rowC(i, t.pos[k], l)
			if t.pos[k]>>l&1 != 0 {
				z = -z
			}
			if h := 1 - z; h > 0 {
				t.a[k][l] = 2 * c * h
				t.live[k] |= 1 << l
			} else {
				t.a[k][l] = 0
				t.live[k] &^= 1 << l
			}
		}
	}
}

// holdActive adds to the lanes' Hessians the rows that came within the margin, and subtracts the
// rows that left it.
func (n *newton) holdActive(lanes uint16) {
	t := n.descent
	for k, i := range t.rows {
		changed := (n.held[k] ^ t.live[k]) & lanes
		if changed == 0 {
			continue
		}
		clear(n.x)
		idx, val := t.p.X.Row(int(i))
		for j, f := range idx {
			n.x[f] += float64(val[j])
		}
		n.x[n.d-1] = float64(t.p.Bias)
		for m := changed; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			scale := 2 * t.rowC(i, t.pos[k], l)
			if n.held[k]>>l&1 != 0 {
				scale = -scale
			}
			addSquare(n.hessian[l], n.x, scale)
		}
		n.held[k] ^= changed
	}
}

// addSquare adds scale x x^T to the lower triangle of h.
func addSquare(h, x []float64, scale float64) {
	d := len(x)
	for i, xi := range x {
		c := scale * xi
		if c == 0 {
			continue
		}
		row := h[i*d:][: i+1 : i+1]
		for j, xj := range x[:len(row)] {
			row[j] += float64(c * xj)
		}
	}
}

// findResidual sets lane l's r = w - y - v and the bound 1/2 r^T H r.
func (n *newton) findResidual(l int) {
	t := n.descent
	r, h, y := n.residual[l], n.hessian[l], t.parent(l)
	for f := range r {
		r[f] = n.w[f][l] - t.v[f][l] - float64(y[f])
	}
	q := 0.0
	for i, ri := range r {
		row := h[i*n.d:][:i+1]
		s := 0.0
		for j, x := range row[:i] {
			s += float64(x * r[j])
		}
		q += float64(ri * (float64((row[i]+1)*ri) + 2*s))
	}
	n.bound[l] = q / 2
}

// findStep sets delta = -(H + I)^-1 r by Cholesky's factorisation. It returns false if a pivot is
// not above zero.
func (n *newton) findStep(l int) bool {
	d, u, x := n.d, n.factor, n.delta[l]
	copy(u, n.hessian[l])
	for i := range d {
		ui := u[i*d:][: i+1 : i+1]
		ui[i]++
		for j := range i {
			uj := u[j*d:][: j+1 : j+1]
			ui[j] = (ui[j] - inner(ui[:j], uj)) / uj[j]
		}
		pivot := ui[i] - inner(ui[:i], ui)
		if !(pivot > 0) {
			return false
		}
		ui[i] = math.Sqrt(pivot)
		x[i] = (-n.residual[l][i] - inner(ui[:i], x)) / ui[i]
	}
	for i := d - 1; i >= 0; i-- {
		ui := u[i*d:][:i+1]
		x[i] /= ui[i]
		for j, c := range ui[:i] {
			x[j] -= float64(c * x[i])
		}
	}
	return true
}

// inner returns x.y over the length of x, added up in four partial sums.
func inner(x, y []float64) float64 {
	var a, b, c, d float64
	y = y[:len(x)]
	for ; len(x) >= 4 && len(y) >= 4; x, y = x[4:], y[4:] {
		a += float64(x[0] * y[0])
		b += float64(x[1] * y[1])
		c += float64(x[2] * y[2])
		d += float64(x[3] * y[3])
	}
	for j, v := range x {
		a += float64(v * y[j])
	}
	return (a + b) + (c + d)
}

// step moves the lanes by their steps. Where the whole step raises P, it is cut at the least
// P along it. It returns the lanes that moved; no step lowers the P of the others any more.
func (n *newton) step(lanes uint16) uint16 {
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		for f, x := range n.delta[l] {
			n.w[f][l] += x
		}
	}
	n.scores(n.next)
	risen := n.fallen(lanes)
	for m := risen; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		share := n.leastAlong(l)
		for f, x := range n.delta[l] {
			n.w[f][l] -= float64((1 - share) * x)
		}
		for k := range n.next {
			n.next[k][l] = n.score[k][l] + float64(share*(n.next[k][l]-n.score[k][l]))
		}
	}
	if risen != 0 {
		risen = n.fallen(risen)
	}
	n.score, n.next = n.next, n.score
	return lanes &^ risen
}

// fallen computes P at the next scores. It stores the new P of the lanes where it is smaller, and
// returns the other lanes.
func (n *newton) fallen(lanes uint16) (risen uint16) {
	var p [Lanes]float64
	n.primalValue(n.next, lanes, &p)
	for m := lanes; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		if p[l] < n.primal[l] {
			n.primal[l] = p[l]
		} else {
			risen |= 1 << l
		}
	}
	return risen
}

// leastAlong returns the share of lane l's step at which P is least. P is convex and piecewise
// quadratic along the step, so it runs Newton's method on the slope, within an interval that holds
// the zero.
func (n *newton) leastAlong(l int) (share float64) {
	t := n.descent
	y := t.parent(l)
	var slope, square float64 // of the edge at share 0
	for f, x := range n.delta[l] {
		slope += float64((n.w[f][l] - x - float64(y[f])) * x)
		square += float64(x * x)
	}
	low, high := 0.0, 1.0
	for range newtonCuts {
		first, second := slope+float64(share*square), square
		for k, i := range t.rows {
			from, by := n.score[k][l], n.next[k][l]-n.score[k][l]
			if t.pos[k]>>l&1 == 0 {
				from, by = -from, -by
			}
			if h := 1 - from - float64(share*by); h > 0 {
				c := 2 * t.rowC(i, t.pos[k], l)
				first -= float64(c * float64(h*by))
				second += float64(c * float64(by*by))
			}
		}
		if first < 0 {
			low = share
		} else {
			high = share
		}
		next := share - first/second
		if !(next > low && next < high) {
			next = (low + high) / 2
		}
		if math.Abs(next-share) <= newtonCutTo*next {
			return next
		}
		share = next
	}
	return low
}
