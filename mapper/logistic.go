package mapper

import (
	"cmp"
	"context"
	"math"
	"slices"
	"unsafe"

	"taxon/internal/coupling"
	"taxon/internal/sparse"
)

// logisticSolver solves blocks with the logistic loss. It takes 448 bytes a feature and 256 bytes
// a row more than the tile, and another 320 a feature and 192 a row for the near rows.
type logisticSolver struct {
	tile
	loops                     loops
	v, g, r, dir, h, d        [][Lanes]float32 // tiles: w - y, sum a y x, and Newton's residual, direction, product, step
	scores, move, coef, curve [][Lanes]float32 // rows: w.x, step.x, y a, C p (1-p)
	bound                     [][Lanes]float32 // tile: bound of the loss's curvature by feature
	near                      nearRows
	size                      []float32 // of each row, ||x||_1
	add                       *addArgs
	running                   uint16 // lanes whose inner gap is still too large
	loss, gradient            [Lanes]float64
	share                     float32 // Options.Share
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

// Solve improves v = w - y by Newton's method with conjugate gradients and a line search (Lin,
// Weng, Keerthi 2008 for the flat problem) on
//
//	min_v  f(v) = 1/2 ||v||^2 + sum_i C_i log(1 + exp(-y_i (y + v).x_i))
//	f'(v) = v - G,  G = sum_i a_i y_i x_i,  a_i = C_i / (1 + exp(y_i w.x_i))
//
// Sixteen lanes share both products of an iteration, X p and X'(D X p). f is strongly convex, so
// f - f* <= 1/2 ||f'||^2, which is also the duality gap at the duals a. A lane ends when it is
// small enough.
func (e *logisticSolver) Solve(ctx context.Context, b *Block, warm *State, o Options) (*Result, error) {
	e.open(b)
	defer e.close()
	e.resume(warm)
	res := &Result{}
	e.running = e.lanes
	e.fillSmooth()
	if o.Epochs > 0 {
		e.scoreAll(e.p.X, e.w, e.scores, &res.Sums)
		e.weigh(nil, nil)
		for k := 0; k < max(o.Epochs, o.MaxEpochs) && e.running != 0; k++ {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			e.addAll(e.p.X, e.g, e.coef, &res.Sums)
			e.gradients(o, k)
			if e.running == 0 {
				break
			}
			e.newtonStep(&res.Sums)
			e.search(&res.Sums)
			res.Sums.Epochs++
		}
		e.fillSmooth()
	}
	bounded := o.Curvature && !e.p.negative
	if o.Price {
		e.price(&res.Sums)
	} else if bounded {
		e.boundCurvature(&res.Sums)
	}
	e.share = float32(cmp.Or(o.Share, 1))
	if o.Dense {
		res.Dense = e.dense(e.v, e.degrees(bounded))
		if o.Price {
			res.Dense = append(res.Dense, e.dense(e.g, nil)...)
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

// fillSmooth sets the tile w = y + v, rounded once.
func (e *logisticSolver) fillSmooth() {
	e.fillParents()
	for f := range e.w {
		w, v := &e.w[f], &e.v[f]
		for l := range w {
			w[l] += v[l]
		}
	}
}

// gradients sets r = -f' = G - v and decides which lanes continue.
func (e *logisticSolver) gradients(o Options, epoch int) {
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
	}
}

// newtonStep solves (I + X' D X) d = r by conjugate gradients, each lane to its own end.
func (e *logisticSolver) newtonStep(sums *Sums) {
	if e.near.step(e, sums) {
		return
	}
	for f := range e.dir {
		e.dir[f], e.d[f] = e.r[f], [Lanes]float32{}
	}
	e.conjugate(e.p.X, system{e.dir, e.h, e.r, e.d, e.move, e.curve}, e.gradient, nil, sums)
}

// system is what conjugate gradients work on: tiles, and of each row its product and curvature.
type system struct{ dir, h, r, d, move, curve [][Lanes]float32 }

// conjugate adds to d the solution of (I + X' D X) d = r, with far rows or without; rr is r.r.
func (e *logisticSolver) conjugate(x *sparse.Matrix, t system, rr [Lanes]float64, far *nearRows, sums *Sums) {
	active := e.running
	for l := range rr {
		if rr[l] <= conjugateShare*conjugateShare*e.gradient[l] {
			active &^= 1 << l
		}
	}
	var alpha, beta [Lanes]float32
	for step := 0; step < conjugateSteps && active != 0; step++ {
		e.scoreAll(x, t.dir, t.move, sums)
		if len(t.move) > 0 {
			e.loops.times(&t.move[0], &t.curve[0], len(t.move))
		}
		e.addAll(x, t.h, t.move, sums)
		var pap [Lanes]float64
		e.loops.product(&t.dir[0], &t.h[0], len(t.dir), &pap)
		if far != nil {
			for l, product := range far.addTo(t.h, t.dir) {
				pap[l] += product
			}
		}
		for l := range alpha {
			alpha[l] = 0
			if active>>l&1 != 0 && pap[l] > 0 {
				alpha[l] = float32(rr[l] / pap[l])
			}
		}
		var next [Lanes]float64
		e.loops.advance(&t.dir[0], &t.h[0], &t.r[0], &t.d[0], len(t.dir), &alpha, &next)
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
		e.loops.turn(&t.dir[0], &t.r[0], len(t.dir), &beta)
	}
}

// search moves v along d. A lane's step is halved until f falls enough. The scores, duals and
// curvatures are those of the new point.
func (e *logisticSolver) search(sums *Sums) {
	e.scoreAll(e.p.X, e.d, e.move, sums)
	var vd, dd, slope [Lanes]float64
	e.loops.slopes(&e.d[0], &e.v[0], &e.g[0], len(e.d), &vd, &dd, &slope)
	before := e.loss
	var step [Lanes]float32
	for l := range step {
		if e.running>>l&1 != 0 {
			step[l] = 1
		}
	}
	for range halvings {
		e.weigh(e.move, &step)
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
	if len(e.scores) > 0 {
		e.loops.along(&e.scores[0], &e.move[0], len(e.scores), &step)
	}
	e.loops.along(&e.v[0], &e.d[0], len(e.v), &step)
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

// weigh sets, at the scores plus step times move (nil: at the scores), each row's signed duals
// and curvatures, and the lanes' losses. Lanes beyond the block's stay at zero.
func (e *logisticSolver) weigh(move [][Lanes]float32, step *[Lanes]float32) {
	e.loss = [Lanes]float64{}
	atATime := len(e.scores)
	if e.p.Weight != nil {
		atATime = 1 // loops know C by lane
	}
	var w weighArgs
	for i := 0; i < len(e.scores); i += atATime {
		w = weighArgs{score: &e.scores[i], move: &e.scores[i], coef: &e.coef[i], curve: &e.curve[i], pos: &e.sign[i], n: atATime}
		if move != nil {
			w.move, w.step = &move[i], *step
		}
		for l := range e.b.Slot {
			w.negC[l], w.posC[l] = float32(e.p.weighted(uint32(i), e.c)), float32(e.p.weighted(uint32(i), e.cPos[l]))
		}
		e.loops.weigh(&w)
		for l, loss := range &w.loss {
			e.loss[l] += loss
		}
	}
}

// sigmoid is, at margin z, p = 1/(1+exp(z)), q = 1-p and the loss log(1+exp(-z)), to a few
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

// expNegative is exp(x) for x <= 0; 0 below -87.
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

// price adds up the certificate at the tile's weights. Scores are float64, and a_i = C_i p_i is
// the best dual for them. There C loss + conjugate equals the product with the margin, so that
//
//	D(a) = P - 1/2 ||w - y - G||^2
//
// holds exactly, and rounding in G counts to second order only.
func (e *logisticSolver) price(sums *Sums) {
	w := &priceArgs{score: &e.exact.out} // of lanes beyond the block's C is 0
	for i := range e.p.X.Rows {
		e.exactScores(i)
		for l := range e.b.Slot {
			w.negC[l], w.posC[l] = e.p.weighted(uint32(i), e.c), e.p.weighted(uint32(i), e.cPos[l])
		}
		w.coef, w.curve, w.pos = &e.coef[i], &e.curve[i], uint64(e.sign[i])
		e.loops.price(w)
	}
	e.addAll(e.p.X, e.g, e.coef, sums)
	e.boundCurvature(sums)
	for l := range e.b.Slot {
		edge, rest, y := 0.0, 0.0, e.parent(l)
		for f := range e.w {
			v := float64(e.w[f][l]) - float64(y[f])
			r := v - float64(e.g[f][l])
			edge += float64(v * v)
			rest += float64(r * r)
		}
		primal := edge/2 + w.loss[l]
		sums.Primal += primal
		sums.Dual += primal - rest/2
		sums.InnerGap += rest / 2
	}
}

// boundCurvature bounds the loss's Hessian by its row sums, feature by feature:
// h_f = sum_i C_i p_i (1-p_i) |x_if| ||x_i||_1.
func (e *logisticSolver) boundCurvature(sums *Sums) {
	if e.p.negative {
		return // the rows' sums need |x|: every terminal counts fully
	}
	if e.size == nil {
		e.size = e.p.rowSums()
	}
	if len(e.curve) > 0 {
		e.loops.scaled(&e.move[0], &e.curve[0], &e.size[0], len(e.curve))
	}
	e.addAll(e.p.X, e.bound, e.move, sums)
}

// rowSums are the rows' sums, the bias included.
func (p *Problem) rowSums() []float32 {
	size := make([]float32, p.X.Rows)
	for i := range size {
		_, val := p.X.Row(i)
		size[i] = p.Bias
		for _, x := range val {
			size[i] += x
		}
	}
	return size
}

// contributions gathers v, or G, by parent, and the curvature h/(1+h) in units, rounded up;
// without a bound every terminal counts fully.
func (e *logisticSolver) contributions(v [][Lanes]float32, bounded bool) []coupling.Contribution {
	out := make([]coupling.Contribution, len(e.b.Mean))
	for slot := range out {
		c := coupling.Contribution{Parent: int32(slot), Feature: make([]uint32, 0, len(v)), Sum: make([]float64, 0, len(v)), Curvature: make([]uint8, 0, len(v))}
		var lanes []int
		for l, at := range e.b.Slot {
			if at == slot {
				lanes = append(lanes, l)
			}
		}
		for f := range v {
			sum, curvature := 0.0, float32(len(lanes))
			if bounded {
				curvature = 0
			}
			for _, l := range lanes {
				sum += float64(v[f][l])
				if bounded {
					curvature += degree(float32(e.share * e.bound[f][l]))
				}
			}
			if sum != 0 || bounded && curvature != 0 {
				c.Feature, c.Sum = append(c.Feature, uint32(f)), append(c.Sum, sum)
				c.Curvature = append(c.Curvature, coupling.Code(curvature))
			}
		}
		out[slot] = c
	}
	return out
}

// dense is contributions of all features. degree tells the curvature of a feature's lanes; nil: none.
func (e *logisticSolver) dense(v [][Lanes]float32, degree func(f int, degree *[Lanes]float32)) []coupling.Dense {
	out := make([]coupling.Dense, len(e.b.Mean))
	for slot := range out {
		out[slot] = coupling.Dense{Parent: int32(slot), Sum: make([]float32, len(v))}
		if degree != nil {
			out[slot].Curvature = make([]uint8, len(v))
		}
	}
	if len(out) == 0 {
		return out
	}
	// Lanes of one parent are mostly neighbours: a run of them is added up at a time.
	type run struct{ slot, from, to int }
	var runs []run
	for l, slot := range e.b.Slot {
		switch n := len(runs); {
		case slot < 0:
		case n > 0 && runs[n-1].slot == slot && runs[n-1].to == l:
			runs[n-1].to++
		default:
			runs = append(runs, run{slot, l, l + 1})
		}
	}
	var degrees [Lanes]float32
	sums, curvatures := make([]float64, len(out)), make([]float32, len(out))
	for f := range v {
		if degree != nil {
			degree(f, &degrees)
		}
		clear(sums)
		clear(curvatures)
		for _, r := range runs {
			sum, curvature := sums[r.slot], curvatures[r.slot]
			for l := r.from; l < r.to; l++ {
				sum += float64(v[f][l&15])
				curvature += degrees[l&15]
			}
			sums[r.slot], curvatures[r.slot] = sum, curvature
		}
		for slot, sum := range sums {
			out[slot].Sum[f] = float32(sum)
			if degree != nil {
				out[slot].Curvature[f] = coupling.Code(curvatures[slot])
			}
		}
	}
	return out
}

// degrees gives the degrees of a feature's lanes: by the bound, or wholly where a lane has a value.
func (e *logisticSolver) degrees(bounded bool) func(f int, out *[Lanes]float32) {
	if bounded {
		return func(f int, out *[Lanes]float32) {
			for l, h := range &e.bound[f] {
				out[l] = degree(float32(e.share * h))
			}
		}
	}
	return func(f int, out *[Lanes]float32) {
		*out = [Lanes]float32{}
		if e.v[f] != [Lanes]float32{} {
			for l := range e.b.Slot {
				out[l] = 1
			}
		}
	}
}

// resume takes the lanes' v from a state.
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

// save keeps v at the features where a lane has any; where most have, at all.
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

// numbers are a tile's numbers, line by line.
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
