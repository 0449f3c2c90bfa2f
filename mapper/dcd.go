package mapper

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"unsafe"

	"taxon/internal/sparse"
)

// visitRowsAtMost bounds a kernel's call: assembly cannot be preempted, and the garbage
// collector waits for it.
const visitRowsAtMost = 1 << 13

// descend runs epochs of dual coordinate descent over the working list: visitRows in a
// new random order each. A lane ends when its estimated inner gap is at most o.InnerGap
// (not before o.Epochs, not after o.MaxEpochs); those that did not are returned. dual holds the listed rows' duals,
// e has the tile.
func descend[T real](ctx context.Context, s *Solver, t *Scratch, e *sweep[T], dual [][Lanes]T, lanes int, o Options, sums *Sums) (running uint16, err error) {
	setConstants(e, s, t)
	running = uint16(1<<lanes - 1)
	inf := T(math.Inf(1))
	for l := range Lanes {
		e.upper[l], e.lower[l] = inf, -inf
	}
	t.startOrder()
	for epoch := 0; running != 0 && len(t.order) > 0 && epoch < max(o.Epochs, o.MaxEpochs); epoch++ {
		if err := ctx.Err(); err != nil {
			return running, err
		}
		if epoch >= denseAfter && s.byLane() && !t.crowded(running) {
			return descendDense(ctx, s, t, e, dual, running, epoch, o, sums)
		}
		shuffle(t.order, o.Seed, uint64(epoch))
		for l := range Lanes {
			e.newUpper[l], e.newLower[l], e.estimate[l] = -inf, inf, 0
		}
		e.running, e.visits = uint64(running), 0
		e.rows, e.dual = &t.refs[0], &dual[0]
		for rest := t.order; len(rest) > 0; rest = rest[e.n:] {
			e.order, e.n = unsafe.SliceData(rest), min(len(rest), visitRowsAtMost)
			if s.Weight != nil {
				e.n = 1
				e.weigh(s, t, rest[0])
			}
			visit(&s.Kernel, e, s.Loss)
		}
		sums.Visits += e.visits
		sums.Epochs = epoch + 1
		sums.Estimate = 0
		e.nextBounds()
		for l := range lanes {
			sums.Estimate += e.estimate[l]
			if epoch+1 >= o.Epochs && e.estimate[l] <= o.InnerGap {
				running &^= 1 << l
			}
		}
		t.compactOrder()
	}
	return running, nil
}

// onTile says where the weights are.
func (e *sweep[T]) onTile(w [][Lanes]T) {
	e.w, e.last, e.features, e.narrow = &w[0], &w[len(w)-1], len(w), 0
}

// setConstants spreads the bias and each lane's C.
func setConstants[T real](e *sweep[T], s *Solver, t *Scratch) {
	for l := range Lanes {
		e.bias[l] = T(s.Bias)
		e.cPos[l], e.softPos[l] = constants[T](s.Loss, t.cPos[l])
		e.cNeg[l], e.softNeg[l] = constants[T](s.Loss, s.C)
	}
}

// constants are C and 1/(2C) as kernels see them.
func constants[T real](loss Loss, c float64) (bound, soft T) {
	if loss == SquaredHinge {
		return T(c), T(1 / (2 * c))
	}
	return T(loss.kernelC(c)), 0
}

// weigh sets the lanes' C for listed row k, which has a weight of its own. Kernels know C by lane:
// rows with weights go to them one by one.
func (e *sweep[T]) weigh(s *Solver, t *Scratch, k uint32) {
	w := s.Weight[t.rows[k]]
	c, soft := constants[T](s.Loss, w*s.C)
	for l := range Lanes {
		e.cNeg[l], e.softNeg[l] = c, soft
	}
	for m := t.refs[k].pos; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		e.cPos[l], e.softPos[l] = constants[T](s.Loss, w*t.cPos[l])
	}
}

func (e *sweep[T]) nextBounds() {
	for l := range Lanes {
		e.upper[l], e.lower[l] = shrinkBounds(e.newUpper[l], e.newLower[l])
	}
}

// shrinkBounds are the bounds of the epoch behind one with these largest and smallest
// projected gradients.
func shrinkBounds[T real](largest, smallest T) (upper, lower T) {
	if upper, lower = largest, smallest; upper <= 0 {
		upper = T(math.Inf(1))
	}
	if lower >= 0 {
		lower = T(math.Inf(-1))
	}
	return upper, lower
}

// relaxation divides ||x_i||^2 in the squared hinge's steps: they go (||x_i||^2 + 1/(2C)) /
// (||x_i||^2/relaxation + 1/(2C)) times as far as the minimum along a dual, less than twice,
// so that none lowers D (successive over-relaxation). A lane's steps stay its own, whatever
// the C of others. Epochs to a gap of 1e-5 on news20 by how far steps go: 17.5 at 1, 16 at
// 1.1, 15 from 1.2 to 1.4.
const relaxation = 1.35

// prepare lays out the listed rows for the kernels.
func (s *Solver) prepare(t *Scratch) {
	t.refs = t.refs[:0]
	for k, i := range t.rows {
		shard := &s.X.Shards[i>>sparse.RowShift]
		at := int(i & (1<<sparse.RowShift - 1))
		from, to := shard.Begin[at], shard.Begin[at+1]
		r := rowRef{n: uint32(to - from), scale: float32(s.norm[i]), active: t.work[k], pos: t.pos[k]}
		if s.Loss == Hinge {
			r.scale = 1 / r.scale
		} else {
			r.scale = float32(s.norm[i] / relaxation)
		}
		if r.n > 0 {
			r.idx, r.val = &shard.Index[from], &shard.Value[from]
			r.room = uint16(min(uint64(len(shard.Index))-from, math.MaxUint16))
		}
		t.refs = append(t.refs, r)
	}
}

// startOrder lists the rows that a lane looks at.
func (t *Scratch) startOrder() {
	t.order = t.order[:0]
	for k := range t.refs {
		if t.refs[k].active != 0 {
			t.order = append(t.order, uint32(k))
		}
	}
}

// compactOrder drops the rows that no lane looks at any more.
func (t *Scratch) compactOrder() {
	kept := t.order[:0]
	for _, k := range t.order {
		if t.refs[k].active != 0 {
			kept = append(kept, k)
		}
	}
	t.order = kept
}

// shuffle permutes order; the same seed and epoch give the same permutation.
func shuffle(order []uint32, seed, epoch uint64) {
	r := rand.NewPCG(seed, epoch)
	for i := len(order) - 1; i > 0; i-- {
		hi, _ := bits.Mul64(r.Uint64(), uint64(i+1)) // uniform to within 2^-40: enough for an order
		order[i], order[hi] = order[hi], order[i]
	}
}
