package plan

// history holds the inner products of the last points. Products describes the vectors. Entries
// beyond the number of older points are undefined.
type history struct {
	Older int                             // number of points before the current one
	SG    [Memory + 1]float64             // s_j.g_0
	SY    [Memory + 1][Memory + 1]float64 // s_i.y_j
	E     [Memory + 1][Memory + 1]float64 // u_i.(u_j/h), symmetric
}

// accept adds a new point, given its products with `older` older points.
func (h *history) accept(p *Products, older int) {
	for i := older; i >= 2; i-- {
		for j := older; j >= 2; j-- {
			h.SY[i][j], h.E[i][j] = h.SY[i-1][j-1], h.E[i-1][j-1]
		}
	}
	h.Older, h.SG = older, p.SG
	for j := range Memory + 1 {
		if j >= 1 {
			h.SY[1][j] = p.SY[j]
			h.E[1][j], h.E[j][1] = p.E1[j], p.E1[j]
		}
		if j >= 2 {
			h.SY[j][1] = p.YS[j]
		}
	}
	for j := range Memory + 1 {
		h.E[0][j], h.E[j][0] = p.E0[j], p.E0[j]
	}
}

// forget drops the older points, so that the current point becomes the first.
func (h *history) forget() { h.Older = 0 }

// direction returns the coefficients of the L-BFGS direction d = sum_j u[j] u_j/h + sum_j s[j] s_j,
// and its slope g_0.d.
//
// It runs the two-loop recursion (Nocedal, Wright, Numerical Optimization, algorithm 7.4) on
// coefficients. q = sum_j c_j u_j begins as g_0:
//
//	for j = 1..older:   a_j = s_j.q / s_j.y_j,  q -= a_j y_j
//	r = gamma q/h,      gamma = s_1.y_1 / y_1.(y_1/h)
//	for j = older..1:   b = y_j.r / s_j.y_j,    r += (a_j - b) s_j
//	d = -r
//
// Every s_j.y_j is at least ||s_j||^2, because P is strongly convex. If rounding violates that, or
// d is not a descent direction, the slope is not negative.
func (h *history) direction() (u, s []float64, slope float64) {
	n := h.Older
	c, b, a := make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
	c[0] = 1
	for j := 1; j <= n; j++ {
		sq := h.SG[j]
		for i := 1; i <= n; i++ {
			sq += float64(c[i] * h.SY[j][i])
		}
		a[j] = sq / h.SY[j][j]
		c[j] -= a[j]
	}
	gamma := 1.0
	if n > 0 {
		gamma = h.SY[1][1] / h.E[1][1]
	}
	for j := n; j >= 1; j-- {
		yr := 0.0
		for i := range n + 1 {
			yr += float64(gamma * float64(c[i]*h.E[j][i]))
			yr += float64(b[i] * h.SY[i][j])
		}
		b[j] += a[j] - yr/h.SY[j][j]
	}
	for j := range n + 1 {
		c[j] *= -gamma
		b[j] = -b[j]
		slope += float64(c[j] * h.E[0][j])
		slope += float64(b[j] * h.SG[j])
	}
	return c, b, slope
}
