package mapper

import (
	"math"
	"math/bits"
	"unsafe"

	"taxon/internal/linalg/contribution"
)

// loops holds the loops of the logistic loss over tiles (or rows) of n lines. All implementations
// give equal bits: products are rounded before they are added, and sums are float64 over exact
// products. The Go functions of the same names show what each computes.
type loops struct {
	// product sets h += p and sum = p.h.
	product func(p, h *[Lanes]float32, n int, sum *[Lanes]float64)
	// advance sets d += alpha p, r -= alpha h and sum = r.r.
	advance func(p, h, r, d *[Lanes]float32, n int, alpha *[Lanes]float32, sum *[Lanes]float64)
	// turn sets p = r + beta p.
	turn func(p, r *[Lanes]float32, n int, beta *[Lanes]float32)
	// times sets m *= c.
	times func(m, c *[Lanes]float32, n int)
	// difference sets r = g - v, norm = r.r and size = g.g.
	difference func(g, v, r *[Lanes]float32, n int, norm, size *[Lanes]float64)
	// weigh and price are weighRows and priceRow.
	weigh func(e *weighArgs)
	price func(e *priceArgs)
	// along sets a += step b.
	along func(a, b *[Lanes]float32, n int, step *[Lanes]float32)
	// mixed sets d = a + share b.
	mixed func(d, a, b *[Lanes]float32, n int, share *[Lanes]float32)
	// scaled sets m = size c, with one size a line.
	scaled func(m, c *[Lanes]float32, size *float32, n int)
	// slopes sets vd = v.d, dd = d.d and slope = d.(v - g).
	slopes func(d, v, g *[Lanes]float32, n int, vd, dd, slope *[Lanes]float64)
	// outside sets gg = g.g and gr = g.r over the lines where at is 0.
	outside func(g, r *[Lanes]float32, at *uint32, n int, gg, gr *[Lanes]float64)
	// edges sets edge = (w-y).(w-y), and rest to the same of w - y - g.
	edges func(w, y, g *[Lanes]float32, n int, edge, rest *[Lanes]float64)
	// transposed transposes sixteen lines.
	transposed func(from *[Lanes]float32, to *[Lanes][Lanes]float32)
	// laneSums, laneCodes and above (rowsAbove) are described at the Go functions.
	laneSums  func(from *[Lanes][Lanes]float32, lanes uint64, sum *float32)
	laneCodes func(from *[Lanes][Lanes]float32, lanes uint64, share float32, code *uint8)
	above     func(c *[Lanes]float32, pos *uint16, n int, limit float32, rows *uint32, most int) (k int)
}

// goLoops is the implementation that every other one must equal to the bit.
var goLoops = loops{product, advance, turn, times, difference, weighRows, priceRow,
	along, mixed, scaled, slopes, outside, edges, transposed, laneSums, laneCodes, rowsAbove}

// product and the functions below up to edges are described at the fields of loops.
func product(p, h *[Lanes]float32, n int, sum *[Lanes]float64) {
	*sum = [Lanes]float64{}
	ps, hs := unsafe.Slice(p, n), unsafe.Slice(h, n)
	for f := range ps {
		p, h := &ps[f], &hs[f]
		for l := range p {
			x := p[l] + h[l]
			h[l] = x
			sum[l] += float64(float64(p[l]) * float64(x))
		}
	}
}

func advance(p, h, r, d *[Lanes]float32, n int, alpha *[Lanes]float32, sum *[Lanes]float64) {
	*sum = [Lanes]float64{}
	ps, hs, rs, ds := unsafe.Slice(p, n), unsafe.Slice(h, n), unsafe.Slice(r, n), unsafe.Slice(d, n)
	for f := range ps {
		p, h, r, d := &ps[f], &hs[f], &rs[f], &ds[f]
		for l := range p {
			d[l] += float32(alpha[l] * p[l])
			x := r[l] - float32(alpha[l]*h[l])
			r[l] = x
			sum[l] += float64(float64(x) * float64(x))
		}
	}
}

func turn(p, r *[Lanes]float32, n int, beta *[Lanes]float32) {
	ps, rs := unsafe.Slice(p, n), unsafe.Slice(r, n)
	for f := range ps {
		p, r := &ps[f], &rs[f]
		for l := range p {
			p[l] = r[l] + float32(beta[l]*p[l])
		}
	}
}

func times(m, c *[Lanes]float32, n int) {
	ms, cs := unsafe.Slice(m, n), unsafe.Slice(c, n)
	for i := range ms {
		m, c := &ms[i], &cs[i]
		for l := range m {
			m[l] *= c[l]
		}
	}
}

func difference(g, v, r *[Lanes]float32, n int, norm, size *[Lanes]float64) {
	*norm, *size = [Lanes]float64{}, [Lanes]float64{}
	gs, vs, rs := unsafe.Slice(g, n), unsafe.Slice(v, n), unsafe.Slice(r, n)
	for f := range gs {
		g, v, r := &gs[f], &vs[f], &rs[f]
		for l := range r {
			x := g[l] - v[l]
			r[l] = x
			norm[l] += float64(float64(x) * float64(x))
			size[l] += float64(float64(g[l]) * float64(g[l]))
		}
	}
}

// weighArgs is the argument of a weigh loop over n rows. Assembly knows its layout.
type weighArgs struct {
	score, move, coef, curve *[Lanes]float32
	pos                      *uint16 // positive lanes
	n                        int
	negC, posC, step         [Lanes]float32
	loss                     [Lanes]float64 // out
}

// weighRows sets, at the scores z = score + step move, each row's signed duals y a, a = C p,
// its curvatures a (1-p), and the sum of C loss.
func weighRows(e *weighArgs) {
	e.loss = [Lanes]float64{}
	score, move, pos := unsafe.Slice(e.score, e.n), unsafe.Slice(e.move, e.n), unsafe.Slice(e.pos, e.n)
	coef, curve := unsafe.Slice(e.coef, e.n), unsafe.Slice(e.curve, e.n)
	for i, positive := range pos {
		for l, x := range &score[i] {
			x = float32(e.step[l]*move[i][l]) + x
			c, y := e.posC[l], positive>>l&1
			if y == 0 {
				x, c = -x, e.negC[l]
			}
			p, q, loss := sigmoid(x)
			a := float32(c * p)
			curve[i][l] = float32(a * q)
			if y == 0 {
				a = -a
			}
			coef[i][l] = a
			e.loss[l] += float64(float32(c * loss))
		}
	}
}

// priceArgs is the argument of a price loop, for one row. Assembly knows its layout.
type priceArgs struct {
	score       *[Lanes]float64
	coef, curve *[Lanes]float32
	pos         uint64 // positive lanes
	negC, posC  [Lanes]float64
	// loss is added to.
	loss [Lanes]float64
}

// priceRow does what weighRows does for one row in float64, to a few units of its rounding, as the
// certificate needs it. It adds to the loss.
func priceRow(e *priceArgs) {
	for l, z := range e.score {
		c, y := e.posC[l], e.pos>>l&1
		if y == 0 {
			z, c = -z, e.negC[l]
		}
		x := expOfMinus(math.Abs(z))
		q := 1 / (1 + x)
		p := float64(x * q)
		loss := logOfOnePlus(x)
		if z < 0 {
			p, q, loss = q, p, loss-z
		}
		a := float64(c * p)
		e.curve[l] = float32(float64(a * q))
		e.loss[l] += float64(c * loss)
		if y == 0 {
			a = -a
		}
		e.coef[l] = float32(a)
	}
}

// expOfMinus returns exp(-x) for x >= 0, and exp(-708) beyond 708.
func expOfMinus(x float64) float64 {
	u := -x
	if u < -708 {
		u = -708
	}
	// Adding magic rounds to the nearest whole number, which is left in the last digits.
	const magic = 3 << 51
	t := float64(u*math.Log2E) + magic
	k := t - magic
	r := u - float64(k*6.93147180369123816490e-01)
	r -= float64(k * 1.90821492927058770002e-10)
	y := 1.0 / 6227020800
	for _, c := range [...]float64{1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
		1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 1.0 / 2, 1, 1} {
		y = float64(y*r) + c
	}
	return y * math.Float64frombits((math.Float64bits(t)+1023)<<52)
}

// logOfOnePlus returns log(1+x) for x in [0, 1], which is 2 artanh(x/(2+x)).
func logOfOnePlus(x float64) float64 {
	s := x / (2 + x)
	s2 := float64(s * s)
	h := 1.0 / 33
	for n := 31; n > 0; n -= 2 {
		h = float64(h*s2) + odd[n/2]
	}
	return (s + s) * h
}

// odd[j] is 1/(2j+1).
var odd = [...]float64{1, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19,
	1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27, 1.0 / 29, 1.0 / 31}

func along(a, b *[Lanes]float32, n int, step *[Lanes]float32) {
	as, bs := unsafe.Slice(a, n), unsafe.Slice(b, n)
	for f := range as {
		a, b := &as[f], &bs[f]
		for l := range a {
			a[l] += float32(step[l] * b[l])
		}
	}
}

func mixed(d, a, b *[Lanes]float32, n int, share *[Lanes]float32) {
	ds, as, bs := unsafe.Slice(d, n), unsafe.Slice(a, n), unsafe.Slice(b, n)
	for f := range ds {
		d, a, b := &ds[f], &as[f], &bs[f]
		for l := range d {
			d[l] = a[l] + float32(share[l]*b[l])
		}
	}
}

func scaled(m, c *[Lanes]float32, size *float32, n int) {
	ms, cs := unsafe.Slice(m, n), unsafe.Slice(c, n)
	for i, s := range unsafe.Slice(size, n) {
		m, c := &ms[i], &cs[i]
		for l := range m {
			m[l] = c[l] * s
		}
	}
}

func slopes(d, v, g *[Lanes]float32, n int, vd, dd, slope *[Lanes]float64) {
	*vd, *dd, *slope = [Lanes]float64{}, [Lanes]float64{}, [Lanes]float64{}
	ds, vs, gs := unsafe.Slice(d, n), unsafe.Slice(v, n), unsafe.Slice(g, n)
	for f := range ds {
		d, v, g := &ds[f], &vs[f], &gs[f]
		for l := range d {
			x := float64(d[l])
			vd[l] += float64(x * float64(v[l]))
			dd[l] += float64(x * x)
			slope[l] += float64(x * (float64(v[l]) - float64(g[l])))
		}
	}
}

func outside(g, r *[Lanes]float32, at *uint32, n int, gg, gr *[Lanes]float64) {
	*gg, *gr = [Lanes]float64{}, [Lanes]float64{}
	gs, rs := unsafe.Slice(g, n), unsafe.Slice(r, n)
	for f, at := range unsafe.Slice(at, n) {
		if at != 0 {
			continue
		}
		g, r := &gs[f], &rs[f]
		for l := range g {
			x := float64(g[l])
			gg[l] += float64(x * x)
			gr[l] += float64(x * float64(r[l]))
		}
	}
}

func edges(w, y, g *[Lanes]float32, n int, edge, rest *[Lanes]float64) {
	*edge, *rest = [Lanes]float64{}, [Lanes]float64{}
	ws, ys, gs := unsafe.Slice(w, n), unsafe.Slice(y, n), unsafe.Slice(g, n)
	for f := range ws {
		w, y, g := &ws[f], &ys[f], &gs[f]
		for l := range w {
			v := float64(w[l]) - float64(y[l])
			r := v - float64(g[l])
			edge[l] += float64(v * v)
			rest[l] += float64(r * r)
		}
	}
}

func transposed(from *[Lanes]float32, to *[Lanes][Lanes]float32) {
	for f, line := range unsafe.Slice(from, Lanes) {
		for l, x := range &line {
			to[l][f] = x
		}
	}
}

// laneSums adds up lanes of sixteen features in float64.
func laneSums(from *[Lanes][Lanes]float32, lanes uint64, sum *float32) {
	var all [Lanes]float64
	for ; lanes != 0; lanes &= lanes - 1 {
		for f, x := range &from[bits.TrailingZeros64(lanes)&15] {
			all[f] += float64(x)
		}
	}
	out := unsafe.Slice(sum, Lanes)
	for f, x := range &all {
		out[f] = float32(x)
	}
}

// laneCodes sets code, at each of sixteen features, to the code of the lanes' sum of degrees
// h/(1+h), where h is share times a bound.
func laneCodes(from *[Lanes][Lanes]float32, lanes uint64, share float32, code *uint8) {
	var all [Lanes]float32
	for ; lanes != 0; lanes &= lanes - 1 {
		for f, h := range &from[bits.TrailingZeros64(lanes)&15] {
			all[f] += degree(float32(share * h))
		}
	}
	out := unsafe.Slice(code, Lanes)
	for f, x := range &all {
		out[f] = contribution.Code(x)
	}
}

// rowsAbove lists the rows with a lane whose c is above limit, or with a positive lane. It returns
// their number, or -1 if there are more than most.
func rowsAbove(c *[Lanes]float32, pos *uint16, n int, limit float32, rows *uint32, most int) (k int) {
	cs, out := unsafe.Slice(c, n), unsafe.Slice(rows, most)
	for i, pos := range unsafe.Slice(pos, n) {
		in := pos != 0
		for _, x := range &cs[i] {
			in = in || x > limit
		}
		if !in {
			continue
		}
		if k == most {
			return -1
		}
		out[k] = uint32(i)
		k++
	}
	return k
}
