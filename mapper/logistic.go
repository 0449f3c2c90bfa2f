package mapper

import (
	"cmp"
	"context"
	"math"
	"slices"
	"unsafe"

	"taxon/internal/linalg/conjugate"
	"taxon/internal/linalg/sparse"
)

// logisticSolver solves blocks with the logistic loss. In addition to the tile, it takes 448 bytes
// per feature and 256 bytes per row. The near rows take another 448 bytes per feature and 258 bytes
// per row.
type logisticSolver struct {
	tile
	// loops are the loops over tiles and rows for this CPU.
	loops loops
	// v is w - y, and g is G = sum a y x. The others are the residual, direction, product and step
	// of Newton's method. All are tiles.
	v, g, r, dir, h, d [][Lanes]float32
	// scores are w.x, move is step.x, coef is y a, and curve is C p (1-p). All are per row.
	scores, move, coef, curve [][Lanes]float32
	// bound is the bound of the loss's curvature, feature by feature.
	bound [][Lanes]float32
	// near is the block's problem on its near rows.
	near nearRows
	// system is that of a step, of all rows or of the near ones.
	system system
	add    *addArgs
	// running is the mask of the lanes whose inner gap is still too large.
	running uint16
	// loss is each lane's sum of losses, and gradient its ||f'||^2.
	loss, gradient [Lanes]float64
	args           weighArgs
	// share is Options.Share.
	share float32
}

func newLogisticSolver(p *Problem) *logisticSolver {
	e := &logisticSolver{tile: newTile(p), loops: loopsOf(p.Kernel), add: &addArgs{}}
	for _, tile := range []*[][Lanes]float32{&e.v, &e.g, &e.r, &e.dir, &e.h, &e.d, &e.bound} {
		*tile = make([][Lanes]float32, len(e.w))
	}
	for _, rows := range []*[][Lanes]float32{&e.scores, &e.move, &e.coef, &e.curve} {
		*rows = make([][Lanes]float32, p.X.Rows)
	}
	return e
}

// These constants determine the steps of Newton's method for the logistic loss. They change the
// path, never the optimum.
const (
	// conjugateSteps and conjugateShare end the conjugate gradients of a Newton step.
	// conjugateSteps bounds their number, and conjugateShare is the length of the residual, as a
	// share of the gradient's, at which they end.
	conjugateSteps = 12
	conjugateShare = 0.1
	// sufficient is Armijo's constant, and halvings bounds the line search.
	sufficient = 1e-4
	halvings   = 20
	// unseen is a share of P. A smaller predicted decrease is lost in the rounding of float32, so
	// the line search accepts such a step.
	unseen = 1e-6
	// smallShare is the share of the loss up to which 1/2 ||f'||^2 is small; see small.
	smallShare = 0.5
	// startShare is the share of 1/2 ||G||^2 at which a lane ends while no gap is known.
	startShare = 1e-3
)

// Solve improves v = w - y by Newton's method with conjugate gradients and a line search (Lin,
// Weng, Keerthi 2008 for the flat problem) on
//
//	min_v  f(v) = 1/2 ||v||^2 + sum_i C_i log(1 + exp(-y_i (y + v).x_i))
//	f'(v) = v - G,  G = sum_i a_i y_i x_i,  a_i = C_i / (1 + exp(y_i w.x_i))
//
// Sixteen lanes share both products of an iteration, X p and X'(D X p). f is strongly convex, so
// f - f* <= 1/2 ||f'||^2, which is also the duality gap at the duals a. A lane ends when this is
// small enough.
func (e *logisticSolver) Solve(ctx context.Context, b *Block, warm *State, o Options) (*Result, error) {
	e.open(b)
	defer e.close()
	e.resume(warm)
	res := &Result{}
	e.running = e.lanes
	e.fillSmooth()
	unlooked := false // the far rows were not evaluated
	if o.Epochs > 0 {
		e.scoreAll(e.p.X, e.w, e.scores, &res.Sums)
		e.loss = e.weigh(e.all(), nil)
		for k := 0; k < max(o.Epochs, o.MaxEpochs) && e.running != 0; k++ {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			e.addAll(e.p.X, e.g, e.coef, &res.Sums)
			enough := e.gradients(o, k)
			if e.running == 0 {
				break
			}
			res.Sums.Epochs++
			if !e.near.solve(e, enough, &res.Sums) {
				e.newtonStep(&res.Sums)
			} else if !o.Price && o.InnerGap > 0 && e.small() {
				e.take()
				unlooked = true
				break
			}
			e.search(&res.Sums)
		}
	}
	bounded := o.Curvature && !e.p.negative
	if bounded && unlooked {
		e.near.boundCurvature(e, &res.Sums)
	}
	if o.Price {
		if o.Epochs > 0 {
			e.fillSmooth()
		}
		e.price(&res.Sums)
	}
	if bounded && !unlooked {
		e.boundCurvature(&res.Sums)
	}
	e.share = float32(cmp.Or(o.Share, 1))
	if o.Dense {
		res.Dense = e.dense(e.v, true, bounded)
		if o.Price {
			res.Dense = append(res.Dense, e.dense(e.g, false, false)...)
		}
	} else {
		res.Contributions = e.contributions(e.v, bounded)
		if o.Price {
			res.Gradients = e.contributions(e.g, false)
			for k := range res.Gradients {
				clear(res.Gradients[k].Curvature)
			}
		}
	}
	res.State = e.save()
	return res, nil
}

// fillSmooth sets the tile to w = y + v, rounded once.
func (e *logisticSolver) fillSmooth() {
	e.fillParents()
	all := ones(1<<Lanes - 1)
	e.loops.along(&e.w[0], &e.v[0], len(e.w), &all)
}

// gradients sets r = -f' = G - v and stops the lanes whose inner gap is small enough. It returns
// what is small enough for each lane.
func (e *logisticSolver) gradients(o Options, epoch int) (small [Lanes]float64) {
	var norm, size [Lanes]float64
	e.loops.difference(&e.g[0], &e.v[0], &e.r[0], len(e.g), &norm, &size)
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
		small[l] = enough
	}
	return small
}

// newtonStep solves (I + X' D X) d = r by conjugate gradients. Each lane ends when its own residual
// is small.
func (e *logisticSolver) newtonStep(sums *Sums) {
	for f := range e.dir {
		e.dir[f], e.d[f] = e.r[f], [Lanes]float32{}
	}
	e.system.x, e.system.far = e.p.X, nil
	e.system.dir, e.system.h, e.system.r, e.system.d = e.dir, e.h, e.r, e.d
	e.system.move, e.system.curve = e.move, e.curve
	e.system.solve(e, e.running, e.gradient, sums)
}

// system is the system (I + X' D X) d = r for conjugate gradients without a preconditioner.
type system struct {
	conjugate.Gradients
	e *logisticSolver
	x *sparse.Matrix
	// far adds the far rows' part of the matrix. A nil far adds none.
	far *nearRows
	// dir to d are tiles: the direction, its product, the residual and the solution. move and curve
	// are of each row its product with the direction, and D.
	dir, h, r, d, move, curve [][Lanes]float32
	// alpha and beta are the recurrence's factors as the loops take them.
	alpha, beta [Lanes]float32
	sums        *Sums
}

// solve adds the solution to d for the active lanes. dir and r hold the right-hand side, whose
// squared length by lane is given.
func (t *system) solve(e *logisticSolver, active uint16, norm [Lanes]float64, sums *Sums) {
	t.e, t.sums, t.Running, t.Size = e, sums, uint32(active), norm
	for l, x := range norm {
		t.Enough[l] = conjugateShare * conjugateShare * x
	}
	t.Solve(t, conjugateSteps)
}

// Multiply implements conjugate.System.
func (t *system) Multiply(g *conjugate.Gradients) {
	e := t.e
	if g.Steps > 0 {
		for l, x := range g.Beta {
			t.beta[l] = float32(x)
		}
		e.loops.turn(&t.dir[0], &t.r[0], len(t.dir), &t.beta)
	}
	e.scoreAll(t.x, t.dir, t.move, t.sums)
	if len(t.move) > 0 {
		e.loops.times(&t.move[0], &t.curve[0], len(t.move))
	}
	e.addAll(t.x, t.h, t.move, t.sums)
	e.loops.product(&t.dir[0], &t.h[0], len(t.dir), &g.Curvature)
	if t.far != nil {
		for l, product := range t.far.addTo(e, t.h, t.dir) {
			g.Curvature[l] += product
		}
	}
}

// Advance implements conjugate.System.
func (t *system) Advance(g *conjugate.Gradients) {
	for l, x := range g.Alpha {
		t.alpha[l] = float32(x)
	}
	t.e.loops.advance(&t.dir[0], &t.h[0], &t.r[0], &t.d[0], len(t.dir), &t.alpha, &g.Next)
}

// search moves v along d. It halves a lane's step until f falls enough, and leaves the scores,
// duals and curvatures of the new point.
func (e *logisticSolver) search(sums *Sums) {
	e.scoreAll(e.p.X, e.d, e.move, sums)
	var vd, dd, slope [Lanes]float64
	e.loops.slopes(&e.d[0], &e.v[0], &e.g[0], len(e.d), &vd, &dd, &slope)
	step := e.halve(e.all(), e.running, &e.loss, &vd, &dd, &slope)
	if len(e.scores) > 0 {
		e.loops.along(&e.scores[0], &e.move[0], len(e.scores), &step)
	}
	e.loops.along(&e.v[0], &e.d[0], len(e.v), &step)
}

// small reports whether f can hardly fall any more in any running lane. Sweeps without a full pass
// then accept the step computed from the near rows without evaluating the far ones, whose curvature
// is known along the bias alone. The next full pass evaluates all.
func (e *logisticSolver) small() bool {
	if e.p.Bias == 0 {
		return false
	}
	for l, gradient := range &e.gradient {
		if e.running>>l&1 != 0 && gradient/2 > smallShare*e.loss[l] {
			return false
		}
	}
	return true
}

// take moves v along d by the whole step.
func (e *logisticSolver) take() {
	step := ones(e.running)
	e.loops.along(&e.v[0], &e.d[0], len(e.v), &step)
}

// ones returns 1 in the lanes of a mask, and 0 in the others.
func ones(mask uint16) (one [Lanes]float32) {
	for l := range one {
		one[l] = float32(mask >> l & 1)
	}
	return one
}

// halve returns the lanes' steps along a direction: the largest of 1, 1/2, 1/4, ... at which f
// falls enough. For a step s, f is s vd + s^2 dd/2 + the loss of the rows, and slope is the
// derivative of f at 0. loss is the loss at the beginning, and on return that at the end.
func (e *logisticSolver) halve(r rows, running uint16, loss, vd, dd, slope *[Lanes]float64) [Lanes]float32 {
	before, step := *loss, ones(running)
	for range halvings {
		*loss = e.weigh(r, &step)
		again := false
		for l := range step {
			u := float64(step[l])
			if u == 0 {
				continue
			}
			change := loss[l] - before[l] + float64(u*vd[l]) + float64(u*u)*dd[l]/2
			if !(change <= sufficient*u*slope[l]) && !(-slope[l] <= unseen*before[l]) {
				step[l] /= 2
				again = true
			}
		}
		if !again {
			break
		}
	}
	return step
}

// scoreAll sets out[i][l] = w_l.x_i for all rows of x.
func (e *logisticSolver) scoreAll(x *sparse.Matrix, w, out [][Lanes]float32, sums *Sums) {
	for from := 0; from < x.Rows; from += scoreChunk {
		e.scoreRows(x, w, from, min(scoreChunk, x.Rows-from), &out[from])
	}
	sums.Visits += (x.NNZ + int64(x.Rows)) * Lanes
}

// addAll sets tile_l = sum_i coef[i][l] x_i.
func (e *logisticSolver) addAll(x *sparse.Matrix, tile, coef [][Lanes]float32, sums *Sums) {
	clear(tile)
	for k := range x.Shards {
		shard, from := &x.Shards[k], k<<sparse.RowShift
		n := len(shard.Begin) - 1
		if n <= 0 {
			continue
		}
		*e.add = addArgs{
			begin: &shard.Begin[0], n: n, w: &tile[0], last: &tile[len(tile)-1],
			idx: unsafe.SliceData(shard.Index), val: unsafe.SliceData(shard.Value),
			coef: &coef[from], entries: uint64(len(shard.Index)), features: len(tile),
		}
		for l := range Lanes {
			e.add.bias[l] = e.p.Bias
		}
		e.p.Kernel.add(e.add)
	}
	sums.Visits += (x.NNZ + int64(x.Rows)) * Lanes
}

// rows holds the scores, duals and curvatures of all rows, or of the near ones.
type rows struct {
	// scores are w.x, move is step.x, coef is y a, and curve is C p (1-p).
	scores, move, coef, curve [][Lanes]float32
	// sign is the mask of the positive lanes.
	sign []uint16
	// number has the number of each row. A nil number means all rows in order.
	number []uint32
}

// all returns the scores, duals and curvatures of all rows.
func (e *logisticSolver) all() rows {
	return rows{e.scores, e.move, e.coef, e.curve, e.sign, nil}
}

// weigh sets the rows' signed duals and curvatures at the scores plus step times move. A nil step
// stands for the scores alone. It returns the lanes' losses. Lanes beyond the block's stay at zero.
func (e *logisticSolver) weigh(r rows, step *[Lanes]float32) (sum [Lanes]float64) {
	if step == nil {
		step, r.move = &[Lanes]float32{}, r.scores
	}
	atATime := len(r.scores)
	if e.p.Weight != nil {
		atATime = 1 // loops take C by lane
	}
	for i := 0; i < len(r.scores); i += atATime {
		w := &e.args
		*w = weighArgs{score: &r.scores[i], move: &r.move[i], step: *step, coef: &r.coef[i], curve: &r.curve[i],
			pos: &r.sign[i], n: atATime}
		row := uint32(i)
		if r.number != nil {
			row = r.number[i]
		}
		for l := range e.b.Slot {
			w.negC[l], w.posC[l] = float32(e.p.weighted(row, e.c)), float32(e.p.weighted(row, e.cPos[l]))
		}
		e.loops.weigh(w)
		for l, loss := range &w.loss {
			sum[l] += loss
		}
	}
	return sum
}

// sigmoid returns, at margin z, p = 1/(1+exp(z)), q = 1-p and the loss log(1+exp(-z)), to a few
// units of float32's rounding.
func sigmoid(z float32) (p, q, loss float32) {
	u := z
	if u > 0 {
		u = -u
	}
	e := expNegative(u)
	q = 1 / (1 + e)
	p = float32(e * q)
	// log(1+e) = 2 artanh(r), r = e/(2+e) <= 1/3
	r := e / (2 + e)
	r2 := float32(r * r)
	h := float32(r2*(1.0/11)) + 1.0/9
	h = float32(r2*h) + 1.0/7
	h = float32(r2*h) + 1.0/5
	h = float32(r2*h) + 1.0/3
	loss = 2 * (r + float32(float32(r*r2)*h))
	if z < 0 {
		return q, p, loss - z
	}
	return p, q, loss
}

// expNegative returns exp(x) for x <= 0, and 0 below -87.
func expNegative(x float32) float32 {
	if !(x > -87) {
		return 0
	}
	k := float32(x * math.Log2E)
	n := int32(k - 0.5) // to the nearest, as k <= 0
	f := float32(n)
	r := x - float32(f*0.693359375)
	r -= float32(f * -2.12194440e-4)
	y := float32(r*1.9875691500e-4) + 1.3981999507e-3 // Cephes' expf
	y = float32(y*r) + 8.3334519073e-3
	y = float32(y*r) + 4.1665795894e-2
	y = float32(y*r) + 1.6666665459e-1
	y = float32(y*r) + 5.0000001201e-1
	y = float32(y*float32(r*r)) + r + 1
	return y * math.Float32frombits(uint32(n+127)<<23)
}

// price adds the sums of the certificate at the tile's weights. Scores are float64, and a_i = C_i
// p_i is the best dual for them. There C loss + conjugate equals the product with the margin, so
// that
//
//	D(a) = P - 1/2 ||w - y - G||^2
//
// holds exactly, and rounding in G counts to second order only.
func (e *logisticSolver) price(sums *Sums) {
	w := &priceArgs{score: &e.exact.out} // lanes beyond the block's have a C of 0
	for i := range e.p.X.Rows {
		if i == 0 || e.p.Weight != nil {
			for l := range e.b.Slot {
				w.negC[l], w.posC[l] = e.p.weighted(uint32(i), e.c), e.p.weighted(uint32(i), e.cPos[l])
			}
		}
		e.exactScores(i)
		w.coef, w.curve, w.pos = &e.coef[i], &e.curve[i], uint64(e.sign[i])
		e.loops.price(w)
	}
	e.addAll(e.p.X, e.g, e.coef, sums)
	e.spreadParents(e.d, nil)
	var edge, rest [Lanes]float64
	e.loops.edges(&e.w[0], &e.d[0], &e.g[0], len(e.w), &edge, &rest)
	for l := range e.b.Slot {
		primal := edge[l]/2 + w.loss[l]
		sums.Primal += primal
		sums.Dual += primal - rest[l]/2
		sums.InnerGap += rest[l] / 2
	}
}

// boundCurvature bounds the loss's Hessian by its row sums, feature by feature:
// h_f = sum_i C_i p_i (1-p_i) |x_if| ||x_i||_1.
func (e *logisticSolver) boundCurvature(sums *Sums) {
	if e.p.negative {
		return // every terminal counts fully
	}
	if len(e.curve) > 0 {
		e.loops.scaled(&e.move[0], &e.curve[0], &e.p.size[0], len(e.curve))
	}
	e.addAll(e.p.X, e.bound, e.move, sums)
}

// resume sets v to the v of a state or, for a fresh block, to the one that startBias computes.
func (e *logisticSolver) resume(warm *State) {
	clear(e.v)
	if warm == nil {
		e.startBias()
		return
	}
	lanes := len(e.b.Slot)
	switch {
	case warm.Feature != nil:
		for k, f := range warm.Feature {
			copy(e.v[f][:lanes], warm.Value[k*lanes:])
		}
	case lanes == Lanes:
		copy(numbers(e.v), warm.Value)
	default:
		for f := range len(warm.Value) / max(lanes, 1) {
			copy(e.v[f][:lanes], warm.Value[f*lanes:])
		}
	}
}

// save returns a state with v at the features where a lane has any. Where most features have one,
// it returns v at all features.
func (e *logisticSolver) save() State {
	s, some, lanes := State{Priced: true}, 0, len(e.b.Slot)
	for f := range e.v {
		if e.v[f] != [Lanes]float32{} {
			some++
		}
	}
	all := 2*some > len(e.v)
	switch {
	case all && lanes == Lanes:
		s.Value = slices.Clone(numbers(e.v))
		return s
	case all:
		some = len(e.v)
	default:
		s.Feature = make([]uint32, 0, some)
	}
	s.Value = make([]float32, 0, some*lanes)
	for f := range e.v {
		if !all {
			if e.v[f] == [Lanes]float32{} {
				continue
			}
			s.Feature = append(s.Feature, uint32(f))
		}
		s.Value = append(s.Value, e.v[f][:lanes]...)
	}
	return s
}

// numbers returns a tile's numbers, line by line.
func numbers(tile [][Lanes]float32) []float32 {
	return unsafe.Slice(&tile[0][0], Lanes*len(tile))
}

// Weights implements Solver.
func (e *logisticSolver) Weights(b *Block, s *State) []Override {
	e.open(b)
	defer e.close()
	e.resume(s)
	e.fillSmooth()
	out := make([]Override, len(b.Slot))
	for l := range out {
		y := e.parent(l)
		for f := range e.w {
			if w := e.w[f][l]; w != y[f] {
				out[l].Feature, out[l].Value = append(out[l].Feature, uint32(f)), append(out[l].Value, w)
			}
		}
	}
	return out
}
