package mapper

import "unsafe"

// loops are those of the logistic loss over tiles (or rows) of n lines. All implementations give equal
// bits: products are rounded before they are added, sums are float64 over exact products.
type loops struct {
	product    func(p, h *[Lanes]float32, n int, sum *[Lanes]float64)                              // h += p; sum = p.h
	advance    func(p, h, r, d *[Lanes]float32, n int, alpha *[Lanes]float32, sum *[Lanes]float64) // d += alpha p; r -= alpha h; sum = r.r
	turn       func(p, r *[Lanes]float32, n int, beta *[Lanes]float32)                             // p = r + beta p
	times      func(m, c *[Lanes]float32, n int)                                                   // m *= c
	difference func(g, v, r *[Lanes]float32, n int, norm, size *[Lanes]float64)                    // r = g - v; norm = r.r, size = g.g
	weigh      func(e *weighArgs)
}

// goLoops is what every other implementation must equal.
var goLoops = loops{product, advance, turn, times, difference, weighRows}

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

// weighArgs is the argument of a weigh loop over n rows. Its layout is known to assembly.
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
