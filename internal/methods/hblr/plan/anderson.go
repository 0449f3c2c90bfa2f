package plan

import "math"

// history holds the inner products of the residuals F = G(x) - x at the last points. Entry 0 is the
// current point.
type history struct {
	Older int                             // number of points before the current one
	FF    [Memory + 1][Memory + 1]float64 // F_i.F_j
	Rates [3]float64                      // estimates of 1 - rate from the last moves, 0 if unknown
}

// accept adds a new point. products are its inner products with `older` older points, and step is
// the squared length of the move to it.
func (h *history) accept(products [Memory + 1]float64, older int, step float64) {
	for i := older; i >= 1; i-- {
		for j := older; j >= 1; j-- {
			h.FF[i][j] = h.FF[i-1][j-1]
		}
	}
	for j := range older + 1 {
		h.FF[0][j], h.FF[j][0] = products[j], products[j]
	}
	h.Older = older
	if older > 0 && step > 0 {
		copy(h.Rates[1:], h.Rates[:])
		h.Rates[0] = math.Sqrt(max(h.FF[0][0]+h.FF[1][1]-2*h.FF[0][1], 0) / step)
	}
}

// mix computes the coefficients of the extrapolation. The next point is sum_j c_j G_j, where the c
// add up to 1 and minimise ||sum_j c_j F_j|| (Anderson 1965; Walker & Ni, SIAM J. Numer. Anal. 49,
// 2011). If the residual has grown, or if sum_j |c_j| exceeds far, it drops past rounds, if
// necessary down to the plain step c = (1).
func (h *history) mix(far float64) []float64 {
	for ; h.Older > 0; h.Older-- {
		if h.FF[0][0] > 4*h.FF[1][1] { // the residual's length has doubled
			h.Older = 0
			break
		}
		if c := h.weights(far); c != nil {
			return c
		}
	}
	return []float64{1}
}

const (
	// ridge regularises the system so that it is solvable. Its effect is of the order of rounding
	// errors.
	ridge = 1e-13
	// runaway bounds sum_j |c_j|, beyond which the differences have no significant digits.
	// narrowRunaway is the bound for points in float32, which have fewer digits.
	runaway, narrowRunaway = 1e5, 1e3
)

// weights solves for c. It returns nil if the solution is not reliable. With D_j = F_j - F_0 it is
// the least-squares problem min_g ||F_0 + sum_{j>=1} g_j D_j||, c_j = g_j, c_0 = 1 - sum g.
func (h *history) weights(far float64) []float64 {
	n := h.Older
	a, b := make([][]float64, n), make([]float64, n)
	ff := &h.FF
	for i := range n {
		a[i] = make([]float64, n)
		for j := range n {
			a[i][j] = ff[i+1][j+1] - ff[i+1][0] - ff[0][j+1] + ff[0][0]
		}
		b[i] = ff[0][0] - ff[0][i+1]
	}
	// Cholesky factor of the system scaled to a unit diagonal
	size := make([]float64, n)
	for i := range n {
		if size[i] = math.Sqrt(a[i][i]); !(size[i] > 0) {
			return nil
		}
	}
	for i := range n {
		b[i] /= size[i]
		for j := range i + 1 {
			x := a[i][j] / size[i] / size[j]
			if i == j {
				x += ridge
			}
			for k := range j {
				x -= float64(a[i][k] * a[j][k])
			}
			if i > j {
				a[i][j] = x / a[j][j]
				continue
			}
			if !(x > 0) {
				return nil
			}
			a[i][i] = math.Sqrt(x)
		}
	}
	for i := range n {
		for k := range i {
			b[i] -= float64(a[i][k] * b[k])
		}
		b[i] /= a[i][i]
	}
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			b[i] -= float64(a[k][i] * b[k])
		}
		b[i] /= a[i][i]
	}
	c, total := make([]float64, n+1), 0.0
	c[0] = 1
	for i := range n {
		c[i+1] = b[i] / size[i]
		c[0] -= c[i+1]
	}
	for _, x := range c {
		total += math.Abs(x)
	}
	if !(total <= far) {
		return nil
	}
	return c
}

// contraction estimates 1 - rate of the plain iteration, at most 1. It returns the least estimate
// that the last moves have given, or 0 if there is none. A move by s changes F by (G' - 1) s, which
// is short along directions in which G' is close to 1; the extrapolation treats such directions
// last.
func (h *history) contraction() float64 {
	least := 1.0
	for _, r := range h.Rates {
		if r == 0 {
			return 0
		}
		least = min(least, r)
	}
	return least
}

// move sets the coefficients of the next point.
func (d *driver) move() {
	far := runaway
	if d.plan.Narrow {
		far = narrowRunaway
	}
	h := &d.History
	if d.OfMeans != nil {
		h = d.OfMeans
	}
	d.Mix, d.Stage, d.Length = h.mix(far), stageMove, 0
	if d.Paced > 0 {
		d.Mix = []float64{1}
	}
	d.Sweep++
}
