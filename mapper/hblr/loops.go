package hblr

import "unsafe"

// The loops over float32 in Go, which assembly equals: of lines of eight or sixteen lanes.

// productRows is the product kernel.
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
// adds p.z to the sum.
func turnColumns(e *columnLoop, line int) {
	tile := unsafe.Slice(e.tile, 2*e.n*line)
	residual, inverse, diagonal := unsafe.Slice(e.residual, e.n*line), unsafe.Slice(e.inverse, e.n*line), unsafe.Slice(e.diagonal, e.n*line)
	for f := range e.n {
		p, z := tile[2*f*line:][:line], tile[(2*f+1)*line:][:line]
		for l := range p {
			at := f*line + l
			x := float32(residual[at]*inverse[at]) + float32(e.factor[l]*p[l])
			p[l], z[l] = x, diagonal[at]*x
			e.sum[l] += float64(float64(x) * float64(z[l]))
		}
	}
}

// advanceColumns moves, with alpha the factor, the step by alpha p and the residual by -alpha z, and
// adds the residual's squared length in the metric 1 / (A + h) to the sum.
func advanceColumns(e *columnLoop, line int) {
	tile := unsafe.Slice(e.tile, 2*e.n*line)
	residual, inverse, step := unsafe.Slice(e.residual, e.n*line), unsafe.Slice(e.inverse, e.n*line), unsafe.Slice(e.step, e.n*line)
	for f := range e.n {
		p, z := tile[2*f*line:][:line], tile[(2*f+1)*line:][:line]
		for l := range p {
			at := f*line + l
			step[at] += float32(e.factor[l] * p[l])
			x := residual[at] - float32(e.factor[l]*z[l])
			residual[at] = x
			e.sum[l] += float64(float64(x) * float64(float32(x*inverse[at])))
		}
	}
}
