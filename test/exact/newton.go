package exact

import "math"

// newton brackets the optimum of a problem with logistic loss by Newton's method on P, with steps
// halved until P decreases. The duals are p C at the resulting weights; their bound is sharp to
// second order.
func (p *Problem) newton(width float64) *Bracket {
	m := newInterior(p)
	best := &Bracket{Primal: math.Inf(1), Dual: math.Inf(-1)}
	value := p.Primal(m.w)
	for k, narrowed := 0, 0; k < maxIterations && k-narrowed < patience; k++ {
		best.Iterations = k
		if value < best.Primal {
			best.Primal, best.W, narrowed = value, copyRows(m.w), k
		}
		m.logisticDuals()
		if v := p.Dual(m.a); v > best.Dual {
			best.Dual, best.Duals, narrowed = v, copyRows(m.a), k
		}
		if best.Width() < width {
			break
		}
		d := m.newtonStep()
		step := 1.0
		for ; step > 1e-12; step /= 2 {
			next := copyRows(m.w)
			for n := range next {
				axpy(next[n], step, d[n])
			}
			if v := p.Primal(next); v <= value {
				m.w, value = next, v
				break
			}
		}
	}
	return best
}

// logisticDuals sets a = C / (1 + exp(y w.x)).
func (m *interior) logisticDuals() {
	for n := range m.nodes {
		for i := range m.a[n] {
			m.a[n][i] = m.c[n][i] / (1 + math.Exp(m.y[n][i]*dot(m.w[n], m.x[i])))
		}
	}
}

// newtonStep solves (L + sum_i C q (1-q) x_i x_i') d = -(L w - sum_i a_i y_i x_i).
func (m *interior) newtonStep() [][]float64 {
	size := m.p.Width()
	hessian, right := make([][][]float64, len(m.nodes)), zeros(len(m.nodes), size)
	m.pull(right, m.w)
	for n := range m.nodes {
		hessian[n] = zeros(size, size)
		for i, a := range m.a[n] {
			axpy(right[n], a*m.y[n][i], m.x[i])
			curve := a * (1 - a/m.c[n][i])
			for f, v := range m.x[i] {
				axpy(hessian[n][f], curve*v, m.x[i])
			}
		}
	}
	return m.solve(m.factor(hessian), right)
}
