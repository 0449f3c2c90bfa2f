package mapper

import "unsafe"

// tiles are the loops over tiles (or rows) of n lines. All implementations give equal
// bits: products are rounded before they are added, sums are float64 over exact products.
type tiles struct {
	product    func(p, h *[Lanes]float32, n int, sum *[Lanes]float64)                              // h += p; sum = p.h
	advance    func(p, h, r, d *[Lanes]float32, n int, alpha *[Lanes]float32, sum *[Lanes]float64) // d += alpha p; r -= alpha h; sum = r.r
	turn       func(p, r *[Lanes]float32, n int, beta *[Lanes]float32)                             // p = r + beta p
	times      func(m, c *[Lanes]float32, n int)                                                   // m *= c
	difference func(g, v, r *[Lanes]float32, n int, norm, size *[Lanes]float64)                    // r = g - v; norm = r.r, size = g.g
}

// goTiles is what every other implementation must equal.
var goTiles = tiles{product, advance, turn, times, difference}

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
