package mapper

import (
	"math"
	"math/bits"

	"taxon/internal/sparse"
)

// scoreAll sets out[i][l] = w_l.x_i for all rows.
func (s *Solver) scoreAll(t *Scratch, w, out [][Lanes]float32, sums *Sums) {
	e := t.scoring
	for from := 0; from < s.X.Rows; from += scoreChunk {
		n := min(scoreChunk, s.X.Rows-from)
		shard := &s.X.Shards[from>>sparse.RowShift]
		*e = scoring{
			begin: &shard.Begin[from&(1<<sparse.RowShift-1)], n: n, w: &w[0], last: &w[len(w)-1],
			out: &out[from], low: &t.low[0], entries: uint64(len(shard.Index)), features: len(w),
		}
		if len(shard.Index) > 0 {
			e.idx, e.val = &shard.Index[0], &shard.Value[0]
		}
		for l := range Lanes {
			e.bias[l] = s.Bias
		}
		s.Kernel.score(e)
	}
	sums.Visits += (s.X.NNZ + int64(s.X.Rows)) * Lanes
}

// addAll sets tile_l = sum_i coef[i][l] x_i.
func (s *Solver) addAll(t *Scratch, tile, coef [][Lanes]float32, sums *Sums) {
	clear(tile)
	e := t.logit.adding
	for k := range s.X.Shards {
		shard, from := &s.X.Shards[k], k<<sparse.RowShift
		n := len(shard.Begin) - 1
		if n <= 0 {
			continue
		}
		*e = adding{
			begin: &shard.Begin[0], n: n, w: &tile[0], last: &tile[len(tile)-1],
			coef: &coef[from], entries: uint64(len(shard.Index)), features: len(tile),
		}
		if len(shard.Index) > 0 {
			e.idx, e.val = &shard.Index[0], &shard.Value[0]
		}
		for l := range Lanes {
			e.bias[l] = s.Bias
		}
		s.Kernel.add(e)
	}
	sums.Visits += (s.X.NNZ + int64(s.X.Rows)) * Lanes
}

// weigh sets, at the scores score + step move, each row's signed duals and curvatures
// and the lanes' losses. Lanes beyond the block's stay at zero.
func (s *Solver) weigh(t *Scratch, e *logit, score, move [][Lanes]float32, step *[Lanes]float32) {
	e.loss = [Lanes]float64{}
	atATime := len(score)
	if s.Weight != nil {
		atATime = 1 // loops know C by lane
	}
	var w weighing
	for i := 0; i < len(score); i += atATime {
		w = weighing{score: &score[i], move: &score[i], coef: &e.coef[i], curve: &e.curve[i], pos: &t.sign[i], n: atATime}
		if move != nil {
			w.move, w.step = &move[i], *step
		}
		for l := range Lanes {
			if t.lanes>>l&1 != 0 {
				w.negC[l], w.posC[l] = float32(s.weighted(uint32(i), s.C)), float32(s.weighted(uint32(i), t.cPos[l]))
			}
		}
		e.tiles.weigh(&w)
		for l, loss := range &w.loss {
			e.loss[l] += loss
		}
	}
}

// logistic is, at margin z, p = 1/(1+exp(z)), q = 1-p and the loss log(1+exp(-z)), to a few
// units of float32's rounding.
func logistic(z float32) (p, q, loss float32) {
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

// priceLogistic adds up the certificate at the tile's weights: scores in float64, a_i at its
// best for them, a_i = C_i p_i, at which C loss + conjugate is all of the margin's product,
// so that
//
//	D(a) = P - 1/2 ||w - y - G||^2
//
// holds exactly, and rounding in G counts to second order only.
func (s *Solver) priceLogistic(t *Scratch, e *logit, b *Block, sums *Sums) {
	var loss [Lanes]float64
	for i := range s.X.Rows {
		idx, val := s.X.Row(i)
		s.exactScores(t, idx, val)
		pos, coef, curve := t.sign[i], &e.coef[i], &e.curve[i]
		for m := t.lanes; m != 0; m &= m - 1 {
			l := bits.TrailingZeros16(m) & 15
			z, c, sign := t.exacting.out[l], s.rowC(t, uint32(i), pos, l), 1.0
			if pos>>l&1 == 0 {
				z, sign = -z, -1
			}
			x := math.Exp(-math.Abs(z))
			p := x / (1 + x)
			if z < 0 {
				p = 1 / (1 + x)
			}
			loss[l] += float64(c * (math.Log1p(x) + max(-z, 0)))
			coef[l] = float32(sign * float64(c*p))
			curve[l] = float32(c * float64(p*(1-p)))
		}
	}
	s.addAll(t, e.g, e.coef, sums)
	s.curvatures(t, e, sums)
	var edge, rest [Lanes]float64
	for l, slot := range b.Slot {
		y := t.zero
		if slot >= 0 {
			y = b.Mean[slot]
		}
		for f := range t.w {
			v := float64(t.w[f][l]) - float64(y[f])
			r := v - float64(e.g[f][l])
			edge[l] += float64(v * v)
			rest[l] += float64(r * r)
		}
		primal := edge[l]/2 + loss[l]
		sums.Primal += primal
		sums.Dual += primal - rest[l]/2
		sums.InnerGap += rest[l] / 2
	}
}

// curvatures bounds the loss's Hessian by its row sums, feature by feature:
// h_f = sum_i C_i p_i (1-p_i) |x_if| ||x_i||_1.
func (s *Solver) curvatures(t *Scratch, e *logit, sums *Sums) {
	if s.negative {
		return // the rows' sums need |x|: every terminal counts as wholly stiff
	}
	for i := range e.curve {
		_, val := s.X.Row(i)
		size := s.Bias
		for _, x := range val {
			size += x
		}
		c, m := &e.curve[i], &e.move[i]
		for l := range c {
			m[l] = float32(c[l] * size)
		}
	}
	s.addAll(t, e.stiff, e.move, sums)
}

// contributions gathers v, or G, by parent, and the stiffness h/(1+h) in StiffUnits,
// rounded up; without it every terminal is fully stiff.
func (e *logit) contributions(b *Block, v [][Lanes]float32, stiffness bool) []Contribution {
	out := make([]Contribution, len(b.Mean))
	for slot := range out {
		c := Contribution{Slot: slot}
		var lanes []int
		for l, at := range b.Slot {
			if at == slot {
				lanes = append(lanes, l)
			}
		}
		for f := range v {
			sum, stiff := 0.0, float32(len(lanes))
			if stiffness {
				stiff = 0
			}
			for _, l := range lanes {
				sum += float64(v[f][l])
				if h := e.stiff[f][l]; stiffness {
					stiff += degree(h)
				}
			}
			if sum != 0 || stiffness && stiff != 0 {
				c.Feature, c.Sum = append(c.Feature, uint32(f)), append(c.Sum, sum)
				c.Stiff = append(c.Stiff, stiffUnits(stiff))
			}
		}
		out[slot] = c
	}
	return out
}

// resume takes the lanes' v from a state.
func (e *logit) resume(warm *State, lanes int) {
	clear(e.v)
	if warm == nil {
		return
	}
	for k, f := range warm.Feature {
		copy(e.v[f][:lanes], warm.Value[k*lanes:])
	}
}

// save keeps v at the features where a lane has any.
func (e *logit) save(lanes int) State {
	st := State{Priced: true}
	for f := range e.v {
		if e.v[f] != [Lanes]float32{} {
			st.Feature = append(st.Feature, uint32(f))
			st.Value = append(st.Value, e.v[f][:lanes]...)
		}
	}
	return st
}

// smoothWeights are Weights of a smooth solve.
func (s *Solver) smoothWeights(t *Scratch, b *Block, st *State) []Override {
	t.load(s, b, &State{Priced: true})
	defer t.unload(b)
	t.logistic(s).resume(st, len(b.Slot))
	t.fillSmooth(b)
	out := make([]Override, len(b.Slot))
	for l, slot := range b.Slot {
		y := t.zero
		if slot >= 0 {
			y = b.Mean[slot]
		}
		for f := range t.w {
			if w := t.w[f][l]; w != y[f] {
				out[l].Feature, out[l].Value = append(out[l].Feature, uint32(f)), append(out[l].Value, w)
			}
		}
	}
	return out
}
