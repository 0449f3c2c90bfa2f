package sparse

// Dot is x.y of dense vectors. It keeps four partial sums, in an order that gives the same bits
// on every machine.
func Dot(x, y []float64) float64 {
	y = y[:len(x)]
	var a, b, c, d float64
	for len(x) >= 4 {
		a += float64(x[0] * y[0])
		b += float64(x[1] * y[1])
		c += float64(x[2] * y[2])
		d += float64(x[3] * y[3])
		x, y = x[4:], y[4:]
	}
	for k := range x {
		a += float64(x[k] * y[k])
	}
	return (a + b) + (c + d)
}
