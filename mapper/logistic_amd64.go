//go:build amd64 && !purego

package mapper

// The assembly is in logistic_amd64.s. Each function's name says which field of loops it implements.

//go:noescape
func product512(p, h *[Lanes]float32, n int, sum *[Lanes]float64)

//go:noescape
func advance512(p, h, r, d *[Lanes]float32, n int, alpha *[Lanes]float32, sum *[Lanes]float64)

//go:noescape
func turn512(p, r *[Lanes]float32, n int, beta *[Lanes]float32)

//go:noescape
func times512(m, c *[Lanes]float32, n int)

//go:noescape
func difference512(a, v, r *[Lanes]float32, n int, norm, size *[Lanes]float64)

//go:noescape
func weigh512(e *weighArgs)

//go:noescape
func price512(e *priceArgs)

//go:noescape
func along512(a, b *[Lanes]float32, n int, step *[Lanes]float32)

//go:noescape
func mixed512(d, a, b *[Lanes]float32, n int, share *[Lanes]float32)

//go:noescape
func scaled512(m, c *[Lanes]float32, size *float32, n int)

//go:noescape
func slopes512(d, v, b *[Lanes]float32, n int, vd, dd, slope *[Lanes]float64)

//go:noescape
func outside512(b, r *[Lanes]float32, at *uint32, n int, gg, gr *[Lanes]float64)

//go:noescape
func edges512(w, y, b *[Lanes]float32, n int, edge, rest *[Lanes]float64)

//go:noescape
func transposed512(from *[Lanes]float32, to *[Lanes][Lanes]float32)

//go:noescape
func laneSums512(from *[Lanes][Lanes]float32, lanes uint64, sum *float32)

//go:noescape
func laneCodes512(from *[Lanes][Lanes]float32, lanes uint64, share float32, code *uint8)

//go:noescape
func above512(c *[Lanes]float32, pos *uint16, n int, limit float32, rows *uint32, most int) int

// loopsOf are the tile loops that go with a kernel.
func loopsOf(k Kernel) loops {
	if k.String() == "avx512" {
		return loops{product512, advance512, turn512, times512, difference512, weigh512, price512,
			along512, mixed512, scaled512, slopes512, outside512, edges512, transposed512, laneSums512, laneCodes512, above512}
	}
	return goLoops
}
