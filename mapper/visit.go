package mapper

import (
	"math/bits"
	"unsafe"
)

// rowRef is a row of the working list as kernels see it.
type rowRef struct {
	idx *uint32
	val *float32
	// n is the number of nonzeros.
	n uint32
	// room is the number of entries from idx to the end of the shard, at most 65535: what may be
	// read ahead.
	room uint16
	// moved is set by kernels to a value other than 0 if a dual of the row has changed.
	moved uint16
	// scale is Loss.scale of ||x||^2.
	scale float32
	// active is the mask of the lanes that still visit the row.
	active uint16
	// pos is the mask of the lanes for which the row is positive.
	pos uint16
}

// visitArgs is the argument of a visiting kernel: a pass of dual coordinate descent over the rows
// in order. Kernels in assembly know its layout. Its sizes and offsets are repeated in
// internal/tools/kernelgen, and TestLayout compares both.
type visitArgs[T real] struct {
	order    *uint32   // n indices into rows and dual
	n        int       //
	rows     *rowRef   //
	dual     *[Lanes]T // of each listed row
	w        *[Lanes]T // the tile, features lines
	last     *[Lanes]T // its last line, the bias feature's
	running  uint64    // lanes that take part
	visits   int64     // out: nonzeros x lanes touched, added
	features int
	_        [7]int

	bias [Lanes]T // the bias feature's value, in every lane
	// upper and lower are the shrink bounds: the last epoch's largest and smallest projected
	// gradient.
	upper    [Lanes]T
	lower    [Lanes]T
	newUpper [Lanes]T // this epoch's
	newLower [Lanes]T
	// cPos and cNeg are C of a positive and of a negative row, which are the hinge's bounds.
	cPos, cNeg [Lanes]T
	softPos    [Lanes]T // 1/(2C) of the squared hinge
	softNeg    [Lanes]T //
	// estimate is the sum of InnerGap over the rows as they were visited.
	estimate [Lanes]float64
}

// visitRows visits e.n rows:
//
//	for rows i in order, lanes l active on i:
//	  m = y_il w_l.x_i - 1
//	  estimate_l += C max(-m,0) + a_il m          (squared hinge: C max(-m,0)^2 + a_il m + a_il^2/(4C))
//	  G = m (+ a_il/(2C))
//	  a_il = 0 and G > upper_l, or a_il = C and G < lower_l: the lane drops the row
//	  a_il <- min(max(a_il - G/(||x_i||^2 (+ 1/(2C))), 0), C)   (squared hinge: no upper bound)
//	  w_l += (change of a_il) y_il x_i
//
// [TKDD] section 4 with Algorithm 3 of Hsieh et al. 2008. A row where no lane moves costs
// its score alone.
func visitRows[T real](e *visitArgs[T], loss Loss) {
	rows := e.rows
	w := unsafe.Slice(e.w, e.features)
	var score, delta [Lanes]T
	for _, k := range unsafe.Slice(e.order, e.n) {
		r := (*rowRef)(unsafe.Add(unsafe.Pointer(rows), uintptr(k)*unsafe.Sizeof(rowRef{})))
		mask := r.active & uint16(e.running)
		if mask == 0 {
			continue
		}
		idx, val := unsafe.Slice(r.idx, r.n), unsafe.Slice(r.val, r.n)
		e.visits += int64(r.n+1) * int64(bits.OnesCount16(mask))
		scoreRow(w, idx, val, &e.bias, mask, &score)
		a := (*[Lanes]T)(unsafe.Add(unsafe.Pointer(e.dual), uintptr(k)*unsafe.Sizeof([Lanes]T{})))
		if changed := e.step(r, a, mask, loss, &score, &delta); changed != 0 {
			addRow(w, idx, val, &e.bias, changed, &delta)
		}
	}
}

func visitHinge[T real](e *visitArgs[T])   { visitRows(e, Hinge) }
func visitSquared[T real](e *visitArgs[T]) { visitRows(e, SquaredHinge) }

// step updates the duals a of the lanes in mask at row r, given their scores. It returns the mask
// of those that changed, and sets delta to what is to be added to w per unit of x.
func (e *visitArgs[T]) step(r *rowRef, a *[Lanes]T, mask uint16, loss Loss, score, delta *[Lanes]T) (changed uint16) {
	for ; mask != 0; mask &= mask - 1 {
		l := bits.TrailingZeros16(mask) & 15
		z, c, soft := -score[l], e.cNeg[l], e.softNeg[l]
		if r.pos>>l&1 != 0 {
			z, c, soft = score[l], e.cPos[l], e.softPos[l]
		}
		old, m := a[l], z-1
		g, h := m, T(0)
		if -m > 0 {
			h = -m
		}
		var gap T
		if loss == SquaredHinge {
			as := T(old * soft)
			g = m + as
			gap = T(T(c*T(h*h))+T(old*m)) + T(old*T(as*0.5))
		} else {
			gap = T(c*h) + T(old*m)
		}
		e.estimate[l] += float64(gap)
		low, high := old == 0, loss == Hinge && old == c && old != 0
		if low && g > e.upper[l] || high && g < e.lower[l] {
			r.active &^= 1 << l
			continue
		}
		p := g
		if low && !(g < 0) || high && !(g > 0) {
			p = 0
		}
		if p > e.newUpper[l] {
			e.newUpper[l] = p
		}
		if p < e.newLower[l] {
			e.newLower[l] = p
		}
		if p == 0 {
			continue
		}
		step := T(r.scale)
		if loss == SquaredHinge {
			step = 1 / (step + soft)
		}
		now := old - T(g*step)
		if !(now > 0) {
			now = 0
		}
		if loss == Hinge && !(now < c) {
			now = c
		}
		if now == old {
			continue
		}
		a[l] = now
		r.moved = 1
		changed |= 1 << l
		if delta[l] = now - old; r.pos>>l&1 == 0 {
			delta[l] = old - now
		}
	}
	return changed
}
