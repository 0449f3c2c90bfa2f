package solver

import (
	"math"
	"unsafe"
)

// The loops in Go. Assembly gives the same bits. Those over float32 have lines of eight or sixteen lanes.

// productRows is the product kernel in Go.
func productRows(e *product, line int) {
	begin, curve := unsafe.Slice(e.begin, e.n+1), unsafe.Slice(e.curve, e.n*line)
	index, value := unsafe.Slice(e.idx, e.entries), unsafe.Slice(e.val, e.entries)
	lines := func(f uint32) (p, z []float32) {
		both := unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(e.tile), 8*int(f)*line)), 2*line)
		return both[:line], both[line:]
	}
	last := unsafe.Slice(e.last, 2*line)
	var v [Lanes]float32
	for i := range e.n {
		idx, val := index[begin[i]:begin[i+1]], value[begin[i]:begin[i+1]]
		v = [Lanes]float32{}
		for k, f := range idx {
			p, _ := lines(f)
			for l, x := range p {
				v[l] += float32(val[k] * x)
			}
		}
		for l, c := range curve[i*line:][:line] {
			u := v[l] + float32(e.bias*last[l])
			v[l] = u * c
			e.sum[l] += float64(float64(u) * float64(v[l]))
			last[line+l] += float32(e.bias * v[l])
		}
		for k, f := range idx {
			_, z := lines(f)
			for l := range z {
				z[l] += float32(val[k] * v[l])
			}
		}
	}
}

// turnColumns sets, with beta the factor and r the residual, p = r / (A + h) + beta p and z = A p, and
// adds p.z to the sum; with v the pull, v.p to along.
func turnColumns(e *columnLoop, line int) {
	tile := unsafe.Slice(e.tile, 2*e.n*line)
	residual, inverse, diagonal := unsafe.Slice(e.residual, e.n*line), unsafe.Slice(e.inverse, e.n*line),
		unsafe.Slice(e.diagonal, e.n*line)
	pull := e.pulls(line)
	for f := range e.n {
		p, z := tile[2*f*line:][:line], tile[(2*f+1)*line:][:line]
		for l := range p {
			at := f*line + l
			x := float32(residual[at]*inverse[at]) + float32(e.factor[l]*p[l])
			p[l], z[l] = x, diagonal[at]*x
			e.sum[l] += float64(float64(x) * float64(z[l]))
			if pull != nil {
				e.along[l] += float64(float64(x) * float64(pull[at]))
			}
		}
	}
}

// advanceColumns moves, with alpha the factor, the step by alpha p and the residual by -alpha z,
// and adds the residual's squared length in the metric 1 / (A + h) to the sum. With v the pull, z
// is z + share v.
func advanceColumns(e *columnLoop, line int) {
	tile := unsafe.Slice(e.tile, 2*e.n*line)
	residual, inverse, step := unsafe.Slice(e.residual, e.n*line), unsafe.Slice(e.inverse, e.n*line),
		unsafe.Slice(e.step, e.n*line)
	pull := e.pulls(line)
	for f := range e.n {
		p, z := tile[2*f*line:][:line], tile[(2*f+1)*line:][:line]
		for l := range p {
			at := f*line + l
			step[at] += float32(e.factor[l] * p[l])
			z := z[l]
			if pull != nil {
				z += float32(e.share[l] * pull[at])
			}
			x := residual[at] - float32(e.factor[l]*z)
			residual[at] = x
			e.sum[l] += float64(float64(x) * float64(float32(x*inverse[at])))
		}
	}
}

// pulls returns the pull. It is nil if there is none.
func (e *columnLoop) pulls(line int) []float32 {
	if e.pull == nil {
		return nil
	}
	return unsafe.Slice(e.pull, e.n*line)
}

// lineLoop is the argument of the loops over n lines of float64. Assembly knows its layout.
type lineLoop struct {
	// n is the number of lines, and stride the bytes of one.
	n, stride int
	// place holds, for each line, either a uint32, where a value other than 0 skips the line, or a
	// float64 that is set.
	place                                     unsafe.Pointer
	precision, w, above, gradient, h, step, u *float64
	// slope and bend are phi' and phi''.
	slope, bend [Lanes]float64
	// length is that of a step.
	length [Lanes]float64
	// total is L, or 1 where there are no far rows.
	total [Lanes]float64
	// far and running are masks of the lanes with far rows, and of the running ones.
	far, running [Lanes]float64
	sum          [3][Lanes]float64
}

// mask sets a lane of a mask.
func mask(lanes *[Lanes]float64, l int) { lanes[l] = math.Float64frombits(math.MaxUint64) }

// masked returns x in the lanes of a mask, and 0 in the others.
func masked(lanes *[Lanes]float64, l int, x float64) float64 {
	return math.Float64frombits(math.Float64bits(lanes[l]) & math.Float64bits(x))
}

// loopsGo holds the loops in Go.
var loopsGo = loops{differentiateLines, differentiateFarLines, slopesLines, stepLines, eliminateLines, followLines,
	spansLines, bendsLines, totalsLines, doubtsLines}

// each calls visit for each place of each line, with the place's index and lane.
func (e *lineLoop) each(visit func(i, l int)) {
	for f := range e.n {
		if e.place != nil && unsafe.Slice((*uint32)(e.place), e.n)[f] != 0 {
			continue
		}
		line := e.stride / 8
		for l := range line {
			visit(f*line+l, l)
		}
	}
}

// of returns a field's vector.
func (e *lineLoop) of(x *float64) []float64 { return unsafe.Slice(x, e.n*e.stride/8) }

// differentiateLines replaces gradient, the gradient of the log-likelihood, by g = A (w-m) -
// gradient, the gradient of the whole objective, and adds g^2/(A+h), g^2/A and A (w-m)^2 to the
// sums.
func differentiateLines(e *lineLoop) {
	precision, w, above, gradient, h := e.of(e.precision), e.of(e.w), e.of(e.above), e.of(e.gradient), e.of(e.h)
	e.each(func(i, l int) {
		a, d := precision[i], w[i]-above[i]
		g := float64(a*d) - gradient[i]
		gradient[i] = g
		e.sum[0][l] += float64(g*g) / (a + h[i])
		e.sum[1][l] += float64(g*g) / a
		e.sum[2][l] += float64(float64(d*d) * a)
	})
}

// differentiateFarLines does what differentiateLines does, with the far rows' gradient and h.
func differentiateFarLines(e *lineLoop) {
	precision, w, above, gradient, h, u := e.of(e.precision), e.of(e.w), e.of(e.above), e.of(e.gradient), e.of(e.h),
		e.of(e.u)
	e.each(func(i, l int) {
		a, d := precision[i], w[i]-above[i]
		g := float64(a*d) - gradient[i] + float64(e.slope[l]*u[i])
		h[i] += float64(e.bend[l] * float64(u[i]*u[i]))
		gradient[i] = g
		e.sum[0][l] += float64(g*g) / (a + h[i])
		e.sum[1][l] += float64(g*g) / a
		e.sum[2][l] += float64(float64(d*d) * a)
	})
}

// spansLines adds w'Aw and w'Am to the sums.
func spansLines(e *lineLoop) {
	precision, w, above := e.of(e.precision), e.of(e.w), e.of(e.above)
	e.each(func(i, l int) {
		a := float64(precision[i] * w[i])
		e.sum[0][l] += float64(a * w[i])
		e.sum[1][l] += float64(a * above[i])
	})
}

// bendsLines adds gradient w and h w^2 to the sums, for lines of rows: (t - p) z and p (1-p) z^2 of
// scores z.
func bendsLines(e *lineLoop) {
	gradient, h, w := e.of(e.gradient), e.of(e.h), e.of(e.w)
	e.each(func(i, l int) {
		e.sum[0][l] += float64(gradient[i] * w[i])
		e.sum[1][l] += float64(h[i] * float64(w[i]*w[i]))
	})
}

// totalsLines adds the lines up.
func totalsLines(e *lineLoop) {
	w := e.of(e.w)
	e.each(func(i, l int) { e.sum[0][l] += w[i] })
}

// doubtsLines raises each line's place to the greatest h of a lane times its length.
func doubtsLines(e *lineLoop) {
	h, out, line := e.of(e.h), unsafe.Slice((*float64)(e.place), e.n), e.stride/8
	for i := range out {
		for l, x := range h[i*line:][:line] {
			out[i] = max(out[i], float64(x*e.length[l]))
		}
	}
}

// slopesLines adds step.gradient, A(w-m).step and step.A step to the sums.
func slopesLines(e *lineLoop) {
	precision, w, above, gradient, step := e.of(e.precision), e.of(e.w), e.of(e.above), e.of(e.gradient), e.of(e.step)
	e.each(func(i, l int) {
		d := step[i]
		e.sum[0][l] += float64(d * gradient[i])
		ad := float64(precision[i] * d)
		e.sum[1][l] += float64(ad * (w[i] - above[i]))
		e.sum[2][l] += float64(ad * d)
	})
}

// stepLines moves w by the step times its length.
func stepLines(e *lineLoop) {
	w, step := e.of(e.w), e.of(e.step)
	e.each(func(i, l int) { w[i] += float64(e.length[l] * step[i]) })
}

// pull returns A (w-m) at a place, u and A + D.
func (e *lineLoop) pull(precision, w, above, gradient, h []float64, i, l int) (own, u, more float64) {
	own = float64(precision[i] * (w[i] - above[i]))
	u = masked(&e.far, l, gradient[i]-own)
	return own, u, precision[i] + masked(&e.far, l, max(h[i]-float64(u*u)/e.total[l], 0))
}

// eliminateLines adds the shares of features that no near row has to b and c.
func eliminateLines(e *lineLoop) {
	precision, w, above, gradient, h := e.of(e.precision), e.of(e.w), e.of(e.above), e.of(e.gradient), e.of(e.h)
	e.each(func(i, l int) {
		own, u, more := e.pull(precision, w, above, gradient, h, i, l)
		e.sum[0][l] += float64(u*u) / more
		e.sum[1][l] -= float64(u*own) / more
	})
}

// followLines sets the steps of features that no near row has.
func followLines(e *lineLoop) {
	precision, w, above, gradient, h, step := e.of(e.precision), e.of(e.w), e.of(e.above), e.of(e.gradient), e.of(e.h),
		e.of(e.step)
	e.each(func(i, l int) {
		own, u, more := e.pull(precision, w, above, gradient, h, i, l)
		step[i] = masked(&e.running, l, -(own+float64(e.slope[l]*u))/more)
	})
}
