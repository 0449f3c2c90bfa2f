package mapper

import (
	"math/bits"

	"taxon/internal/sparse"
)

// Most rows are far on the right side of most classes and hardly bend the loss, but all of
// them together do. A Newton step needs no more of the Hessian than its products to some
// ten percent: a row enters it with a chance that is proportional to its curvature
// C p (1-p) ||x||^2, weighted by the inverse of it (Xu, Yang, Roosta-Khorasani, Re, Mahoney:
// Sub-sampled Newton methods with non-uniform sampling, NIPS 2016). Gradient and line search
// are of all rows, so that the optimum stays what it is.
const (
	// sampledAlways: rows of this curvature or more are always taken.
	sampledAlways = 1.0 / 32
	// sampledFrom is the least number of rows to draw from, sampledShare the share of them
	// up to which a sample is worth its copy.
	sampledFrom  = 4096
	sampledShare = 0.4
)

// sampled is the drawn rows with the features that they hold, renumbered.
type sampled struct {
	rows        []uint32
	weight      []float32
	shard       sparse.Shard
	column      []uint32 // feature -> column, from 1; 0: in no drawn row
	features    []uint32 // column -> feature
	p, h, r, d  [][Lanes]float32
	move, curve [][Lanes]float32
}

// draw draws the rows of a step at the curvatures at hand: systematically, in the rows' order, a row
// whenever the chances have added up to the next whole number. false: all rows shall serve.
func (s *Solver) draw(e *logit) bool {
	if s.X.Rows < sampledFrom {
		return false
	}
	if e.sampled == nil {
		e.sampled = &sampled{column: make([]uint32, len(e.v))}
	}
	q := e.sampled
	q.rows, q.weight = q.rows[:0], q.weight[:0]
	most := int(sampledShare * float64(s.X.Rows))
	sum := 0.5
	for i := range e.curve {
		c, largest := &e.curve[i], float32(0)
		for m := e.running; m != 0; m &= m - 1 {
			largest = max(largest, c[bits.TrailingZeros16(m)&15])
		}
		chance := float64(largest) * s.norm[i] / sampledAlways
		if chance >= 1 {
			q.rows, q.weight = append(q.rows, uint32(i)), append(q.weight, 1)
		} else if sum += chance; sum >= 1 {
			sum--
			q.rows, q.weight = append(q.rows, uint32(i)), append(q.weight, float32(1/chance))
		}
		if len(q.rows) > most {
			return false
		}
	}
	return true
}

// sampledStep is a Newton step by the drawn rows. On features that none of them holds the
// Hessian is the identity, and d = r.
func (s *Solver) sampledStep(t *Scratch, e *logit, sums *Sums) {
	q := e.sampled
	q.compact(s, e)
	c := &quadratic{p: q.p, h: q.h, r: q.r, d: q.d}
	for k, f := range q.features {
		q.r[k] = e.r[f]
	}
	last := len(q.features)
	q.r[last] = e.r[len(e.r)-1]
	for k := range q.r {
		for l, x := range &q.r[k] {
			c.norm[l] += float64(float64(x) * float64(x))
		}
	}
	visits := (int64(len(q.shard.Index)) + int64(len(q.rows))) * Lanes
	e.conjugate(c, func() {
		s.scoreShard(t, &q.shard, q.p, q.move)
		if len(q.move) > 0 {
			e.tiles.times(&q.move[0], &q.curve[0], len(q.move))
		}
		clear(q.h)
		s.addShard(t, &q.shard, q.h, q.move)
		e.within(q.h, q.features)
		sums.Visits += 2 * visits
	})
	for f := range e.d {
		d := e.r[f]
		for l := range d {
			if e.running>>l&1 == 0 {
				d[l] = 0
			}
		}
		e.d[f] = d
	}
	for k, f := range q.features {
		e.d[f] = q.d[k]
	}
	e.d[len(e.d)-1] = q.d[last]
}

// compact copies the drawn rows, renumbers their features as they come, and makes room.
func (q *sampled) compact(s *Solver, e *logit) {
	for _, f := range q.features {
		q.column[f] = 0
	}
	q.features = q.features[:0]
	q.shard.Begin = append(q.shard.Begin[:0], 0)
	q.shard.Index, q.shard.Value = q.shard.Index[:0], q.shard.Value[:0]
	q.curve, q.move = resized(q.curve, len(q.rows)), resized(q.move, len(q.rows))
	for k, i := range q.rows {
		idx, val := s.X.Row(int(i))
		for _, f := range idx {
			if q.column[f] == 0 {
				q.features = append(q.features, f)
				q.column[f] = uint32(len(q.features))
			}
			q.shard.Index = append(q.shard.Index, q.column[f]-1)
		}
		q.shard.Value = append(q.shard.Value, val...)
		q.shard.Begin = append(q.shard.Begin, uint64(len(q.shard.Index)))
		for l, x := range &e.curve[i] {
			q.curve[k][l] = float32(x * q.weight[k])
		}
	}
	for _, tile := range []*[][Lanes]float32{&q.p, &q.h, &q.r, &q.d} {
		*tile = resized(*tile, len(q.features)+1)
	}
}
