package mapper

import "unsafe"

// denseRow is a row that one lane looks at.
type denseRow[T real] struct {
	dual T
	c    T // its upper bound
	step T // 1/||x||^2
	lane uint32
}

// denseSweep is the argument of a dense visiting kernel: a pass of dual coordinate descent
// over rows of up to sixteen lanes. Its layout is known to assembly, as sweep's.
type denseSweep[T real] struct {
	order *uint32      // n numbers of rows
	n     int          //
	kept  *uint32      // out: those that stay; may be order itself
	left  int          // out: how many
	x     *[16]float32 // y_i x_i of each row, the bias behind it, filled up with zeros
	lines int          // sixteens of a row
	rows  *denseRow[T]
	w     *[16]T // of each lane, as long as a row

	upper, lower       [Lanes]T // shrink bounds: last epoch's largest and smallest projected gradient
	newUpper, newLower [Lanes]T
	estimate           [Lanes]float64 // sum of InnerGap over the rows as they were visited
}

// visitDense is visitRows for the hinge, row by row of one lane each. A score is sixteen
// partial sums, of every sixteenth feature; halves are added to each other until one is left.
func visitDense[T real](e *denseSweep[T]) {
	lines := uintptr(e.lines)
	kept := unsafe.Slice(e.kept, e.n)
	e.left = 0
	for _, k := range unsafe.Slice(e.order, e.n) {
		r := (*denseRow[T])(unsafe.Add(unsafe.Pointer(e.rows), uintptr(k)*unsafe.Sizeof(denseRow[T]{})))
		x := unsafe.Slice((*[16]float32)(unsafe.Add(unsafe.Pointer(e.x), uintptr(k)*lines*64)), lines)
		w := unsafe.Slice((*[16]T)(unsafe.Add(unsafe.Pointer(e.w), uintptr(r.lane)*lines*unsafe.Sizeof([16]T{}))), lines)
		l := r.lane & 15
		m := denseScore(x, w) - 1
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

func denseScore[T real](x [][16]float32, w [][16]T) T {
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
