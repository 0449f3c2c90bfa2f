package mapper

import "context"

// logit is the scratch of solves with logistic loss: dense tiles and rows, made when first
// needed. 448 bytes a feature and 256 bytes a row.
type logit struct {
	v, g, r, p, h, d         [][Lanes]float32 // tiles: w - y, sum a y x, and Newton's residual, direction, product, step
	score, move, coef, curve [][Lanes]float32 // rows: w.x, step.x, y a, C p (1-p)
	stiff                    [][Lanes]float32 // tile: bound of the loss's curvature by feature
	adding                   *adding
	tiles                    tiles
	running                  uint16 // lanes whose inner gap is still too large
	loss, gradient           [Lanes]float64
}

// Newton's method for the logistic loss. Constants change the path, never the optimum.
const (
	// conjugateSteps and conjugateShare end the conjugate gradients of a step, by number
	// and by the residual's share of the gradient.
	conjugateSteps = 12
	conjugateShare = 0.1
	// sufficient is Armijo's constant; halvings bounds the line search.
	sufficient = 1e-4
	halvings   = 20
	// below float32's digits a predicted decrease can't be seen in P: the step is taken.
	unseen = 1e-6
	// startShare: before any gap is known a lane ends at this share of 1/2 ||G||^2.
	startShare = 1e-3
)

// solveLogistic improves v = w - y by Newton's method with conjugate gradients (trust is
// by line search; Lin, Weng, Keerthi 2008 for the flat problem) on
//
//	min_v  f(v) = 1/2 ||v||^2 + sum_i C_i log(1 + exp(-y_i (y + v).x_i))
//	f'(v) = v - G,  G = sum_i a_i y_i x_i,  a_i = C_i / (1 + exp(y_i w.x_i))
//
// sixteen lanes sharing both products X p and X'(D X p) of an iteration. f is strongly
// convex, so f - f* <= 1/2 ||f'||^2, and that is also the duality gap at the duals a: the
// lanes end at it.
func (s *Solver) solveLogistic(ctx context.Context, t *Scratch, b *Block, warm *State, o Options) (*Result, error) {
	t.load(s, b, &State{Priced: true})
	defer t.unload(b)
	e := t.logistic(s)
	e.resume(warm, len(b.Slot))
	res := &Result{}
	e.running = uint16(1)<<len(b.Slot) - 1
	t.fillSmooth(b)
	if o.Epochs > 0 {
		s.scoreAll(t, t.w, e.score, &res.Sums)
		s.weigh(t, e, e.score, nil, nil)
		for k := 0; k < max(o.Epochs, o.MaxEpochs) && e.running != 0; k++ {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			s.addAll(t, e.g, e.coef, &res.Sums)
			e.gradients(o, k)
			if e.running == 0 {
				break
			}
			s.newtonStep(t, e, &res.Sums)
			s.search(t, e, &res.Sums)
			res.Sums.Epochs++
		}
		t.fillSmooth(b)
	}
	stiffness := o.Stiffness && !s.negative
	if o.Price {
		s.priceLogistic(t, e, b, &res.Sums)
		res.Gradients = e.contributions(b, e.g, false)
		for k := range res.Gradients {
			clear(res.Gradients[k].Stiff)
		}
	} else if stiffness {
		s.curvatures(t, e, &res.Sums)
	}
	res.Contributions = e.contributions(b, e.v, stiffness)
	res.State = e.save(len(b.Slot))
	return res, nil
}

// logistic returns the scratch's part for smooth solves.
func (t *Scratch) logistic(s *Solver) *logit {
	if t.logit == nil {
		d, n := len(t.w), s.X.Rows
		e := &logit{adding: &adding{}}
		for _, tile := range []*[][Lanes]float32{&e.v, &e.g, &e.r, &e.p, &e.h, &e.d, &e.stiff} {
			*tile = make([][Lanes]float32, d)
		}
		for _, rows := range []*[][Lanes]float32{&e.score, &e.move, &e.coef, &e.curve} {
			*rows = make([][Lanes]float32, n)
		}
		t.logit = e
	}
	t.logit.tiles = tilesOf(s.Kernel)
	return t.logit
}

// fillSmooth sets the tile w = y + v, rounded once.
func (t *Scratch) fillSmooth(b *Block) {
	t.fillWeights(b) // v of dual solves is empty here: w = y
	for f := range t.w {
		w, v := &t.w[f], &t.logit.v[f]
		for l := range w {
			w[l] += v[l]
		}
	}
}

// gradients sets r = -f' = G - v and decides which lanes go on.
func (e *logit) gradients(o Options, epoch int) {
	var norm, size [Lanes]float64
	e.tiles.difference(&e.g[0], &e.v[0], &e.r[0], len(e.g), &norm, &size)
	e.gradient = norm
	for l := range norm {
		enough := o.InnerGap
		switch {
		case enough > 0:
		case o.InnerShare > 0:
			enough = o.InnerShare * e.loss[l]
		default:
			enough = startShare * size[l] / 2
		}
		if norm[l]/2 <= enough && (epoch > 0 || o.InnerGap > 0) {
			e.running &^= 1 << l
		}
	}
}

// newtonStep solves (I + X' D X) d = r by conjugate gradients, each lane to its own end.
func (s *Solver) newtonStep(t *Scratch, e *logit, sums *Sums) {
	rr := e.gradient
	active := e.running
	for f := range e.p {
		e.p[f], e.d[f] = e.r[f], [Lanes]float32{}
	}
	var alpha, beta [Lanes]float32
	for step := 0; step < conjugateSteps && active != 0; step++ {
		s.scoreAll(t, e.p, e.move, sums)
		if len(e.move) > 0 {
			e.tiles.times(&e.move[0], &e.curve[0], len(e.move))
		}
		s.addAll(t, e.h, e.move, sums)
		var pap [Lanes]float64
		e.tiles.product(&e.p[0], &e.h[0], len(e.p), &pap)
		for l := range alpha {
			alpha[l] = 0
			if active>>l&1 != 0 && pap[l] > 0 {
				alpha[l] = float32(rr[l] / pap[l])
			}
		}
		var next [Lanes]float64
		e.tiles.advance(&e.p[0], &e.h[0], &e.r[0], &e.d[0], len(e.p), &alpha, &next)
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
		e.tiles.turn(&e.p[0], &e.r[0], len(e.p), &beta)
	}
}

// search moves v along d, halving a lane's step until f falls enough, and leaves the
// scores, duals and curvatures of where it stands.
func (s *Solver) search(t *Scratch, e *logit, sums *Sums) {
	s.scoreAll(t, e.d, e.move, sums)
	var vd, dd, slope, before [Lanes]float64
	for f := range e.d {
		d, v, g := &e.d[f], &e.v[f], &e.g[f]
		for l := range d {
			x := float64(d[l])
			vd[l] += float64(x * float64(v[l]))
			dd[l] += float64(x * x)
			slope[l] += float64(x * (float64(v[l]) - float64(g[l])))
		}
	}
	before = e.loss
	var step [Lanes]float32
	for l := range step {
		if e.running>>l&1 != 0 {
			step[l] = 1
		}
	}
	for range halvings {
		s.weigh(t, e, e.score, e.move, &step)
		again := false
		for l := range step {
			u := float64(step[l])
			if u == 0 {
				continue
			}
			change := e.loss[l] - before[l] + float64(u*vd[l]) + float64(u*u)*dd[l]/2
			if !(change <= sufficient*u*slope[l]) && !(-slope[l] <= unseen*before[l]) {
				step[l] /= 2
				again = true
			}
		}
		if !again {
			break
		}
	}
	for i := range e.score {
		z, m := &e.score[i], &e.move[i]
		for l := range z {
			z[l] += float32(step[l] * m[l])
		}
	}
	for f := range e.v {
		v, d := &e.v[f], &e.d[f]
		for l := range v {
			v[l] += float32(step[l] * d[l])
		}
	}
}
