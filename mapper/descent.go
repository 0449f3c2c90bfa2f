package mapper

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// visitRowsAtMost bounds the rows of a kernel's call: assembly cannot be preempted, and the garbage
// collector waits for it.
const visitRowsAtMost = 1 << 13

// descent is dual coordinate descent in the arithmetic T over a working list, all lanes of a row at
// a time.
type descent[T real] struct {
	*visitArgs[T]
	visit func(*visitArgs[T])
	// byLane takes over once few lanes visit a row. It is nil where rows are sparse.
	byLane *laneDescent[T]
	// order lists the places in the working list of the rows that some lane still visits.
	order []uint32
}

// run runs epochs over the list, each in a new random order. A lane ends when its estimated inner
// gap is at most o.InnerGap (not before o.Epochs, and at the latest after o.MaxEpochs). It returns
// the lanes that have not reached o.InnerGap. dual holds the listed rows' duals.
func (d *descent[T]) run(ctx context.Context, t *dualSolver, dual [][Lanes]T, o Options,
	sums *Sums) (running uint16, err error) {
	d.setConstants(t)
	running = t.lanes
	inf := T(math.Inf(1))
	for l := range Lanes {
		d.upper[l], d.lower[l] = inf, -inf
	}
	d.order = d.order[:0]
	for k := range t.refs {
		if t.refs[k].active != 0 {
			d.order = append(d.order, uint32(k))
		}
	}
	for epoch := 0; running != 0 && len(d.order) > 0 && epoch < max(o.Epochs, o.MaxEpochs); epoch++ {
		if err := ctx.Err(); err != nil {
			return running, err
		}
		if d.byLane != nil && epoch >= tileEpochs && !d.crowded(t, running) {
			return d.byLane.run(ctx, t, d, dual, running, epoch, o, sums)
		}
		Shuffle(d.order, o.Seed, uint64(epoch))
		for l := range Lanes {
			d.newUpper[l], d.newLower[l], d.estimate[l] = -inf, inf, 0
		}
		d.running, d.visits = uint64(running), 0
		d.rows, d.dual = &t.refs[0], &dual[0]
		e := d.visitArgs
		for rest := d.order; len(rest) > 0; rest = rest[e.n:] {
			e.order, e.n = unsafe.SliceData(rest), min(len(rest), visitRowsAtMost)
			if t.p.Weight != nil {
				e.n = 1
				d.weigh(t, rest[0])
			}
			d.visit(e)
		}
		sums.Visits += d.visits
		sums.Epochs = epoch + 1
		sums.Estimate = 0
		for l := range Lanes {
			d.upper[l], d.lower[l] = shrinkBounds(d.newUpper[l], d.newLower[l])
		}
		for l := range t.b.Slot {
			sums.Estimate += d.estimate[l]
			if epoch+1 >= o.Epochs && d.estimate[l] <= o.InnerGap {
				running &^= 1 << l
			}
		}
		d.compact(t)
	}
	return running, nil
}

// compact drops the rows that no lane visits any more.
func (d *descent[T]) compact(t *dualSolver) {
	kept := d.order[:0]
	for _, k := range d.order {
		if t.refs[k].active != 0 {
			kept = append(kept, k)
		}
	}
	d.order = kept
}

// crowded reports whether the tile is faster than going lane by lane, because many of the running
// lanes visit each row.
func (d *descent[T]) crowded(t *dualSolver, running uint16) bool {
	looks := 0
	for _, k := range d.order {
		looks += bits.OnesCount16(t.refs[k].active & running)
	}
	return looks >= crowdedLanes*len(d.order)
}

// onTile sets the weights that the descent works on and the kernel that visits them.
func (d *descent[T]) onTile(w [][Lanes]T, visit func(*visitArgs[T])) {
	d.w, d.last, d.features, d.visit = &w[0], &w[len(w)-1], len(w), visit
}

// setConstants copies the bias and each lane's C into the kernel's argument.
func (d *descent[T]) setConstants(t *dualSolver) {
	for l := range Lanes {
		d.bias[l] = T(t.p.Bias)
		d.cPos[l], d.softPos[l] = constants[T](t.p.Loss, t.cPos[l])
		d.cNeg[l], d.softNeg[l] = constants[T](t.p.Loss, t.c)
	}
}

// constants returns C and 1/(2C) as kernels take them. Kernels of the hinge ignore the second.
func constants[T real](loss Loss, c float64) (bound, soft T) {
	if loss == SquaredHinge {
		return T(c), T(1 / (2 * c))
	}
	return T(loss.kernelC(c)), 0
}

// weigh sets the lanes' C for listed row k, which has a weight of its own. Kernels take C by lane,
// so rows with weights are passed to them one by one.
func (d *descent[T]) weigh(t *dualSolver, k uint32) {
	w := t.p.Weight[t.rows[k]]
	c, soft := constants[T](t.p.Loss, w*t.c)
	for l := range Lanes {
		d.cNeg[l], d.softNeg[l] = c, soft
	}
	for m := t.refs[k].pos; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		d.cPos[l], d.softPos[l] = constants[T](t.p.Loss, w*t.cPos[l])
	}
}

// shrinkBounds returns the bounds of the next epoch, given the largest and the smallest projected
// gradient of this one. If no gradient has a sign, the bound on that side is infinite.
func shrinkBounds[T real](largest, smallest T) (upper, lower T) {
	if upper, lower = largest, smallest; upper <= 0 {
		upper = T(math.Inf(1))
	}
	if lower >= 0 {
		lower = T(math.Inf(-1))
	}
	return upper, lower
}

// Shuffle permutes order; the same seed and epoch give the same permutation.
func Shuffle(order []uint32, seed, epoch uint64) {
	r := rand.NewPCG(seed, epoch)
	for i := len(order) - 1; i > 0; i-- {
		hi, _ := bits.Mul64(r.Uint64(), uint64(i+1)) // uniform to within 2^-40
		order[i], order[hi] = order[hi], order[i]
	}
}

// narrowLanes is the number of lanes up to which a block descends in float32 on a tile of its own,
// a quarter as large. The results have equal bits. Visits wait for the tile's memory, and a wide
// tile of many features does not fit into a second-level cache.
const narrowLanes = 4

// narrowTile holds the weights of up to narrowLanes lanes.
type narrowTile struct {
	// visit is nil if the kernel has none.
	visit func(*visitArgs[float32])
	w     [][narrowLanes]float32
}

// take copies a tile's first lanes, and makes a descent run on the copy.
func (n *narrowTile) take(d *descent[float32], tile [][Lanes]float32) {
	// The kernel addresses the last line as one of the wide tile, hence the room after it.
	n.w = resized(n.w, len(tile)+Lanes/narrowLanes-1)
	for line := range tile {
		n.w[line] = [narrowLanes]float32(tile[line][:narrowLanes])
	}
	d.w = (*[Lanes]float32)(unsafe.Pointer(&n.w[0]))
	d.last = (*[Lanes]float32)(unsafe.Pointer(&n.w[len(tile)-1]))
	d.visit = n.visit
}
