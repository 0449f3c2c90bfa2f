package mapper

import (
	"context"
	"math"
	"math/bits"
	"unsafe"
)

// Descents on dense rows. Few of a block's lanes look at a row once the working sets are
// drawn, two of sixteen on average, and a visit of the tile costs all sixteen. Where rows
// have few zeros it is cheaper to go through each lane's rows alone, sixteen features at a time.
const (
	// denseColumns is the greatest number of columns, the bias's among them.
	denseColumns = 1024
	// denseAfter is the number of epochs on the tile before: rows that a few of them shrink
	// away need not be laid out.
	denseAfter = 4
	// denseLanes: the tile is faster from this many lanes a row on.
	denseLanes = 4
	// denseGroup lanes are descended together, in one random order: visits of different
	// lanes do not wait for each other, and the rows of more would not stay in the cache.
	denseGroup = 4
)

// byLane says whether the hinge's descents go on lane by lane: at least half of the values
// are there.
func (s *Solver) byLane() bool {
	return s.Loss == Hinge && s.X.Cols < denseColumns && 2*s.X.NNZ >= int64(s.X.Rows)*int64(s.X.Cols)
}

// dense is the memory of a descent on dense rows.
type dense[T real] struct {
	denseSweep[T]
	from  []uint64 // of each row, its place in the working list times 16, plus its lane
	row   []denseRow[T]
	x     [][16]float32
	w     [][16]T
	order []uint32
}

// crowded says whether so many of the running lanes look at the rows that the tile is the faster way.
func (t *Scratch) crowded(running uint16) bool {
	looks := 0
	for _, k := range t.order {
		looks += bits.OnesCount16(t.refs[k].active & running)
	}
	return looks >= denseLanes*len(t.order)
}

// descendDense goes on from where a descent on the tile e has come to in epoch, lanes in
// groups, and returns those that did not get to their aim.
func descendDense[T real](ctx context.Context, s *Solver, t *Scratch, e *sweep[T], dual [][Lanes]T, running uint16, epoch int, o Options, sums *Sums) (uint16, error) {
	n := denseOf[T](t)
	sums.Epochs, sums.Estimate = epoch, 0
	for first := 0; first < Lanes; first += denseGroup {
		group := running & ((1<<denseGroup - 1) << first)
		if group == 0 {
			continue
		}
		n.lay(s, t, e, dual, group)
		done, err := n.descend(ctx, s, group, epoch, o, sums)
		if err != nil {
			return running, err
		}
		running &^= done
		n.keep(t, dual)
	}
	return running, nil
}

// descend runs epochs over the rows laid out, as the descent on the tile does, and returns
// the lanes that got to their aim.
func (n *dense[T]) descend(ctx context.Context, s *Solver, group uint16, epoch int, o Options, sums *Sums) (done uint16, err error) {
	for ; group != 0 && len(n.order) > 0 && epoch < max(o.Epochs, o.MaxEpochs); epoch++ {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		shuffle(n.order, o.Seed, uint64(epoch)<<4+uint64(bits.TrailingZeros16(group)))
		sums.Visits += int64(len(n.order)) * int64(s.X.Cols+1)
		n.pass(&s.Kernel)
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
	}
	for _, x := range n.estimate {
		sums.Estimate += x
	}
	return done, nil
}

// denseOf is the scratch's memory for T.
func denseOf[T real](t *Scratch) *dense[T] {
	var none T
	if _, single := any(none).(float32); single {
		if t.dense32 == nil {
			t.dense32 = &dense[float32]{}
		}
		return any(t.dense32).(*dense[T])
	}
	if t.dense64 == nil {
		t.dense64 = &dense[float64]{}
	}
	return any(t.dense64).(*dense[T])
}

// lay lays out the rows that the lanes of group look at, their bounds and weights.
func (n *dense[T]) lay(s *Solver, t *Scratch, e *sweep[T], dual [][Lanes]T, group uint16) {
	n.lines = (s.X.Cols + 1 + 15) / 16
	n.from, n.row, n.order = n.from[:0], n.row[:0], n.order[:0]
	for _, k := range t.order {
		for m := t.refs[k].active & group; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			c := T(s.Loss.kernelC(s.rowC(t, t.rows[k], t.pos[k], l)))
			n.from = append(n.from, uint64(k)<<4|uint64(l))
			n.order = append(n.order, uint32(len(n.row)))
			n.row = append(n.row, denseRow[T]{dual: dual[k][l], c: c, step: T(t.refs[k].scale), lane: uint32(l)})
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
		x[s.X.Cols] = sign * s.Bias
	}
	n.layWeights(e, group)
}

// layWeights takes the group's weights and bounds out of the tile.
func (n *dense[T]) layWeights(e *sweep[T], group uint16) {
	n.w = resized(n.w, Lanes*n.lines)
	clear(n.w)
	n.estimate = [Lanes]float64{}
	tile := unsafe.Slice(e.w, e.features)
	for m := group; m != 0; m &= m - 1 {
		l := bits.TrailingZeros16(m) & 15
		w := unsafe.Slice(&n.w[l*n.lines][0], 16*n.lines)
		for f := range tile {
			w[f] = tile[f][l]
		}
		n.upper[l], n.lower[l], n.estimate[l] = e.upper[l], e.lower[l], e.estimate[l]
	}
}

// pass is an epoch over the rows in order; those that their lanes dropped are gone from it.
func (n *dense[T]) pass(kernel *Kernel) {
	inf := T(math.Inf(1))
	for l := range Lanes {
		n.newUpper[l], n.newLower[l], n.estimate[l] = -inf, inf, 0
	}
	e := n.denseSweep
	left := 0
	for rest := n.order; len(rest) > 0; rest = rest[e.n:] {
		e.order, e.n, e.kept = &rest[0], min(len(rest), visitRowsAtMost), &n.order[left]
		e.x, e.rows, e.w = &n.x[0], &n.row[0], &n.w[0]
		visitLanes(kernel, &e)
		left += e.left
	}
	n.denseSweep = e
	n.order = n.order[:left]
}

// drop leaves out the rows of lanes that are done.
func (n *dense[T]) drop(done uint16) {
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

// keep hands the duals back.
func (n *dense[T]) keep(t *Scratch, dual [][Lanes]T) {
	for i, from := range n.from {
		if a := &dual[from>>4][from&15]; *a != n.row[i].dual {
			*a = n.row[i].dual
			t.refs[from>>4].moved = 1
		}
	}
}
