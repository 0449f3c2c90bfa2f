package mapper

import (
	"math"

	"taxon/internal/sparse"
)

// startBias begins a fresh block at the best bias while all other weights are zero beside the
// parent's. Classes are rare: from p = 1/2 in every row the first sweeps would do nothing but
// find the bias. It solves
//
//	b + B (C n- p - C+ n+ (1-p)) = 0,  p = 1/(1+exp(-B (y + b)))
//
// n- and n+ are the numbers of negative and positive rows.
func (e *logisticSolver) startBias() {
	bias, last := float64(e.p.Bias), len(e.v)-1
	if bias == 0 {
		return
	}
	for l := range e.b.Slot {
		y, positive := float64(e.parent(l)[last]), e.p.Count(e.b.Positive[l])
		pull, push := e.cPos[l]*positive, e.c*(e.p.Total()-positive)
		low, high := -float64(bias*push), float64(bias*pull)
		for range biasSteps {
			b := (low + high) / 2
			q, p, _ := sigmoid(float32(bias * (y + b)))
			if b+bias*(float64(push*float64(p))-float64(pull*float64(q))) > 0 {
				high = b
			} else {
				low = b
			}
		}
		e.v[last][l] = float32(low)
	}
}

// biasSteps is the number of bisections of startBias: from millions to float32's digits.
const biasSteps = 48

// nearRows is the expensive part of a Newton step's Hessian: the rows of which some lane is in
// doubt, and only their features, as a matrix of its own. The gradient, the loss and the line
// search use all rows, so that only a step's direction is approximate.
//
// The other rows are far. They are negative in all lanes, with small duals a_i and curvatures
// close to a_i. Together they weigh about as much as the near rows. Their Hessian sum a_i x_i
// x_i' has the lower bound u u'/L with u = sum a_i x_i and L = sum a_i (Cauchy-Schwarz). The
// bound is exact along the bias and wherever these rows are alike. u is what the near rows leave
// of -G. So a step solves
//
//	(I + X' D X + u u'/L) d = r        X: the near rows
//
// On the features that no near row has, d = r - u s/L with s = u.d. Let q be the squared length
// of u on these features, and t = u.r there. Inserted into the other equations this gives
//
//	(I + X' D X + u u'/(L+q)) d = r - u t/(L+q),   s/L = (u.d + t)/(L+q)
type nearRows struct {
	x        sparse.Matrix
	rows     []uint32
	features []uint32 // ascending; the bias last
	at       []uint32 // feature -> its place in features, from 1; 0: no near row has it

	u, r, dir, h, d   [][Lanes]float32 // tiles over features
	move, coef, curve [][Lanes]float32 // rows
	weight, outside   [Lanes]float64   // 1/(L+q) and t
}

// nearShares of C are the curvatures from which on a row is near: the least that leaves few.
var nearShares = [...]float64{1e-3, 1e-2}

// nearMost: at most one row in nearMost may be near. With more, leaving out the others does not
// pay.
const nearMost = 4

// draw finds the near rows; it reports whether they are few.
func (n *nearRows) draw(e *logisticSolver) bool {
	for _, share := range nearShares {
		if n.above(e, float32(share*e.c)) {
			n.cut(e)
			return true
		}
	}
	return false
}

// above lists the rows with a lane above a curvature, or positive; it reports whether they are few.
func (n *nearRows) above(e *logisticSolver, limit float32) bool {
	most := min(e.p.X.Rows/nearMost, 1<<sparse.RowShift)
	if most == 0 {
		return false
	}
	n.rows = resized(n.rows, most)
	k := e.loops.above(&e.curve[0], &e.sign[0], len(e.curve), limit, &n.rows[0], most)
	n.rows = n.rows[:max(k, 0)]
	return k >= 0
}

// cut makes the near rows' matrix, and with it their u.
func (n *nearRows) cut(e *logisticSolver) {
	last := len(e.w) - 1
	if n.at == nil {
		n.at = make([]uint32, last+1)
	}
	clear(n.at)
	for _, i := range n.rows {
		idx, _ := e.p.X.Row(int(i))
		for _, f := range idx {
			n.at[f] = 1
		}
	}
	n.at[last] = 1
	n.features = n.features[:0]
	for f, in := range n.at {
		if in != 0 {
			n.features = append(n.features, uint32(f))
			n.at[f] = uint32(len(n.features))
		}
	}
	shard := sparse.Shard{Begin: []uint64{0}}
	if len(n.x.Shards) > 0 {
		shard = n.x.Shards[0]
		shard.Begin, shard.Index, shard.Value = shard.Begin[:1], shard.Index[:0], shard.Value[:0]
	}
	n.move, n.coef, n.curve = resized(n.move, len(n.rows)), resized(n.coef, len(n.rows)), resized(n.curve, len(n.rows))
	for k, i := range n.rows {
		idx, val := e.p.X.Row(int(i))
		for _, f := range idx {
			shard.Index = append(shard.Index, n.at[f]-1)
		}
		shard.Value = append(shard.Value, val...)
		shard.Begin = append(shard.Begin, uint64(len(shard.Index)))
		n.coef[k], n.curve[k] = e.coef[i], e.curve[i]
	}
	n.x = sparse.Matrix{Shards: []sparse.Shard{shard}, Rows: len(n.rows), Cols: len(n.features) - 1, NNZ: int64(len(shard.Index))}
	for _, tile := range []*[][Lanes]float32{&n.u, &n.r, &n.dir, &n.h, &n.d} {
		*tile = resized(*tile, len(n.features))
	}
}

// apart sets u, 1/(L+q) and t, and the right-hand side.
func (n *nearRows) apart(e *logisticSolver, sums *Sums) {
	e.addAll(&n.x, n.u, n.coef, sums)
	var q, along [Lanes]float64
	e.loops.outside(&e.g[0], &e.r[0], &n.at[0], len(n.at), &q, &along)
	for l, x := range along { // u is -G there
		n.outside[l] = -x
	}
	for k, f := range n.features {
		g, u := &e.g[f], &n.u[k]
		for l := range u {
			u[l] -= g[l]
		}
	}
	last := len(n.features) - 1
	for l := range n.weight {
		n.weight[l] = 0
		if all := float64(n.u[last][l]) / float64(e.p.Bias); all > 0 && !math.IsInf(all, 0) {
			n.weight[l] = 1 / (all + q[l])
		}
	}
	var share [Lanes]float32
	for l := range share {
		share[l] = float32(n.weight[l] * n.outside[l])
	}
	for k, f := range n.features {
		r, u, x := &n.r[k], &n.u[k], &e.r[f]
		for l := range r {
			r[l] = x[l] - float32(share[l]*u[l])
		}
	}
}

// along is u.p of each lane.
func (n *nearRows) along(p [][Lanes]float32) (sum [Lanes]float64) {
	for k := range n.u {
		u, p := &n.u[k], &p[k]
		for l := range u {
			sum[l] += float64(float64(u[l]) * float64(p[l]))
		}
	}
	return sum
}

// step is newtonStep with the far rows' Hessian as u u'/L. It reports false, having done nothing,
// when too many rows are near.
func (n *nearRows) step(e *logisticSolver, sums *Sums) bool {
	if !n.draw(e) {
		return false
	}
	n.apart(e, sums)
	copy(n.dir, n.r)
	clear(n.d)
	var rr [Lanes]float64
	for k := range n.r {
		for l, x := range &n.r[k] {
			rr[l] += float64(float64(x) * float64(x))
		}
	}
	e.conjugate(&n.x, system{n.dir, n.h, n.r, n.d, n.move, n.curve}, rr, n, sums)
	s := n.along(n.d)
	var share [Lanes]float32
	for l := range share {
		if e.running>>l&1 != 0 {
			share[l] = float32((s[l] + n.outside[l]) * n.weight[l])
		}
	}
	e.loops.mixed(&e.d[0], &e.r[0], &e.g[0], len(e.d), &share)
	for k, f := range n.features {
		e.d[f] = n.d[k]
	}
	return true
}

// addTo adds u u'/(L+q) p to h, and returns its product with p.
func (n *nearRows) addTo(h, p [][Lanes]float32) (product [Lanes]float64) {
	up := n.along(p)
	var share [Lanes]float32
	for l := range up {
		share[l] = float32(up[l] * n.weight[l])
		product[l] = float64(float64(up[l]*up[l]) * n.weight[l])
	}
	for k := range n.u {
		h, u := &h[k], &n.u[k]
		for l := range h {
			h[l] += float32(share[l] * u[l])
		}
	}
	return product
}
