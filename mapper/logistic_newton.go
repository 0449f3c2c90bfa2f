package mapper

// newtonStep solves (I + X'DX) d = r by conjugate gradients, each lane to its own end; on
// many rows over a sample of them.
func (s *Solver) newtonStep(t *Scratch, e *logit, sums *Sums) {
	if s.draw(e) {
		s.sampledStep(t, e, sums)
		return
	}
	q := &quadratic{p: e.p, h: e.h, r: e.r, d: e.d, norm: e.gradient}
	e.conjugate(q, func() {
		s.scoreAll(t, e.p, e.move, sums)
		if len(e.move) > 0 {
			e.tiles.times(&e.move[0], &e.curve[0], len(e.move))
		}
		s.addAll(t, e.h, e.move, sums)
		e.within(e.h, nil)
	})
}

// quadratic is the memory of a solve with I + X'DX: r the right-hand side, then the
// residual; norm its square, lane by lane; d the solution.
type quadratic struct {
	p, h, r, d [][Lanes]float32
	norm       [Lanes]float64
}

// conjugate solves for d; apply sets h = X'DX p.
func (e *logit) conjugate(q *quadratic, apply func()) {
	rr, active := q.norm, e.running
	for f := range q.p {
		q.p[f], q.d[f] = q.r[f], [Lanes]float32{}
	}
	var alpha, beta [Lanes]float32
	for step := 0; step < conjugateSteps && active != 0; step++ {
		apply()
		var pap [Lanes]float64
		e.tiles.product(&q.p[0], &q.h[0], len(q.p), &pap)
		for l := range alpha {
			alpha[l] = 0
			if active>>l&1 != 0 && pap[l] > 0 {
				alpha[l] = float32(rr[l] / pap[l])
			}
		}
		var next [Lanes]float64
		e.tiles.advance(&q.p[0], &q.h[0], &q.r[0], &q.d[0], len(q.p), &alpha, &next)
		for l := range beta {
			beta[l] = 0
			if active>>l&1 == 0 {
				continue
			}
			if next[l] <= conjugateShare*conjugateShare*e.gradient[l] || !(pap[l] > 0) {
				active &^= 1 << l
				continue
			}
			beta[l] = float32(next[l] / rr[l])
			rr[l] = next[l]
		}
		e.tiles.turn(&q.p[0], &q.r[0], len(q.p), &beta)
	}
}
