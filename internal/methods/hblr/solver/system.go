package solver

import (
	"math"
	"math/bits"
	"unsafe"

	"taxon/internal/linalg/conjugate"
	"taxon/internal/linalg/sparse"
)

// system is Newton's system of the lanes that are still running,
//
//	(A + X' D X) step = -gradient,
//
// for conjugate gradients in float32. Steps need not be exact, because the gradient is. Each
// lane's right-hand side has length 1 in the metric A + h, the preconditioner.
type system struct {
	conjugate.Gradients
	// lanes holds the lane of each place in a line.
	lanes []int
	// line is eight or sixteen.
	line int
	// curve holds D, one line per row.
	curve []float32
	// tile has two lines for each column: the direction p, and the system times p.
	tile []float32
	// step, residual, inverse and diagonal have a line for each column. inverse is 1/(A + h), and
	// diagonal is A.
	step, residual, inverse, diagonal []float32
	// scale is the length of each lane's gradient, by place.
	scale []float64
	// pull is, in a near problem, sqrt(bend) u of each column. It is empty in other problems.
	pull []float32

	// rows are the problem's, and out has lines of length outLine for the steps.
	rows    Rows
	out     []float64
	outLine int
	loop    columnLoop
}

// eighth is the number of lanes of a line in one register of float32.
const eighth = 8

// product is the argument of a kernel that adds X' D X p, for the rows of a shard, to the tile's
// second lines. p is in the first lines. Assembly knows its layout.
type product struct {
	begin   *uint64  // n+1 bounds of the rows' entries
	n       int      //
	idx     *uint32  // the shard's entries
	val     *float32 //
	entries int      //
	// tile has two lines for each column. last points to those of the bias feature.
	tile, last *float32
	curve      *float32 // one line per row
	bias       float32  //
	_          float32  //
	// The kernel adds p' X' D X p to sum.
	sum [Lanes]float64
}

// columnLoop is the argument of the loops over n columns. Assembly knows its layout.
type columnLoop struct {
	n int
	// pull is nil if there are no far rows.
	tile, step, residual, inverse, diagonal, pull *float32
	factor, share                                 [Lanes]float32
	// sum and along are added to.
	sum, along [Lanes]float64
}

// open lays out the system.
func (y *system) open(s *Scratch, r Rows, running uint32, norm *[Lanes]float64) {
	y.lanes, y.scale = y.lanes[:0], y.scale[:0]
	for m := running; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m)
		y.lanes, y.scale = append(y.lanes, l), append(y.scale, math.Sqrt(norm[l]))
	}
	y.line = (len(y.lanes) + eighth - 1) / eighth * eighth
	columns := r.Columns()
	y.curve, y.tile = resized(y.curve, r.X.Rows*y.line), resized(y.tile, 2*columns*y.line)
	for _, v := range []*[]float32{&y.step, &y.residual, &y.inverse, &y.diagonal} {
		*v = resized(*v, columns*y.line)
	}
	if y.pull = y.pull[:0]; s.far != nil {
		y.pull = resized(y.pull, columns*y.line)
		for p, l := range y.lanes {
			root := math.Sqrt(s.far.bend[l])
			for f := range columns {
				y.pull[f*y.line+p] = float32(root * s.far.u[f*s.line+l])
			}
		}
	}
	for i := range r.X.Rows {
		from, to := s.curve[i*s.line:][:s.line], y.curve[i*y.line:][:y.line]
		for p, l := range y.lanes {
			to[p] = float32(from[l])
		}
	}
	for f := range columns {
		from, to := f*s.line, f*y.line
		for p, l := range y.lanes {
			a := s.precision[from+l]
			y.diagonal[to+p], y.inverse[to+p] = float32(a), float32(1/(a+s.h[from+l]))
			y.residual[to+p] = float32(-s.gradient[from+l] / y.scale[p])
		}
	}
}

// resized returns a vector of n zeros.
func resized(v []float32, n int) []float32 {
	if cap(v) < n {
		return make([]float32, n)
	}
	clear(v[:n])
	return v[:n]
}

// solve runs conjugate gradients until each lane's residual is at most the share, and copies the
// lanes' steps into out, whose lines have length `line`.
func (y *system) solve(r Rows, share *[Lanes]float64, out []float64, line int) (passes int) {
	for p, l := range y.lanes {
		y.Size[p], y.Enough[p] = 1, share[l]*share[l]
	}
	y.Running = 1<<len(y.lanes) - 1
	y.rows, y.out, y.outLine = r, out, line
	y.Solve(y, conjugateSteps)
	y.unpack()
	return 2 * y.Steps
}

// Multiply implements conjugate.System. It narrows the lines once the lanes that run fit half of one.
func (y *system) Multiply(g *conjugate.Gradients) {
	if y.line > eighth && bits.OnesCount32(g.Running) <= eighth && g.Steps > 0 {
		y.unpack()
		g.Keep(y.narrow(g.Running))
	}
	y.loop = columnLoop{n: y.rows.Columns(), tile: &y.tile[0], step: &y.step[0], residual: &y.residual[0],
		inverse: &y.inverse[0], diagonal: &y.diagonal[0]}
	if len(y.pull) > 0 {
		y.loop.pull = &y.pull[0]
	}
	for p := range y.lanes {
		y.loop.factor[p] = float32(g.Beta[p])
	}
	y.rows.Kernel.turn(&y.loop, y.line)
	y.rows.multiply(y, &y.loop.sum)
	for p, x := range y.loop.along { // the far rows add v v' to the system
		y.loop.share[p] = float32(x)
		y.loop.sum[p] += float64(x * x)
	}
	g.Curvature = y.loop.sum
}

// Advance implements conjugate.System.
func (y *system) Advance(g *conjugate.Gradients) {
	for p, x := range g.Alpha {
		y.loop.factor[p] = float32(x)
	}
	y.loop.sum = [Lanes]float64{}
	y.rows.Kernel.advance(&y.loop, y.line)
	g.Next = y.loop.sum
}

// unpack copies the steps to lines of length outLine.
func (y *system) unpack() {
	for from, to := 0, 0; from < len(y.step); from, to = from+y.line, to+y.outLine {
		for p, l := range y.lanes {
			y.out[to+l] = y.scale[p] * float64(y.step[from+p])
		}
	}
}

// narrow keeps only the running lanes, at most eight, and returns which they were.
func (y *system) narrow(running uint32) (places []int) {
	for m := running; m != 0; m &= m - 1 {
		p := bits.TrailingZeros32(m)
		y.lanes[len(places)], y.scale[len(places)] = y.lanes[p], y.scale[p]
		places = append(places, p)
	}
	y.lanes, y.scale = y.lanes[:len(places)], y.scale[:len(places)]
	for _, v := range []*[]float32{&y.curve, &y.tile, &y.step, &y.residual, &y.inverse, &y.diagonal, &y.pull} {
		w := *v
		for from, to := 0, 0; from < len(w); from, to = from+y.line, to+eighth {
			for q, p := range places {
				w[to+q] = w[from+p]
			}
			clear(w[to+len(places) : to+eighth])
		}
		*v = w[:len(w)/y.line*eighth]
	}
	y.line = eighth
	return places
}

// multiply adds X' D X p to the tile's second lines, and p' X' D X p to sum.
func (r Rows) multiply(y *system, sum *[Lanes]float64) {
	e := &product{bias: float32(r.Bias)}
	none := [2 * Lanes]float32{}
	for k := range r.X.Shards {
		shard, from := &r.X.Shards[k], k<<sparse.RowShift
		e.begin, e.n, e.idx, e.val, e.entries = &shard.Begin[0], len(shard.Begin)-1, unsafe.SliceData(shard.Index),
			unsafe.SliceData(shard.Value), len(shard.Index)
		if e.n <= 0 {
			continue
		}
		e.tile, e.last, e.curve = &y.tile[0], &none[0], &y.curve[from*y.line]
		if r.Bias > 0 {
			e.last = &y.tile[2*r.X.Cols*y.line]
		}
		r.Kernel.product(e, y.line)
	}
	for p, x := range e.sum {
		sum[p] += x
	}
}
