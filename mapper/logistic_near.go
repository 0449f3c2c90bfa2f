package mapper

import (
	"math"

	"taxon/internal/linalg/sparse"
)

// startBias begins a fresh block at the best bias for weights that are otherwise its parent's.
// Classes are rare: from p = 1/2 in every row the first sweeps would only find the bias. It solves
//
//	b + B (C n- p - C+ n+ (1-p)) = 0,  p = 1/(1+exp(-B (y + b)))
//
// by bisection. n- and n+ are the numbers of negative and positive rows.
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

// biasSteps is the number of bisections of startBias: enough to get from millions to float32's
// digits.
const biasSteps = 48

// nearRows is a block's problem on the rows that dominate f: those for which the sign of a score is
// not yet certain in some lane, with only their features, as a matrix of its own.
//
// The other rows are far. They are negative in all lanes, with small duals a_i and curvatures close
// to a_i. Together they weigh about as much as the near rows. They are modelled by their gradient
// u = sum a_i x_i and a lower bound of their Hessian sum a_i x_i x_i': u u'/L, L = sum a_i
// (Cauchy-Schwarz). The bound is exact along the bias and wherever these rows are alike. u is the
// far rows' part of -G. So d = v+ - v is to minimise
//
//	1/2 ||v + d||^2 + sum_near C_i log(1 + exp(-y_i (z_i + d.x_i))) + s + s^2/2L,  s = u.d
//
// On the features that no near row has, d = r - u s/L, r = G - v. Let q be the squared length of u
// on these features, and t = u.r there. Inserted into the function of the other features, with s
// over these alone, the last part of it becomes
//
//	s + (s + t)^2 / 2(L+q)       and s/L of the whole is sigma = (s + t)/(L+q)
type nearRows struct {
	x    sparse.Matrix
	rows rows
	// features lists the features of near rows, ascending. The bias comes last.
	features []uint32
	// at has of each feature its place in features, from 1. It is 0 for a feature that no near row
	// has.
	at []uint32

	// v to d are tiles over features. v, g, r, dir, h and d are as in logisticSolver.
	v, g, u, r, dir, h, d [][Lanes]float32 // tiles over features
	// weight is 1/(L+q), along is s + t, and sigma is as above.
	weight, along, sigma [Lanes]float64
}

const (
	// nearShare is the share of C above which the curvature of a row makes it near.
	nearShare = 1e-2
	// nearMost limits the near rows to one row in nearMost. With more of them, leaving out the
	// others does not pay.
	nearMost = 4
	// nearSteps bounds the number of Newton's steps in a near problem.
	nearSteps = 32
)

// draw lists the near rows, which are positive in some lane or have a large curvature in some lane.
// It reports whether they are few enough to be worth a problem of their own.
func (n *nearRows) draw(e *logisticSolver) bool {
	most := min(e.p.X.Rows/nearMost, 1<<sparse.RowShift)
	if most == 0 {
		return false
	}
	list := resized(n.rows.number, most)
	k := e.loops.above(&e.curve[0], &e.sign[0], len(e.curve), float32(nearShare*e.c), &list[0], most)
	n.rows.number = list[:max(k, 0)]
	if k > 0 {
		n.cut(e)
	}
	return k > 0
}

// cut builds the matrix of the near rows, and copies what is known about these rows and their
// features.
func (n *nearRows) cut(e *logisticSolver) {
	last := len(e.w) - 1
	if n.at == nil {
		n.at = make([]uint32, last+1)
	}
	clear(n.at)
	for _, i := range n.rows.number {
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
	r := &n.rows
	for _, tile := range []*[][Lanes]float32{&r.scores, &r.move, &r.coef, &r.curve} {
		*tile = resized(*tile, len(r.number))
	}
	r.sign = resized(r.sign, len(r.number))
	for k, i := range r.number {
		idx, val := e.p.X.Row(int(i))
		for _, f := range idx {
			shard.Index = append(shard.Index, n.at[f]-1)
		}
		shard.Value = append(shard.Value, val...)
		shard.Begin = append(shard.Begin, uint64(len(shard.Index)))
		r.scores[k], r.coef[k], r.curve[k], r.sign[k] = e.scores[i], e.coef[i], e.curve[i], e.sign[i]
	}
	n.x = sparse.Matrix{Shards: []sparse.Shard{shard}, Rows: len(r.number), Cols: len(n.features) - 1,
		NNZ: int64(len(shard.Index))}
	for _, tile := range []*[][Lanes]float32{&n.v, &n.g, &n.u, &n.r, &n.dir, &n.h, &n.d} {
		*tile = resized(*tile, len(n.features))
	}
}

// apart sets g to the gradient of the near rows. It sets u, weight, along and sigma to their values
// at d = 0.
func (n *nearRows) apart(e *logisticSolver, sums *Sums) {
	e.addAll(&n.x, n.g, n.rows.coef, sums)
	var q, outside [Lanes]float64
	e.loops.outside(&e.g[0], &e.r[0], &n.at[0], len(n.at), &q, &outside)
	for k, f := range n.features {
		all, g, u := &e.g[f], &n.g[k], &n.u[k]
		for l := range u {
			u[l] = g[l] - all[l]
		}
		n.v[k] = e.v[f]
	}
	last := len(n.features) - 1
	for l := range n.weight {
		n.weight[l] = 0
		if all := float64(n.u[last][l]) / float64(e.p.Bias); all > 0 && !math.IsInf(all, 0) {
			n.weight[l] = 1 / (all + q[l])
		}
		n.along[l] = -outside[l] // u is -G there
		n.sigma[l] = n.along[l] * n.weight[l]
	}
}

// dot returns u.p of each lane.
func (n *nearRows) dot(p [][Lanes]float32) (sum [Lanes]float64) {
	for k := range n.u {
		u, p := &n.u[k], &p[k]
		for l := range u {
			sum[l] += float64(float64(u[l]) * float64(p[l]))
		}
	}
	return sum
}

// solve sets the solver's d to the minimiser of f with the model of the far rows. Each lane ends at
// an inner gap of half of small. If too many rows are near, solve does nothing and returns false.
func (n *nearRows) solve(e *logisticSolver, small [Lanes]float64, sums *Sums) bool {
	if !n.draw(e) {
		return false
	}
	n.apart(e, sums)
	running := e.running
	var loss [Lanes]float64
	for k := 0; ; k++ {
		var share [Lanes]float32
		for l := range share {
			share[l] = float32(-1 - n.sigma[l])
		}
		e.loops.mixed(&n.g[0], &n.g[0], &n.u[0], len(n.g), &share)
		var norm, size [Lanes]float64
		e.loops.difference(&n.g[0], &n.v[0], &n.r[0], len(n.g), &norm, &size)
		for l := range norm {
			if norm[l]/2 <= small[l]/2 && k > 0 {
				running &^= 1 << l
			}
		}
		if running == 0 || k == nearSteps {
			break
		}
		if k == 0 {
			loss = e.weigh(n.rows, nil)
		}
		copy(n.dir, n.r)
		clear(n.d)
		e.system.x, e.system.far = &n.x, n
		e.system.dir, e.system.h, e.system.r, e.system.d = n.dir, n.h, n.r, n.d
		e.system.move, e.system.curve = n.rows.move, n.rows.curve
		e.system.solve(e, running, norm, sums)
		n.search(e, running, &loss, sums)
		e.addAll(&n.x, n.g, n.rows.coef, sums)
	}
	var share [Lanes]float32
	for l := range share {
		share[l] = float32(n.sigma[l])
	}
	e.loops.mixed(&e.d[0], &e.r[0], &e.g[0], len(e.d), &share)
	for k, f := range n.features {
		d, v, from := &e.d[f], &n.v[k], &e.v[f]
		for l := range d {
			d[l] = v[l] - from[l]
		}
	}
	return true
}

// search moves n.v along n.d, and with it scores, along and sigma.
func (n *nearRows) search(e *logisticSolver, running uint16, loss *[Lanes]float64, sums *Sums) {
	e.scoreAll(&n.x, n.d, n.rows.move, sums)
	var vd, dd, slope [Lanes]float64
	e.loops.slopes(&n.d[0], &n.v[0], &n.g[0], len(n.d), &vd, &dd, &slope)
	ud := n.dot(n.d)
	for l, x := range ud {
		vd[l] += float64(x * (1 + n.sigma[l]))
		dd[l] += float64(float64(x*x) * n.weight[l])
	}
	step := e.halve(n.rows, running, loss, &vd, &dd, &slope)
	e.loops.along(&n.v[0], &n.d[0], len(n.v), &step)
	e.loops.along(&n.rows.scores[0], &n.rows.move[0], len(n.rows.scores), &step)
	for l, x := range ud {
		n.along[l] += float64(float64(step[l]) * x)
		n.sigma[l] = n.along[l] * n.weight[l]
	}
}

// addTo adds u u'/(L+q) p to h, and returns p' u u'/(L+q) p of each lane.
func (n *nearRows) addTo(e *logisticSolver, h, p [][Lanes]float32) (product [Lanes]float64) {
	up := n.dot(p)
	var share [Lanes]float32
	for l := range up {
		share[l] = float32(up[l] * n.weight[l])
		product[l] = float64(float64(up[l]*up[l]) * n.weight[l])
	}
	e.loops.along(&h[0], &n.u[0], len(h), &share)
	return product
}

// boundCurvature does what the solver's boundCurvature does, except that the far rows count as rows
// of mean length with their gradient.
func (n *nearRows) boundCurvature(e *logisticSolver, sums *Sums) {
	for k, i := range n.rows.number {
		c, m := &n.rows.curve[k], &n.rows.move[k]
		for l := range c {
			m[l] = c[l] * e.p.size[i]
		}
	}
	e.addAll(&n.x, n.h, n.rows.move, sums)
	var share [Lanes]float32
	for l := range share {
		share[l] = float32(-e.p.meanSize * max(1+n.sigma[l], 0))
	}
	clear(e.bound)
	e.loops.along(&e.bound[0], &e.g[0], len(e.g), &share)
	for k, f := range n.features {
		b, h, u := &e.bound[f], &n.h[k], &n.u[k]
		for l := range b {
			b[l] = h[l] + max(-share[l]*u[l], 0)
		}
	}
}
