package mapper

import (
	"context"
	"math"
	"math/bits"
	"unsafe"
)

// These constants apply to descents lane by lane, on rows with few zeros. Once working sets are
// drawn, two of a block's sixteen lanes visit a row on average, but a visit of the tile costs as
// much as all sixteen. On such rows it is cheaper to go through each lane's rows alone, sixteen
// features at a time.
const (
	// denseColumns is the greatest number of columns for which descents go lane by lane. It counts
	// the column of the bias.
	denseColumns = 1024
	// tileEpochs is the number of epochs on the tile before the change. Rows that are shrunk away
	// in them need not be laid out.
	tileEpochs = 4
	// crowdedLanes is the mean number of lanes that visit a row from which the tile is faster.
	crowdedLanes = 4
	// laneGroup is the number of lanes that descend together, in one random order: visits of
	// different lanes do not wait for each other, and the rows of more lanes would not stay in the
	// cache.
	laneGroup = 4
	// leapFrom is the number of passes before the first extrapolation: most problems converge
	// sooner, and the set of active rows must have settled.
	leapFrom = 50
)

// denseRows reports whether at least half of the matrix's values are nonzero and its columns are
// few.
func (p *Problem) denseRows() bool {
	return p.X.Cols < denseColumns && 2*p.X.NNZ >= int64(p.X.Rows)*int64(p.X.Cols)
}

// laneDescent is a descent with the hinge, lane by lane over rows laid out densely, with Nesterov's
// extrapolation from pass leapFrom on.
type laneDescent[T real] struct {
	laneArgs[T]
	visit func(*laneArgs[T])
	// from has of each row its place in the working list times 16, plus its lane.
	from []uint64
	row  []laneRow[T]
	x    [][16]float32
	w    [][16]T
	// order lists the rows that are still active, in the order of the next pass.
	order []uint32

	// passes counts the passes since the rows were laid out.
	passes int
	// moving lists the rows that the last pass visited.
	moving []uint32
	// then is what extrapolate remembers of each row.
	then []laneThen[T]
	// last holds the weights at the end of the pass before.
	last [][16]T
	// t is each lane's t of Nesterov's sequence.
	t [Lanes]T
}

// run continues a descent on the tile from epoch on, with the lanes in groups, and returns the
// lanes that have not reached o.InnerGap.
func (n *laneDescent[T]) run(ctx context.Context, t *dualSolver, d *descent[T], dual [][Lanes]T, running uint16,
	epoch int, o Options, sums *Sums) (uint16, error) {
	sums.Epochs, sums.Estimate = epoch, 0
	for first := 0; first < Lanes; first += laneGroup {
		group := running & ((1<<laneGroup - 1) << first)
		if group == 0 {
			continue
		}
		n.lay(t, d, dual, group)
		done, err := n.descend(ctx, t.p, group, epoch, o, sums)
		if err != nil {
			return running, err
		}
		running &^= done
		n.keep(t, dual)
	}
	return running, nil
}

// descend runs epochs over the rows that are laid out, as the descent on the tile does, and returns
// the lanes that reached o.InnerGap.
func (n *laneDescent[T]) descend(ctx context.Context, p *Problem, group uint16, epoch int, o Options,
	sums *Sums) (done uint16, err error) {
	for ; group != 0 && len(n.order) > 0 && epoch < max(o.Epochs, o.MaxEpochs); epoch++ {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		Shuffle(n.order, o.Seed, uint64(epoch)<<4+uint64(bits.TrailingZeros16(group)))
		sums.Visits += int64(len(n.order)) * int64(p.X.Cols+1)
		n.pass()
		ended := uint16(0)
		for m := group; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			n.upper[l], n.lower[l] = shrinkBounds(n.newUpper[l], n.newLower[l])
			if epoch+1 >= o.Epochs && n.estimate[l] <= o.InnerGap {
				ended |= 1 << l
			}
		}
		group, done = group&^ended, done|ended
		n.drop(ended)
		sums.Epochs = max(sums.Epochs, epoch+1)
		if epoch+1 < max(o.Epochs, o.MaxEpochs) {
			n.extrapolate(group)
		}
	}
	for _, x := range n.estimate {
		sums.Estimate += x
	}
	return done, nil
}

// lay lays out the rows that the lanes of group visit, with their bounds and weights.
func (n *laneDescent[T]) lay(t *dualSolver, d *descent[T], dual [][Lanes]T, group uint16) {
	n.lines = (t.p.X.Cols + 1 + 15) / 16
	n.from, n.row, n.order = n.from[:0], n.row[:0], n.order[:0]
	for _, k := range d.order {
		for m := t.refs[k].active & group; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			c := T(t.p.Loss.kernelC(t.rowC(t.rows[k], t.pos[k], l)))
			n.from = append(n.from, uint64(k)<<4|uint64(l))
			n.order = append(n.order, uint32(len(n.row)))
			n.row = append(n.row, laneRow[T]{dual: dual[k][l], c: c, step: T(t.refs[k].scale), lane: uint32(l)})
		}
	}
	n.x = resized(n.x, len(n.row)*n.lines)
	clear(n.x)
	for i, from := range n.from {
		r, sign := &t.refs[from>>4], float32(1)
		if r.pos>>(from&15)&1 == 0 {
			sign = -1
		}
		x := unsafe.Slice(&n.x[i*n.lines][0], 16*n.lines)
		val := unsafe.Slice(r.val, r.n)
		for j, f := range unsafe.Slice(r.idx, r.n) {
			x[f] += sign * val[j]
		}
		x[t.p.X.Cols] = sign * t.p.Bias
	}
	n.layWeights(d, group)
	n.passes = 0
}

// weights returns the weights of lane l.
func (n *laneDescent[T]) weights(l int) [][16]T { return n.w[l*n.lines : (l+1)*n.lines] }

// layWeights copies the group's weights and bounds from the tile.
func (n *laneDescent[T]) layWeights(d *descent[T], group uint16) {
	n.w = resized(n.w, Lanes*n.lines)
	clear(n.w)
	n.estimate = [Lanes]float64{}
	tile := unsafe.Slice(d.w, d.features)
	for m := group; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		w := unsafe.Slice(&n.w[l*n.lines][0], 16*n.lines)
		for f := range tile {
			w[f] = tile[f][l]
		}
		n.upper[l], n.lower[l], n.estimate[l] = d.upper[l], d.lower[l], d.estimate[l]
	}
}

// pass runs an epoch over the rows in order, and removes the rows that their lanes dropped from it.
func (n *laneDescent[T]) pass() {
	inf := T(math.Inf(1))
	for l := range Lanes {
		n.newUpper[l], n.newLower[l], n.estimate[l] = -inf, inf, 0
	}
	if n.passes++; n.passes > leapFrom {
		n.moving = append(n.moving[:0], n.order...)
	}
	e := n.laneArgs
	left := 0
	for rest := n.order; len(rest) > 0; rest = rest[e.n:] {
		e.order, e.n, e.kept = &rest[0], min(len(rest), visitRowsAtMost), &n.order[left]
		e.x, e.rows, e.w = &n.x[0], &n.row[0], &n.w[0]
		n.visit(&e)
		left += e.left
	}
	n.laneArgs = e
	n.order = n.order[:left]
}

// extrapolate takes a step of Nesterov's accelerated gradient method (Beck, Teboulle 2009): it
// moves the duals, within their box, and the weights further in the direction in which the last
// pass moved them. A lane for which this direction turned back restarts its momentum (O'Donoghue,
// Candes 2015).
//
// Rows that the pass dropped stay where they are: they lie at the bound that they have reached.
func (n *laneDescent[T]) extrapolate(group uint16) {
	if n.passes < leapFrom {
		return
	}
	if n.passes == leapFrom {
		n.then, n.last = resized(n.then, len(n.row)), resized(n.last, len(n.w))
		for i := range n.row {
			n.then[i] = laneThen[T]{n.row[i].dual, n.row[i].dual}
		}
		copy(n.last, n.w)
		for l := range n.t {
			n.t[l] = 1
		}
		return
	}
	var turn, beta [Lanes]T
	for _, i := range n.moving {
		r, then := &n.row[i], &n.then[i]
		turn[r.lane&15] += T(T(then.start-r.dual) * T(r.dual-then.end))
	}
	for m := group; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		if turn[l] > 0 {
			n.t[l] = 1
		}
		next := T(1+math.Sqrt(float64(1+T(4*T(n.t[l]*n.t[l]))))) / 2
		beta[l], n.t[l] = (n.t[l]-1)/next, next
		w, last := n.weights(l), n.last[l*n.lines:]
		for j := range w {
			for k, x := range &w[j] {
				w[j][k] += T(beta[l] * T(x-last[j][k]))
				last[j][k] = x
			}
		}
	}
	for _, i := range n.moving {
		r, then := &n.row[i], &n.then[i]
		way := T(beta[r.lane&15] * T(r.dual-then.end))
		then.end = r.dual
		if way != 0 {
			n.beyond(i, way)
		}
		then.start = r.dual
	}
}

// beyond moves the dual of row i by way, cut off at its box. The weights have already moved as if
// there were no box, so what was cut off is taken out of them.
func (n *laneDescent[T]) beyond(i uint32, way T) {
	r := &n.row[i]
	free := r.dual + way
	r.dual = min(max(free, 0), r.c)
	back := r.dual - free
	if back == 0 {
		return
	}
	w, x := n.weights(int(r.lane)), n.x[int(i)*n.lines:]
	for j := range w {
		for k, v := range &x[j] {
			w[j][k] += T(back * T(v))
		}
	}
}

// laneThen holds two earlier duals of a row, which extrapolate needs: the dual at the end of the
// previous pass, and the dual at the start of the last pass.
type laneThen[T real] struct{ end, start T }

// drop removes the rows of those lanes that have ended.
func (n *laneDescent[T]) drop(done uint16) {
	if done == 0 {
		return
	}
	kept := n.order[:0]
	for _, k := range n.order {
		if done>>n.row[k].lane&1 == 0 {
			kept = append(kept, k)
		}
	}
	n.order = kept
}

// keep copies the duals back into the working list.
func (n *laneDescent[T]) keep(t *dualSolver, dual [][Lanes]T) {
	for i, from := range n.from {
		if a := &dual[from>>4][from&15]; *a != n.row[i].dual {
			*a = n.row[i].dual
			t.refs[from>>4].moved = 1
		}
	}
}

// laneRow is a row that one lane visits.
type laneRow[T real] struct {
	dual T
	c    T // its upper bound
	step T // 1/||x||^2
	lane uint32
}

// laneArgs is the argument of a lane kernel: a pass of dual coordinate descent over rows of up to
// sixteen lanes. Assembly knows its layout, as it does that of visitArgs.
type laneArgs[T real] struct {
	order *uint32 // numbers of the n rows
	n     int
	// kept gets the numbers of the left rows that stay. It may equal order.
	kept *uint32
	left int
	// x holds y_i x_i of each row and then the bias, filled up with zeros to lines times sixteen.
	x     *[16]float32
	lines int
	rows  *laneRow[T]
	w     *[16]T // of each lane, as long as a row

	// upper and lower are the shrink bounds: last epoch's largest and smallest projected gradient.
	upper, lower       [Lanes]T
	newUpper, newLower [Lanes]T
	// estimate is the sum of InnerGap over the rows as they were visited.
	estimate [Lanes]float64
}

// visitLanes does what visitRows does for the hinge, with rows of one lane each. A score is sixteen
// partial sums, of every sixteenth feature. Its halves are added to each other until one sum is
// left.
func visitLanes[T real](e *laneArgs[T]) {
	lines := uintptr(e.lines)
	kept := unsafe.Slice(e.kept, e.n)
	e.left = 0
	for _, k := range unsafe.Slice(e.order, e.n) {
		r := (*laneRow[T])(unsafe.Add(unsafe.Pointer(e.rows), uintptr(k)*unsafe.Sizeof(laneRow[T]{})))
		x := unsafe.Slice((*[16]float32)(unsafe.Add(unsafe.Pointer(e.x), uintptr(k)*lines*64)), lines)
		w := unsafe.Slice((*[16]T)(unsafe.Add(unsafe.Pointer(e.w), uintptr(r.lane)*lines*unsafe.Sizeof([16]T{}))), lines)
		l := r.lane & 15
		m := laneScore(x, w) - 1
		h := T(0)
		if -m > 0 {
			h = -m
		}
		e.estimate[l] += float64(T(r.c*h) + T(r.dual*m))
		low, high := r.dual == 0, r.dual == r.c && r.dual != 0
		if low && m > e.upper[l] || high && m < e.lower[l] {
			continue
		}
		kept[e.left] = k
		e.left++
		p := m
		if low && !(m < 0) || high && !(m > 0) {
			p = 0
		}
		if p > e.newUpper[l] {
			e.newUpper[l] = p
		}
		if p < e.newLower[l] {
			e.newLower[l] = p
		}
		now := r.dual - T(m*r.step)
		if !(now > 0) {
			now = 0
		}
		if !(now < r.c) {
			now = r.c
		}
		if now == r.dual {
			continue
		}
		delta := now - r.dual
		r.dual = now
		for j := range w {
			for i := range w[j] {
				w[j][i] += T(delta * T(x[j][i]))
			}
		}
	}
}

// laneScore returns the score of a row, added up as visitLanes says.
func laneScore[T real](x [][16]float32, w [][16]T) T {
	var s [16]T
	for i := range s {
		s[i] = T(T(x[0][i]) * w[0][i])
	}
	for j := 1; j < len(w); j++ {
		for i := range s {
			s[i] += T(T(x[j][i]) * w[j][i])
		}
	}
	for half := 8; half > 0; half /= 2 {
		for i := range half {
			s[i] += s[i+half]
		}
	}
	return s[0]
}
